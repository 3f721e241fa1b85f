//! The assistants that can start the server, and where each has its configuration.
