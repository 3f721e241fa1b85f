//! The vaults that are served, with toolboxes for concurrent calls.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use vault_search::CliResult;
use vault_search::tools::{open_with_settings, policy_of};
use vault_search::{VaultArgs, sanitize_line};
use vault_tools::{Headless, Host, IndexOptions, Policy, PolicySettings, Result, Toolbox, Vault, Vaults};

/// How many calls run at once, each on its own toolboxes; others wait. The number is small because calls compute more
/// than they wait, and each thread that has ever computed keeps memory.
pub(crate) const AT_ONCE: usize = 8;

/// Overrides of the settings for all vaults, by the user who starts the server.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PolicyOverrides {
    /// Whether writes that the settings allow run without asking.
    pub writes: bool,
    /// Whether deletes are allowed; they ask.
    pub deletes: bool,
}

impl PolicyOverrides {
    fn apply(self, mut settings: PolicySettings) -> PolicySettings {
        settings.confirm_writes &= !self.writes;
        settings.allow_delete |= self.deletes;
        settings
    }
}

/// An open vault.
#[derive(Debug)]
pub(crate) struct OpenVault {
    /// The name of its folder.
    pub name: String,
    pub vault: Arc<Vault>,
    policy: RwLock<Policy>,
    /// The options for opening its index.
    pub index: IndexOptions,
}

impl OpenVault {
    /// The current policy of the vault.
    pub fn policy(&self) -> Policy {
        self.policy.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The vaults that are served. Calls run concurrently, each on its own toolboxes.
#[derive(Debug)]
pub(crate) struct Workspace {
    vaults: Vec<OpenVault>,
    overrides: PolicyOverrides,
    app: Option<AppHost>,
    idle: Mutex<IdleToolboxes>,
}

/// An app that has one of the vaults open, and is its host.
#[derive(Clone)]
pub(crate) struct AppHost {
    /// The canonical folder of its vault.
    pub vault: PathBuf,
    /// Makes a host for a toolbox.
    pub host: Arc<dyn Fn() -> Box<dyn Host> + Send + Sync>,
}

impl fmt::Debug for AppHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppHost").field("vault", &self.vault).finish_non_exhaustive()
    }
}

/// Toolboxes that no call uses.
#[derive(Debug, Default)]
struct IdleToolboxes {
    /// The number of reloads of the policies. Toolboxes from before a reload are not used again.
    generation: u64,
    toolboxes: Vec<Vaults>,
}

impl Workspace {
    /// Opens the vaults of the arguments.
    ///
    /// # Errors
    /// A missing vault; invalid settings; two vaults with the same name.
    pub fn open(vault_args: &VaultArgs, overrides: PolicyOverrides) -> CliResult<Self> {
        let mut vaults = Vec::new();
        for opened in open_with_settings(vault_args)? {
            let name = opened.vault.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
            let (vault, policy) = (Arc::new(opened.vault), RwLock::new(overrides.apply(opened.settings).compile()?));
            vaults.push(OpenVault { name, vault, policy, index: opened.index });
        }
        let workspace = Self { vaults, overrides, app: None, idle: Mutex::default() };
        let first = workspace.toolboxes()?;
        workspace.idle().toolboxes.push(first);
        Ok(workspace)
    }

    /// Makes an app the host of the vault that it has open, if it is one of these.
    #[must_use]
    pub fn with_app(mut self, app: Option<AppHost>) -> Self {
        self.app = app;
        self.idle().toolboxes.clear();
        self
    }

    /// Reloads the policies after the user has changed them. A running call keeps the policy that it started with.
    ///
    /// # Errors
    /// Invalid settings; then all policies stay as they were.
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
        let toolbox = |open: &OpenVault| {
            let app = self.app.as_ref().filter(|app| app.vault == open.vault.path());
            let host = app.map_or_else(|| Box::new(Headless::default()) as Box<dyn Host>, |app| (app.host)());
            Toolbox::new(Arc::clone(&open.vault), host, open.policy())
        };
        Vaults::new(self.vaults.iter().map(toolbox).collect())
    }

    /// The vaults, in the order of their numbers in [`Vaults`].
    pub fn vaults(&self) -> &[OpenVault] {
        &self.vaults
    }

    /// Runs a closure on toolboxes that no other call uses meanwhile. It waits for files and the index, so it must not
    /// be called on a thread that must not block.
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

    /// Returns a notice if no vault has a note: probably another folder was meant.
    pub fn without_notes(&self) -> Option<String> {
        let is_indexed = |open: &OpenVault| {
            open.vault.index_without_sync().is_ok_and(|index| index.note_count().is_ok_and(|notes| notes > 0))
        };
        let has_notes = |vaults: &mut Vaults| {
            (0..self.vaults.len()).any(|vault| vaults.toolbox(vault).notes().is_ok_and(|notes| !notes.is_empty()))
        };
        // An index with notes saves the walk of the folder. It is not updated: that takes long in a large vault.
        if self.vaults.iter().any(is_indexed) || self.with(has_notes) {
            return None;
        }
        let folders: Vec<String> = self.vaults.iter().map(|open| open.vault.path().display().to_string()).collect();
        let hold = if folders.len() == 1 { "holds" } else { "hold" };
        let named = sanitize_line(&folders.join(", "));
        Some(format!("{named} {hold} no notes (--vault DIR names the folder of your notes)"))
    }
}
