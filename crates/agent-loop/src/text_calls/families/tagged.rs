//! The families that write each argument between tags, as plain text.

use serde_json::{Map, Value};

use crate::tool::ToolSpec;

use super::super::marks::{Mark, THINK};
use super::super::pieces::Piece;
use super::super::{CLOSE, OPEN};
use super::Reader;
use super::json_calls::HERMES;
use super::parts::{call_of, plain, typed};

type Calls = Result<Vec<Piece<'static>>, String>;

/// Returns the text between two texts, and the text after the second one; `None` if the text does not begin with the
/// first.
fn between<'t>(text: &'t str, open: &str, close: &str) -> Result<Option<(&'t str, &'t str)>, String> {
    let Some(inside) = text.trim_start().strip_prefix(open) else { return Ok(None) };
    inside.split_once(close).map(Some).ok_or_else(|| format!("The tool call has {open} without {close}."))
}

/// Checks that only white space is left of a call, because unread text would be lost.
fn expect_end(rest: &str) -> Result<(), String> {
    match rest.trim() {
        "" => Ok(()),
        rest => Err(format!("The tool call has text that is no argument: {rest}")),
    }
}

/// Returns a text without leading and trailing line breaks.
fn without_breaks(text: &str) -> &str {
    let text = text.strip_prefix('\n').unwrap_or(text);
    text.strip_suffix('\n').unwrap_or(text)
}

/// `<function=name><parameter=key>…</parameter></function>`, with or without Hermes' tag around it.
pub(super) struct Qwen3Coder;

impl Reader for Qwen3Coder {
    fn marks(&self) -> &'static [Mark] {
        const {
            &[
                Mark::block(OPEN, &[CLOSE]).beginning(|c| matches!(c, '<' | '{')),
                Mark::block("<function=", &["</function>"]),
                Mark::skip(CLOSE),
                THINK,
            ]
        }
    }

    fn read(&self, block: &str, tools: &[ToolSpec]) -> Calls {
        if block.trim_start().starts_with('{') {
            return HERMES.read(block, tools);
        }
        block.trim().split("</function>").filter(|one| !one.trim().is_empty()).map(|one| function(one, tools)).collect()
    }

    fn write(&self, name: &str, arguments: &Map<String, Value>) -> String {
        let parameters =
            arguments.iter().map(|(key, value)| format!("<parameter={key}>\n{}\n</parameter>\n", plain(value)));
        format!("{OPEN}\n<function={name}>\n{}</function>\n{CLOSE}", parameters.collect::<String>())
    }
}

fn function(text: &str, tools: &[ToolSpec]) -> Result<Piece<'static>, String> {
    let text = text.trim_start();
    let text = text.strip_prefix("<function=").unwrap_or(text);
    let (name, mut rest) = text.split_once('>').ok_or("The tool call has no name.")?;
    let mut arguments = Map::new();
    while let Some((parameter, after)) = between(rest, "<parameter=", "</parameter>")? {
        let (key, value) = parameter.split_once('>').ok_or("A parameter has no name.")?;
        arguments.insert(key.trim().into(), typed(tools, name.trim(), key.trim(), without_breaks(value)));
        rest = after;
    }
    expect_end(rest)?;
    call_of(name, arguments)
}

/// `<tool_call>name<arg_key>…</arg_key><arg_value>…</arg_value></tool_call>`.
pub(super) struct Glm;

impl Reader for Glm {
    fn marks(&self) -> &'static [Mark] {
        const { &[Mark::block(OPEN, &[CLOSE]).beginning(|c| c.is_alphanumeric() || matches!(c, '_' | '{')), THINK] }
    }

    fn read(&self, block: &str, tools: &[ToolSpec]) -> Calls {
        if block.trim_start().starts_with('{') {
            return HERMES.read(block, tools);
        }
        let block = block.trim();
        let (name, mut rest) = block.split_at(block.find(['<', '\n']).unwrap_or(block.len()));
        let mut arguments = Map::new();
        while let Some((key, after)) = between(rest, "<arg_key>", "</arg_key>")? {
            let (value, after) = between(after, "<arg_value>", "</arg_value>")?.ok_or("An argument has no value.")?;
            arguments.insert(key.trim().into(), typed(tools, name.trim(), key.trim(), value));
            rest = after;
        }
        expect_end(rest)?;
        Ok(vec![call_of(name, arguments)?])
    }

    fn write(&self, name: &str, arguments: &Map<String, Value>) -> String {
        let pair = |(key, value): (&String, &Value)| {
            format!("<arg_key>{key}</arg_key>\n<arg_value>{}</arg_value>\n", plain(value))
        };
        format!("{OPEN}{name}\n{}{CLOSE}", arguments.iter().map(pair).collect::<String>())
    }
}

/// `<｜DSML｜invoke name="…"><｜DSML｜parameter name="…" string="true">…`: the tags mark which arguments are texts.
pub(super) struct Dsml;

impl Reader for Dsml {
    fn marks(&self) -> &'static [Mark] {
        const {
            &[
                Mark::block("<｜DSML｜function_calls>", &["</｜DSML｜function_calls>"]),
                Mark::block("<｜DSML｜tool_calls>", &["</｜DSML｜tool_calls>"]),
                Mark::skip("<｜end▁of▁sentence｜>"),
                THINK,
            ]
        }
    }

    fn read(&self, block: &str, _: &[ToolSpec]) -> Calls {
        let mut calls = Vec::new();
        let mut rest = block;
        while let Some((invoke, after)) = between(rest, "<｜DSML｜invoke name=\"", "</｜DSML｜invoke>")? {
            let (name, mut inside) = invoke.split_once("\">").ok_or("The tool call has no name.")?;
            let mut arguments = Map::new();
            while let Some((parameter, after)) = between(inside, "<｜DSML｜parameter name=\"", "</｜DSML｜parameter>")?
            {
                let (head, value) = parameter.split_once('>').ok_or("A parameter has no value.")?;
                let (key, kind) = head.split_once('"').ok_or("A parameter has no name.")?;
                let value = if kind.contains("\"false\"") {
                    serde_json::from_str(value).map_err(|error| format!("{key} is not valid JSON: {error}."))?
                } else {
                    Value::from(value)
                };
                arguments.insert(key.into(), value);
                inside = after;
            }
            expect_end(inside)?;
            calls.push(call_of(name, arguments)?);
            rest = after;
        }
        expect_end(rest)?;
        Ok(calls)
    }

    fn write(&self, name: &str, arguments: &Map<String, Value>) -> String {
        let parameter = |(key, value): (&String, &Value)| {
            let is_text = value.is_string();
            format!("<｜DSML｜parameter name=\"{key}\" string=\"{is_text}\">{}</｜DSML｜parameter>\n", plain(value))
        };
        format!(
            "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"{name}\">\n{}</｜DSML｜invoke>\n</｜DSML｜function_calls>",
            arguments.iter().map(parameter).collect::<String>()
        )
    }
}
