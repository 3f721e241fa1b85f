//! The older Chat Completions API, which most clients speak: its chunks are made of the events of the Responses API.
//!
//! ```text
//! JSON body ──> ChatRequest ──> Request ──> a model ──> deltas ──> ResponseEvents ──> ChatEvents ──> `data:` lines, or one object
//! ```
//!
//! It cannot express where text stood between calls (a message has one content and one list of calls), nor that a call is
//! incomplete. So a reply with an incomplete call is an error here, unless it was cut by its limit of length, which
//! `finish_reason` says.

mod request;
mod chunks;

pub use chunks::{ChatEvents, to_sse};
pub use request::{ChatRequest, UsageChunk};
