//! The options that a person can choose for a session: the mode and the model. The mode is also offered in the older
//! form of the protocol. A mode can only restrict what the settings allow.

use super::wire::{
    Error, ErrorCode, SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption, SessionMode,
    SessionModeState, error,
};
use crate::settings::Settings;

/// The ids of the options.
pub(super) const MODE: &str = "mode";
pub(super) const MODEL: &str = "model";

/// The effects that the model's calls may have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Mode {
    /// Change notes, with approval where the settings ask.
    #[default]
    Ask,
    /// Only read notes.
    Read,
}

impl Mode {
    const ALL: [(Self, &str, &str, &str); 2] = [
        (Self::Ask, "ask", "Ask before changes", "Changes are shown first, and made as your settings say"),
        (Self::Read, "read", "Read only", "Notes are read, and never changed"),
    ];

    fn id(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// # Errors
    /// Invalid params for an unknown mode.
    pub fn of(id: &str) -> Result<Self, Error> {
        let found = Self::ALL.iter().find(|(_, known, ..)| *known == id).map(|(mode, ..)| *mode);
        found.ok_or_else(|| error(ErrorCode::InvalidParams, "there is no such mode; there are ask and read"))
    }
}

/// Returns the modes in the older form of the protocol.
pub(super) fn modes(mode: Mode) -> SessionModeState {
    let all = Mode::ALL.iter().map(|(_, id, name, what)| SessionMode::new(*id, *name).description((*what).to_owned()));
    SessionModeState::new(mode.id(), all.collect())
}

/// Returns the models that a person can choose.
pub(super) fn models<'s>(settings: &'s Settings, current: &'s str) -> Vec<&'s str> {
    let mut models: Vec<&str> = settings.allowed_models.iter().map(String::as_str).collect();
    if !models.contains(&current) {
        models.insert(0, current);
    }
    models
}

/// Returns all options with their values.
pub(super) fn options(mode: Mode, settings: &Settings, model: &str) -> Vec<SessionConfigOption> {
    let modes = Mode::ALL
        .iter()
        .map(|(_, id, name, what)| SessionConfigSelectOption::new(*id, *name).description((*what).to_owned()));
    let models = models(settings, model).into_iter().map(|name| SessionConfigSelectOption::new(name.to_owned(), name));
    vec![
        SessionConfigOption::select(MODE, "Mode", mode.id(), modes.collect::<Vec<_>>())
            .category(SessionConfigOptionCategory::Mode),
        SessionConfigOption::select(MODEL, "Model", model.to_owned(), models.collect::<Vec<_>>())
            .category(SessionConfigOptionCategory::Model),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_is_found_by_its_id() {
        for (at, (mode, id, ..)) in Mode::ALL.into_iter().enumerate() {
            assert_eq!((mode as usize, Mode::of(id).unwrap(), mode.id()), (at, mode, id));
        }
        assert!(Mode::of("yolo").is_err());
    }

    #[test]
    fn the_model_of_the_session_can_be_chosen_whatever_is_allowed() {
        let mut settings = Settings::default();
        assert_eq!(models(&settings, "a"), ["a"]);
        settings.allowed_models = vec!["b".to_owned(), "a".to_owned()];
        assert_eq!((models(&settings, "a"), models(&settings, "c")), (vec!["b", "a"], vec!["c", "b", "a"]));
    }
}
