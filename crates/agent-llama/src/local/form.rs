//! The form in which a model writes its calls, derived from its own chat template: the template's rendering of a call
//! in the conversation is the text that the model was trained to write, and that the grammar then enforces.
//!
//! The families of [`agent_loop::text_calls`] are the counterpart: their parser accepts any text that such a model may
//! write, including spaces and small errors, while a grammar needs one exact text. A form is used only after the parser
//! has read it back.

use serde_json::{Value, json};

use agent_loop::text_calls::{Format, Parser, Piece};
use agent_loop::{Effect, ToolSpec};

use super::template::{Template, spaced};

/// A placeholder for a call's id, which the model makes up.
pub(super) const ID: char = '\u{1}';

/// A call as text: `open name middle arguments close`. `between` precedes further calls.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CallForm {
    pub(super) format: Format,
    pub(super) open: String,
    pub(super) middle: String,
    pub(super) close: String,
    /// The text between the arguments of a call and the name of the next one; `None` for one call per reply.
    pub(super) between: Option<String>,
    pub(super) arguments: Arguments,
    /// Whether the template takes arguments as a text, as some do that put this text between their own.
    pub(super) takes_text: bool,
}

/// The syntax of arguments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Arguments {
    /// As a JSON object, compact or with a space after each comma and colon.
    Compact,
    Spaced,
    /// Each argument between tags, texts unchanged: before the key, before the value, after it.
    Tagged([&'static str; 3]),
}

const PROBE: [&str; 2] = ["first_probe", "second_probe"];

impl CallForm {
    /// Returns the form for a model whose prompt describes the calls.
    pub(super) fn in_text() -> Self {
        Self {
            format: Format::Hermes,
            open: "<tool_call>{\"name\":\"".into(),
            middle: "\",\"arguments\":".into(),
            close: "}</tool_call>".into(),
            between: Some("}</tool_call>\n<tool_call>{\"name\":\"".into()),
            arguments: Arguments::Compact,
            takes_text: false,
        }
    }

    /// Returns the form of a template with tools. `end_of_turn` returns where a reply ends in a text.
    ///
    /// # Errors
    /// The reason why the template has no form that a grammar can enforce, in words for a person.
    pub(super) fn of(
        template: &Template,
        source: &str,
        end_of_turn: &dyn Fn(&str) -> Option<usize>,
    ) -> Result<Self, String> {
        if !source.contains("tools") {
            return Err("it has no place for tools".into());
        }
        let format = Format::of_template(source).ok_or("it shows no calls in a known form")?;
        let form = Self::probed(template, format, false, end_of_turn);
        form.or_else(|why| Self::probed(template, format, true, end_of_turn).map_err(|_| why))
    }

    fn probed(
        template: &Template,
        format: Format,
        takes_text: bool,
        end_of_turn: &dyn Fn(&str) -> Option<usize>,
    ) -> Result<Self, String> {
        let said = |parts: Value| json!([{"role": "user", "content": "Please look."}, parts]);
        let render = |messages: Value| {
            let tools = PROBE.map(tool_json);
            template.render(messages.as_array().map_or(&[], Vec::as_slice), Some(&tools), false)
        };
        let plain = render(said(json!({"role": "assistant", "content": "PLAIN TEXT"})))?;
        let one = render(said(assistant(1, takes_text)))?;
        let begin =
            plain.char_indices().zip(one.chars()).find(|((_, a), b)| a != b).map_or(plain.len(), |((at, _), _)| at);
        let one = one.get(begin..).unwrap_or_default();
        let mut form = match known(format) {
            Some(form) if one.contains(PROBE[0]) => form,
            _ => {
                let mut form = Self::of_one(format, one, end_of_turn).ok_or("its calls are not name and JSON")?;
                let two = render(said(assistant(2, takes_text)));
                form.between = two.ok().and_then(|two| form.between_two(two.get(begin..)?));
                form
            }
        };
        form.takes_text = takes_text;
        if form.check().is_err() {
            form.between = None;
            form.check()?;
        }
        Ok(form)
    }

    fn of_one(format: Format, one: &str, end_of_turn: &dyn Fn(&str) -> Option<usize>) -> Option<Self> {
        let (at, arguments, length) = find_arguments(one, 0)?;
        let name = one[..at].find(PROBE[0])?;
        let tail = &one[at + length..];
        let close = match end_of_turn(tail) {
            Some(end) => &tail[..end],
            None => tail.trim_end(),
        };
        let with_id = |text: &str| text.replace(&id(0), &ID.to_string());
        Some(Self {
            format,
            open: with_id(&one[..name]),
            middle: with_id(&one[name + PROBE[0].len()..at]),
            close: with_id(close),
            between: None,
            arguments,
            takes_text: false,
        })
    }

    fn between_two(&self, two: &str) -> Option<String> {
        let (at, _, length) = find_arguments(two, 0)?;
        let rest = &two[at + length..];
        let name = rest.find(PROBE[1])?;
        let (arguments, ..) = find_arguments(rest, 1)?;
        let begin = rest[..name].replace(&id(0), &ID.to_string()).replace(&id(1), &ID.to_string());
        (name < arguments).then_some(begin)
    }

    /// Checks that calls in this form are parsed back to the same calls.
    fn check(&self) -> Result<(), String> {
        let tools: Vec<ToolSpec> = PROBE.map(tool).into();
        let between =
            self.between.iter().map(|between| format!("{between}{}{}", PROBE[1], self.middle) + &self.sample(1));
        let calls =
            std::iter::once(format!("{}{}{}", self.open, PROBE[0], self.middle) + &self.sample(0)).chain(between);
        let count = 1 + usize::from(self.between.is_some());
        let text = calls.collect::<String>() + &self.close;
        let text = text.replace(ID, "call00001");
        let mut parser = Parser::of(self.format, tools.into());
        let mut pieces: Vec<Piece<'static>> = Vec::new();
        let own = |piece: Piece<'_>| match piece {
            Piece::Call { name, arguments } => Some(Piece::Call { name, arguments }),
            Piece::Fault { fault, raw } => Some(Piece::Fault { fault, raw }),
            _ => None,
        };
        pieces.extend(parser.push(text.as_bytes()).filter_map(own));
        pieces.extend(parser.finish().filter_map(own));
        let is_call = |(at, piece): (usize, &Piece<'_>)| match piece {
            Piece::Call { name, arguments } => {
                name == PROBE[at] && serde_json::from_str(arguments).is_ok_and(|read: Value| read == arguments_of(at))
            }
            _ => false,
        };
        let fits = pieces.len() == count && pieces.iter().enumerate().all(is_call);
        if fits { Ok(()) } else { Err(format!("its calls are not read back as the format {}", self.format.name())) }
    }

    fn sample(&self, which: usize) -> String {
        let value = arguments_of(which);
        match self.arguments {
            Arguments::Compact => value.to_string(),
            Arguments::Spaced => spaced(&value),
            Arguments::Tagged([key, before, behind]) => {
                let fields = value.as_object().into_iter().flatten();
                let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), String::from);
                fields.map(|(name, value)| format!("{key}{name}{before}{}{behind}", text(value))).collect()
            }
        }
    }
}

/// Returns a form that is not derived from a template: if arguments are not JSON, or a call begins before the reply
/// does.
fn known(format: Format) -> Option<CallForm> {
    let form = |open: &str, middle: &str, close: &str, tags| CallForm {
        format,
        open: open.into(),
        middle: middle.into(),
        close: close.into(),
        between: Some(format!("{close}\n{open}")),
        arguments: Arguments::Tagged(tags),
        takes_text: false,
    };
    match format {
        Format::Harmony => Some(CallForm {
            format,
            open: "<|channel|>commentary to=functions.".into(),
            middle: " <|constrain|>json<|message|>".into(),
            close: String::new(),
            between: None,
            arguments: Arguments::Compact,
            takes_text: false,
        }),
        Format::Qwen3Coder => Some(form(
            "<tool_call>\n<function=",
            ">\n",
            "</function>\n</tool_call>",
            ["<parameter=", ">\n", "\n</parameter>\n"],
        )),
        Format::Glm => {
            Some(form("<tool_call>", "\n", "</tool_call>", ["<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n"]))
        }
        _ => None,
    }
}

/// Returns the id of a conversation's call, by its number: nine letters and digits, which some templates require.
pub(super) fn id(number: usize) -> String {
    format!("call{number:05}")
}

fn arguments_of(which: usize) -> Value {
    if which == 0 { json!({"alpha": "one", "beta": [1, 2]}) } else { json!({"alpha": "two", "beta": [3, 4]}) }
}

/// Returns where the arguments of a probe are in a text, how they are written, and how long they are.
fn find_arguments(text: &str, which: usize) -> Option<(usize, Arguments, usize)> {
    let value = arguments_of(which);
    [(Arguments::Spaced, spaced(&value)), (Arguments::Compact, value.to_string())]
        .into_iter()
        .find_map(|(arguments, written)| Some((text.find(&written)?, arguments, written.len())))
}

fn assistant(calls: usize, takes_text: bool) -> Value {
    let arguments = |which| sent(&arguments_of(which), takes_text);
    let calls = (0..calls).map(|which| call_json(&id(which), PROBE[which], arguments(which)));
    json!({"role": "assistant", "content": "", "tool_calls": calls.collect::<Vec<_>>()})
}

/// Returns arguments as a template takes them.
pub(super) fn sent(arguments: &Value, takes_text: bool) -> Value {
    if takes_text && arguments.is_object() { Value::String(spaced(arguments)) } else { arguments.clone() }
}

/// Returns a call as templates expect it.
pub(super) fn call_json(id: &str, name: &str, arguments: Value) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

fn tool_json(name: &str) -> Value {
    let ToolSpec { name, description, parameters, .. } = tool(name);
    json!({"type": "function", "function": {"name": name, "description": description, "parameters": parameters}})
}

fn tool(name: &str) -> ToolSpec {
    let item = json!({"type": "array", "items": {"type": "integer"}});
    let parameters = json!({"type": "object", "required": ["alpha", "beta"], "properties":
        {"alpha": {"type": "string", "description": "A word."}, "beta": {"description": "Numbers.", "type": item["type"], "items": item["items"]}}});
    ToolSpec { name: name.into(), description: "Looks.".into(), parameters, effect: Effect::Read, time_limit: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(source: &str) -> Result<CallForm, String> {
        let template = Template::new(source, "<s>", "<|im_end|>")?;
        CallForm::of(&template, source, &|text| {
            ["<|im_end|>", "<|eot_id|>", "</s>"].iter().filter_map(|end| text.find(end)).min()
        })
    }

    const HERMES: &str = "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}\n\
        {% if m.content %}{{ m.content }}{% endif %}{% for call in m.tool_calls %}{% if not loop.first or m.content %}{{ '\\n' }}{% endif %}<tool_call>\n\
        {\"name\": \"{{ call.function.name }}\", \"arguments\": {{ call.function.arguments | tojson }}}\n</tool_call>\
        {% endfor %}<|im_end|>\n{% endfor %}";

    #[test]
    fn the_form_is_read_off_the_template() {
        let form = of(HERMES).unwrap();
        assert_eq!(form.open, "<tool_call>\n{\"name\": \"");
        assert_eq!((form.middle.as_str(), form.close.as_str()), ("\", \"arguments\": ", "}\n</tool_call>"));
        assert_eq!(form.between.as_deref(), Some("}\n</tool_call>\n<tool_call>\n{\"name\": \""));
        assert_eq!(form.arguments, Arguments::Spaced);

        let llama = "{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n{% if m.tool_calls %}\
            {% if m.tool_calls | length != 1 %}{{ raise_exception('only one') }}{% endif %}\
            {\"name\": \"{{ m.tool_calls[0].function.name }}\", \"parameters\": {{ m.tool_calls[0].function.arguments | tojson }}}\
            {% else %}{{ m.content }}{% endif %}<|eot_id|>{% endfor %}{# tools <|python_tag|> #}";
        let form = of(llama).unwrap();
        assert_eq!((form.format, form.open.as_str(), form.close.as_str()), (Format::Llama3, "{\"name\": \"", "}"));
        assert_eq!(form.between, None, "the template knows one call a reply");

        let mistral = "{{ bos_token }}{% for m in messages %}{% if m.tool_calls %}[TOOL_CALLS] [{% for call in m.tool_calls %}\
            {% if call.id | length != 9 %}{{ raise_exception('nine') }}{% endif %}\
            {\"name\": \"{{ call.function.name }}\", \"arguments\": {{ call.function.arguments | tojson }}, \"id\": \"{{ call.id }}\"}\
            {% if not loop.last %}, {% endif %}{% endfor %}]{{ eos_token }}{% elif m.role == 'user' %}[INST] {{ m.content }}[/INST]\
            {% else %} {{ m.content }}{{ eos_token }}{% endif %}{% endfor %}{# tools #}";
        let form = of(mistral).unwrap();
        assert_eq!(form.open, "[TOOL_CALLS] [{\"name\": \"");
        assert_eq!(form.close, format!(", \"id\": \"{ID}\"}}]"));
        assert_eq!(form.between.as_deref(), Some(&*format!(", \"id\": \"{ID}\"}}, {{\"name\": \"")));
    }

    #[test]
    fn a_template_that_puts_arguments_between_texts_gets_a_text() {
        let deepseek = "{% for m in messages %}{% if m.tool_calls %}{% for call in m.tool_calls %}<｜tool▁calls▁begin｜>\
            <｜tool▁call▁begin｜>{{ call.type + '<｜tool▁sep｜>' + call.function.name + '\\n```json\\n' + call.function.arguments + '\\n```' }}\
            <｜tool▁call▁end｜><｜tool▁calls▁end｜>{% endfor %}</s>{% else %}{{ m.content }}{% endif %}{% endfor %}{# tools #}";
        let form = of(deepseek).unwrap();
        assert!(form.takes_text && form.arguments == Arguments::Spaced, "{form:?}");
        assert_eq!((form.format, form.middle.as_str()), (Format::DeepSeek, "\n```json\n"));
    }

    #[test]
    fn forms_with_tags_are_known() {
        let qwen = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for call in m.tool_calls %}\n<tool_call>\n\
            <function={{ call.function.name }}>\n{% for key, value in call.function.arguments.items() %}<parameter={{ key }}>\n\
            {{ value }}\n</parameter>\n{% endfor %}</function>\n</tool_call>{% endfor %}<|im_end|>\n{% endfor %}{# tools #}";
        let form = of(qwen).unwrap();
        assert!(matches!(form.arguments, Arguments::Tagged(_)) && form.between.is_some(), "{form:?}");
        let glm = known(Format::Glm).unwrap();
        assert_eq!(glm.check(), Ok(()));
        assert_eq!(known(Format::Harmony).unwrap().check(), Ok(()));
        assert_eq!(CallForm::in_text().check(), Ok(()));
    }

    #[test]
    fn what_has_no_form_says_why() {
        for (source, says) in [
            ("{% for m in messages %}{{ m.content }}{% endfor %}", "no place for tools"),
            ("{{ tools }}{% for m in messages %}{{ m.content }}{% endfor %}", "no calls"),
            ("{{ tools }}{% for m in messages %}{{ m.content }}{% endfor %}{# <tool_call> #}", "not name and JSON"),
            ("{{ tools }}{{ raise_exception('no assistant') }}{# <tool_call> #}", "no assistant"),
        ] {
            let error = of(source).unwrap_err();
            assert!(error.contains(says), "{source}: {error}");
        }
    }
}
