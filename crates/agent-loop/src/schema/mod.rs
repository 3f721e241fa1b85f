//! Converts portable JSON Schema to what each provider accepts, and maps the calls that come back.

mod gemini;
mod names;
mod strict;

pub use gemini::gemini;
pub use names::WireNames;
pub use strict::{strict, strict_answer, without_added_nulls};
