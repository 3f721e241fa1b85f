//! Obsidian's settings for daily notes: the path of a day's note and its first text.

use jiff::Zoned;
use serde::Deserialize;

use super::moment;
use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::{SafePath, View};
use crate::tool::{Context, PathArg};
use crate::vault::Vault;

/// The settings file in `.obsidian`.
const SETTINGS: &str = "daily-notes.json";

/// The settings of Obsidian's daily notes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct DailySettings {
    /// The folder; empty for the vault's root.
    folder: String,
    /// The name, as a format of moment.js; it can contain folders.
    format: String,
    /// The note a new one starts as, without `.md`; empty for none.
    template: String,
}

impl Default for DailySettings {
    fn default() -> Self {
        Self { folder: String::new(), format: DEFAULT_FORMAT.into(), template: String::new() }
    }
}

const DEFAULT_FORMAT: &str = "YYYY-MM-DD";

impl DailySettings {
    /// The vault's settings, or the defaults.
    ///
    /// # Errors
    /// A settings file that cannot be parsed.
    pub(super) fn of(vault: &Vault) -> Result<Self> {
        match vault.sandbox().obsidian_setting(SETTINGS)? {
            Some(text) => Self::read(&text),
            None => Ok(Self::default()),
        }
    }

    fn read(text: &str) -> Result<Self> {
        let settings: Self = serde_json::from_str(text).map_err(|error| {
            Error::new(ErrorKind::Config, format!("cannot be parsed: {error}"))
                .at(".obsidian/daily-notes.json")
                .with_remedy("set up daily notes in Obsidian again, or delete the file")
        })?;
        Ok(if settings.format.is_empty() { Self { format: DEFAULT_FORMAT.into(), ..settings } } else { settings })
    }

    /// The path of a day's note.
    ///
    /// # Errors
    /// An invalid format; a path outside the vault.
    pub(super) fn path(&self, day: &Zoned) -> Result<SafePath> {
        let name = moment::format(day, &self.format)?;
        let folder = self.folder.trim_matches('/');
        let path = if folder.is_empty() { format!("{name}.md") } else { format!("{folder}/{name}.md") };
        SafePath::new(&path)
    }

    /// The first text of a day's note; empty without a template.
    ///
    /// # Errors
    /// A template that is denied or missing, or has an invalid date format.
    pub(super) fn first_text(&self, day: &Zoned, path: &SafePath, context: &Context<'_, '_>) -> Result<String> {
        let template = self.template.trim_matches('/');
        if template.is_empty() {
            return Ok(String::new());
        }
        let file = if template.ends_with(".md") { template.to_string() } else { format!("{template}.md") };
        // The path comes from the vault's settings, which cannot allow what the user denies.
        let file = context.path(&PathArg(file))?;
        if !context.overlay.exists(&file)? {
            return Err(Error::new(ErrorKind::NotFound, "the template of the daily notes does not exist")
                .at(file)
                .with_remedy("create it, or choose another in Obsidian's settings for daily notes"));
        }
        fill(&context.overlay.text(&file)?, day, path)
    }
}

/// A template with `{{date}}`, `{{time}}`, `{{title}}` and `{{date:FORMAT}}` filled in.
fn fill(template: &str, day: &Zoned, path: &SafePath) -> Result<String> {
    let mut filled = String::new();
    let mut rest = template;
    while let Some(at) = rest.find("{{") {
        let Some(length) = rest[at..].find("}}") else { break };
        filled.push_str(&rest[..at]);
        let inside = rest[at + 2..at + length].trim();
        let (name, format) =
            inside.split_once(':').map_or((inside, None), |(name, format)| (name.trim(), Some(format.trim())));
        match name.to_lowercase().as_str() {
            "date" => filled.push_str(&moment::format(day, format.unwrap_or(DEFAULT_FORMAT))?),
            "time" => filled.push_str(&moment::format(day, format.unwrap_or("HH:mm"))?),
            "title" => filled.push_str(path.stem()),
            // Other plugins use braces too.
            _ => filled.push_str(&rest[at..at + length + 2]),
        }
        rest = &rest[at + length + 2..];
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day() -> Zoned {
        "2026-03-02T15:04:09+01:00[Europe/Zurich]".parse().unwrap()
    }

    #[test]
    fn path_of_the_note() {
        fn check(settings: &str, expected: &str) {
            let settings = DailySettings::read(settings).unwrap();
            assert_eq!(settings.path(&day()).unwrap().as_str(), expected);
        }
        check("{}", "2026-03-02.md");
        check(r#"{"folder":"/Daily/","format":""}"#, "Daily/2026-03-02.md");
        check(
            r#"{"folder":"Daily","format":"YYYY/MM-MMMM/YYYY-MM-DD","autorun":true}"#,
            "Daily/2026/03-March/2026-03-02.md",
        );
        let out = DailySettings::read(r#"{"folder":"../x"}"#).unwrap();
        assert_eq!(out.path(&day()).unwrap_err().kind(), ErrorKind::InvalidPath);
        assert!(DailySettings::read("no").unwrap_err().to_string().contains("daily-notes.json"));
    }

    #[test]
    fn templates() {
        let path = SafePath::new("Daily/2026-03-02.md").unwrap();
        let filled = fill("# {{title}}\n{{date:dddd}} {{ time }} {{date}} {{other}} {{open", &day(), &path).unwrap();
        assert_eq!(filled, "# 2026-03-02\nMonday 15:04 2026-03-02 {{other}} {{open");
    }
}
