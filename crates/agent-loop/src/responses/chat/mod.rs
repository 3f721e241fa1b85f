//! The older Chat Completions API over the same conversion: most clients speak it.
//!
//! ```text
//! JSON body ──> ChatRequest ──> Request ──> a model ──> deltas ──> ChatEvents ──> `data:` lines, or one object
//! ```
//!
//! What it cannot say that the Responses API can: where text stood between calls (a message has one content and one
//! list of calls), and that a call is incomplete. So a reply with a call that never became whole is an error here,
//! unless it was cut by its limit of length, which `finish_reason` tells.

mod request;
mod chunks;

pub use chunks::{ChatEvents, to_sse};
pub use request::{ChatRequest, UsageChunk};
