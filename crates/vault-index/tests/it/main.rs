//! What the crate promises as a whole, checked from outside.

mod floor_plan;
