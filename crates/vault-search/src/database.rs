//! An index in a database: `--index postgres://…`.

use std::path::Path;
use std::sync::Arc;

use vault_index::backend::Database;
use vault_index::{Error, ErrorKind, Result};

/// The database that `--index` or `VAULT_INDEX_FILE` names, unless they name a file.
///
/// # Errors
/// [`ErrorKind::Query`] for an address that cannot be used, and for any in a program without the feature `postgres`. No
/// error shows the address, which may hold a password.
pub(crate) fn named(index: &Path) -> Result<Option<Arc<dyn Database>>> {
    match index.to_str().filter(|text| text.starts_with("postgres:") || text.starts_with("postgresql:")) {
        Some(address) => open(address).map(Some).map_err(|error| error.at("--index (VAULT_INDEX_FILE)")),
        None => Ok(None),
    }
}

/// The database of a vault in the table `databases` of the configuration.
///
/// # Errors
/// [`ErrorKind::Query`] for an address that is not one of a database, or that cannot be used.
pub(crate) fn of_table(vault: &str, address: &str, file: &Path) -> Result<Arc<dyn Database>> {
    let database = named(Path::new(address)).and_then(|database| {
        database.ok_or_else(|| {
            Error::new(ErrorKind::Query, "the address of a database begins with postgres://")
                .with_remedy("for an index file, leave the vault out of `databases`, and use --index")
        })
    });
    // The value may hold a password.
    database.map_err(|error| {
        Error::new(error.kind(), format!("the database of {vault:?} cannot be used: {}", error.message()))
            .at(file)
            .with_remedy(error.remedy().unwrap_or("correct it in the table `databases`").to_owned())
    })
}

#[cfg(feature = "postgres")]
fn open(address: &str) -> Result<Arc<dyn Database>> {
    Ok(Arc::new(vault_postgres::Database::new(address)?))
}

#[cfg(not(feature = "postgres"))]
fn open(_: &str) -> Result<Arc<dyn Database>> {
    Err(Error::new(ErrorKind::Query, "this program has no support for PostgreSQL")
        .with_remedy("build it with the feature `postgres`"))
}

/// The error of a command that needs an index file.
pub(crate) fn needs_file(command: &str) -> Error {
    Error::new(ErrorKind::Query, format!("{command} works with an index file, and this index is in a database"))
        .with_remedy("name a file with --index (VAULT_INDEX_FILE), or leave it out")
}
