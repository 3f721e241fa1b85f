//! Wraps styled text at words to the columns of a terminal.

use vault_search::{Paint, char_columns, most_columns, sanitize};

/// The style of a span. Every span resets its style at its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Style {
    pub bold: bool,
    pub dim: bool,
    pub italic: bool,
    pub underlined: bool,
    pub struck: bool,
    pub code: bool,
}

impl Style {
    fn codes(self) -> String {
        let codes = [
            (self.bold, "1"),
            (self.dim, "2"),
            (self.italic, "3"),
            (self.underlined, "4"),
            (self.struck, "9"),
            (self.code, "36"),
        ];
        let codes: Vec<&str> = codes.into_iter().filter(|(is_set, _)| *is_set).map(|(_, code)| code).collect();
        codes.join(";")
    }
}

/// A piece of text in one style, which has been sanitized. A line feed in it ends the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub style: Style,
    text: String,
}

impl Span {
    /// Creates a span and sanitizes its text.
    pub fn new(style: Style, text: &str) -> Self {
        Self { style, text: sanitize(text).into_owned() }
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

/// A part of the text for the lines. A word is broken only if it is longer than a line.
enum Token {
    Word(Vec<Span>, usize),
    Space(Style),
    Break,
}

/// Wraps spans to painted lines of at most `width` columns. A word that is longer than a line is broken.
pub(super) fn wrapped(spans: &[Span], width: usize, paint: &Paint) -> Vec<String> {
    let mut wrap = Wrap::new(width);
    let mut lines = wrap.push(spans, paint);
    lines.push(wrap.finish(paint));
    lines
}

/// Wraps text as it arrives.
#[derive(Debug)]
pub(super) struct Wrap {
    width: usize,
    /// The current line, and the space after it if a word follows.
    line: Line,
    space: Option<Style>,
}

impl Wrap {
    /// Creates a wrapper without text.
    pub fn new(width: usize) -> Self {
        Self { width, line: Line::default(), space: None }
    }

    /// Adds text, which must not end within a word. Returns the lines that are complete.
    pub fn push(&mut self, spans: &[Span], paint: &Paint) -> Vec<String> {
        let mut complete = Vec::new();
        for token in tokens(spans) {
            match token {
                Token::Break => {
                    complete.push(self.finish(paint));
                    self.space = None;
                }
                Token::Space(style) => self.space = (self.line.columns > 0).then_some(style),
                Token::Word(word, columns) => {
                    let space = self.space.take();
                    let gap = usize::from(space.is_some());
                    if self.line.columns > 0 && self.line.columns + gap + columns > self.width {
                        complete.push(self.finish(paint));
                    } else if let Some(style) = space {
                        self.line.push(style, ' ');
                    }
                    for span in word {
                        for c in span.text.chars() {
                            if self.line.columns > 0 && self.line.columns + char_columns(c) > self.width.max(1) {
                                complete.push(self.finish(paint));
                            }
                            self.line.push(span.style, c);
                        }
                    }
                }
            }
        }
        complete
    }

    /// Ends the current line and returns it.
    pub fn finish(&mut self, paint: &Paint) -> String {
        painted(&std::mem::take(&mut self.line).spans, paint)
    }

    /// The text of the current line.
    pub fn text(&self) -> String {
        self.line.spans.iter().map(|span| span.text.as_str()).collect()
    }
}

#[derive(Debug, Default)]
struct Line {
    spans: Vec<Span>,
    columns: usize,
}

impl Line {
    fn push(&mut self, style: Style, c: char) {
        self.columns += char_columns(c);
        push(&mut self.spans, style, c);
    }
}

fn push(spans: &mut Vec<Span>, style: Style, c: char) {
    match spans.last_mut() {
        Some(span) if span.style == style => span.text.push(c),
        _ => spans.push(Span { style, text: c.into() }),
    }
}

fn tokens(spans: &[Span]) -> Vec<Token> {
    let mut tokens = Vec::new();
    let (mut word, mut columns) = (Vec::new(), 0);
    let end_word = |tokens: &mut Vec<Token>, word: &mut Vec<Span>, columns: &mut usize| {
        if !word.is_empty() {
            tokens.push(Token::Word(std::mem::take(word), std::mem::take(columns)));
        }
    };
    for span in spans {
        for c in span.text.chars() {
            match c {
                '\n' | ' ' => {
                    end_word(&mut tokens, &mut word, &mut columns);
                    tokens.push(if c == ' ' { Token::Space(span.style) } else { Token::Break });
                }
                _ => {
                    // Scripts without spaces between words can break between any two characters.
                    let is_wide = char_columns(c) == 2;
                    if is_wide {
                        end_word(&mut tokens, &mut word, &mut columns);
                    }
                    push(&mut word, span.style, c);
                    columns += char_columns(c);
                }
            }
        }
    }
    end_word(&mut tokens, &mut word, &mut columns);
    tokens
}

/// Paints the spans of one line.
pub(super) fn painted(spans: &[Span], paint: &Paint) -> String {
    spans.iter().map(|span| paint.style(&span.style.codes(), &span.text)).collect()
}

/// Returns the width of spans on one line.
pub(super) fn columns_of(spans: &[Span]) -> usize {
    spans.iter().map(|span| most_columns(&span.text)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str, width: usize) -> Vec<String> {
        wrapped(&[Span::new(Style::default(), text)], width, &Paint::default())
    }

    #[test]
    fn words_are_kept_whole_and_long_ones_are_broken() {
        assert_eq!(plain("one two three", 7), ["one two", "three"]);
        assert_eq!(plain("one  two\nthree ", 20), ["one two", "three"]);
        assert_eq!(plain("a abcdefgh b", 4), ["a", "abcd", "efgh", "b"]);
        assert_eq!(plain("日本語のテキスト", 6), ["日本語", "のテキ", "スト"]);
        assert_eq!(plain("", 4), [""]);
    }

    #[test]
    fn a_style_ends_with_its_line() {
        let bold = Style { bold: true, ..Style::default() };
        let spans = [Span::new(bold, "one two"), Span::new(Style::default(), ", three")];
        let lines = wrapped(&spans, 8, &Paint::full(8));
        assert_eq!(lines, ["\x1b[1mone two\x1b[0m,", "three"]);
    }
}
