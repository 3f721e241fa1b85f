//! The async runtime of commands that ask a model.

use tokio::runtime::{Builder, Runtime};
use vault_tools::{Error, Result};

use crate::workspace::AT_ONCE;

pub(super) fn runtime() -> Result<Runtime> {
    let built = Builder::new_multi_thread().worker_threads(2).enable_all().max_blocking_threads(AT_ONCE).build();
    built.map_err(|error| Error::io("the threads of the program", &error))
}
