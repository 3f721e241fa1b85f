//! `vault_search`: files by name, then by content, with the true number of matches.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::policy::{Risk, Toolset};
use crate::sandbox::{EntryKind, View};
use crate::tool::{Context, Tool};
use crate::tools::excerpt::{around, beginning, occurrences};
use crate::tools::search_text::text_to_search;

/// Characters of a preview.
const PREVIEW: usize = 200;

pub(super) struct VaultSearch;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// What is looked for in names and texts; upper and lower case are alike.
    #[schemars(length(min = 1))]
    query: String,
    /// How many files at most.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 50))]
    limit: usize,
}

fn ten() -> usize {
    10
}

/// A file that matches.
#[derive(Serialize, JsonSchema)]
pub(super) struct Found {
    /// The file.
    path: String,
    /// Its name without its ending.
    basename: String,
    /// How often the query stands in its name and text.
    matches: usize,
    /// Its beginning, or what lies around the first match in its text; or, in brackets, why that was not looked into.
    preview: String,
}

impl Tool for VaultSearch {
    const NAME: &'static str = "vault_search";
    const DESCRIPTION: &'static str = "Look for files whose name or text holds the query, names first, then those \
        with the most matches. Gives paths and previews; read whole files with file_read. The user may withhold \
        results.";
    const TOOLSET: Toolset = Toolset::Chat;
    const RISK: Risk = Risk::Read;
    type Args = Args;
    type Output = Vec<Found>;

    fn call(&self, args: Args, context: &mut Context<'_, '_>) -> Result<Vec<Found>> {
        let query = args.query.trim();
        if query.is_empty() {
            return Err(Error::new(ErrorKind::InvalidArguments, "the query is empty").at("/query"));
        }
        let mut found = Vec::new();
        for entry in context.overlay.walk(None)? {
            context.stop.check()?;
            if entry.stat.kind != EntryKind::File || !entry.path.is_note() || !context.permits(&entry.path) {
                continue;
            }
            // One file that cannot be read keeps nobody from the others; its name is looked at all the same.
            let read = text_to_search(&entry.path, context);
            let text = read.as_deref().unwrap_or_default();
            let (in_name, in_text) = (occurrences(entry.path.stem(), query).len(), occurrences(text, query));
            if in_name + in_text.len() == 0 {
                continue;
            }
            let preview = match (&read, in_text.first()) {
                (Err(error), _) => format!("(not looked into: {})", error.message()),
                (Ok(text), Some(first)) => around(text, first, PREVIEW),
                (Ok(text), None) => beginning(text, PREVIEW),
            };
            let basename = entry.path.stem().to_string();
            let matches = in_name + in_text.len();
            found.push((in_name == 0, Found { path: entry.path.to_string(), basename, matches, preview }));
        }
        found.sort_by(|(a_later, a), (b_later, b)| {
            (a_later, std::cmp::Reverse(a.matches), &a.path).cmp(&(b_later, std::cmp::Reverse(b.matches), &b.path))
        });
        Ok(found.into_iter().map(|(_, found)| found).take(args.limit).collect())
    }
}
