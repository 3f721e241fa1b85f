//! The call syntax of the model families: the marks to look for, how to read a block of calls, how to write a call.

mod parts;
mod json_calls;
mod tagged;
mod literals;
mod code;
mod react;

use serde_json::{Map, Value};

use crate::tool::ToolSpec;

use super::CLOSE;
use super::marks::{Mark, MarkKind};
use super::pieces::Piece;

/// Reads and writes the calls of a family.
trait Reader: Sync {
    /// Returns the marks that a parser looks for.
    fn marks(&self) -> &'static [Mark];

    /// Reads the calls of a block, which has no marks around it.
    ///
    /// # Errors
    /// The issue with the block, in words for the model.
    fn read(&self, block: &str, tools: &[ToolSpec]) -> Result<Vec<Piece<'static>>, String>;

    /// Returns a call as the family's models write it.
    fn write(&self, name: &str, arguments: &Map<String, Value>) -> String;
}

/// The form in which a model writes its calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// `<tool_call>{"name":…,"arguments":{…}}</tool_call>`: Hermes, Qwen 2.5 and 3, Granite 4, and any model that was
    /// not trained on a form of its own.
    #[default]
    Hermes,
    /// `<tool_call><function=…><parameter=…>`: Qwen3-Coder, Qwen 3.5, Nemotron 3.
    Qwen3Coder,
    /// `<tool_call>name<arg_key>…`: GLM 4.5 and later.
    Glm,
    /// `<|python_tag|>{"name":…,"parameters":{…}}`, or that object as the whole reply: Llama 3.
    Llama3,
    /// `[name(key=value)]` as the whole reply or between `<|python_start|>` and `<|python_end|>`: Llama 4 and others.
    Pythonic,
    /// `[TOOL_CALLS]` with a list, or with names and arguments: Mistral.
    Mistral,
    /// `<｜tool▁calls▁begin｜>`: DeepSeek V3, R1 and V3.1.
    DeepSeek,
    /// `<｜DSML｜function_calls>`: DeepSeek V3.2 and later.
    Dsml,
    /// `<|tool_calls_section_begin|>`: Kimi K2.
    KimiK2,
    /// Messages with channels: gpt-oss. Its analysis is reasoning.
    Harmony,
    /// `<|tool_call|>` and a list: Granite 3.
    Granite,
    /// `<|tool_call|>` and a list up to `<|/tool_call|>`, or `functools` and a list: Phi 4.
    Phi,
    /// A code block `tool_code`: Gemma 3. `call:name{…}` between marks: FunctionGemma, Gemma 4.
    Gemma,
    /// `<function=name>{…}</function>`, or `>>>name` and arguments: Functionary.
    Functionary,
    /// Lines `Thought:`, `Action:`, `Action Input:`, `Final Answer:`: any model that is prompted to write them. The
    /// text after `Observation:` is left out.
    React,
}

/// Each format with its name and with texts that occur only in the templates of its models; several texts in one entry
/// must all occur. The first match in this order counts.
const FORMATS: [(Format, &str, &[&[&str]]); 15] = [
    (Format::Dsml, "deepseek_dsml", &[&["DSML"]]),
    (Format::DeepSeek, "deepseek", &[&["<｜tool▁calls▁begin｜>"]]),
    (Format::KimiK2, "kimi_k2", &[&["<|tool_calls_section_begin|>"]]),
    (Format::Harmony, "harmony", &[&["<|channel|>"]]),
    (Format::Mistral, "mistral", &[&["[TOOL_CALLS]"]]),
    (Format::Glm, "glm", &[&["<arg_key>"]]),
    (Format::Qwen3Coder, "qwen3_coder", &[&["<function=", "<parameter="]]),
    (Format::Functionary, "functionary", &[&["<function=", "</function>"], &[">>>all"]]),
    (Format::Pythonic, "pythonic", &[&["<|python_start|>"]]),
    (Format::Llama3, "llama3", &[&["<|python_tag|>"], &["<|eom_id|>"]]),
    (Format::Gemma, "gemma", &[&["<start_function_call>"], &["<|tool_call>"], &["tool_code"]]),
    (Format::Granite, "granite", &[&["<|tool_call|>", "<|start_of_role|>"]]),
    (Format::Phi, "phi", &[&["<|tool_call|>"], &["functools["]]),
    (Format::React, "react", &[&["Action Input:"]]),
    (Format::Hermes, "hermes", &[&["<tool_call>"]]),
];

impl Format {
    /// Returns the format of this name: `hermes`, `qwen3_coder`, `glm`, `llama3`, `pythonic`, `mistral`, `deepseek`,
    /// `deepseek_dsml`, `kimi_k2`, `harmony`, `granite`, `phi`, `gemma`, `functionary`, `react`.
    pub fn named(name: &str) -> Option<Self> {
        FORMATS.iter().find(|(_, other, _)| *other == name).map(|(format, ..)| *format)
    }

    /// Returns every format.
    #[cfg(test)]
    pub(super) fn all() -> impl Iterator<Item = Self> {
        FORMATS.iter().map(|(format, ..)| *format)
    }

    /// Returns the format's name.
    pub fn name(self) -> &'static str {
        FORMATS.iter().find(|(format, ..)| *format == self).map_or("hermes", |(_, name, _)| name)
    }

    /// Returns the format that a model's own chat template uses. Servers return the template (`/props` of llama.cpp's
    /// server, `/api/show` of Ollama), and `tokenizer_config.json` contains it. `None` if the template has no calls.
    pub fn of_template(template: &str) -> Option<Self> {
        let fits = |texts: &&[&str]| texts.iter().all(|text| template.contains(text));
        FORMATS.iter().find(|(.., texts)| texts.iter().any(fits)).map(|(format, ..)| *format)
    }

    fn reader(self) -> &'static dyn Reader {
        match self {
            Self::Hermes => &json_calls::HERMES,
            Self::Llama3 => &json_calls::LLAMA3,
            Self::Granite => &json_calls::GRANITE,
            Self::Phi => &json_calls::PHI,
            Self::Mistral => &json_calls::Mistral,
            Self::DeepSeek => &json_calls::DeepSeek,
            Self::KimiK2 => &json_calls::KimiK2,
            Self::Harmony => &json_calls::Harmony,
            Self::Functionary => &json_calls::Functionary,
            Self::Qwen3Coder => &tagged::Qwen3Coder,
            Self::Glm => &tagged::Glm,
            Self::Dsml => &tagged::Dsml,
            Self::Pythonic => &code::Pythonic,
            Self::Gemma => &code::Gemma,
            Self::React => &react::React,
        }
    }

    pub(super) fn marks(self) -> &'static [Mark] {
        self.reader().marks()
    }

    /// Returns whether a text is part of a mark that a parser of this format looks for. A special token that is part of
    /// a mark must be passed to the parser; other special tokens are not text.
    pub fn has_mark(self, text: &str) -> bool {
        let in_mark = |mark: &Mark| match mark.kind {
            MarkKind::Thoughts(close) => close.contains(text),
            MarkKind::Block(block) => block.closes.iter().any(|close| close.contains(text)),
            MarkKind::Call => CLOSE.contains(text),
            MarkKind::Skip => false,
        };
        self.marks().iter().any(|mark| mark.text.contains(text) || in_mark(mark))
    }

    pub(super) fn read(self, block: &str, tools: &[ToolSpec]) -> Result<Vec<Piece<'static>>, String> {
        match self.reader().read(block, tools) {
            Ok(calls) if calls.is_empty() => Err("There is no call in the block.".into()),
            read => read,
        }
    }

    pub(super) fn write(self, name: &str, arguments: &Map<String, Value>) -> String {
        self.reader().write(name, arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_a_name_of_its_own() {
        for format in Format::all() {
            assert_eq!(Format::named(format.name()), Some(format));
        }
        assert_eq!(Format::named("other"), None);
    }

    #[test]
    fn a_template_tells_its_format() {
        for (template, expected) in [
            ("{{- '<tool_call>\\n{\"name\": \"' }}", Some(Format::Hermes)),
            ("'<tool_call>\\n<function=' + name + '>' '<parameter='", Some(Format::Qwen3Coder)),
            ("<tool_call>{{ name }}<arg_key>{{ key }}</arg_key>", Some(Format::Glm)),
            ("{{ '<|python_tag|>' }}", Some(Format::Llama3)),
            ("'<|python_start|>' '<|python_end|>'", Some(Format::Pythonic)),
            ("[AVAILABLE_TOOLS] [TOOL_CALLS]", Some(Format::Mistral)),
            ("'<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>'", Some(Format::DeepSeek)),
            ("dsml_token = '｜DSML｜'", Some(Format::Dsml)),
            ("<|tool_calls_section_begin|>", Some(Format::KimiK2)),
            ("<|start|>assistant<|channel|>analysis", Some(Format::Harmony)),
            ("<|start_of_role|>assistant <|tool_call|>", Some(Format::Granite)),
            ("<|tool|> <|tool_call|>", Some(Format::Phi)),
            ("<start_function_call>call:", Some(Format::Gemma)),
            (">>>all", Some(Format::Functionary)),
            ("Action: the action\nAction Input: the input", Some(Format::React)),
            ("{{ message.content }}", None),
        ] {
            assert_eq!(Format::of_template(template), expected, "{template}");
        }
    }
}
