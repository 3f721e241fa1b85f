//! Tool calls for models that only write text: `<tool_call>{"name":"…","arguments":{…}}</tool_call>`.
//!
//! ```text
//! request ──> prompt: the tools and the rules after the system text; calls and results as text, escaped ──> model
//! calls   <── parse: text passes, blocks become calls, broken blocks become faults             <── text <──┘
//! ```
//!
//! [`TextCalls`] does all of it around a model; its parts are public for programs that already have the text.

mod escape;
mod fence;
mod parse;
mod prompt;
mod wrap;

pub use escape::escape;
pub use parse::{Parser, Piece};
pub use prompt::{example, prompt_block, transcript_messages};
pub use wrap::TextCalls;

/// Opens a call.
const OPEN: &str = "<tool_call>";
/// Closes a call.
const CLOSE: &str = "</tool_call>";
