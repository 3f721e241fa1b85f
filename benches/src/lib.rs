//! The benches and the generator they run on.
