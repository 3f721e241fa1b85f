//! The flags of the settings, for every command that asks a model.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use serde_json::json;

use super::table::{Setting, TABLE};
use super::value::Kind;
use super::{Problem, SettingValue, ValueSource};

/// The settings that only matter when tools are offered to the model.
const OF_TOOLS: [&str; 5] = ["tools", "toolsets", "text_calls", "review", "max_calls"];

/// The settings that were given as flags.
#[derive(Debug, Clone, Default)]
pub(crate) struct SettingArgs(Vec<(&'static Setting, Option<String>)>);

impl SettingArgs {
    /// The values that are given.
    pub(super) fn given(&self, problems: &mut Vec<Problem>) -> Vec<SettingValue> {
        let mut given = Vec::new();
        for (setting, text) in &self.0 {
            let name = setting.flag.as_ref().map_or("", |flag| flag.name);
            let source = ValueSource::Flag(name.to_owned());
            let value = match text {
                None => Ok(json!(!name.starts_with("no-"))),
                Some(text) => setting.of_text(text),
            };
            match value {
                Ok(value) => given.push((*setting, value, source)),
                Err(message) => problems.push(Problem { source, message }),
            }
        }
        given
    }
}

fn augmented(command: Command, takes: fn(&Setting) -> bool) -> Command {
    let flags =
        TABLE.iter().filter(|setting| takes(setting)).filter_map(|setting| Some((setting, setting.flag.as_ref()?)));
    flags.fold(command, |command, (setting, flag)| {
        let arg = Arg::new(setting.name).long(flag.name).help_heading("Model").help(flag.brief);
        // Not for a flag `no-…`, which means the opposite of its setting.
        let arg = if flag.name.starts_with("no-") { arg } else { arg.long_help(setting.what) };
        let arg = arg.hide_short_help(!flag.is_common);
        command.arg(match setting.kind {
            Kind::Switch => arg.action(ArgAction::SetTrue),
            Kind::List => arg.value_name(flag.value).action(ArgAction::Append),
            _ => arg.value_name(flag.value),
        })
    })
}

impl Args for SettingArgs {
    fn augment_args(command: Command) -> Command {
        augmented(command, |_| true)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given = Vec::new();
        for setting in TABLE.iter().filter(|setting| setting.flag.is_some()) {
            match setting.kind {
                // A command may leave out some flags, so an unknown name is no error.
                Kind::Switch => {
                    if let Ok(Some(true)) = matches.try_get_one::<bool>(setting.name) {
                        given.push((setting, None));
                    }
                }
                _ => {
                    if let Ok(Some(texts)) = matches.try_get_many::<String>(setting.name) {
                        let texts: Vec<&str> = texts.map(String::as_str).collect();
                        given.push((setting, Some(texts.join(","))));
                    }
                }
            }
        }
        Ok(Self(given))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The settings for a command that has the model write and offers it no tools.
#[derive(Debug, Clone, Default)]
pub(crate) struct WriterArgs(pub SettingArgs);

/// The settings whose values may be invalid.
#[derive(Debug, Clone, Default)]
pub(crate) struct ValueArgs(pub SettingArgs);

/// Defines a subset of the flags as arguments of their own.
macro_rules! part {
    ($name:ident, $takes:expr) => {
        impl Args for $name {
            fn augment_args(command: Command) -> Command {
                augmented(command, $takes)
            }

            fn augment_args_for_update(command: Command) -> Command {
                Self::augment_args(command)
            }
        }

        impl FromArgMatches for $name {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
                SettingArgs::from_arg_matches(matches).map(Self)
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
                self.0.update_from_arg_matches(matches)
            }
        }
    };
}

part!(WriterArgs, |setting| !OF_TOOLS.contains(&setting.name));
part!(ValueArgs, |setting| !matches!(setting.kind, Kind::Switch) && setting.name != "system");
