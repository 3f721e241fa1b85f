//! Bad input: a clear message, and nothing lost.
