//! Models from GGUF files: a llama-server that is started and ended, and one in the process.

#[cfg(unix)]
#[path = "../../../agent-loop/tests/it/programs.rs"]
mod programs;
#[cfg(feature = "local")]
mod real_model;
#[cfg(unix)]
mod llama_server;
// The loop's contract, which a model in the process keeps as a scripted one does.
#[cfg(feature = "local")]
#[path = "../../../agent-loop/tests/it/test_tools.rs"]
#[allow(dead_code, reason = "those of the scripted tests are among them")]
mod test_tools;
#[cfg(feature = "local")]
#[path = "../../../agent-loop/tests/it/loop_contract.rs"]
mod loop_contract;
#[cfg(feature = "local")]
mod local;
