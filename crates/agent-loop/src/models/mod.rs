//! Models: hosted ones, one in this process, a scripted one for tests, a replayed one.

#[path = "../../../agent-llama/src/gguf.rs"]
mod gguf;
mod hosted;
#[cfg(feature = "hosted")]
#[path = "../../../agent-llama/src/llama_server.rs"]
mod llama_server;
#[cfg(feature = "local")]
#[path = "../../../agent-llama/src/local/mod.rs"]
mod local;
mod replay;
mod scripted;

pub use gguf::Gguf;
pub use hosted::{
    ByteStream, Hosted, HttpReply, HttpRequest, Provider, ReasoningField, ReturnReasoning, Streaming, TextDeltas,
    Transport, Wire,
};
#[cfg(feature = "hosted")]
pub use hosted::{Http, HttpOptions, HttpProxy};
#[cfg(feature = "hosted")]
pub use llama_server::{LlamaServer, LlamaServerOptions};
#[cfg(feature = "local")]
pub use local::{CacheUse, Local, LocalOptions};
pub use replay::Replay;
pub use scripted::{Scripted, ScriptedReply};
