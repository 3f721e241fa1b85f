//! URIs of resources: `vault://VAULT/PATH`, with a part of the note after `?`, and the recently changed notes.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use vault_tools::{Error, ErrorKind, Result};

pub(super) const SCHEME: &str = "vault://";

/// The characters that are percent-encoded: all but the unreserved ones.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// How many notes `?changed` returns without a number, and the maximum.
const CHANGED: usize = 20;
const MOST_CHANGED: usize = 200;

/// A URI in a vault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VaultUri {
    /// The vault's name.
    pub vault: String,
    pub target: UriTarget,
}

/// The target of a URI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum UriTarget {
    /// A note, or the part of it that an argument of `read_note` selects.
    Note { path: String, part: Option<(NotePart, String)> },
    /// This many of the recently changed notes.
    Changed(usize),
}

/// The kind of a part of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotePart {
    Heading,
    Lines,
    Block,
}

impl NotePart {
    const ALL: [Self; 3] = [Self::Heading, Self::Lines, Self::Block];

    /// The name of the kind in a URI and as an argument of `read_note`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Heading => "heading",
            Self::Lines => "lines",
            Self::Block => "block",
        }
    }
}

impl VaultUri {
    /// The URI of a whole note.
    pub fn note(vault: &str, path: &str) -> Self {
        let (vault, path) = (vault.to_owned(), path.to_owned());
        Self { vault, target: UriTarget::Note { path, part: None } }
    }

    /// The URI of the recently changed notes.
    pub fn changed(vault: &str) -> Self {
        Self { vault: vault.to_owned(), target: UriTarget::Changed(CHANGED) }
    }

    /// Parses a URI.
    ///
    /// # Errors
    /// A text that is not a URI of this form.
    pub fn parse(uri: &str) -> Result<Self> {
        let wrong = |why: &str| {
            Error::new(ErrorKind::InvalidArguments, format!("{uri:?} {why}"))
                .with_remedy("an address is vault://VAULT/PATH, with ?heading=, ?lines=3-10 or ?block= for a part")
        };
        let rest = uri.strip_prefix(SCHEME).ok_or_else(|| wrong("is not an address in a vault"))?;
        if rest.contains('#') {
            return Err(wrong("has a #, which is written %23 in names"));
        }
        let decoded = |text: &str| {
            percent_decode_str(text)
                .decode_utf8()
                .map(String::from)
                .map_err(|_| wrong("is not UTF-8 when it is decoded"))
        };
        let (place, query) = rest.split_once('?').map_or((rest, None), |(place, query)| (place, Some(query)));
        let (vault, path) = place.split_once('/').unwrap_or((place, ""));
        let (vault, path) = (decoded(vault)?, decoded(path)?);
        let query = query.map(|query| query.split_once('=').unwrap_or((query, "")));
        let target = match (path.is_empty(), query) {
            (true, Some(("changed", number))) => {
                let number = if number.is_empty() { Some(CHANGED) } else { number.parse().ok() };
                let number = number.filter(|number| (1..=MOST_CHANGED).contains(number));
                UriTarget::Changed(number.ok_or_else(|| wrong(&format!("needs a number from 1 to {MOST_CHANGED}")))?)
            }
            (true, _) => return Err(wrong("names no note")),
            (false, None) => UriTarget::Note { path, part: None },
            (false, Some((name, value))) => {
                let part = NotePart::ALL.into_iter().find(|part| part.name() == name);
                let part = part.ok_or_else(|| wrong(&format!("asks for `{name}`")))?;
                UriTarget::Note { path, part: Some((part, decoded(value)?)) }
            }
        };
        Ok(Self { vault, target })
    }
}

impl std::fmt::Display for VaultUri {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{SCHEME}{}/", encoded(&self.vault))?;
        match &self.target {
            UriTarget::Changed(number) => write!(f, "?changed={number}"),
            UriTarget::Note { path, part } => {
                f.write_str(&path.split('/').map(encoded).collect::<Vec<_>>().join("/"))?;
                part.iter().try_for_each(|(part, value)| write!(f, "?{}={}", part.name(), encoded(value)))
            }
        }
    }
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_address_leads_back_to_its_note(vault in "[^/]{1,12}", path in "[^/]{1,12}(/[^/]{1,8}){0,2}", value in ".{0,12}", part in 0..4_usize) {
            let part = NotePart::ALL.get(part).map(|part| (*part, value));
            let uri = VaultUri { vault, target: UriTarget::Note { path, part } };
            let text = uri.to_string();
            prop_assert!(text.is_ascii() && !text.contains(' '), "{}", text);
            prop_assert_eq!(VaultUri::parse(&text).unwrap(), uri);
        }

        #[test]
        fn any_text_is_an_address_or_an_error(text in ".{0,40}") {
            let _ = VaultUri::parse(&text);
            let _ = VaultUri::parse(&format!("vault://{text}"));
        }
    }

    #[test]
    fn addresses() {
        let uri = VaultUri::parse("vault://My%20Notes/a/b%23c.md?lines=3-10").unwrap();
        assert_eq!(uri.vault, "My Notes");
        let part = Some((NotePart::Lines, "3-10".to_owned()));
        assert_eq!(uri.target, UriTarget::Note { path: "a/b#c.md".to_owned(), part });
        assert_eq!(VaultUri::parse("vault://N/?changed=5").unwrap().target, UriTarget::Changed(5));
        assert_eq!(VaultUri::changed("N").to_string(), "vault://N/?changed=20");
        for (wrong, why) in [
            ("file:///etc/passwd", "is not an address"),
            ("vault://N/", "names no note"),
            ("vault://N/a.md#b", "written %23"),
            ("vault://N/a.md?color=red", "asks for `color`"),
            ("vault://N/?changed=0", "a number from 1"),
            ("vault://N/%FF.md", "not UTF-8"),
        ] {
            assert!(VaultUri::parse(wrong).unwrap_err().to_string().contains(why), "{wrong}");
        }
    }
}
