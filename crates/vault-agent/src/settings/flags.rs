//! The flags of the settings, for every command that asks a model.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use serde_json::json;

use super::table::{Setting, TABLE};
use super::value::Kind;
use super::{Given, Problem, Source};

/// What the command line sets.
#[derive(Debug, Clone, Default)]
pub(crate) struct SettingArgs(Vec<(&'static Setting, Option<String>)>);

impl SettingArgs {
    /// The values that are given.
    pub(super) fn given(&self, problems: &mut Vec<Problem>) -> Vec<Given> {
        let mut given = Vec::new();
        for (setting, text) in &self.0 {
            let flag = setting.flag.unwrap_or_default();
            let source = Source::Flag(flag.to_owned());
            let value = match text {
                None => Ok(json!(!flag.starts_with("no-"))),
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

impl Args for SettingArgs {
    fn augment_args(command: Command) -> Command {
        TABLE.iter().filter_map(|setting| Some((setting, setting.flag?))).fold(command, |command, (setting, flag)| {
            let arg = Arg::new(setting.name).long(flag).help_heading("Model");
            command.arg(match setting.kind {
                Kind::Switch if flag.starts_with("no-") => {
                    let what = match setting.name {
                        "streaming" => "Have replies come whole",
                        _ => "Let the model call no tools",
                    };
                    arg.help(what).action(ArgAction::SetTrue)
                }
                Kind::Switch => arg.help(setting.what).action(ArgAction::SetTrue),
                Kind::List => arg.help(setting.what).value_name("NAME").action(ArgAction::Append),
                Kind::Count(..) | Kind::Number(..) => arg.help(setting.what).value_name("N"),
                Kind::Text => arg.help(setting.what).value_name(value_name(setting.name)),
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn value_name(setting: &str) -> &'static str {
    match setting {
        "base_url" => "URL",
        "system" => "TEXT",
        "text_calls" => "FORM",
        "review" => "WHICH",
        "reasoning_effort" => "EFFORT",
        _ => "NAME",
    }
}

impl FromArgMatches for SettingArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given = Vec::new();
        for setting in TABLE.iter().filter(|setting| setting.flag.is_some()) {
            match setting.kind {
                Kind::Switch if matches.get_flag(setting.name) => given.push((setting, None)),
                Kind::Switch => {}
                _ => {
                    if let Some(texts) = matches.get_many::<String>(setting.name) {
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
