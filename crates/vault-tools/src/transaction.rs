//! Transactions: a change applied as one, rolled back if anything fails in between, recovered after a crash, undone.
//!
//! ```text
//! Change ──> preconditions ──> journal: begin ──> actions one by one ──> sync ──> journal: end
//!                                    │                    │ fails, or a crash
//!                                    └── undo, redo       └──> rollback ──> journal: rolled back
//! ```

mod file_closer;
mod expected_disk;
mod inverse;
mod apply;
mod recover;
mod undo;
mod past;

pub use apply::{ApplyOptions, ApplyProgress, ControlFlow, Transaction};
pub use inverse::Force;
pub use recover::{RecoveryMode, RecoveryReport};
