//! The vaults that are served, and toolboxes for calls that come at the same time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use vault_search::CliResult;
use vault_search::VaultArgs;
use vault_search::tools::{open_with_settings, policy_of};
use vault_tools::{Headless, IndexOptions, Policy, Result, Settings, Toolbox, Vault, Vaults};

/// How many calls are carried out at once, each on toolboxes of its own; more wait for their turn. They compute more than
/// they wait, and each thread that has ever computed keeps memory.
pub(crate) const AT_ONCE: usize = 8;

/// What the person who starts the server decides for all vaults, beyond their settings.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PolicyOverrides {
    /// Writes that the settings allow do not ask.
    pub writes: bool,
    /// Deletes are allowed, and ask.
    pub deletes: bool,
}

impl PolicyOverrides {
    fn apply(self, mut settings: Settings) -> Settings {
        settings.confirm_writes &= !self.writes;
        settings.allow_delete |= self.deletes;
        settings
    }
}

/// A vault that is served.
#[derive(Debug)]
pub(crate) struct OpenVault {
    /// The name of its folder.
    pub name: String,
    pub vault: Arc<Vault>,
    policy: RwLock<Policy>,
    /// How its index is opened.
    pub index: IndexOptions,
}

impl OpenVault {
    /// What may run there.
    pub fn policy(&self) -> Policy {
        self.policy.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The vaults that are served. Calls run side by side, each on toolboxes of its own.
#[derive(Debug)]
pub(crate) struct Workspace {
    vaults: Vec<OpenVault>,
    overrides: PolicyOverrides,
    idle: Mutex<IdleToolboxes>,
}

/// Toolboxes that no call uses.
#[derive(Debug, Default)]
struct IdleToolboxes {
    /// How often the policies were read again: toolboxes from before are not used again.
    generation: u64,
    toolboxes: Vec<Vaults>,
}

impl Workspace {
    /// Opens the vaults that are meant.
    ///
    /// # Errors
    /// No such vault; settings that cannot be understood; two vaults of one name.
    pub fn open(vault_args: &VaultArgs, overrides: PolicyOverrides) -> CliResult<Self> {
        let mut vaults = Vec::new();
        for opened in open_with_settings(vault_args)? {
            let name = opened.vault.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
            let (vault, policy) = (Arc::new(opened.vault), RwLock::new(overrides.apply(opened.settings).compile()?));
            vaults.push(OpenVault { name, vault, policy, index: opened.index });
        }
        let workspace = Self { vaults, overrides, idle: Mutex::default() };
        let first = workspace.toolboxes()?;
        workspace.idle().toolboxes.push(first);
        Ok(workspace)
    }

    /// Reads again what may run, which a person has changed. A call that is under way keeps to what was read before.
    ///
    /// # Errors
    /// Settings that cannot be understood; then all stay as they were.
    pub fn reload_policies(&self) -> Result<()> {
        let read = |open: &OpenVault| self.overrides.apply(policy_of(&open.name)?).compile();
        let policies = self.vaults.iter().map(read).collect::<Result<Vec<_>>>()?;
        for (open, policy) in self.vaults.iter().zip(policies) {
            *open.policy.write().unwrap_or_else(PoisonError::into_inner) = policy;
        }
        let mut idle = self.idle();
        idle.generation += 1;
        idle.toolboxes.clear();
        Ok(())
    }

    fn idle(&self) -> MutexGuard<'_, IdleToolboxes> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn toolboxes(&self) -> Result<Vaults> {
        let toolbox =
            |open: &OpenVault| Toolbox::new(Arc::clone(&open.vault), Box::new(Headless::default()), open.policy());
        Vaults::new(self.vaults.iter().map(toolbox).collect())
    }

    /// The vaults, in the order of their numbers in [`Vaults`].
    pub fn vaults(&self) -> &[OpenVault] {
        &self.vaults
    }

    /// Acts on the toolboxes, which no other call uses meanwhile. It waits for files and the index, so it is nothing for
    /// a thread that must not block.
    pub fn with<T>(&self, act: impl FnOnce(&mut Vaults) -> T) -> T {
        let (generation, kept) = {
            let mut idle = self.idle();
            (idle.generation, idle.toolboxes.pop())
        };
        let mut vaults = kept.unwrap_or_else(|| self.toolboxes().expect("what was possible at the start"));
        let done = act(&mut vaults);
        let mut idle = self.idle();
        if idle.generation == generation && idle.toolboxes.len() < AT_ONCE {
            idle.toolboxes.push(vaults);
        }
        done
    }
}
