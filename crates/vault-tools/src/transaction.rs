//! Transactions: a change applied as one, rolled back if anything fails in between, recovered after a crash, undone.
//!
//! ```text
//! Change ──> preconditions ──> journal: begin ──> actions one by one ──> sync ──> journal: end
//!                                    │                    │ fails, or a crash
//!                                    └── undo, redo       └──> rollback ──> journal: rolled back
//! ```

mod expected;
mod preconditions;
mod rollback;
mod recover;
mod apply;
mod undo;

pub use apply::{ApplyOptions, ApplyProgress, ControlFlow, Transaction};
pub use recover::{Recover, Recovered};
pub use undo::Force;
