//! The vaults that are served, and toolboxes for calls that come at the same time.

use std::sync::{Arc, Mutex, PoisonError};

use vault_search::CliResult;
use vault_search::VaultArgs;
use vault_search::tools::open_with_settings;
use vault_tools::{Headless, IndexOptions, Policy, Result, Toolbox, Vault, Vaults};

/// How many calls are carried out at once, each on toolboxes of its own; more wait for their turn. They compute more than
/// they wait, and each thread that has ever computed keeps memory.
pub(crate) const AT_ONCE: usize = 8;

/// What the person who starts the server decides for all vaults, beyond their settings.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Granted {
    /// Writes that the settings allow do not ask.
    pub writes: bool,
    /// Deletes are allowed, and ask.
    pub deletes: bool,
}

/// A vault that is served.
#[derive(Debug)]
pub(crate) struct OpenVault {
    /// The name of its folder.
    pub name: String,
    pub vault: Arc<Vault>,
    pub policy: Policy,
    /// How its index is opened.
    pub index: IndexOptions,
}

/// The vaults that are served. Calls run side by side, each on toolboxes of its own.
#[derive(Debug)]
pub(crate) struct Workspace {
    vaults: Vec<OpenVault>,
    idle: Mutex<Vec<Vaults>>,
}

impl Workspace {
    /// Opens the vaults that are meant.
    ///
    /// # Errors
    /// No such vault; settings that cannot be understood; two vaults of one name.
    pub fn open(vault_args: &VaultArgs, granted: Granted) -> CliResult<Self> {
        let mut vaults = Vec::new();
        for opened in open_with_settings(vault_args)? {
            let mut settings = opened.settings;
            settings.confirm_writes &= !granted.writes;
            settings.allow_delete |= granted.deletes;
            let name = opened.vault.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
            let (vault, policy) = (Arc::new(opened.vault), settings.compile()?);
            vaults.push(OpenVault { name, vault, policy, index: opened.index });
        }
        let workspace = Self { vaults, idle: Mutex::default() };
        let first = workspace.toolboxes()?;
        workspace.idle.lock().unwrap_or_else(PoisonError::into_inner).push(first);
        Ok(workspace)
    }

    fn toolboxes(&self) -> Result<Vaults> {
        let toolbox = |open: &OpenVault| {
            Toolbox::new(Arc::clone(&open.vault), Box::new(Headless::default()), open.policy.clone())
        };
        Vaults::new(self.vaults.iter().map(toolbox).collect())
    }

    /// The vaults, in the order of their numbers in [`Vaults`].
    pub fn vaults(&self) -> &[OpenVault] {
        &self.vaults
    }

    /// Acts on the toolboxes, which no other call uses meanwhile. It waits for files and the index, so it is nothing for
    /// a thread that must not block.
    pub fn with<T>(&self, act: impl FnOnce(&mut Vaults) -> T) -> T {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle().pop();
        let mut vaults = kept.unwrap_or_else(|| self.toolboxes().expect("what was possible at the start"));
        let done = act(&mut vaults);
        let mut idle = idle();
        if idle.len() < AT_ONCE {
            idle.push(vaults);
        }
        done
    }
}
