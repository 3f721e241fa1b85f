//! The grammar of calls and answers: it defines what a model may write from the beginning of a call on. It allows no
//! optional white space, because small models fill a reply with spaces.

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::sampling::LlamaSampler;
use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use serde_json::{Map, Value, json};

use agent_loop::ToolSpec;
use agent_loop::{Error, ErrorKind, error::Result};

use super::form::{Arguments, CallForm, ID};
use super::vocabulary::{Part, Vocabulary};

/// Creates grammars for a vocabulary.
pub(super) struct Grammars {
    factory: ParserFactory,
}

impl Grammars {
    /// Reads the whole vocabulary. It is called once for each model.
    pub(super) fn new(model: &LlamaModel) -> Result<Self> {
        let mut factory = ParserFactory::new_simple(&LlamaSampler::llguidance_tok_env(model)).map_err(refused)?;
        factory.quiet();
        Ok(Self { factory })
    }

    /// # Errors
    /// `Tools` if no grammar can be created from the schemas. Calls are never generated without one.
    pub(super) fn matcher(&self, grammar: String) -> Result<Matcher> {
        let parser = self.factory.create_parser(TopLevelGrammar::from_lark(grammar)).map_err(refused)?;
        Ok(Matcher::new(Ok(parser)))
    }
}

fn refused(error: impl ToString) -> Error {
    let mut reason = error.to_string();
    reason.truncate(reason.floor_char_boundary(300));
    Error::new(ErrorKind::Tools, "no grammar can be made of the schemas").with_source(reason)
}

/// Calls of these tools, or, if there is a schema, an answer that fits it.
pub(super) struct OutputGrammar<'w> {
    pub(super) form: &'w CallForm,
    pub(super) tools: Vec<&'w ToolSpec>,
    /// The beginning of the first call, up to the tool's name.
    pub(super) open: &'w str,
    /// The part of it that is already written.
    pub(super) begun: &'w str,
    /// Whether more calls may follow.
    pub(super) many: bool,
    pub(super) answer: Option<&'w Value>,
}

impl OutputGrammar<'_> {
    /// Returns the grammar in the language of llguidance.
    pub(super) fn lark(&self, vocabulary: &Vocabulary<'_>) -> String {
        let literal = |text: &str| literal(text, vocabulary);
        let mut rules = String::new();
        let mut start = Vec::new();
        if !self.tools.is_empty() {
            let many = self.form.between.as_deref().filter(|_| self.many);
            start.push(format!("first{} {}", if many.is_some() { " more*" } else { "" }, literal(&self.form.close)));
            let heads = |open: &str, begun: &str, rule: &str| {
                let head = |(at, tool): (usize, &&ToolSpec)| {
                    let head = format!("{open}{}{}", name(tool, open), self.form.middle);
                    format!("{} arguments_{at}", literal(head.strip_prefix(begun).unwrap_or(&head)))
                };
                let heads: Vec<String> = self.tools.iter().enumerate().map(head).collect();
                format!("{rule}: {}\n", heads.join(" | "))
            };
            rules += &heads(self.open, self.begun, "first");
            if let Some(between) = many {
                rules += &heads(between, "", "more");
            }
            for (at, tool) in self.tools.iter().enumerate() {
                rules += &self.arguments(at, tool, vocabulary);
            }
        }
        if let Some(schema) = self.answer {
            start.push("answer".into());
            rules += &format!("answer: %json {}\n", guided(&closed(schema), false));
        }
        format!("start: {}\n{rules}", start.join(" | "))
    }

    fn arguments(&self, at: usize, tool: &ToolSpec, vocabulary: &Vocabulary<'_>) -> String {
        // Arguments are an object, even if the schema does not require it.
        let mut schema = closed(&tool.parameters);
        match &mut schema {
            Value::Object(fields) => _ = fields.insert("type".into(), json!("object")),
            other => *other = json!({"type": "object"}),
        }
        match self.form.arguments {
            Arguments::Compact => format!("arguments_{at}: %json {}\n", guided(&schema, false)),
            Arguments::Spaced => format!("arguments_{at}: %json {}\n", guided(&schema, true)),
            Arguments::Tagged(tags) => tagged(at, &schema, tags, vocabulary),
        }
    }
}

/// Returns a name within JSON, or unchanged.
fn name(tool: &ToolSpec, open: &str) -> String {
    let name = &tool.name;
    if open.ends_with('"') { json!(name).to_string().trim_matches('"').to_string() } else { name.clone() }
}

/// Returns a text in the syntax of the grammar, with its special tokens.
fn literal(text: &str, vocabulary: &Vocabulary<'_>) -> String {
    let mut out = Vec::new();
    for part in vocabulary.split(text) {
        match part {
            Part::Control(token) => out.push(format!("<[{}]>", token.0)),
            Part::Text(text) => {
                for (at, text) in text.split(ID).enumerate() {
                    if at > 0 {
                        out.push("/[a-zA-Z0-9]{9}/".into());
                    }
                    if !text.is_empty() {
                        out.push(json!(text).to_string());
                    }
                }
            }
        }
    }
    if out.is_empty() { "\"\"".into() } else { out.join(" ") }
}

/// Returns a rule with each argument between its tags, in the order of the schema; texts unchanged, other values as
/// JSON.
fn tagged(at: usize, schema: &Value, [key, before, behind]: [&str; 3], vocabulary: &Vocabulary<'_>) -> String {
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let (mut fields, mut rules) = (Vec::new(), String::new());
    for (field, (property, of)) in properties.iter().enumerate() {
        let rule = format!("field_{at}_{field}");
        fields.push(if required.contains(&property.as_str()) { rule.clone() } else { format!("{rule}?") });
        let head = literal(&format!("{key}{property}{before}"), vocabulary);
        let texts: Option<Vec<&str>> =
            of["enum"].as_array().and_then(|values| values.iter().map(Value::as_str).collect());
        let texts = texts.or_else(|| of["const"].as_str().map(|text| vec![text]));
        let kind = &of["type"];
        let is_text = *kind == "string" || kind.as_array().is_some_and(|kinds| kinds.contains(&json!("string")));
        rules += &match texts {
            Some(texts) => {
                let texts: Vec<String> = texts.iter().map(|text| literal(text, vocabulary)).collect();
                format!("{rule}: {head} ({}) {}\n", texts.join(" | "), literal(behind, vocabulary))
            }
            None if is_text => {
                let end = json!(behind).to_string();
                format!("{rule}: {head} value_{at}_{field}\nvalue_{at}_{field}[suffix={end}]: /(.|\\n)*/\n")
            }
            None => {
                let mut of = of.clone();
                for definitions in ["$defs", "definitions"] {
                    if let (Some(of), Some(all)) = (of.as_object_mut(), schema.get(definitions)) {
                        of.insert(definitions.into(), all.clone());
                    }
                }
                let json = guided(&of, true);
                format!(
                    "{rule}: {head} json_{at}_{field} {}\njson_{at}_{field}: %json {json}\n",
                    literal(behind, vocabulary)
                )
            }
        };
    }
    let fields = if fields.is_empty() { "\"\"".into() } else { fields.join(" ") };
    format!("arguments_{at}: {fields}\n{rules}")
}

/// Returns a schema with options for the syntax of its values. Constraints that the grammar cannot express are left to
/// the validation of the arguments.
fn guided(schema: &Value, is_spaced: bool) -> Value {
    let mut schema = if schema.is_object() { schema.clone() } else { json!({}) };
    let (comma, colon) = if is_spaced { (", ", ": ") } else { (",", ":") };
    schema["x-guidance"] =
        json!({"whitespace_flexible": false, "item_separator": comma, "key_separator": colon, "lenient": true});
    schema
}

/// Returns a schema whose objects have only the properties that it names.
fn closed(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            // The parts of `allOf` stay open, because none may exclude a property that another one names.
            let close = |(key, value): (&String, &Value)| {
                let value =
                    if key == "allOf" || key == "enum" || key == "const" { value.clone() } else { closed(value) };
                (key.clone(), value)
            };
            let mut out: Map<String, Value> = fields.iter().map(close).collect();
            let names_all = fields.get("properties").is_some_and(Value::is_object) && !fields.contains_key("allOf");
            let is_open = ["additionalProperties", "patternProperties"].iter().any(|key| fields.contains_key(*key));
            if names_all && !is_open {
                out.insert("additionalProperties".into(), Value::Bool(false));
            }
            Value::Object(out)
        }
        Value::Array(items) => items.iter().map(closed).collect(),
        other => other.clone(),
    }
}
