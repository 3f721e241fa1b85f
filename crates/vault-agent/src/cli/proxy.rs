//! `vault-agent proxy`: serves OpenAI's APIs over the configured model, with the tools of the vaults on request.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use agent_loop::{BoxFuture, ImageSupport, Model, ReplyStream, Request, ToolSupport};
use agent_proxy::{Proxy, ProxyOptions, StoreLimits};
use clap::Args;
use vault_index::{Embedder, Index, LoadOptions, ModelName};
use vault_search::VaultArgs;
use vault_search::tools::open_with_settings;
use vault_search::{CliResult, Outcome, note};
use vault_tools::{Error, Result};

use super::runtime::runtime;
use super::server_setup::{key_in, stop_signal};
use crate::conversation::{NoteTools, Offer, budget_of, sampling_of};
use crate::embeddings;
use crate::index_watcher::{IndexWatcher, WatchNotices};
use crate::mcp::{Access, listen};
use crate::model::{self, ChosenModel};
use crate::notes_model::NotesModel;
use crate::settings::{SettingArgs, Settings, ValueSource};
use crate::workspace::{PolicyOverrides, Workspace};

/// The settings that only matter with `--with-vault-tools`.
const OF_TOOLS: [&str; 7] =
    ["tools", "toolsets", "review", "max_turns", "max_calls", "max_total_tokens", "max_seconds"];

#[derive(Debug, Args)]
#[command(mut_args(|arg| match OF_TOOLS.contains(&arg.get_id().as_str()) {
    true => arg.requires("with_vault_tools"),
    false => arg,
}))]
pub(super) struct ProxyArgs {
    /// Address to listen on; port 0 picks a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8572")]
    pub http: SocketAddr,
    /// Require the key in this file: `Authorization: Bearer KEY`
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// A name of the server besides localhost (repeatable)
    #[arg(long, value_name = "NAME")]
    pub host: Vec<String>,
    /// Let the model use the vault's tools before it answers
    ///
    /// Only the tools that need no approval: those that read, and those that may write without asking according to
    /// tools.toml. The options that limit the model's work or choose its tools require this one.
    #[arg(long)]
    pub with_vault_tools: bool,
    #[command(flatten)]
    pub settings: SettingArgs,
}

pub(super) fn proxy(vault_args: &VaultArgs, args: &ProxyArgs) -> CliResult {
    let settings = Settings::load(&args.settings)?;
    let chosen = model::required(&settings)?;
    let runtime = runtime()?;
    let workspace = match args.with_vault_tools {
        true => Some(Arc::new(Workspace::open(vault_args, PolicyOverrides::default())?)),
        false => None,
    };
    let watching = workspace.as_ref().map(|workspace| IndexWatcher::start(workspace.vaults(), WatchNotices::Log));
    let options = ProxyOptions::default().on_warning(Some(Arc::new(|warning: &str| note(warning))));
    // Some clients refer to an earlier response by its id instead of sending it again.
    let options = options.store(Some(StoreLimits::default()));
    let access = Access::new(args.key_file.as_deref().map(key_in).transpose()?, &args.host);
    let options = options.key(access.key.clone()).hosts(access.hosts.clone());
    let proxy = served(Proxy::new(options), chosen, workspace, &settings);
    let proxy = proxy.routes(embeddings::routes(embedder(vault_args.clone())));
    let served = runtime.block_on(async {
        let listener = listen(args.http, &access).await?;
        // Listen for signals before the address is printed, because its reader may send one immediately.
        let stop = stop_signal();
        let address = listener.local_addr().map_err(|error| Error::io(args.http, &error))?;
        note(&format!("listening on http://{address}/v1"));
        proxy.serve(listener, stop).await.map_err(|error| Error::io(address, &error))
    });
    runtime.shutdown_background();
    drop(watching);
    served?;
    Ok(Outcome::Done)
}

fn served(proxy: Proxy, chosen: ChosenModel, workspace: Option<Arc<Workspace>>, settings: &Settings) -> Proxy {
    let ChosenModel { model, name, context_length, .. } = chosen;
    let model: Arc<dyn Model> = match workspace {
        None => model,
        Some(workspace) => {
            let tools = NoteTools::new(workspace, settings, Offer::Unattended);
            Arc::new(NotesModel { model, tools, budget: budget_of(settings) })
        }
    };
    let proxy = proxy.model(&name, ModelWithDefaults { model, settings: settings.clone() });
    match context_length {
        Some(tokens) => proxy.context_length(&name, tokens),
        None => proxy,
    }
}

/// A model that fills in the user's settings where a request leaves them open. The user's system message comes before
/// that of the request.
struct ModelWithDefaults {
    model: Arc<dyn Model>,
    settings: Settings,
}

impl Model for ModelWithDefaults {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn provider(&self) -> Option<&str> {
        self.model.provider()
    }

    fn tool_support(&self) -> ToolSupport {
        self.model.tool_support()
    }

    fn image_support(&self) -> ImageSupport {
        self.model.image_support()
    }

    fn reply(&self, mut request: Request) -> BoxFuture<'_, agent_loop::error::Result<ReplyStream<'_>>> {
        let Settings { system, max_tokens, temperature, .. } = &self.settings;
        let systems: Vec<&str> = system.as_deref().into_iter().chain(request.system.as_deref()).collect();
        request.system = (!systems.is_empty()).then(|| systems.join("\n\n").into());
        request.max_output_tokens = request.max_output_tokens.or(*max_tokens);
        // The default temperature is only meant for conversations of this program.
        let temperature = temperature.filter(|_| *self.settings.source("temperature") != ValueSource::Default);
        request.temperature = request.temperature.or(temperature);
        let sampling = sampling_of(&self.settings);
        request.settings.top_p = request.settings.top_p.or(sampling.top_p);
        request.settings.seed = request.settings.seed.or(sampling.seed);
        self.model.reply(request)
    }
}

/// Returns the embedding model of the vault's index, or the bundled model if there is no vault.
fn embedder(vault_args: VaultArgs) -> embeddings::ModelLoader {
    Box::new(move || -> Result<(String, Arc<dyn Embedder>)> {
        let opened = open_with_settings(&vault_args).ok().and_then(|vaults| vaults.into_iter().next());
        if let Some(opened) = opened {
            return Ok(Index::open(opened.vault.path(), opened.index)?.model()?);
        }
        let bundled = ModelName::default();
        Ok((bundled.to_string(), bundled.load(&LoadOptions::default())?))
    })
}
