//! What can go wrong: the bundled model cannot be read, or a run of it fails.

use std::fmt;

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why there is no vector. Both cases are faults of the program or the machine, never of the text.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The bundled graph or its weights cannot be read.
    Load(Cause),
    /// The model could not be run on a text.
    Run(Cause),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Load(cause) => write!(
                f,
                "the bundled embedding model cannot be read ({cause}); the program was built from damaged model files"
            ),
            Error::Run(cause) => write!(f, "the bundled embedding model failed on a text: {cause}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Load(cause) | Error::Run(cause) => Some(cause.as_ref()),
        }
    }
}
