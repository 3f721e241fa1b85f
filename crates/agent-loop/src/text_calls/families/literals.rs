//! Calls as code: `name(key=value)` with Python's literals, and Gemma's `call:name{key:value}`.

use serde_json::{Map, Value};

/// The deepest nesting of a value.
const MAX_DEPTH: usize = 64;
/// The marks that Gemma writes around a text.
pub(super) const GEMMA_QUOTES: [&str; 2] = ["<escape>", "<|\"|>"];

type Call = (String, Map<String, Value>);

/// The text that is left to parse.
pub(super) struct Literals<'t>(pub(super) &'t str);

impl Literals<'_> {
    pub(super) fn is_at_end(&mut self) -> bool {
        self.0 = self.0.trim_start();
        self.0.is_empty()
    }

    /// Skips white space and this text, and returns whether the text came next.
    pub(super) fn takes(&mut self, text: &str) -> bool {
        let rest = self.0.trim_start().strip_prefix(text);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// Parses `name(key=value, …)`, or one within `print(…)`.
    pub(super) fn python_call(&mut self) -> Result<Call, String> {
        let name = self.word()?;
        self.expect("(")?;
        if name == "print" {
            let call = self.python_call()?;
            self.expect(")")?;
            return Ok(call);
        }
        Ok((name, self.fields("=", ")", 0)?))
    }

    /// Parses `call:name{key:value, …}`.
    pub(super) fn gemma_call(&mut self) -> Result<Call, String> {
        self.expect("call:")?;
        let name = self.word()?;
        self.expect("{")?;
        Ok((name, self.fields(":", "}", 0)?))
    }

    fn expect(&mut self, text: &str) -> Result<(), String> {
        if self.takes(text) { Ok(()) } else { Err(self.wrong(text)) }
    }

    fn wrong(&self, wanted: &str) -> String {
        let found: String = self.0.trim_start().chars().take(20).collect();
        format!("The tool call cannot be read: {wanted} was expected before {found:?}.")
    }

    /// Parses a name, which may contain dots and dashes.
    fn word(&mut self) -> Result<String, String> {
        let text = self.0.trim_start();
        let end = text.find(|c: char| !(c.is_alphanumeric() || "_.-".contains(c))).unwrap_or(text.len());
        if end == 0 {
            return Err(self.wrong("a name"));
        }
        self.0 = &text[end..];
        Ok(text[..end].into())
    }

    /// Parses names and values up to a bracket.
    fn fields(&mut self, separator: &str, close: &str, depth: usize) -> Result<Map<String, Value>, String> {
        let mut fields = Map::new();
        while !self.takes(close) {
            let key = match self.string()? {
                Some(key) => key,
                None => self.word()?,
            };
            self.expect(separator)?;
            fields.insert(key, self.value(depth + 1)?);
            if !self.takes(",") {
                self.expect(close)?;
                break;
            }
        }
        Ok(fields)
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > MAX_DEPTH {
            return Err("The tool call is nested too deep.".into());
        }
        if let Some(text) = self.string()? {
            return Ok(text.into());
        }
        if self.takes("{") {
            return Ok(self.fields(":", "}", depth)?.into());
        }
        let close = if self.takes("[") {
            "]"
        } else if self.takes("(") {
            ")"
        } else {
            return self.constant();
        };
        let mut items = Vec::new();
        while !self.takes(close) {
            items.push(self.value(depth + 1)?);
            if !self.takes(",") {
                self.expect(close)?;
                break;
            }
        }
        Ok(items.into())
    }

    fn constant(&mut self) -> Result<Value, String> {
        let text = self.0.trim_start();
        let end = text.find(|c: char| !(c.is_alphanumeric() || "_.+-".contains(c))).unwrap_or(text.len());
        let value = match &text[..end] {
            "True" => true.into(),
            "False" => false.into(),
            "None" => Value::Null,
            other => serde_json::from_str(other).map_err(|_| self.wrong("a value"))?,
        };
        self.0 = &text[end..];
        Ok(value)
    }

    /// Parses a text in quotes, if one comes next.
    fn string(&mut self) -> Result<Option<String>, String> {
        for quote in GEMMA_QUOTES {
            if self.takes(quote) {
                let (text, rest) = self.0.split_once(quote).ok_or_else(|| self.wrong(quote))?;
                self.0 = rest;
                return Ok(Some(text.into()));
            }
        }
        let Some(quote) = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| self.takes(quote)) else {
            return Ok(None);
        };
        let mut text = String::new();
        loop {
            if let Some(rest) = self.0.strip_prefix(quote) {
                self.0 = rest;
                return Ok(Some(text));
            }
            let mut rest = self.0.chars();
            match rest.next() {
                None => return Err("The tool call cannot be read: a text has no end.".into()),
                Some('\\') => text.extend(escaped(&mut rest)?),
                Some(next) => text.push(next),
            }
            self.0 = rest.as_str();
        }
    }
}

/// Returns the characters of an escape. A text that is not an escape stays unchanged.
fn escaped(rest: &mut std::str::Chars<'_>) -> Result<Vec<char>, String> {
    let digits = match rest.next() {
        Some('n') => return Ok(vec!['\n']),
        Some('t') => return Ok(vec!['\t']),
        Some('r') => return Ok(vec!['\r']),
        Some('\n') => return Ok(vec![]),
        Some(same @ ('\\' | '\'' | '"')) => return Ok(vec![same]),
        Some('x') => 2,
        Some('u') => 4,
        Some('U') => 8,
        other => return Ok(['\\'].into_iter().chain(other).collect()),
    };
    let code: String = rest.take(digits).collect();
    let code = u32::from_str_radix(&code, 16).ok().and_then(char::from_u32);
    code.map(|code| vec![code]).ok_or_else(|| "The tool call cannot be read: an escape in a text is wrong.".into())
}

/// Returns a value in Python's syntax.
pub(super) fn python(value: &Value) -> String {
    let joined = |items: Vec<String>| items.join(", ");
    match value {
        Value::Null => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Array(items) => format!("[{}]", joined(items.iter().map(python).collect())),
        Value::Object(fields) => {
            let field =
                |(key, value): (&String, &Value)| format!("{}: {}", python(&key.as_str().into()), python(value));
            format!("{{{}}}", joined(fields.iter().map(field).collect()))
        }
        // JSON's escapes of a text are also valid in Python.
        plain => plain.to_string().replace('<', "\\u003c").replace('`', "\\u0060"),
    }
}
