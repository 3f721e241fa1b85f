//! Portable JSON Schema made into what each provider takes, and the calls that come back made into what was meant.

mod gemini;
mod names;
mod strict;

pub use gemini::gemini;
pub use names::WireNames;
pub use strict::{Strict, without_added_nulls};
