//! The index of one vault, as [`Index`](vault_index::Index) uses it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use vault_index::backend::{self, Batch, DatabaseIndex, DatabaseReader, WriteStore};
use vault_index::{Embedder, Error, ErrorKind, Result};

use crate::connection::VaultStore;
use crate::database::Database;
use crate::schema::TABLES;

/// The index of a vault, by the name of the vault in the database.
struct VaultIndex {
    database: Database,
    vault: String,
}

impl backend::Database for Database {
    fn index_of(&self, vault: &Path) -> Arc<dyn DatabaseIndex> {
        let folder = || vault.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let vault = self.vault().map_or_else(folder, str::to_owned);
        Arc::new(VaultIndex { database: self.clone(), vault })
    }
}

impl DatabaseIndex for VaultIndex {
    fn address(&self) -> String {
        format!("{}#{}", self.database.address(), self.vault)
    }

    fn create(&self) -> Result<()> {
        self.database.create_schema()?;
        if !self.database.vaults()?.contains(&self.vault) {
            let (reader, writer) = self.database.create_vault(&self.vault)?;
            log::warn!(
                "added the vault {} to the database; GRANT {reader} lets a role read it, GRANT {writer} also write it",
                self.vault
            );
        }
        Ok(())
    }

    fn reader(&self) -> Result<Box<dyn DatabaseReader>> {
        Ok(Box::new(self.database.reader(&self.vault)?))
    }

    fn writer(&self, embedder: &dyn Embedder, wait: Duration) -> Result<Box<dyn WriteStore>> {
        Ok(Box::new(self.database.writer(&self.vault, embedder, wait)?))
    }

    fn emptied(
        &self,
        embedder: &dyn Embedder,
        settings: &[(&str, &str)],
        wait: Duration,
    ) -> Result<Box<dyn WriteStore>> {
        let store = self.database.locked(&self.vault, wait)?;
        store.empty(embedder, settings)?;
        Ok(Box::new(store))
    }

    fn forget(&self) -> Result<()> {
        self.database.forget_vault(&self.vault).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::Locked => error,
            kind => Error::new(kind, "the vault was not deleted from the database")
                .because(error.one_line())
                .with_remedy("only the owner of the tables can delete a vault"),
        })
    }
}

impl VaultStore {
    /// Removes everything but the number of commits and of the next passage, which never go back.
    fn empty(&self, embedder: &dyn Embedder, settings: &[(&str, &str)]) -> Result<()> {
        let batch: Box<dyn Batch + '_> = self.begin()?;
        let next = self.next_passage_id()?.to_string();
        for (table, ..) in TABLES {
            let kept = if table == "meta" { "AND key <> 'commits'" } else { "" };
            self.batch(&format!("DELETE FROM {table} WHERE vault = @vault {kept}"))?;
        }
        self.set_setting("next_passage", &next)?;
        self.set_embedder(embedder)?;
        settings.iter().try_for_each(|(key, value)| self.set_setting(key, value))?;
        batch.commit()
    }
}
