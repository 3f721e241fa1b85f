//! The behaviour of a sync and a search if the requested model differs from the model of the index.
//!
//! | the index has vectors of | now it would be | a sync | a search |
//! | --- | --- | --- | --- |
//! | `minilm` | `ollama:m` | is refused: only a rebuild changes the model | is refused |
//! | `minilm`, version 1 | `minilm`, version 2 | embeds everything again by itself | ranks by words until then |
//! | `ollama:m` at one address | `ollama:m` at another, on this machine | likewise | likewise |
//! | `ollama:m` at one address | `ollama:m` at another, not on this machine | is refused | ranks by words |
//!
//! The last row is the reason for these rules: an address can come from the environment (`OLLAMA_HOST`), and neither
//! notes nor queries may be sent to an address that the user did not choose for this index.

use std::path::PathBuf;
use std::sync::Arc;

use crate::embed::{Embedder, LoadOptions, ModelName};
use crate::error::{Error, ErrorKind, Result};
use crate::index::Index;
use crate::index::mutex::lock;
use crate::search::EmbedderSource;
use crate::store::{REBUILDING_EMBEDDER, REBUILDING_TO, REBUILDING_URL, ReadContents, Store};

/// Models that stay loaded: the index's own, and the one of a rebuild.
const KEPT: usize = 2;

/// A loaded model, and the options that it was loaded with.
pub(super) struct LoadedModel {
    name: ModelName,
    base_url: Option<String>,
    embedder: Arc<dyn Embedder>,
}

/// A model that may not be loaded yet.
enum ModelChoice {
    Given(Arc<dyn Embedder>),
    Named(ModelName, LoadOptions),
}

/// A model, and how it is recorded in the index that gets its vectors.
pub(super) struct RecordedModel {
    pub embedder: Arc<dyn Embedder>,
    /// The value of `--model`; for the caller's own model, its id.
    pub name: String,
    pub base_url: Option<String>,
}

impl ModelChoice {
    fn wanted(self, embedder: Arc<dyn Embedder>) -> RecordedModel {
        match self {
            Self::Given(_) => RecordedModel { name: embedder.id().to_string(), base_url: None, embedder },
            Self::Named(name, options) => {
                RecordedModel { name: name.to_string(), base_url: options.base_url, embedder }
            }
        }
    }
}

/// The index has vectors of one model, and another one of the same name would now be used.
pub(super) struct ModelMismatch {
    /// Whether texts would leave this machine.
    pub is_remote: bool,
    message: String,
    remedy: String,
    file: PathBuf,
}

impl ModelMismatch {
    pub(super) fn error(&self) -> Error {
        Error::new(ErrorKind::OtherModel, &self.message).at(&self.file).with_remedy(&self.remedy)
    }
}

impl Index {
    /// The model that the caller requested, if any.
    pub(super) fn asked_model(&self) -> Option<String> {
        match &self.options.embedder {
            Some(embedder) => Some(embedder.id().to_string()),
            None => self.options.model.as_ref().map(ToString::to_string),
        }
    }

    /// Checks the model, because searching and syncing never change the model of an index.
    pub(super) fn check_model(&self, store: &dyn ReadContents) -> Result<()> {
        let (Some(has), Some(asked)) = (store.meta("model")?, self.asked_model()) else { return Ok(()) };
        if has == asked {
            return Ok(());
        }
        Err(Error::new(ErrorKind::OtherModel, format!("the index has vectors of `{has}`, not of `{asked}`"))
            .at(&self.file)
            .with_remedy(format!(
                "to change it, run `vault-index rebuild --model {asked}`; it embeds everything again"
            )))
    }

    /// The caller's model, or the model of the index, or the bundled one.
    fn choice(&self, store: Option<&dyn ReadContents>) -> Result<ModelChoice> {
        if let Some(embedder) = &self.options.embedder {
            return Ok(ModelChoice::Given(embedder.clone()));
        }
        let recorded = |key: &str| store.map_or(Ok(None), |store| store.meta(key));
        let has = recorded("model")?;
        let name = match (&self.options.model, &has) {
            (Some(name), _) => name.clone(),
            (None, Some(has)) => has.parse::<ModelName>().map_err(|_| {
                Error::new(
                    ErrorKind::OtherModel,
                    format!("the index has vectors of `{has}`, a model given by another program"),
                )
                .at(&self.file)
                .with_remedy(
                    "use that program; search the current index with --no-sync; or run `vault-index rebuild --model minilm`",
                )
            })?,
            // The index had a model, and which one is not guessed.
            (None, None) if store.map_or(Ok(false), |store| store.has_content())? => return Err(self.has_lost_settings()),
            (None, None) => ModelName::default(),
        };
        let is_of_the_database = self.database.is_some() && self.options.model.is_none();
        let (is_remote, is_shipped) = match &name {
            ModelName::OpenAi(_) | ModelName::Ollama(_) => (true, false),
            ModelName::MiniLm | ModelName::Hashed | ModelName::Known(_) => (false, true),
            _ => (false, false),
        };
        // Others write the name in a database, and it decides where queries go and what is loaded or downloaded.
        if self.database.is_some() && is_remote || is_of_the_database && !is_shipped {
            return Err(Error::new(
                ErrorKind::Model,
                format!("the model `{name}` is not used with an index in a database"),
            )
            .at(&self.file)
            .with_remedy("run `vault-index rebuild --model minilm`, or name another model that runs on this machine"));
        }
        let mut options = LoadOptions::default();
        // Recorded settings apply only to the model that they were recorded for.
        if has.is_some_and(|has| has == name.to_string()) {
            options.base_url = recorded("base_url")?;
            // Known dimensions save remote models a request to their server.
            options.dimensions = recorded("dimensions")?.and_then(|d| d.parse().ok());
        }
        if let Some(url) = &self.options.base_url {
            options.base_url = Some(url.clone());
        }
        Ok(ModelChoice::Named(name, options))
    }

    /// The model for an index file that may be damaged: a requested model needs nothing from the file.
    fn choice_on_disk(&self) -> Result<ModelChoice> {
        if self.database.is_some() {
            return match self.exists()? {
                true => self.read(|store| self.choice(Some(store))),
                false => self.choice(None),
            };
        }
        if !self.file.exists() {
            return self.choice(None);
        }
        match Store::open_settings(&self.file).and_then(|store| self.choice(Some(&store))) {
            Err(error) if error.kind() == ErrorKind::Damaged && self.asked_model().is_some() => self.choice(None),
            choice => choice,
        }
    }

    /// Whether the index is too damaged to say which model it has, and no model was requested either.
    pub fn has_lost_its_model(&self) -> bool {
        self.database.is_none()
            && self.may_delete(&self.file).unwrap_or(false)
            && self.choice_on_disk().is_err_and(|error| error.kind() == ErrorKind::Damaged)
    }

    /// The loaded model. It stays loaded while the index keeps it; another process may have rebuilt the index with
    /// another one.
    pub(super) fn embedder(&self, store: &dyn ReadContents) -> Result<Arc<dyn Embedder>> {
        match self.choice(Some(store))? {
            ModelChoice::Given(embedder) => Ok(embedder),
            ModelChoice::Named(name, options) => self.load(&name, &options),
        }
    }

    /// The name of the index's model, and the loaded model. Without an index, those that a new one would get.
    ///
    /// # Errors
    /// When a model cannot be loaded, or has another address than the index's model; then it gets no texts.
    pub fn model(&self) -> Result<(String, Arc<dyn Embedder>)> {
        let wanted = match self.exists()? {
            true => self.read(|store| match self.differs(store)? {
                Some(differs) if differs.is_remote => Err(differs.error()),
                _ => self.wanted(store),
            })?,
            false => match self.choice(None)? {
                ModelChoice::Given(embedder) => ModelChoice::Given(embedder.clone()).wanted(embedder),
                ModelChoice::Named(name, options) => {
                    let embedder = self.load(&name, &options)?;
                    ModelChoice::Named(name, options).wanted(embedder)
                }
            },
        };
        Ok((wanted.name, wanted.embedder))
    }

    fn load(&self, name: &ModelName, options: &LoadOptions) -> Result<Arc<dyn Embedder>> {
        let is_wanted = |known: &&LoadedModel| {
            known.name == *name
                && known.base_url == options.base_url
                && options.dimensions.is_none_or(|length| length == known.embedder.dimensions())
        };
        if let Some(known) = lock(&self.loaded).iter().find(is_wanted) {
            return Ok(known.embedder.clone());
        }
        self.load_anew(name, options)
    }

    fn load_anew(&self, name: &ModelName, options: &LoadOptions) -> Result<Arc<dyn Embedder>> {
        let embedder = name.load(options)?;
        let base_url = options.base_url.clone();
        let mut loaded = lock(&self.loaded);
        loaded.retain(|known| known.name != *name || known.base_url != base_url);
        if loaded.len() == KEPT {
            loaded.remove(0);
        }
        loaded.push(LoadedModel { name: name.clone(), base_url, embedder: embedder.clone() });
        Ok(embedder)
    }

    /// The index's model, to be recorded.
    pub(super) fn wanted(&self, store: &dyn ReadContents) -> Result<RecordedModel> {
        let embedder = self.embedder(store)?;
        Ok(self.choice(Some(store))?.wanted(embedder))
    }

    /// The model of a rebuild. The recorded dimensions of a remote one are not trusted: its server is asked.
    pub(super) fn wanted_anew(&self, store: &dyn ReadContents) -> Result<RecordedModel> {
        self.asked_anew(self.choice(Some(store))?)
    }

    /// The model of a rebuild of a file that may be damaged.
    pub(super) fn wanted_on_disk(&self) -> Result<RecordedModel> {
        self.asked_anew(self.choice_on_disk()?)
    }

    fn asked_anew(&self, choice: ModelChoice) -> Result<RecordedModel> {
        let embedder = match &choice {
            ModelChoice::Given(embedder) => embedder.clone(),
            ModelChoice::Named(name, options) => {
                self.load_anew(name, &LoadOptions { dimensions: None, ..options.clone() })?
            }
        };
        Ok(choice.wanted(embedder))
    }

    /// Records the vault and the model of an index.
    pub(super) fn describe(&self, store: &Store, wanted: &RecordedModel) -> Result<()> {
        let batch = store.begin()?;
        store.make_vectors(wanted.embedder.id(), wanted.embedder.dimensions())?;
        store.set_meta("model", &wanted.name)?;
        store.set_optional_meta("base_url", wanted.base_url.as_deref())?;
        store.set_meta("vault", &self.vault.to_string_lossy())?;
        batch.commit()
    }

    /// Whether vectors computed now would differ from those of the index: the program was updated, or a server has
    /// another address.
    pub(super) fn differs(&self, store: &dyn ReadContents) -> Result<Option<ModelMismatch>> {
        let Some((has, _)) = store.embedder()? else { return Ok(None) };
        let embedder = self.embedder(store)?;
        if embedder.id() == has {
            return Ok(None);
        }
        let name = store.meta("model")?.unwrap_or_else(|| ModelName::default().to_string());
        let (is_remote, now) = (embedder.is_remote(), embedder.id());
        let (message, remedy) = match is_remote {
            true => (
                format!("the index has vectors of `{has}`, but the model is now `{now}`"),
                format!(
                    "name the old address again, or run `{}`, which sends all notes to the new one",
                    self.rebuild_command(&name)
                ),
            ),
            false => (
                format!("the index has vectors of `{has}`, another version than `{now}`"),
                "run `vault-index sync`, which embeds everything again".to_string(),
            ),
        };
        Ok(Some(ModelMismatch { is_remote, message, remedy, file: self.file.clone() }))
    }

    /// The command that rebuilds the index with a model, at the current address.
    fn rebuild_command(&self, name: &str) -> String {
        let address = self.options.base_url.as_ref().map_or_else(String::new, |url| format!(" --base-url {url}"));
        format!("vault-index rebuild --model {name}{address}")
    }

    /// The source of query vectors, and whether they can be compared with those of the index.
    pub(super) fn query_source(&self, store: &dyn ReadContents) -> Result<(EmbedderSource, bool)> {
        if let Some(differs) = self.differs(store)? {
            let source: EmbedderSource = Arc::new(move || -> Result<Arc<dyn Embedder>> { Err(differs.error()) });
            return Ok((source, false));
        }
        let embedder = self.embedder(store)?;
        let source: EmbedderSource = Arc::new(move || Ok(embedder.clone()));
        Ok((source, true))
    }

    /// The model of a rebuild that was interrupted.
    ///
    /// # Errors
    /// [`ErrorKind::OtherModel`] when the remaining notes would be sent to another address than the first ones.
    pub(super) fn unfinished_rebuild(&self, store: &dyn ReadContents) -> Result<Option<RecordedModel>> {
        let Some(name) = store.meta(REBUILDING_TO)? else { return Ok(None) };
        let base_url = store.meta(REBUILDING_URL)?;
        let embedder = match &self.options.embedder {
            Some(embedder) if embedder.id() == name => embedder.clone(),
            _ => {
                let options = LoadOptions { base_url: base_url.clone(), ..LoadOptions::default() };
                self.load(&name.parse::<ModelName>()?, &options)?
            }
        };
        let began = store.meta(REBUILDING_EMBEDDER)?.unwrap_or_default();
        if embedder.is_remote() && embedder.id() != began {
            let now = embedder.id();
            let message = format!("a rebuild with `{began}` is in progress, but the model is now `{now}`");
            return Err(Error::new(ErrorKind::OtherModel, message).at(&self.file).with_remedy(format!(
                "name the old address again, or run `{}`, which sends all notes to the new one",
                self.rebuild_command(&name)
            )));
        }
        Ok(Some(RecordedModel { embedder, name, base_url }))
    }
}

/// The model of the next sync or rebuild, so that a program can ask for consent before a note leaves the machine.
impl Index {
    /// The model of the index and the requested one, if they differ.
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`], and other errors of reading the index.
    pub fn stale_model(&self) -> Result<Option<(String, String)>> {
        if !self.exists()? {
            return Ok(None);
        }
        let Some(asked) = self.asked_model() else { return Ok(None) };
        let has = match self.read(|store| store.meta("model")) {
            // The model of a damaged index is unknown, and does not matter to a rebuild.
            Err(error) if error.kind() == ErrorKind::Damaged => None,
            has => has?,
        };
        Ok(has.filter(|has| *has != asked).map(|has| (has, asked)))
    }

    /// The model that a sync embeds with, and its address. `None` if it is the caller's own, or if a sync would be
    /// refused anyway. An unfinished rebuild continues only with the address that the user agreed to.
    pub fn model_of_sync(&self) -> Result<Option<(ModelName, Option<String>)>> {
        if !self.exists_upgraded()? {
            return Ok(named(self.choice(None)?));
        }
        self.finish_making();
        self.read(|store| {
            let refused = match self.check_model(store) {
                Err(error) if error.kind() == ErrorKind::OtherModel => true,
                checked => checked.and_then(|()| self.differs(store))?.is_some_and(|differs| differs.is_remote),
            };
            if refused { Ok(None) } else { Ok(named(self.choice(Some(store))?)) }
        })
    }

    /// The model that a rebuild embeds with, and its address.
    pub fn model_of_rebuild(&self) -> Result<Option<(ModelName, Option<String>)>> {
        if self.file.exists() {
            self.finish_making();
        }
        Ok(named(self.choice_on_disk()?))
    }

    /// Completes an index file without tables, which a process that was killed while creating the file may have left:
    /// opening it for writing creates them. A file that cannot be written is read as it is.
    fn finish_making(&self) {
        drop(self.writer());
    }
}

fn named(choice: ModelChoice) -> Option<(ModelName, Option<String>)> {
    match choice {
        ModelChoice::Given(_) => None,
        ModelChoice::Named(name, options) => Some((name, options.base_url)),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::chunk::TokenCount;
    use crate::embed::{HashedEmbedder, Role};
    use crate::index::Options;
    use crate::indexer::SyncOptions;
    use crate::search::{Mode, Query};

    /// A model at some address, and the number of texts sent to it.
    struct DistantModel {
        is_remote: bool,
        sent: AtomicUsize,
    }

    impl DistantModel {
        fn new(is_remote: bool) -> Arc<Self> {
            Arc::new(Self { is_remote, sent: AtomicUsize::new(0) })
        }

        fn sent(&self) -> usize {
            self.sent.load(Ordering::Relaxed)
        }
    }

    impl TokenCount for DistantModel {
        fn count(&self, text: &str) -> usize {
            HashedEmbedder::new().count(text)
        }
    }

    impl Embedder for DistantModel {
        fn id(&self) -> &str {
            "far@new"
        }

        fn dimensions(&self) -> usize {
            HashedEmbedder::new().dimensions()
        }

        fn max_tokens(&self) -> usize {
            HashedEmbedder::new().max_tokens()
        }

        fn embed(&self, texts: &[&str], role: Role) -> Result<Vec<Vec<f32>>> {
            self.sent.fetch_add(texts.len(), Ordering::Relaxed);
            HashedEmbedder::new().embed(texts, role)
        }

        fn is_remote(&self) -> bool {
            self.is_remote
        }
    }

    /// A vault of one note, and a path for its index.
    fn vault() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let vault = folder.path().join("vault");
        std::fs::create_dir(&vault).unwrap();
        std::fs::write(vault.join("a.md"), "a cormorant dives\n").unwrap();
        let file = folder.path().join("index/index.db");
        (folder, vault, file)
    }

    fn open(vault: &Path, file: &Path, embedder: &Arc<DistantModel>) -> Index {
        let embedder: Arc<dyn Embedder> = embedder.clone();
        let options = Options::new().index_file(file).embedder(embedder);
        Index::open(vault, options).unwrap()
    }

    /// The index says that its vectors come from another address, as it does after the address has changed.
    fn say(file: &Path, key: &str, value: &str) {
        Store::open(file).unwrap().set_meta(key, value).unwrap();
    }

    #[test]
    fn a_remote_embedder_at_another_address_gets_nothing_by_itself() {
        let (_folder, vault, file) = vault();
        let far = DistantModel::new(true);
        open(&vault, &file, &far).sync().unwrap();
        say(&file, "embedder", "far@old");
        let before = far.sent();
        let index = open(&vault, &file, &far);
        std::fs::write(vault.join("b.md"), "another cormorant\n").unwrap();
        let semantic = Query::literal("cormorant").mode(Mode::Semantic);
        for error in [index.sync().unwrap_err(), index.search(&semantic).unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::OtherModel);
            let text = error.to_string();
            for part in ["`far@old`", "`far@new`", "vault-index rebuild --model far@new"] {
                assert!(text.contains(part), "{text}");
            }
        }
        let hits = index.search(&Query::literal("cormorant")).unwrap();
        assert_eq!((hits.results.len(), hits.results[0].why.semantic), (1, None));
        let advice = index.status().unwrap().advice;
        assert!(advice.iter().any(|text| text.contains("far@old") && text.contains("rebuild --model")), "{advice:?}");
        assert_eq!(far.sent(), before, "neither notes nor queries went there");

        // If this is requested explicitly, they are sent.
        index.rebuild(&SyncOptions::default()).unwrap();
        assert!(far.sent() > before);
        let hits = index.search(&Query::literal("cormorant")).unwrap();
        assert!(hits.results.len() == 2 && hits.results[0].why.semantic.is_some(), "{hits:?}");
        assert_eq!(index.status().unwrap().advice, [""; 0]);
        assert_eq!(index.sync().unwrap().unchanged, 2);
    }

    #[test]
    fn an_embedder_on_this_machine_makes_vectors_of_another_version_anew_by_itself() {
        let (_folder, vault, file) = vault();
        let near = DistantModel::new(false);
        open(&vault, &file, &near).sync().unwrap();
        say(&file, "embedder", "far@old");
        let index = open(&vault, &file, &near);
        assert_eq!(index.search(&Query::literal("cormorant")).unwrap().results[0].why.semantic, None);
        assert!(index.status().unwrap().advice[0].contains("another version"));
        let before = near.sent();
        index.sync().unwrap();
        assert!(near.sent() > before);
        assert_eq!(Store::open_read(&file).unwrap().meta("embedder").unwrap().as_deref(), Some("far@new"));
    }

    #[test]
    fn two_who_find_an_embedder_of_another_version_make_the_vectors_once() {
        let (_folder, vault, file) = vault();
        let near = DistantModel::new(false);
        open(&vault, &file, &near).sync().unwrap();
        let once = near.sent();
        for _ in 0..5 {
            say(&file, "embedder", "far@old");
            let before = near.sent();
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| open(&vault, &file, &near).sync().unwrap());
                }
            });
            assert_eq!(near.sent() - before, once);
        }
    }

    #[test]
    fn a_rebuild_goes_on_with_no_remote_embedder_but_its_own() {
        let (_folder, vault, file) = vault();
        let far = DistantModel::new(true);
        let index = open(&vault, &file, &far);
        index.sync().unwrap();
        say(&file, REBUILDING_TO, "far@new");
        say(&file, REBUILDING_EMBEDDER, "far@old");
        let before = far.sent();
        let error = index.sync().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OtherModel);
        assert!(error.to_string().contains("a rebuild with `far@old`"), "{error}");
        assert_eq!(far.sent(), before);
        say(&file, REBUILDING_EMBEDDER, "far@new");
        index.sync().unwrap();
        assert!(far.sent() > before);
        assert_eq!(index.status().unwrap().rebuilding_to, None);
    }

    #[cfg(feature = "minilm")]
    #[test]
    fn an_open_index_follows_when_another_process_changes_its_embedder() {
        let (_folder, vault, file) = vault();
        // No note is embedded, because only the choice of the model matters here.
        std::fs::remove_file(vault.join("a.md")).unwrap();
        let options = || Options::new().index_file(&file);
        let index = Index::open(&vault, options()).unwrap();
        index.sync().unwrap();
        assert_eq!(index.status().unwrap().model, "minilm");
        let other = Index::open(&vault, options().model(ModelName::Hashed)).unwrap();
        other.rebuild(&SyncOptions::default()).unwrap();
        std::fs::write(vault.join("a.md"), "a cormorant dives\n").unwrap();
        index.sync().unwrap();
        let store = Store::open_read(&file).unwrap();
        assert_eq!(store.meta("model").unwrap().as_deref(), Some("hashed"));
        assert_eq!(store.meta("embedder").unwrap().as_deref(), Some(HashedEmbedder::new().id()));
        assert!(index.search(&Query::literal("cormorant")).unwrap().results[0].why.semantic.is_some());
    }

    #[cfg(feature = "http")]
    #[test]
    fn a_remote_embedder_keeps_its_recorded_address() {
        let (_folder, vault, file) = vault();
        let named = |model: &str, url: Option<&str>| {
            let options = Options {
                index_file: Some(file.clone()),
                model: (!model.is_empty()).then(|| model.parse().unwrap()),
                base_url: url.map(str::to_string),
                ..Options::default()
            };
            Index::open(&vault, options).unwrap()
        };
        named("hashed", None).sync().unwrap();
        say(&file, "model", "ollama:m");
        say(&file, "embedder", "ollama:m@192.0.2.1:11434");
        say(&file, "base_url", "http://192.0.2.1:11434");
        let address =
            |index: &Index| index.choice_on_disk().map(|choice| choice.wanted(DistantModel::new(true)).base_url);
        let old = Some("http://192.0.2.1:11434".to_string());
        assert_eq!(address(&named("", None)).unwrap(), old);
        assert_eq!(address(&named("ollama:m", None)).unwrap(), old);
        assert_eq!(address(&named("ollama:n", None)).unwrap(), None, "the address of another model is no address");
        let moved = named("", Some("http://192.0.2.2:11434"));
        let error = moved.sync().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OtherModel);
        assert!(error.to_string().contains("rebuild --model ollama:m --base-url http://192.0.2.2:11434"), "{error}");
    }
}
