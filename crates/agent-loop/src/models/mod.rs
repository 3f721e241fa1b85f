//! Models: hosted ones, a scripted one for tests, a replayed one.

mod hosted;
mod replay;
mod scripted;

pub use hosted::{ByteStream, Hosted, HttpReply, HttpRequest, Provider, Transport, Wire};
pub use replay::Replay;
pub use scripted::{Scripted, Step};
