//! The conversion of both APIs, and the server over real sockets.

// The changes that a person could make of a document are those of agent-loop's tests.
#[path = "../../../agent-loop/tests/it/edited.rs"]
mod edited;
mod chat;
mod hostile;
mod proxy;
mod responses;
