//! The eleven invariants of the loop, each a test with its number.

mod approvals;
mod budgets;
mod calls;
mod walk;
