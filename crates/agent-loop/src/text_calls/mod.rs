//! Tool calls for models that only write text, in the form of their family;
//! `<tool_call>{"name":"…","arguments":{…}}</tool_call>` for models without one.
//!
//! ```text
//! request ──> prompt: the tools and the rules after the system text; calls and results as text, escaped ──> model
//! calls   <── parse: text passes, blocks become calls, broken blocks become faults             <── text <──┘
//! ```
//!
//! Thoughts that a model writes between `<think>` and `</think>`, or its family's marks, become reasoning.
//!
//! A schema of the answer is part of the prompt, too.
//!
//! [`TextCalls`] does all of it around a model. Its parts are public for programs that already have the text, and for
//! models that constrain the form of a call while they write it, as those of the crate `agent-llama` do.

mod escape;
mod fence;
mod pieces;
mod deltas;
mod call_json;
mod marks;
mod families;
mod parse;
mod foreign;
mod prompt;
mod checked_answer;
mod leaked;
mod wrap;

pub use deltas::deltas_of;
pub use escape::escape;
pub use families::Format;
pub use parse::Parser;
pub use pieces::Piece;
pub use prompt::{example, prompt_block, transcript_messages};
pub use wrap::{TextCalls, written_out};

/// Opens a call.
const OPEN: &str = "<tool_call>";
/// Closes a call.
const CLOSE: &str = "</tool_call>";
