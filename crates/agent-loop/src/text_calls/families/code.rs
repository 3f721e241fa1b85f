//! The families of models that write tool calls as code, for example as Python.

use serde_json::{Map, Value};

use crate::tool::ToolSpec;

use super::super::marks::{Mark, Place, THINK};
use super::super::pieces::Piece;
use super::Reader;
use super::literals::{Literals, python};
use super::parts::call_of;

type Calls = Result<Vec<Piece<'static>>, String>;

fn python_call(name: &str, arguments: &Map<String, Value>) -> String {
    let arguments: Vec<String> = arguments.iter().map(|(key, value)| format!("{key}={}", python(value))).collect();
    format!("{name}({})", arguments.join(", "))
}

/// `[name(key=value), …]`.
pub(super) struct Pythonic;

impl Reader for Pythonic {
    fn marks(&self) -> &'static [Mark] {
        const {
            &[
                Mark::json("<|python_start|>", &["<|python_end|>"]),
                Mark::json("[", &[]).at(Place::ReplyStart),
                Mark::skip("<|eom|>"),
                Mark::skip("<|eot|>"),
                THINK,
            ]
        }
    }

    fn read(&self, block: &str, _: &[ToolSpec]) -> Calls {
        let mut literals = Literals(block);
        literals.takes("[");
        let mut calls = Vec::new();
        while !literals.takes("]") && !literals.is_at_end() {
            let (name, arguments) = literals.python_call()?;
            calls.push(call_of(&name, arguments)?);
            literals.takes(",");
        }
        if literals.takes("<|") || literals.is_at_end() {
            return Ok(calls);
        }
        Err("Text follows the tool calls.".into())
    }

    fn write(&self, name: &str, arguments: &Map<String, Value>) -> String {
        format!("<|python_start|>[{}]<|python_end|>", python_call(name, arguments))
    }
}

/// A code block `tool_code` of Python calls, or `call:name{…}` between marks.
pub(super) struct Gemma;

impl Reader for Gemma {
    fn marks(&self) -> &'static [Mark] {
        const {
            &[
                Mark::block("```tool_code\n", &["\n```"]).at(Place::LineStart),
                Mark::block("<start_function_call>", &["<end_function_call>"]),
                Mark::block("<|tool_call>", &["<tool_call|>"]),
                Mark::thoughts("<|channel>thought", "<channel|>"),
                Mark::skip("<end_of_turn>"),
                Mark::skip("<turn|>"),
            ]
        }
    }

    fn read(&self, block: &str, _: &[ToolSpec]) -> Calls {
        let mut literals = Literals(block);
        let is_list = !block.trim_start().starts_with("call:") && literals.takes("[");
        let mut calls = Vec::new();
        while !(literals.is_at_end() || is_list && literals.takes("]")) {
            let is_gemma = literals.0.trim_start().starts_with("call:");
            let (name, arguments) = if is_gemma { literals.gemma_call()? } else { literals.python_call()? };
            calls.push(call_of(&name, arguments)?);
            literals.takes(",");
        }
        if literals.is_at_end() { Ok(calls) } else { Err("Text follows the tool calls.".into()) }
    }

    fn write(&self, name: &str, arguments: &Map<String, Value>) -> String {
        format!("```tool_code\n{}\n```", python_call(name, arguments))
    }
}
