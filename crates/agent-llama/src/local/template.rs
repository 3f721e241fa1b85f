//! The chat template of a model's file, rendered in the dialect of Jinja that Hugging Face uses.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde, Value as Jinja};
use minijinja::{Environment, ErrorKind, context};
use serde::Serialize;
use serde_json::Value;

/// The limit of a template's execution steps. A conversation of a thousand messages takes a hundredth of it; a template
/// that loops ends here.
const FUEL: u64 = 20_000_000;

/// The longest template in bytes: several times the length of the longest known one.
const LONGEST: usize = 256 << 10;

/// A valid chat template.
#[derive(Debug)]
pub(super) struct Template {
    environment: Environment<'static>,
    bos: String,
    eos: String,
}

impl Template {
    /// # Errors
    /// The reason why it cannot be parsed.
    pub(super) fn new(source: &str, bos: &str, eos: &str) -> Result<Self, String> {
        if source.len() > LONGEST {
            return Err(format!("it has {} bytes, and {LONGEST} are the most", source.len()));
        }
        let mut environment = Environment::new();
        if let Ok(syntax) = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build() {
            environment.set_syntax(syntax);
        }
        environment.set_fuel(Some(FUEL));
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_filter("tojson", to_json);
        environment.add_function("raise_exception", raise);
        environment.add_function("strftime_now", now);
        environment.add_template_owned("chat", source.to_string()).map_err(|error| says(&error))?;
        Ok(Self { environment, bos: bos.into(), eos: eos.into() })
    }

    /// Renders the prompt: these messages, and if `to_go_on` the beginning of a reply.
    ///
    /// # Errors
    /// The template's own error, or the reason why it cannot be rendered.
    pub(super) fn render(&self, messages: &[Value], tools: Option<&[Value]>, to_go_on: bool) -> Result<String, String> {
        let template = self.environment.get_template("chat").map_err(|error| says(&error))?;
        let context = context! {
            messages => Jinja::from(Serde(messages)),
            tools => tools.map(|tools| Jinja::from(Serde(tools))),
            add_generation_prompt => to_go_on,
            bos_token => &*self.bos,
            eos_token => &*self.eos,
        };
        template.render(context).map_err(|error| match error.kind() {
            ErrorKind::OutOfFuel => "it does not end".into(),
            _ => says(&error),
        })
    }
}

fn says(error: &minijinja::Error) -> String {
    let mut text = error.to_string();
    text.truncate(text.floor_char_boundary(200));
    text
}

fn raise(message: String) -> Result<Jinja, minijinja::Error> {
    Err(minijinja::Error::new(ErrorKind::InvalidOperation, message))
}

/// Returns the local time, in the format of C.
fn now(format: String) -> Result<String, minijinja::Error> {
    let text = jiff::fmt::strtime::format(&format, &jiff::Zoned::now());
    text.map_err(|error| minijinja::Error::new(ErrorKind::InvalidOperation, error.to_string()))
}

/// Returns JSON as Python writes it, because models were trained on it: with a space after commas and colons.
fn to_json(value: &Jinja, indent: Option<usize>, options: Kwargs) -> Result<Jinja, minijinja::Error> {
    let indent = indent.or(options.get::<Option<usize>>("indent").ok().flatten());
    let separators = options.get::<Option<Vec<String>>>("separators").ok().flatten();
    let invalid = |error: serde_json::Error| minijinja::Error::new(ErrorKind::BadSerialization, error.to_string());
    let mut text = Vec::new();
    match (indent, separators) {
        (Some(indent), _) => {
            let indent = " ".repeat(indent.min(16));
            let format = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
            value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, format)).map_err(invalid)?;
        }
        (None, Some(separators)) if separators == [",", ":"] => {
            value.serialize(&mut serde_json::Serializer::new(&mut text)).map_err(invalid)?;
        }
        _ => {
            value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, SpacedFormatter)).map_err(invalid)?
        }
    }
    Ok(Jinja::from_safe_string(String::from_utf8_lossy(&text).into_owned()))
}

/// `{"a": 1, "b": [1, 2]}`
struct SpacedFormatter;

impl serde_json::ser::Formatter for SpacedFormatter {
    fn begin_array_value<W: ?Sized + std::io::Write>(&mut self, out: &mut W, first: bool) -> std::io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + std::io::Write>(&mut self, out: &mut W, first: bool) -> std::io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + std::io::Write>(&mut self, out: &mut W) -> std::io::Result<()> {
        out.write_all(b": ")
    }
}

/// Returns a value as [`to_json`] writes it.
pub(super) fn spaced(value: &Value) -> String {
    let mut text = Vec::new();
    let written = value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, SpacedFormatter));
    written.map_or_else(|_| value.to_string(), |()| String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn render(source: &str, messages: Value) -> Result<String, String> {
        let messages = messages.as_array().unwrap().clone();
        let tools = [json!({"b": 1, "a": [1, {"<&>": "é"}]})];
        Template::new(source, "<s>", "</s>")?.render(&messages, Some(&tools), true)
    }

    #[test]
    fn templates_are_rendered_as_their_makers_do() {
        let messages = json!([{"role": "user", "content": " hi "}, {"role": "assistant", "content": "a</think>b"}]);
        for (source, expected) in [
            ("{{ bos_token }}{{ tools | tojson }}", "<s>[{\"b\": 1, \"a\": [1, {\"<&>\": \"é\"}]}]"),
            (
                "{{ tools[0] | tojson(indent=2) }}",
                "{\n  \"b\": 1,\n  \"a\": [\n    1,\n    {\n      \"<&>\": \"é\"\n    }\n  ]\n}",
            ),
            ("{{ tools[0] | tojson(separators=(',', ':')) }}", "{\"b\":1,\"a\":[1,{\"<&>\":\"é\"}]}"),
            ("{%- for m in messages %}\n    {{- m.content.strip().split('</think>')[-1] }}\n{%- endfor %}", "hib"),
            ("{% if true %}\n  {% set ns = namespace(n=0) %}\n{% endif %}\nx", "x"),
            (
                "{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{{ m['role'] }}{% endfor %}",
                "assistant",
            ),
            ("{{ messages[0].tool_calls is defined }}{{ messages[0].nothing }}", "False"),
            ("{{ 'yes' if strftime_now('%Y') | int > 2000 and add_generation_prompt }}", "yes"),
        ] {
            let rendered = render(source, messages.clone());
            assert_eq!(rendered.map(|text| text.replace("false", "False")).as_deref(), Ok(expected), "{source}");
        }
    }

    #[test]
    fn a_template_that_cannot_be_rendered_says_why() {
        let endless = "{% for a in range(9999) %}{% for b in range(9999) %}{{ a }}{% endfor %}{% endfor %}";
        for (source, says) in [
            ("{% for %}", "syntax error"),
            ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
            (endless, "does not end"),
            ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "recursion"),
        ] {
            let error = render(source, json!([])).unwrap_err();
            assert!(error.contains(says), "{source}: {error}");
        }
    }
}
