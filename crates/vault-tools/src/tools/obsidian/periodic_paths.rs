//! Obsidian's settings for daily to yearly notes: the path of such a note and its first text. The settings of the
//! plugin Periodic Notes are used if it creates such notes, otherwise those of the core plugin for daily notes.

use jiff::Zoned;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::templates::{DATE_FORMAT, Templates};
use super::{moment, settings};
use crate::error::Result;
use crate::sandbox::SafePath;
use crate::tool::Context;
use crate::vault::Vault;

/// The period of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::tools) enum Period {
    Day,
    Week,
    Month,
    Quarter,
    Year,
}

impl Period {
    /// Returns its name in the settings of Periodic Notes, its name in those of the first version, and the default
    /// format of note names.
    fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Day => ("day", "daily", DATE_FORMAT),
            Self::Week => ("week", "weekly", "gggg-[W]ww"),
            Self::Month => ("month", "monthly", "YYYY-MM"),
            Self::Quarter => ("quarter", "quarterly", "YYYY-[Q]Q"),
            Self::Year => ("year", "yearly", "YYYY"),
        }
    }

    /// Returns the adjective, such as `weekly`.
    pub(in crate::tools) fn adjective(self) -> &'static str {
        self.names().1
    }
}

/// The settings for the notes of a period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tools) struct PeriodicSettings {
    /// The folder; empty for the vault's root.
    folder: String,
    /// The name, as a format of moment.js; it can contain folders.
    format: String,
    /// The template of a new note; empty if there is no template.
    template: String,
    /// Whether they come from Periodic Notes.
    pub(in crate::tools) of_plugin: bool,
}

impl PeriodicSettings {
    /// Reads the vault's settings, or returns the defaults.
    ///
    /// # Errors
    /// A settings file that cannot be parsed.
    pub(in crate::tools) fn of(vault: &Vault, period: Period) -> Result<Self> {
        let plugin = settings::of_plugin(vault, "periodic-notes")?;
        let core = match Self::of_periodic_notes(&plugin, period) {
            Some(settings) => return Ok(settings),
            None if period == Period::Day => settings::read(vault, "daily-notes.json")?,
            None => Value::Null,
        };
        Ok(Self::read(&core, "template", period))
    }

    /// Returns the settings of Periodic Notes, if it creates such notes: those of its first version, or of the active
    /// set of calendars.
    fn of_periodic_notes(settings: &Value, period: Period) -> Option<Self> {
        let (name, first_name, _) = period.names();
        let sets = settings["calendarSets"].as_array().into_iter().flatten();
        let active = sets.clone().find(|set| set["id"] == settings["activeCalendarSet"]).or(sets.clone().next());
        let of_set = active.map(|set| (&set[name], "templatePath"));
        let (settings, template) = of_set.unwrap_or((&settings[first_name], "template"));
        (settings["enabled"] == true).then(|| Self { of_plugin: true, ..Self::read(settings, template, period) })
    }

    fn read(settings: &Value, template: &str, period: Period) -> Self {
        let format = settings::text(settings, "format");
        Self {
            folder: settings::folder(settings, "folder").to_owned(),
            format: if format.is_empty() { period.names().2 } else { format }.to_owned(),
            template: settings::folder(settings, template).to_owned(),
            of_plugin: false,
        }
    }

    /// Returns the path of the note that a day belongs to.
    ///
    /// # Errors
    /// An invalid format; a path outside the vault.
    pub(in crate::tools) fn path(&self, day: &Zoned) -> Result<SafePath> {
        let name = moment::format(day, &self.format)?;
        let folder = &self.folder;
        SafePath::new(&if folder.is_empty() { format!("{name}.md") } else { format!("{folder}/{name}.md") })
    }

    /// Returns the first text of that note; empty without a template.
    ///
    /// # Errors
    /// A template that is denied or missing, or has an invalid date format.
    pub(in crate::tools) fn first_text(
        &self,
        day: &Zoned,
        path: &SafePath,
        context: &mut Context<'_, '_>,
    ) -> Result<String> {
        if self.template.is_empty() {
            return Ok(String::new());
        }
        let templates = Templates::of(context.vault, day)?;
        let templates = if self.of_plugin { templates.periodic(&self.format) } else { templates };
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
            assert_eq!(
                PeriodicSettings::read(settings, "template", Period::Day).path(&day()).unwrap().as_str(),
                expected
            );
        }
        check(&Value::Null, "2026-03-02.md");
        check(&json!({ "folder": "/Daily/", "format": "" }), "Daily/2026-03-02.md");
        check(
            &json!({ "folder": "Daily", "format": "YYYY/MM-MMMM/YYYY-MM-DD", "autorun": true }),
            "Daily/2026/03-March/2026-03-02.md",
        );
        let out = PeriodicSettings::read(&json!({ "folder": "../x" }), "template", Period::Day);
        assert_eq!(out.path(&day()).unwrap_err().kind(), ErrorKind::InvalidPath);
    }

    #[test]
    fn names_unless_the_settings_say_otherwise() {
        for (period, expected) in [
            (Period::Day, "2026-03-02.md"),
            (Period::Week, "2026-W10.md"),
            (Period::Month, "2026-03.md"),
            (Period::Quarter, "2026-Q1.md"),
            (Period::Year, "2026.md"),
        ] {
            let settings = PeriodicSettings::read(&Value::Null, "template", period);
            assert_eq!(settings.path(&day()).unwrap().as_str(), expected);
        }
        let settings = json!({ "weekly": { "enabled": true, "format": "GGGG-[W]WW", "folder": "W" } });
        let settings = PeriodicSettings::of_periodic_notes(&settings, Period::Week).unwrap();
        assert_eq!(settings.path(&day()).unwrap().as_str(), "W/2026-W10.md");
    }

    #[test]
    fn periodic_notes_of_both_versions() {
        let day = json!({ "enabled": true, "folder": "P", "format": "DD", "templatePath": "T", "template": "T" });
        let expected =
            PeriodicSettings { folder: "P".into(), format: "DD".into(), template: "T".into(), of_plugin: true };
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
            assert_eq!(PeriodicSettings::of_periodic_notes(&settings, Period::Day).as_ref(), expected, "{settings}");
        }
    }
}
