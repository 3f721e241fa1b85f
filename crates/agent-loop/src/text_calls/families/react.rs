//! Lines of thoughts and actions, for models that were not trained on tool calls at all.

use serde_json::{Map, Value};

use crate::tool::ToolSpec;

use super::super::marks::{Block, Mark, MarkKind, Place, THINK};
use super::super::pieces::Piece;
use super::Reader;
use super::parts::{call, call_of, json_of, json_prefix};

/// `Action:` and `Action Input:`, up to `Observation:`.
pub(super) struct React;

/// A model that is stopped before `Observation:` ends there; otherwise it invents the text after it.
const ACTION: Block = Block {
    closes: &["\nObservation:"],
    has_json: false,
    needs_close: false,
    begins: |c| c.is_alphanumeric() || matches!(c, '_' | '`'),
    ends_reply: true,
};

impl Reader for React {
    fn marks(&self) -> &'static [Mark] {
        const {
            &[
                Mark::new("Action:", Place::LineStart, MarkKind::Block(ACTION)),
                Mark::thoughts("Thought:", "\n"),
                Mark::skip("Final Answer:").at(Place::LineStart),
                THINK,
            ]
        }
    }

    fn read(&self, block: &str, tools: &[ToolSpec]) -> Result<Vec<Piece<'static>>, String> {
        let (name, input) = block.split_once("Action Input:").unwrap_or((block, ""));
        let name = name.trim().trim_matches('`');
        let input = input.trim();
        let json = input.strip_prefix("```json").or(input.strip_prefix("```")).unwrap_or(input).trim_start();
        if json.is_empty() {
            return Ok(vec![call(name, "{}")?]);
        }
        if json.starts_with('{') {
            let (arguments, rest) = json_prefix(json)?;
            let rest = rest.trim().trim_start_matches('`');
            return if rest.is_empty() {
                Ok(vec![call(name, arguments)?])
            } else {
                Err("Text follows the arguments: write one action, and stop.".into())
            };
        }
        // A tool with one argument gets it as a plain text.
        let spec = tools.iter().find(|spec| spec.name == name);
        let mut keys = spec.and_then(|spec| spec.parameters["properties"].as_object()).into_iter().flat_map(Map::keys);
        match (keys.next(), keys.next()) {
            (Some(key), None) => Ok(vec![call_of(name, Map::from_iter([(key.clone(), input.into())]))?]),
            _ => Err("The Action Input must be a JSON object.".into()),
        }
    }

    fn write(&self, name: &str, arguments: &Map<String, Value>) -> String {
        format!("Action: {name}\nAction Input: {}\n", json_of(arguments))
    }
}
