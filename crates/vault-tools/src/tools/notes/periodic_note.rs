//! Creates the note of a day, week, month, quarter or year according to the vault's settings: `create_daily_note`,
//! `create_periodic_note`.

use jiff::Zoned;
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::edit;
use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::View;
use crate::tool::{Context, PathArg};
use crate::tools::obsidian::periodic_paths::{Period, PeriodicSettings};
use crate::tools::shared::{expected_version, locate};

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct Args {
    /// The day, as YYYY-MM-DD; default today.
    date: Option<String>,
    /// Text to add at the end of the note.
    content: Option<String>,
    /// From read_note: if the note has changed since, nothing is written.
    expected_version: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct PeriodArgs {
    /// What the note is of.
    period: Period,
    #[serde(flatten)]
    args: Args,
}

/// The note.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct PeriodicNote {
    /// Its path.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// Whether it was created now.
    created: bool,
    /// Whether the content was added.
    appended: bool,
    /// Its version now.
    version: String,
}

pub(in crate::tools) fn create_daily_note(args: Args, context: &mut Context<'_, '_>) -> Result<PeriodicNote> {
    let settings = PeriodicSettings::of(context.vault, Period::Day)?;
    create(args, &settings, context)
}

pub(in crate::tools) fn create_periodic_note(args: PeriodArgs, context: &mut Context<'_, '_>) -> Result<PeriodicNote> {
    let settings = PeriodicSettings::of(context.vault, args.period)?;
    if !settings.of_plugin && args.period != Period::Day {
        let what = "Obsidian's plugin Periodic Notes is not set to make";
        context.overlay.notice(format!("{what} {} notes here, so this one has a plain name", args.period.adjective()));
    }
    create(args.args, &settings, context)
}

fn create(args: Args, settings: &PeriodicSettings, context: &mut Context<'_, '_>) -> Result<PeriodicNote> {
    let day = match &args.date {
        Some(date) => on(date, context.now)?,
        None => context.now.clone(),
    };
    let path = settings.path(&day)?;
    let path = locate::new_note(&PathArg(path.to_string()), context)?;
    expected_version::require(args.expected_version.as_deref(), &path, context)?;
    let created = !context.overlay.exists(&path)?;
    let before = match created {
        true => settings.first_text(&day, &path, context)?,
        false => context.overlay.text(&path)?,
    };
    let content = args.content.filter(|content| !content.is_empty());
    let appended = content.is_some();
    let text = match content {
        Some(content) => edit::append_to_end(&before, &content).map_err(|error| error.at(&path))?.text,
        None => before,
    };
    if created {
        context.overlay.create(&path, text)?;
    } else if appended {
        context.overlay.write(&path, text)?;
    }
    Ok(PeriodicNote { version: expected_version::of(&path, context)?, path: path.to_string(), created, appended })
}

/// Returns the given day at the current time of day.
fn on(date: &str, now: &Zoned) -> Result<Zoned> {
    let day = date.trim().parse::<Date>().ok();
    let moment = day.and_then(|day| day.to_datetime(now.time()).to_zoned(now.time_zone().clone()).ok());
    moment.ok_or_else(|| {
        Error::new(ErrorKind::InvalidArguments, format!("`{date}` is not a day"))
            .at("/date")
            .with_remedy("write YYYY-MM-DD")
    })
}
