//! Obsidian's settings for daily notes: the path of a day's note and its first text. Where the plugin Periodic Notes makes
//! them, its settings count.

use jiff::Zoned;
use serde_json::Value;

use super::templates::{DATE_FORMAT, Templates};
use super::{moment, obsidian_settings};
use crate::error::Result;
use crate::sandbox::SafePath;
use crate::tool::Context;
use crate::vault::Vault;

/// The settings of daily notes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DailySettings {
    /// The folder; empty for the vault's root.
    folder: String,
    /// The name, as a format of moment.js; it can contain folders.
    format: String,
    /// The note a new one starts as; empty for none.
    template: String,
    is_periodic: bool,
}

impl DailySettings {
    /// The vault's settings, or the defaults.
    ///
    /// # Errors
    /// A settings file that cannot be parsed.
    pub(super) fn of(vault: &Vault) -> Result<Self> {
        match Self::of_periodic_notes(&obsidian_settings::of_plugin(vault, "periodic-notes")?) {
            Some(settings) => Ok(settings),
            None => Ok(Self::read(&obsidian_settings::read(vault, "daily-notes.json")?, "template")),
        }
    }

    /// Those of Periodic Notes, if it makes daily notes: of its first version, or of the set of calendars that is active.
    fn of_periodic_notes(settings: &Value) -> Option<Self> {
        let sets = settings["calendarSets"].as_array().into_iter().flatten();
        let active = sets.clone().find(|set| set["id"] == settings["activeCalendarSet"]).or(sets.clone().next());
        let of_set = active.map(|set| (&set["day"], "templatePath"));
        let (daily, template) = of_set.unwrap_or((&settings["daily"], "template"));
        (daily["enabled"] == true).then(|| Self { is_periodic: true, ..Self::read(daily, template) })
    }

    fn read(settings: &Value, template: &str) -> Self {
        let format = obsidian_settings::text(settings, "format");
        Self {
            folder: obsidian_settings::folder(settings, "folder").to_owned(),
            format: if format.is_empty() { DATE_FORMAT } else { format }.to_owned(),
            template: obsidian_settings::folder(settings, template).to_owned(),
            is_periodic: false,
        }
    }

    /// The path of a day's note.
    ///
    /// # Errors
    /// An invalid format; a path outside the vault.
    pub(super) fn path(&self, day: &Zoned) -> Result<SafePath> {
        let name = moment::format(day, &self.format)?;
        let folder = &self.folder;
        SafePath::new(&if folder.is_empty() { format!("{name}.md") } else { format!("{folder}/{name}.md") })
    }

    /// The first text of a day's note; empty without a template.
    ///
    /// # Errors
    /// A template that is denied or missing, or has an invalid date format.
    pub(super) fn first_text(&self, day: &Zoned, path: &SafePath, context: &mut Context<'_, '_>) -> Result<String> {
        if self.template.is_empty() {
            return Ok(String::new());
        }
        let templates = Templates::of(context.vault, day)?;
        let templates = if self.is_periodic { templates.periodic(&self.format) } else { templates };
        templates.first_text(&self.template, path, context)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::error::ErrorKind;

    fn day() -> Zoned {
        "2026-03-02T15:04:09+01:00[Europe/Zurich]".parse().unwrap()
    }

    #[test]
    fn path_of_the_note() {
        fn check(settings: &Value, expected: &str) {
            assert_eq!(DailySettings::read(settings, "template").path(&day()).unwrap().as_str(), expected);
        }
        check(&Value::Null, "2026-03-02.md");
        check(&json!({ "folder": "/Daily/", "format": "" }), "Daily/2026-03-02.md");
        check(
            &json!({ "folder": "Daily", "format": "YYYY/MM-MMMM/YYYY-MM-DD", "autorun": true }),
            "Daily/2026/03-March/2026-03-02.md",
        );
        let out = DailySettings::read(&json!({ "folder": "../x" }), "template");
        assert_eq!(out.path(&day()).unwrap_err().kind(), ErrorKind::InvalidPath);
    }

    #[test]
    fn periodic_notes_of_both_versions() {
        let day = json!({ "enabled": true, "folder": "P", "format": "DD", "templatePath": "T", "template": "T" });
        let expected =
            DailySettings { folder: "P".into(), format: "DD".into(), template: "T".into(), is_periodic: true };
        let off = json!({ "enabled": false, "folder": "Q" });
        for (settings, expected) in [
            (json!({ "daily": day, "weekly": off }), Some(&expected)),
            (json!({ "daily": off, "weekly": day }), None),
            (
                json!({ "calendarSets": [{ "id": "a", "day": off }, { "id": "b", "day": day }], "activeCalendarSet": "b" }),
                Some(&expected),
            ),
            (json!({ "calendarSets": [{ "id": "a", "day": day }] }), Some(&expected)),
            (json!({ "calendarSets": [{ "id": "a", "week": day }] }), None),
            (Value::Null, None),
            (json!({ "daily": 3 }), None),
        ] {
            assert_eq!(DailySettings::of_periodic_notes(&settings).as_ref(), expected, "{settings}");
        }
    }
}
