//! The choice of the trash for deleted files, from the user's settings and Obsidian's.

use crate::action::DeleteMode;
use crate::sandbox::HAS_SYSTEM_TRASH;

use super::context::Context;

impl Context<'_, '_> {
    /// Returns where deleted files go: the destination in the user's settings, but `.trash` if they choose the system's
    /// trash and Obsidian is set to keep deleted files in the vault; without such a setting, the destination in
    /// Obsidian's settings. The vault's settings cannot make a delete permanent.
    pub fn deletion(&self) -> DeleteMode {
        let settings = self.vault.sandbox().obsidian_setting("app.json").ok().flatten().unwrap_or_default();
        let settings: serde_json::Value = serde_json::from_str(&settings).unwrap_or_default();
        match (self.policy.trash(), settings["trashOption"].as_str()) {
            (Some(DeleteMode::SystemTrash), Some("local")) => DeleteMode::Trash,
            (None, Some("system")) if HAS_SYSTEM_TRASH => DeleteMode::SystemTrash,
            (mode, _) => mode.unwrap_or_default(),
        }
    }
}
