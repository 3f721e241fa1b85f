//! Creates the first text of a note from an Obsidian template: finds the template and fills in its variables.
//!
//! Templates are found in the folders of the core plugin Templates and of Templater. `{{title}}`, `{{date}}` and
//! `{{time}}` are filled in, also with a format (`{{date:YYYY}}`) and an offset (`{{date-1d}}`). Templater's commands
//! (`<% … %>`) are programs, so they are left unchanged, with a notice.

use jiff::{Span, Zoned};

use super::{moment, settings};
use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::{SafePath, View};
use crate::tool::{Context, PathArg};
use crate::vault::Vault;

/// The default format of `{{date}}`, and of the name of a daily note.
pub(in crate::tools) const DATE_FORMAT: &str = "YYYY-MM-DD";

/// The default format of `{{time}}`.
const TIME_FORMAT: &str = "HH:mm";

/// The templates of a vault.
pub(in crate::tools) struct Templates {
    folders: Vec<String>,
    /// The moment of the dates in a template: now, or the day of a daily note.
    moment: Zoned,
    date_format: String,
    time_format: String,
    /// For periodic notes, the format of `{{date}}`, `{{yesterday}}` and `{{tomorrow}}`.
    name_format: Option<String>,
}

impl Templates {
    /// Reads the vault's settings.
    ///
    /// # Errors
    /// Settings that cannot be parsed.
    pub(in crate::tools) fn of(vault: &Vault, moment: &Zoned) -> Result<Self> {
        let core = settings::read(vault, "templates.json")?;
        let templater = settings::of_plugin(vault, "templater-obsidian")?;
        let folders = [settings::folder(&core, "folder"), settings::folder(&templater, "templates_folder")];
        let format = |key, default: &str| match settings::text(&core, key) {
            "" => default.to_owned(),
            format => format.to_owned(),
        };
        Ok(Self {
            folders: folders.into_iter().filter(|folder| !folder.is_empty()).map(str::to_owned).collect(),
            moment: moment.clone(),
            date_format: format("dateFormat", DATE_FORMAT),
            time_format: format("timeFormat", TIME_FORMAT),
            name_format: None,
        })
    }

    /// Returns the folders of templates in the settings.
    pub(in crate::tools) fn folders(&self) -> &[String] {
        &self.folders
    }

    /// Adapts the templates to a periodic note whose name has this format.
    pub(in crate::tools) fn periodic(self, format: &str) -> Self {
        Self { name_format: Some(format.to_owned()), ..self }
    }

    /// Returns the first text of a note at `path`, made from the template `name`: its path, or its name in one of the
    /// folders, with or without `.md`.
    ///
    /// # Errors
    /// A template that is denied or does not exist, or has an invalid date format.
    pub(in crate::tools) fn first_text(
        &self,
        name: &str,
        path: &SafePath,
        context: &mut Context<'_, '_>,
    ) -> Result<String> {
        let template = self.find(name, context)?;
        let text = context.overlay.text(&template)?;
        if text.split_once("<%").is_some_and(|(_, rest)| rest.contains("%>")) {
            let what = "has commands of Templater (<% … %>), which are left unchanged; Templater can replace them";
            context.overlay.notice(format!("{template} {what} when the note is open in Obsidian"));
        }
        self.fill(&text, path)
    }

    fn find(&self, name: &str, context: &Context<'_, '_>) -> Result<SafePath> {
        let name = name.trim().trim_matches('/');
        let file = if name.ends_with(".md") { name.to_owned() } else { format!("{name}.md") };
        let in_folders = self.folders.iter().map(|folder| format!("{folder}/{file}"));
        for place in std::iter::once(file.clone()).chain(in_folders) {
            // The path comes from the vault's settings, which cannot allow a path that the user denies.
            let path = context.path(&PathArg(place))?;
            if context.overlay.exists(&path)? {
                return Ok(path);
            }
        }
        let folders = match &self.folders[..] {
            [] => "in the vault; Obsidian's settings name no folder of templates".to_owned(),
            folders => format!("in the vault's root or in {}", folders.join(" or ")),
        };
        Err(Error::new(ErrorKind::NotFound, format!("there is no template of this name {folders}"))
            .at(file)
            .with_remedy("name an existing note; the template of daily notes is chosen in Obsidian's settings"))
    }

    fn fill(&self, template: &str, path: &SafePath) -> Result<String> {
        let mut filled = String::new();
        let mut rest = template;
        while let Some(at) = rest.find("{{") {
            let Some(length) = rest[at..].find("}}") else { break };
            filled.push_str(&rest[..at]);
            let inside = rest[at + 2..at + length].trim();
            match self.value(inside, path)? {
                Some(value) => filled.push_str(&value),
                // Other plugins use braces too.
                None => filled.push_str(&rest[at..at + length + 2]),
            }
            rest = &rest[at + length + 2..];
        }
        filled.push_str(rest);
        Ok(filled)
    }

    /// Returns the value of the text between two pairs of braces; `None` if it is not a variable.
    fn value(&self, inside: &str, path: &SafePath) -> Result<Option<String>> {
        let (name, format) =
            inside.split_once(':').map_or((inside, None), |(name, format)| (name.trim(), Some(format.trim())));
        let name = name.to_lowercase();
        let date_format = self.name_format.as_ref().unwrap_or(&self.date_format);
        let (span, default) = match (name.as_str(), &self.name_format) {
            ("title", _) => return Ok(Some(path.stem().to_owned())),
            ("yesterday", Some(format)) => (Some(Span::new().days(-1)), format),
            ("tomorrow", Some(format)) => (Some(Span::new().days(1)), format),
            (day, Some(name_format)) if format.is_some() && WEEKDAYS.contains(&day) => {
                (Some(Span::new().days(self.days_to(day, name_format))), name_format)
            }
            _ => match (name.strip_prefix("date"), name.strip_prefix("time")) {
                (Some(after), _) => (offset(after), date_format),
                (_, Some(after)) => (offset(after), &self.time_format),
                _ => return Ok(None),
            },
        };
        let Some(moment) = span.and_then(|span| self.moment.checked_add(span).ok()) else { return Ok(None) };
        moment::format(&moment, format.unwrap_or(default)).map(Some)
    }

    /// Returns the number of days from the moment to a day of its week. The first day of the week depends on how the
    /// name of the note counts weeks.
    fn days_to(&self, day: &str, name_format: &str) -> i8 {
        let is_iso =
            name_format.split('[').any(|part| part.rsplit(']').next().unwrap_or_default().contains(['W', 'G']));
        let first = i8::from(is_iso);
        let place = |from_sunday: i8| (from_sunday - first).rem_euclid(7);
        let day = WEEKDAYS.iter().position(|name| *name == day).unwrap_or_default();
        place(day as i8) - place(self.moment.weekday().to_sunday_zero_offset())
    }
}

/// The days of the week, from Sunday on.
const WEEKDAYS: [&str; 7] = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

/// Parses `+1d`, `-2w`, `+1M`; an empty text is an empty offset. `None` for anything else.
fn offset(text: &str) -> Option<Span> {
    let text = text.trim();
    if text.is_empty() {
        return Some(Span::new());
    }
    let (number, unit) = text.split_at(text.len().checked_sub(1).filter(|at| text.is_char_boundary(*at))?);
    let number: i64 = number.starts_with(['+', '-']).then(|| number.parse().ok())??;
    let span = Span::new();
    match unit {
        "y" => span.try_years(number),
        "q" => span.try_months(number.checked_mul(3)?),
        "m" => span.try_months(number),
        "w" => span.try_weeks(number),
        "d" => span.try_days(number),
        "h" => span.try_hours(number),
        _ => return None,
    }
    .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn templates(name_format: Option<&str>) -> Templates {
        Templates {
            folders: Vec::new(),
            moment: "2026-03-02T15:04:09+01:00[Europe/Zurich]".parse().unwrap(),
            date_format: DATE_FORMAT.into(),
            time_format: TIME_FORMAT.into(),
            name_format: name_format.map(str::to_owned),
        }
    }

    proptest::proptest! {
        /// A template is anybody's text: what is no variable stays as it is, and nothing panics.
        #[test]
        fn any_text_is_a_template(
            parts in proptest::collection::vec("\\{\\{|\\}\\}|date|time|title|[+-][0-9]{1,20}|[yqmwdh]|:|\\[|YYYY| |é|\n", 0..16)
        ) {
            let text = parts.concat();
            let filled = templates(None).fill(&text, &SafePath::new("a.md").unwrap());
            if !text.contains("{{") || !text.contains("}}") {
                proptest::prop_assert_eq!(filled.unwrap(), text);
            }
        }
    }

    #[test]
    fn what_is_filled_in() {
        fn check(format: Option<&str>, template: &str, expected: &str) {
            let path = SafePath::new("Daily/2. March.md").unwrap();
            assert_eq!(templates(format).fill(template, &path).unwrap(), expected, "{template}");
        }
        check(
            None,
            "# {{title}}\n{{date:dddd}} {{ time }} {{DATE}} {{other}} {{open",
            "# 2. March\nMonday 15:04 2026-03-02 {{other}} {{open",
        );
        check(
            None,
            "{{date-1d}} {{date +2w:DD.MM.}} {{date+1m:MMM}} {{time-3h:HH}} {{date-1q:MM}}",
            "2026-03-01 16.03. Apr 12 12",
        );
        check(
            None,
            "{{yesterday}} {{dates}} {{date+d}} {{date+1é}} {{date1d}} {{datetime}}",
            "{{yesterday}} {{dates}} {{date+d}} {{date+1é}} {{date1d}} {{datetime}}",
        );
        // A Monday, in a week that begins on Sunday, or on Monday.
        check(Some("gggg-[W]ww"), "{{sunday:DD}} {{monday:DD}} {{saturday:DD}} {{sunday}}", "01 02 07 {{sunday}}");
        check(Some("GGGG-[w]WW"), "{{sunday:DD}} {{ Monday :DD}} {{saturday:DD}}", "08 02 07");
        check(Some("D. MMMM"), "{{yesterday}} {{date}} {{tomorrow}} {{date:YYYY}}", "1. March 2. March 3. March 2026");
        check(
            None,
            "{{date+99999999999999999999d}} {{date+999999999d}}",
            "{{date+99999999999999999999d}} {{date+999999999d}}",
        );
    }
}
