//! Chunks cover a note's body exactly once, and each fits the model's window. Seeds: notes and canvases.

#![no_main]

use libfuzzer_sys::fuzz_target;
use vault_index::VaultPath;
use vault_index::chunk::{ChunkOptions, TokenCount, chunk, embedded_text};
use vault_index::note::{ParseOptions, TitleSource, parse};

fuzz_target!(|bytes: &[u8]| {
    // Small windows, so that short notes are cut. The length selects the options, so that seeds are plain notes.
    let options = ChunkOptions {
        max_tokens: 16 + bytes.len() % 37,
        max_context_tokens: bytes.len() % 23,
        min_tokens: bytes.len() % 13,
    };
    let name = if bytes.starts_with(b"{") { "a.canvas" } else { "a.md" };
    let note = parse(&VaultPath::new(name).unwrap(), bytes, &ParseOptions::default());
    let title = (note.title.source != TitleSource::FileName).then_some(note.title.text.as_str());
    let counts: [&dyn TokenCount; 2] = [&Words, &Characters];
    for tokens in counts {
        let chunks = chunk(&note, tokens, &options);
        let mut at = note.searched.start;
        for chunk in &chunks {
            assert_eq!(chunk.span.start, at, "no byte twice, none left out");
            assert!(!chunk.span.is_empty() && chunk.lines.0 <= chunk.lines.1);
            at = chunk.span.end;
            let text = embedded_text(title, &chunk.headings, note.slice(chunk.span.clone()), tokens, &options);
            assert!(tokens.count(&text) <= options.max_tokens, "{text:?}");
        }
        if chunks.is_empty() {
            assert!(note.slice(note.searched.clone()).trim().is_empty());
        } else {
            assert_eq!(at, note.searched.end);
        }
    }
});

/// Each word and each sign is a token.
struct Words;

impl TokenCount for Words {
    fn count(&self, text: &str) -> usize {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).count();
        words + text.chars().filter(|c| !c.is_alphanumeric() && !c.is_whitespace()).count()
    }
}

/// Each character is a token, including white space, so that a single word can be too long.
struct Characters;

impl TokenCount for Characters {
    fn count(&self, text: &str) -> usize {
        text.chars().count()
    }
}
