//! Turns titles into file names: `util.slugifyTitle`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::error::Result;
use crate::tool::Context;
use crate::tools::shared::arguments::number;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Args {
    /// The title.
    title: String,
    /// The most characters.
    #[serde(default = "number::<100>")]
    #[schemars(range(min = 1, max = 200))]
    max_length: usize,
}

/// The slug.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct Slug {
    /// Lower case, words joined by `-`, letters of any script.
    slug: String,
}

pub(in crate::tools) fn slugify(args: Args, _: &mut Context<'_, '_>) -> Result<Slug> {
    Ok(Slug { slug: slug(&args.title, args.max_length) })
}

/// Returns the slug of a title, at most `max_length` characters; `untitled` if nothing remains.
fn slug(title: &str, max_length: usize) -> String {
    let mut slug = String::new();
    let mut gap = false;
    let mut length = 0;
    for c in title.nfc().flat_map(char::to_lowercase) {
        let is_part = c.is_alphanumeric() || (is_combining_mark(c) && !gap && !slug.is_empty());
        if !is_part {
            // An apostrophe does not split a word.
            gap |= !matches!(c, '\'' | '\u{2019}');
            continue;
        }
        let needed = if gap && !slug.is_empty() { 2 } else { 1 };
        if length + needed > max_length {
            break;
        }
        if needed == 2 {
            slug.push('-');
        }
        slug.push(c);
        length += needed;
        gap = false;
    }
    if slug.is_empty() { "untitled".chars().take(max_length).collect() } else { slug.nfc().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs() {
        fn check(title: &str, expected: &str) {
            assert_eq!(slug(title, 100), expected, "{title}");
        }
        check("My Amazing Note Title!", "my-amazing-note-title");
        check("  Ünïcode — naïve café ", "ünïcode-naïve-café");
        check("日本語 のノート", "日本語-のノート");
        check("Don't: stop/it", "dont-stop-it");
        check("हिन्दी", "हिन्दी");
        check("v1.2 (draft)", "v1-2-draft");
        check("🚲", "untitled");
        check("a--b__c", "a-b-c");
        assert_eq!(slug("one two three", 7), "one-two");
        assert_eq!(slug("one two three", 8), "one-two");
        assert_eq!(slug("one two three", 9), "one-two-t");
    }
}
