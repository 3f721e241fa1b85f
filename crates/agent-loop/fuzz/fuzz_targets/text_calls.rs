//! Whatever a model writes, however it is split: the same text and calls come out, and escaped text holds no tag.

#![no_main]

use agent_loop::text_calls::{Parser, Piece, escape};
use libfuzzer_sys::fuzz_target;

/// What a reply came to: its text, its thoughts, and all else with the place in the text.
#[derive(Debug, Default, PartialEq)]
struct Reply {
    text: String,
    thoughts: String,
    others: Vec<(usize, Other)>,
}

#[derive(Debug, PartialEq)]
enum Other {
    Call { name: String, arguments: String },
    Fault { fault: String, raw: String },
}

impl Reply {
    fn take<'p>(&mut self, pieces: impl Iterator<Item = Piece<'p>>) {
        for piece in pieces {
            let other = match piece {
                Piece::Text(text) => {
                    assert!(!text.is_empty());
                    self.text.push_str(text);
                    continue;
                }
                Piece::Reasoning(thoughts) => {
                    self.thoughts.push_str(&thoughts);
                    continue;
                }
                Piece::Call { name, arguments } => Other::Call { name, arguments },
                Piece::Fault { fault, raw } => Other::Fault { fault, raw },
            };
            self.others.push((self.text.len(), other));
        }
    }
}

fn parse<'a>(parser: &mut Parser, pieces: impl IntoIterator<Item = &'a [u8]>) -> Reply {
    let mut reply = Reply::default();
    for piece in pieces {
        reply.take(parser.push(piece));
    }
    reply.take(parser.finish());
    reply
}

// The first byte says how the rest is split.
fuzz_target!(|bytes: &[u8]| {
    let Some((size, text)) = bytes.split_first() else { return };
    // One parser for all: what it read before does not matter.
    let mut parser = Parser::new();
    let whole = parse(&mut parser, [text]);
    assert_eq!(parse(&mut parser, text.chunks(usize::from(*size).max(1))), whole);
    assert_eq!(parse(&mut parser, text.chunks(1)), whole);
    for (_, other) in &whole.others {
        if let Other::Call { arguments, .. } = other {
            let value: serde_json::Value = serde_json::from_str(arguments).expect("arguments are JSON");
            assert!(value.is_object());
        }
    }
    let text = String::from_utf8_lossy(text);
    let escaped = escape(&text);
    let escaped = parse(&mut parser, [escaped.as_bytes()]);
    assert_eq!(escaped.others, [], "escaped text holds no call");
});
