//! Models: hosted ones, a scripted one for tests, a replayed one.

mod hosted;
mod replay;
mod scripted;

pub use hosted::{
    ByteStream, HostedModel, HttpReply, HttpRequest, Provider, ReasoningField, ReturnReasoning, Streaming, TextDeltas,
    Transport, Wire,
};
#[cfg(feature = "hosted")]
pub use hosted::{Http, HttpOptions, HttpProxy};
pub use replay::ReplayModel;
pub use scripted::{ScriptedModel, ScriptedReply};
