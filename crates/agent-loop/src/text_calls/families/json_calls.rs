//! The families whose arguments are JSON.

use serde_json::{Map, Value};

use crate::tool::ToolSpec;

use super::super::call_json::read_calls;
use super::super::marks::{self, Mark, Place, THINK, THINKING};
use super::super::pieces::Piece;
use super::super::{CLOSE, OPEN};
use super::Reader;
use super::parts::{call, json_of, json_prefix, object_of};

type Calls = Result<Vec<Piece<'static>>, String>;

/// Objects with a name and arguments: a single one, several in sequence, or a list.
pub(super) struct Objects {
    marks: &'static [Mark],
    open: &'static str,
    key: &'static str,
    close: &'static str,
}

pub(super) const HERMES: Objects = Objects { marks: marks::HERMES, open: OPEN, key: "arguments", close: CLOSE };

pub(super) const LLAMA3: Objects = Objects {
    marks: &[Mark::json("<|python_tag|>", &["<|eom_id|>", "<|eot_id|>"]), Mark::json("{", &[]).at(Place::ReplyStart)],
    open: "<|python_tag|>",
    key: "parameters",
    close: "",
};

pub(super) const GRANITE: Objects = Objects {
    marks: &[
        Mark::json("<|tool_call|>", &["<|end_of_text|>"]).beginning(is_bracket),
        Mark::json(OPEN, &[CLOSE]).beginning(is_bracket),
        THINK,
        THINKING,
    ],
    open: "<|tool_call|>[",
    key: "arguments",
    close: "]",
};

pub(super) const PHI: Objects = Objects {
    marks: &[
        Mark::json("<|tool_call|>", &["<|/tool_call|>"]).beginning(is_bracket),
        Mark::json("functools", &["<|end|>"]).beginning(is_bracket).at(Place::LineStart),
        THINK,
    ],
    open: "<|tool_call|>[",
    key: "arguments",
    close: "]<|/tool_call|>",
};

fn is_bracket(c: char) -> bool {
    matches!(c, '{' | '[')
}

impl Reader for Objects {
    fn marks(&self) -> &'static [Mark] {
        self.marks
    }

    fn read(&self, block: &str, _: &[ToolSpec]) -> Calls {
        // Llama's `{` is both the mark and the beginning of the object.
        if self.key == "parameters" && block.trim_start().starts_with('"') {
            return objects(&format!("{{{block}"));
        }
        objects(block)
    }

    fn write(&self, name: &str, arguments: &Map<String, Value>) -> String {
        format!("{}{}{}", self.open, object_of(name, self.key, arguments), self.close)
    }
}

fn objects(block: &str) -> Calls {
    let mut calls = Vec::new();
    let mut rest = block;
    loop {
        rest = rest.trim_start_matches([';', ',', ' ', '\t', '\r', '\n']);
        // The rest is a special token of the model, such as the end of its turn.
        if rest.is_empty() || rest.starts_with('<') {
            return Ok(calls);
        }
        let (value, after) = json_prefix(rest)?;
        calls.extend(read_calls(value)?);
        rest = after;
    }
}

/// `[TOOL_CALLS]` with a list of objects (v3), or `name{…}` (v11), or `name[CALL_ID]…[ARGS]{…}` (v13).
pub(super) struct Mistral;

impl Reader for Mistral {
    fn marks(&self) -> &'static [Mark] {
        const { &[Mark::json("[TOOL_CALLS]", &[]), Mark::thoughts("[THINK]", "[/THINK]"), THINK] }
    }

    fn read(&self, block: &str, _: &[ToolSpec]) -> Calls {
        if block.trim_start().starts_with(is_bracket) {
            return objects(block);
        }
        let mut calls = Vec::new();
        let mut rest = block.trim();
        while !rest.is_empty() && rest != "</s>" {
            rest = rest.strip_prefix("[TOOL_CALLS]").unwrap_or(rest);
            let (head, _) = rest.split_once('{').ok_or("The tool call has no arguments.")?;
            let name = head.split('[').next().unwrap_or_default();
            let (arguments, after) = json_prefix(&rest[head.len()..])?;
            calls.push(call(name, arguments)?);
            rest = after.trim_start();
        }
        Ok(calls)
    }

    fn write(&self, name: &str, arguments: &Map<String, Value>) -> String {
        format!("[TOOL_CALLS]{name}[ARGS]{}", json_of(arguments))
    }
}

/// V3 and R1: `function<｜tool▁sep｜>name`, and arguments in a code block; V3.1: `name<｜tool▁sep｜>` and arguments.
pub(super) struct DeepSeek;

const CALLS_BEGIN: &str = "<｜tool▁calls▁begin｜>";
const CALLS_END: &str = "<｜tool▁calls▁end｜>";
const CALL_BEGIN: &str = "<｜tool▁call▁begin｜>";
const CALL_END: &str = "<｜tool▁call▁end｜>";
const SEPARATOR: &str = "<｜tool▁sep｜>";

impl Reader for DeepSeek {
    fn marks(&self) -> &'static [Mark] {
        const { &[Mark::json(CALLS_BEGIN, &[CALLS_END]), THINK, Mark::skip("<｜end▁of▁sentence｜>")] }
    }

    fn read(&self, block: &str, _: &[ToolSpec]) -> Calls {
        let read = |one: &str| {
            let (first, second) = one.split_once(SEPARATOR).ok_or("The tool call has no <｜tool▁sep｜>.")?;
            let name = if first.trim() == "function" { second.lines().next().unwrap_or_default() } else { first };
            let from = second.find('{').ok_or("The tool call has no arguments.")?;
            call(name, json_prefix(&second[from..])?.0)
        };
        block.split(CALL_BEGIN).skip(1).map(read).collect()
    }

    fn write(&self, name: &str, arguments: &Map<String, Value>) -> String {
        format!("{CALLS_BEGIN}{CALL_BEGIN}{name}{SEPARATOR}{}{CALL_END}{CALLS_END}", json_of(arguments))
    }
}

/// `functions.name:0<|tool_call_argument_begin|>{…}` for each call.
pub(super) struct KimiK2;

impl Reader for KimiK2 {
    fn marks(&self) -> &'static [Mark] {
        const { &[Mark::json("<|tool_calls_section_begin|>", &["<|tool_calls_section_end|>"]), THINK] }
    }

    fn read(&self, block: &str, _: &[ToolSpec]) -> Calls {
        let read = |one: &str| {
            let (id, arguments) =
                one.split_once("<|tool_call_argument_begin|>").ok_or("The tool call has no arguments.")?;
            let name = id.trim().rsplit_once(':').map_or(id.trim(), |(name, _)| name);
            call(name.strip_prefix("functions.").unwrap_or(name), json_prefix(arguments)?.0)
        };
        block.split("<|tool_call_begin|>").skip(1).map(read).collect()
    }

    fn write(&self, name: &str, arguments: &Map<String, Value>) -> String {
        format!(
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.{name}:0<|tool_call_argument_begin|>{}\
            <|tool_call_end|><|tool_calls_section_end|>",
            json_of(arguments)
        )
    }
}

/// A message of gpt-oss to `functions.name`.
pub(super) struct Harmony;

impl Reader for Harmony {
    fn marks(&self) -> &'static [Mark] {
        const ENDS: &[&str] = &["<|call|>", "<|end|>"];
        const {
            &[
                Mark::json("<|channel|>commentary to=", ENDS),
                Mark::json("<|channel|>analysis to=", ENDS),
                Mark::json("<|start|>assistant to=", ENDS),
                Mark::thoughts("<|channel|>analysis<|message|>", "<|end|>").at(Place::Anywhere),
                Mark::skip("<|channel|>final<|message|>"),
                Mark::skip("<|channel|>commentary<|message|>"),
                Mark::skip("<|start|>assistant"),
                Mark::skip("<|end|>"),
                Mark::skip("<|return|>"),
            ]
        }
    }

    fn read(&self, block: &str, _: &[ToolSpec]) -> Calls {
        let (head, arguments) = block.split_once("<|message|>").ok_or("The tool call has no <|message|>.")?;
        let name = head.split([' ', '<']).next().unwrap_or_default();
        Ok(vec![call(name.strip_prefix("functions.").unwrap_or(name), json_prefix(arguments)?.0)?])
    }

    fn write(&self, name: &str, arguments: &Map<String, Value>) -> String {
        format!("<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{}<|call|>", json_of(arguments))
    }
}

/// `<function=name>{…}</function>` (v3.1), or lines `>>>name` with arguments (v3.2), where `all` is text.
pub(super) struct Functionary;

impl Reader for Functionary {
    fn marks(&self) -> &'static [Mark] {
        const {
            &[
                Mark::json("<function=", &["</function>"]),
                Mark::json(">>>", &[]).at(Place::LineStart),
                Mark::skip(">>>all\n").at(Place::LineStart),
                Mark::skip("all\n").at(Place::ReplyStart),
            ]
        }
    }

    fn read(&self, block: &str, _: &[ToolSpec]) -> Calls {
        let mut calls = Vec::new();
        let mut rest = block.trim();
        while !rest.is_empty() {
            let (head, _) = rest.split_once('{').ok_or("The tool call has no arguments.")?;
            let (arguments, after) = json_prefix(&rest[head.len()..])?;
            calls.push(call(head.trim_start_matches(">>>").trim_end().trim_end_matches('>'), arguments)?);
            rest = after.trim_start();
        }
        Ok(calls)
    }

    fn write(&self, name: &str, arguments: &Map<String, Value>) -> String {
        format!("<function={name}>{}</function>", json_of(arguments))
    }
}
