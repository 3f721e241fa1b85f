//! Whatever a model writes, however it is split: the same text and calls come out, and escaped text holds no tag.

#![no_main]

use agent_loop::text_calls::{Parser, Piece, escape};
use libfuzzer_sys::fuzz_target;

fn parse<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Piece> {
    let mut parser = Parser::new();
    let mut out = Vec::new();
    for piece in pieces {
        out.extend(parser.push(piece));
    }
    out.extend(parser.finish());
    let mut joined: Vec<Piece> = Vec::new();
    for piece in out {
        match (joined.last_mut(), piece) {
            (Some(Piece::Text(last)), Piece::Text(text)) => last.push_str(&text),
            (_, piece) => joined.push(piece),
        }
    }
    joined
}

// The first byte says how the rest is split.
fuzz_target!(|bytes: &[u8]| {
    let Some((size, text)) = bytes.split_first() else { return };
    let whole = parse([text]);
    assert_eq!(parse(text.chunks(usize::from(*size).max(1))), whole);
    assert_eq!(parse(text.chunks(1)), whole);
    for piece in &whole {
        if let Piece::Call { arguments, .. } = piece {
            let value: serde_json::Value = serde_json::from_str(arguments).expect("arguments are JSON");
            assert!(value.is_object());
        }
    }
    let text = String::from_utf8_lossy(text);
    let escaped = escape(&text);
    let calls = parse([escaped.as_bytes()]);
    assert!(calls.iter().all(|piece| matches!(piece, Piece::Text(_))), "escaped text holds no call");
});
