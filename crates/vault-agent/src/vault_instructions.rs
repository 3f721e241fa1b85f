//! `AGENTS.md` at the root of a vault: instructions for assistants, which are shown to the person once for approval.
//! The answer holds only for exactly this text, and is stored in the user's state folder. An approved text counts as
//! the person's own instructions; it changes no policy, no approval, no model and no budget.

use serde::{Deserialize, Serialize};
use vault_tools::{ContentHash, Error, Result, SafePath, View};

use crate::workspace::{OpenVault, Workspace};

const NAME: &str = "AGENTS.md";

/// The file with the answer, in the state folder of the vault.
const ANSWER: &str = "agents-md.json";

/// The maximum bytes of the text, because it is sent to the model with every message.
const LONGEST: usize = 32_000;

/// The instructions of a vault.
#[derive(Debug, Clone)]
pub(crate) struct VaultInstructions {
    /// The name of the vault.
    pub vault: String,
    pub text: String,
    /// The person's answer for this text; `None` if they were not asked. A text that is too long is not used.
    pub is_used: Option<bool>,
    number: usize,
}

#[derive(Debug, Serialize, Deserialize)]
struct SavedAnswer {
    digest: String,
    is_used: bool,
}

impl VaultInstructions {
    /// Describes the file and its size.
    pub fn described(&self) -> String {
        format!("{NAME} of {} ({} kB)", self.vault, self.text.len().div_ceil(1000))
    }

    /// Returns the reason why the text cannot be used, whatever the person answers.
    pub fn fault(&self) -> Option<String> {
        let is_too_long = self.text.len() > LONGEST;
        is_too_long.then(|| format!("{} is longer than {} kB, so it is not used", self.described(), LONGEST / 1000))
    }

    /// Stores the person's answer for this text.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn answer(&self, workspace: &Workspace, is_used: bool) -> Result<()> {
        let answer = SavedAnswer { digest: digest(&self.text), is_used };
        let json = serde_json::to_vec(&answer).map_err(|error| Error::io(ANSWER, &error.into()))?;
        workspace.vaults()[self.number].vault.state().replace(ANSWER, json)
    }
}

/// Returns the instructions of all vaults that have them and whose settings permit reading them.
pub(crate) fn vault_instructions(workspace: &Workspace) -> Vec<VaultInstructions> {
    let of = |(number, open): (usize, &OpenVault)| {
        let path = SafePath::new(NAME).ok()?;
        let sandbox = open.vault.sandbox();
        let real = sandbox.real(&path).ok()?;
        let policy = open.policy();
        let is_permitted = policy.permits_path(path.as_str()) && policy.permits_path(real.as_str());
        let text = sandbox.text(&path).ok().filter(|text| is_permitted && !text.trim().is_empty())?;
        let given = open.vault.state().read(ANSWER).ok().flatten();
        let given = given.and_then(|json| serde_json::from_str::<SavedAnswer>(&json).ok());
        let given = given.filter(|answer| answer.digest == digest(&text)).map(|answer| answer.is_used);
        let is_used = if text.len() > LONGEST { Some(false) } else { given };
        Some(VaultInstructions { vault: open.name.clone(), text, is_used, number })
    };
    workspace.vaults().iter().enumerate().filter_map(of).collect()
}

fn digest(text: &str) -> String {
    ContentHash::of(text.as_bytes()).to_string()
}
