//! Models from files: `local:FILE.gguf` runs in this process, if that is built in, and `llama-server:PATH` in a child
//! process, which ends with this one. Also lists the model files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_llama::{Gguf, LlamaServer, LlamaServerOptions};
use agent_loop::Model;
use vault_index::dirs::home;
use vault_search::note;
use vault_tools::{Error, ErrorKind, Result};

use crate::known_providers::{ProviderChoice, connection};
use crate::loop_error::of_loop;
use crate::settings::Settings;

/// A loaded model, and its context length in tokens if known.
pub(crate) type LoadedModel = (Arc<dyn Model>, Option<u64>);

/// Loads a model. This can take as long as reading the file does; Ctrl-C cancels it.
///
/// # Errors
/// A file that is not a model, is truncated or does not fit into memory; a server that does not start;
/// [`ErrorKind::Unsupported`] if this build cannot run models in the process.
pub(crate) fn load(choice: &ProviderChoice, settings: &Settings) -> Result<LoadedModel> {
    let (path, is_server) = match choice {
        ProviderChoice::LocalFile(path) => (path.clone(), false),
        ProviderChoice::LlamaServer(path) => (path.clone(), true),
        _ => return Err(Error::new(ErrorKind::Config, format!("{} is not a file", choice.name()))),
    };
    let path = in_folder(path, settings);
    let context = settings.context_length.map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX));
    let settings = settings.clone();
    let loading = move || -> Result<LoadedModel> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Error::io("the threads of the program", &error))?;
        match is_server {
            true => runtime.block_on(on_server(&path, context, &settings)),
            false => runtime.block_on(in_process(&path, context, &settings)),
        }
    };
    // Load on a separate thread, because the caller may be in a runtime.
    match std::thread::spawn(loading).join() {
        Ok(loaded) => loaded,
        Err(_) => Err(Error::new(ErrorKind::Unsupported, "internal error: loading the model panicked")),
    }
}

/// Checks whether a local model can be loaded, as far as its header shows.
///
/// # Errors
/// A file that is not a model or is truncated; a missing program.
pub(crate) fn check(choice: &ProviderChoice, settings: &Settings) -> Result<()> {
    match choice {
        ProviderChoice::LocalFile(path) => Gguf::read(in_folder(path.clone(), settings)).map(drop).map_err(of_loop),
        ProviderChoice::LlamaServer(path) => {
            let path = in_folder(path.clone(), settings);
            match LlamaServerOptions::for_path(&path).map_err(of_loop)?.model {
                None if path.components().count() > 1 && !path.exists() => {
                    Err(Error::new(ErrorKind::Config, "there is no such file").at(path.display()))
                }
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Resolves a relative path. A file that is not in the current folder is searched for in the folder of models.
fn in_folder(path: PathBuf, settings: &Settings) -> PathBuf {
    let path = of_home(path);
    let in_folder = settings.models_folder.clone().map(|folder| of_home(folder).join(&path));
    match in_folder {
        Some(file) if path.is_relative() && !path.exists() && file.exists() => file,
        _ => path,
    }
}

/// Expands `~` to the home folder, as a shell does.
fn of_home(path: PathBuf) -> PathBuf {
    match (path.strip_prefix("~"), home()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path,
    }
}

async fn on_server(path: &Path, context: Option<u32>, settings: &Settings) -> Result<LoadedModel> {
    let options = LlamaServerOptions::for_path(path).map_err(of_loop)?.context(context).name(settings.model.clone());
    let known =
        options.model.as_deref().and_then(|file| Gguf::read(file).ok()).and_then(|header| header.context_length);
    note(&format!("starting a llama-server with {}", path.display()));
    let server = LlamaServer::start(options, connection()?).await.map_err(of_loop)?;
    Ok((settings.text_calls.wrap(server, None), context.map(u64::from).or(known)))
}

#[cfg(feature = "local")]
async fn in_process(path: &Path, context: Option<u32>, settings: &Settings) -> Result<LoadedModel> {
    use std::io::Write;

    use agent_llama::LocalModel;
    use tokio_util::sync::CancellationToken;
    use vault_search::stderr_is_terminal;

    use crate::known_providers::LOCAL_CONTEXT;

    let cancel = CancellationToken::new();
    let (stop, name) = (cancel.clone(), path.file_name().unwrap_or_default().to_string_lossy().into_owned());
    let interrupted = vault_search::listen().flag();
    let mut shown = -1;
    let progress = move |part: f32| {
        if interrupted.load(std::sync::atomic::Ordering::Relaxed) {
            stop.cancel();
        }
        let percent = (part * 100.0) as i32;
        if stderr_is_terminal() && percent > shown {
            shown = percent;
            let end = if percent >= 100 { "\r\x1b[2K" } else { "" };
            let _ = write!(std::io::stderr().lock(), "\rloading {name}: {percent} %{end}");
        }
    };
    let trained = Gguf::read(path).map_err(of_loop)?.context_length;
    let usual = trained.map(|trained| trained.min(LOCAL_CONTEXT) as u32);
    let model = LocalModel::load(options(path, settings).context(context.or(usual)), progress, &cancel)
        .await
        .map_err(of_loop)?;
    let context = u64::from(model.context());
    Ok((Arc::new(model), Some(context)))
}

#[cfg(feature = "local")]
fn options(path: &Path, settings: &Settings) -> agent_llama::LocalOptions {
    let options = agent_llama::LocalOptions::new(path).threads(settings.threads).gpu_layers(settings.gpu_layers);
    let penalty = settings.repeat_penalty.map_or(options.repeat_penalty, |penalty| penalty as f32);
    options.repeat_penalty(penalty)
}

#[cfg(not(feature = "local"))]
async fn in_process(path: &Path, _: Option<u32>, _: &Settings) -> Result<LoadedModel> {
    // An invalid file is reported first.
    Gguf::read(path).map_err(of_loop)?;
    let message = "models in the process are not built into this program";
    let remedy = "install it with --features local, or use llama-server:FILE.gguf, Ollama or LM Studio";
    Err(Error::new(ErrorKind::Unsupported, message).with_remedy(remedy))
}

/// A model file.
#[derive(Debug)]
pub(crate) struct ModelFile {
    pub name: String,
    /// Its header, or the reason why it cannot be read.
    pub header: Result<Gguf>,
}

/// Returns the GGUF files of a folder, by name.
///
/// # Errors
/// A folder that cannot be read.
pub(crate) fn files(folder: &Path) -> Result<Vec<ModelFile>> {
    let folder = of_home(folder.to_owned());
    let entries = std::fs::read_dir(&folder).map_err(|error| Error::io(folder.display(), &error))?;
    let mut files: Vec<ModelFile> = entries
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf")))
        .map(|entry| ModelFile {
            name: entry.file_name().to_string_lossy().into_owned(),
            header: Gguf::read(entry.path()).map_err(of_loop),
        })
        .collect();
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}

#[cfg(all(test, feature = "local"))]
mod tests {
    use super::*;

    #[test]
    fn a_local_model_takes_its_settings() {
        let mut settings = Settings::default();
        (settings.threads, settings.gpu_layers, settings.repeat_penalty) = (Some(3), Some(9), Some(1.5));
        let set = options(Path::new("a.gguf"), &settings);
        assert_eq!((set.threads, set.gpu_layers, set.repeat_penalty), (Some(3), Some(9), 1.5));
        assert_eq!(options(Path::new("a.gguf"), &Settings::default()).repeat_penalty, 1.0);
    }
}
