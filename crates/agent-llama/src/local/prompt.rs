//! Requests as prompts: through the file's template with its tools, or with the tools in the text.

use serde_json::{Value, json};

use agent_loop::ToolSpec;
use agent_loop::text_calls::{Format, escape, written_out};
use agent_loop::{Message, Part};
use agent_loop::{Request, ToolChoice};

use super::form::{CallForm, call_json, id, sent};
use super::template::Template;
use super::vocabulary::Vocabulary;

/// The template for files without one, with the marks that most models know.
const CHAT_ML: &str = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}\
    {% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
/// The template for models that do not know these marks.
const HEADINGS: &str = "{% for m in messages %}### {{ m.role }}:\n{{ m.content }}\n\n{% endfor %}\
    {% if add_generation_prompt %}### assistant:\n{% endif %}";

/// Creates the prompts of a model.
#[derive(Debug)]
pub(super) struct Prompts {
    template: Template,
    pub(super) form: CallForm,
    /// Whether tools are described in the text, because the template cannot show them.
    in_text: bool,
    has_system_role: bool,
    /// Texts that end a reply, if no token does.
    pub(super) stop: Vec<String>,
    /// Warnings for a person.
    pub(super) warnings: Vec<String>,
}

impl Prompts {
    pub(super) fn new(source: Option<&str>, vocabulary: &Vocabulary<'_>) -> Self {
        let (bos, eos) = (&vocabulary.bos, &vocabulary.eos);
        let probe = [message("user", "a"), message("assistant", "b"), message("user", "c")];
        let usable = source.ok_or("it has no chat template".to_string()).and_then(|source| {
            let unusable = |why| format!("its chat template cannot be rendered ({why})");
            let template = Template::new(source, bos, eos).map_err(unusable)?;
            template.render(&probe, None, true).map_err(unusable)?;
            Ok((template, source))
        });
        let (template, form, stop, why) = match usable {
            Ok((template, source)) => match CallForm::of(&template, source, &|text| vocabulary.end_of_turn(text)) {
                Ok(form) => (template, Some(form), None, None),
                Err(why) => (template, None, None, Some(format!("its chat template shows no tools ({why})"))),
            },
            Err(why) => {
                let (source, stop) = match vocabulary.end_of_turn("<|im_end|>") {
                    Some(_) => (CHAT_ML, None),
                    None => (HEADINGS, Some("### user:")),
                };
                // Both templates parse; a test checks it.
                match Template::new(source, bos, eos) {
                    Ok(template) => (template, None, stop, Some(why)),
                    Err(_) => unreachable!("the templates of this file are valid"),
                }
            }
        };
        let system = [message("system", "SYSTEM TEXT"), message("user", "a")];
        let has_system_role = template.render(&system, None, true).is_ok_and(|text| text.contains("SYSTEM TEXT"));
        let warning = why.map(|why| format!("tools are described to the model in the text of the prompt: {why}"));
        Self {
            template,
            in_text: form.is_none(),
            form: form.unwrap_or_else(CallForm::in_text),
            has_system_role,
            stop: stop.into_iter().map(String::from).collect(),
            warnings: warning.into_iter().collect(),
        }
    }

    /// Returns the prompt of a request.
    ///
    /// # Errors
    /// The reason why the template rejects the request.
    pub(super) fn prompt(&self, request: &Request, vocabulary: &Vocabulary<'_>) -> Result<String, String> {
        let text = if self.in_text {
            // The grammar enforces the schema of an answer, as it does with a template.
            let mut request = request.clone();
            request.answer_schema = None;
            let request = written_out(Format::Hermes, request);
            self.template.render(&self.messages(&request, vocabulary), None, true)?
        } else {
            let tools: Vec<Value> = request.tools.iter().map(|tool| tool_json(tool, vocabulary)).collect();
            let tools = (!tools.is_empty()).then_some(&tools[..]);
            self.template.render(&self.messages(request, vocabulary), tools, true)?
        };
        Ok(vocabulary.with_bos(text))
    }

    fn messages(&self, request: &Request, vocabulary: &Vocabulary<'_>) -> Vec<Value> {
        let outside =
            |text: &str| if self.in_text { vocabulary.escape(text) } else { vocabulary.escape(&escape(text)) };
        let mut messages = Vec::new();
        // If tools are described in the text, the marks of calls are our own. Marks in other texts have been escaped
        // before.
        let own = |text: &str| match self.in_text {
            true => vocabulary
                .escape(text)
                .replace("&#60;tool_call>", "<tool_call>")
                .replace("&#60;/tool_call>", "</tool_call>"),
            false => vocabulary.escape(text),
        };
        let mut system = request.system.as_deref().map(own);
        if self.has_system_role
            && let Some(system) = system.take()
        {
            messages.push(message("system", &system));
        }
        let mut ids = Vec::new();
        for said in request.messages.iter() {
            match &**said {
                Message::User { text, .. } | Message::Note { text } => {
                    let system = system.take().map_or_else(String::new, |system| system + "\n\n");
                    add_user(&mut messages, system + &outside(text));
                }
                Message::Assistant { parts } => {
                    messages.push(self.assistant(parts, &mut ids, &own, vocabulary));
                }
                Message::Results { results } => messages.extend(results.iter().map(|result| {
                    let number = ids.iter().position(|id| *id == result.call.0).unwrap_or(ids.len());
                    let text = outside(&result.text());
                    json!({"role": "tool", "name": result.name, "tool_call_id": id(number), "content": text})
                })),
            }
        }
        messages
    }

    fn assistant(
        &self,
        parts: &[Part],
        ids: &mut Vec<String>,
        own: &impl Fn(&str) -> String,
        vocabulary: &Vocabulary<'_>,
    ) -> Value {
        let (mut text, mut thoughts, mut calls) = (String::new(), String::new(), Vec::new());
        for part in parts {
            match part {
                Part::Text { text: said, .. } => text.push_str(&own(said)),
                Part::Reasoning { text, .. } => thoughts.push_str(&vocabulary.escape(text)),
                Part::Call(call) => {
                    let arguments = sent(&escaped(&call.arguments, vocabulary), self.form.takes_text);
                    calls.push(call_json(&id(ids.len()), &call.name, arguments));
                    ids.push(call.id.0.clone());
                }
            }
        }
        let mut message = message("assistant", &text);
        if !thoughts.is_empty() {
            message["reasoning_content"] = json!(thoughts);
        }
        if !calls.is_empty() {
            message["tool_calls"] = json!(calls);
        }
        message
    }
}

fn message(role: &str, text: &str) -> Value {
    json!({"role": role, "content": text})
}

/// Merges consecutive messages of a person, because templates reject them.
fn add_user(messages: &mut Vec<Value>, text: String) {
    match messages.last_mut() {
        Some(last) if last["role"] == "user" => {
            let before = last["content"].as_str().unwrap_or_default();
            last["content"] = json!(format!("{before}\n\n{text}"));
        }
        _ => messages.push(message("user", &text)),
    }
}

fn tool_json(tool: &ToolSpec, vocabulary: &Vocabulary<'_>) -> Value {
    let description = vocabulary.escape(&tool.description);
    let parameters = escaped(&tool.parameters, vocabulary);
    json!({"type": "function", "function": {"name": tool.name, "description": description, "parameters": parameters}})
}

/// Returns a value whose texts are escaped.
fn escaped(value: &Value, vocabulary: &Vocabulary<'_>) -> Value {
    match value {
        Value::String(text) => Value::String(vocabulary.escape(text)),
        Value::Array(items) => items.iter().map(|item| escaped(item, vocabulary)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (vocabulary.escape(key), escaped(value, vocabulary)));
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

/// Returns whether a reply may contain calls.
pub(super) fn may_call(request: &Request) -> bool {
    !request.tools.is_empty() && request.tool_choice != ToolChoice::None
}
