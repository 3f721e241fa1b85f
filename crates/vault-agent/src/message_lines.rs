//! Reads messages of JSON-RPC as lines of bounded length, and finds the id to answer for a line that cannot be parsed.

use serde::de::IgnoredAny;
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// The maximum bytes of a key or an id that are kept.
const LONGEST_WORD: usize = 256;

/// The maximum nesting depth that `serde_json` parses.
const DEEPEST: usize = 127;

/// A line of the input, without its end.
#[derive(Debug)]
pub(crate) enum Line {
    Whole(Vec<u8>),
    TooLong(Head),
}

/// Reads the next line, or returns `None` at the end of the input. A line that is too long is skipped without more
/// memory than `longest`.
///
/// # Errors
/// Those of the input.
pub(crate) async fn next_line(input: &mut (impl AsyncBufRead + Unpin), longest: u64) -> std::io::Result<Option<Line>> {
    let (mut line, mut skipped) = (Vec::new(), None::<Head>);
    let most = longest + 1;
    loop {
        let read = (&mut *input).take(most).read_until(b'\n', &mut line).await?;
        let has_end = line.pop_if(|last| *last == b'\n').is_some();
        let is_over = has_end || (read as u64) < most;
        match skipped {
            None if is_over => return Ok((read > 0).then_some(Line::Whole(line))),
            _ => skipped.get_or_insert_default().take(&line),
        }
        if is_over {
            return Ok(skipped.map(Line::TooLong));
        }
        line.clear();
    }
}

/// Whether a line is JSON, at any depth.
pub(crate) fn is_json(line: &[u8]) -> bool {
    // `IgnoredAny` does not check strings, so check UTF-8 here.
    std::str::from_utf8(line).is_ok() && serde_json::from_slice::<IgnoredAny>(line).is_ok()
}

/// The top-level fields of a message, found in little memory at any length and depth. The values for text that is not
/// JSON are meaningless.
#[derive(Debug, Default)]
pub(crate) struct Head {
    depth: usize,
    deepest: usize,
    is_in_string: bool,
    is_escaped: bool,
    /// The current top-level name or value.
    word: Vec<u8>,
    name: Vec<u8>,
    id: Option<Value>,
    has_method: bool,
    has_outcome: bool,
}

impl Head {
    pub(crate) fn of(line: &[u8]) -> Self {
        let mut head = Self::default();
        head.take(line);
        head
    }

    /// Returns the id of a response that the sender waits for. A notification expects none. A response is never
    /// answered, because that could go on forever.
    pub(crate) fn awaited(&self) -> Option<Value> {
        match (&self.id, self.has_method) {
            (Some(id), true) => Some(id.clone()),
            (None, true) => None,
            (_, false) => (!self.has_outcome).then_some(Value::Null),
        }
    }

    /// Returns the error if the message is nested too deeply.
    pub(crate) fn too_deep(&self) -> Option<String> {
        (self.deepest > DEEPEST).then(|| format!("a message is nested deeper than {DEEPEST} levels"))
    }

    fn take(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.take_byte(*byte));
    }

    fn take_byte(&mut self, byte: u8) {
        let is_top = self.depth == 1;
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' if self.is_in_string => self.is_escaped = true,
            b'"' => self.is_in_string = !self.is_in_string,
            _ if self.is_in_string => {}
            b'{' | b'[' => return self.open(),
            b'}' | b']' => return self.close(),
            b':' if is_top => {
                self.name = std::mem::take(&mut self.word);
                return;
            }
            b',' if is_top => return self.end_member(),
            _ => {}
        }
        if is_top && self.word.len() < LONGEST_WORD {
            self.word.push(byte);
        }
    }

    fn open(&mut self) {
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
    }

    fn close(&mut self) {
        if self.depth == 1 {
            self.end_member();
        }
        self.depth = self.depth.saturating_sub(1);
    }

    fn end_member(&mut self) {
        let (name, value) = (std::mem::take(&mut self.name), std::mem::take(&mut self.word));
        match name.trim_ascii() {
            b"\"id\"" => {
                let id = serde_json::from_slice(&value).ok();
                self.id = Some(id.filter(|id: &Value| id.is_string() || id.is_number()).unwrap_or_default());
            }
            b"\"method\"" => self.has_method = true,
            b"\"result\"" | b"\"error\"" => self.has_outcome = true,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_waits_for_an_answer_is_read_from_the_top_of_a_message() {
        let long = "x".repeat(300);
        for (line, awaited) in [
            (r#"{"jsonrpc":"2.0","id":7,"method":"a"}"#, Some(json!(7))),
            (r#" { "method" : "a" , "params" : { "id" : 8 , "b" : [ { "id" : 9 } ] } , "id" : "é\"}:,\u0041" } "#, {
                Some(json!("é\"}:,A"))
            }),
            (r#"{"id":-1,"method":{"id":2},"params":"}\\\",\"id\":3"}"#, Some(json!(-1))),
            (r#"{"id":1.5,"method":"a"}"#, Some(json!(1.5))),
            (r#"{"id":null,"method":"a"}"#, Some(Value::Null)),
            (r#"{"id":{"a":1},"method":"a"}"#, Some(Value::Null)),
            (r#"{"id":true,"method":"a"}"#, Some(Value::Null)),
            (&format!(r#"{{"id":"{long}","method":"a"}}"#), Some(Value::Null)),
            (&format!(r#"{{"id":7,"{long}":"id","method":"a"}}"#), Some(json!(7))),
            (r#"{"method":"a"}"#, None),
            (r#"{"params":{"id":7},"method":"a"}"#, None),
            (r#"{"id":7,"result":{"method":"a"}}"#, None),
            (r#"{"id":7,"error":{}}"#, None),
            (r#"{"id":7}"#, Some(Value::Null)),
            (r#"[{"id":7,"method":"a"}]"#, Some(Value::Null)),
            ("]}\"", Some(Value::Null)),
            ("", Some(Value::Null)),
        ] {
            assert_eq!(Head::of(line.as_bytes()).awaited(), awaited, "{line}");
        }
    }

    #[tokio::test]
    async fn lines_are_read_to_the_last_and_those_that_are_too_long_are_skipped() {
        let long = r#"{"method":"a","params":"0123456789","id":7}"#;
        let input = format!("one\n\n{long}\n01234567\n012345678\n{long}");
        let mut input = input.as_bytes();
        let mut lines = Vec::new();
        while let Some(line) = next_line(&mut input, 8).await.unwrap() {
            lines.push(match line {
                Line::Whole(line) => String::from_utf8(line).unwrap(),
                Line::TooLong(head) => head.awaited().unwrap().to_string(),
            });
        }
        assert_eq!(lines, ["one", "", "7", "01234567", "null", "7"]);
    }
}
