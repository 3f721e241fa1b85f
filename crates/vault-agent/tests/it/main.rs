//! What the program promises as a whole, checked from outside.

mod stdio;

mod approvals;
mod hostile;
mod resources;
mod servers;
mod tokens;
mod tools;
