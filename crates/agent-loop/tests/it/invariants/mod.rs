//! The invariants of the loop as a state machine, each a test with its number. The driver's are beside its other tests.

mod approvals;
mod budgets;
mod calls;
mod properties;
