//! The older Chat Completions API, which most clients use. Its chunks are created from the events of the Responses API.
//!
//! ```text
//! JSON body ──> ChatRequest ──> Request ──> a model ──> deltas ──> ResponseEvents ──> ChatEvents ──> `data:` lines, or one object
//! ```
//!
//! It cannot express the position of text between calls, because a message has one content and one list of calls, nor
//! that a call is incomplete. So a reply with an incomplete call is an error here, unless it was truncated by its
//! length limit, which `finish_reason` reports.

mod request;
mod chunks;

pub use chunks::{ChatEvents, to_sse};
pub use request::{ChatRequest, UsageChunk};
