//! Converts portable JSON Schema to what each provider accepts, and maps the calls that come back.

mod anthropic;
mod gemini;
mod names;
mod strict;

pub use anthropic::anthropic_answer;
pub use gemini::gemini;
pub use names::WireNames;
#[cfg(feature = "mcp")]
pub(crate) use names::{LONGEST_NAME, clean_name};
pub use strict::{strict, strict_answer, without_added_nulls};
