//! Markdown that arrives in pieces, shown block by block: a block when the next one begins, an item of a list likewise,
//! and code line by line.
//!
//! What is shown does not depend on the pieces: only whole lines are looked at, and those decide where a block ends.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};
use vault_search::{Paint, sanitize_line};

use super::block::{block, fence, options};

/// From so many bytes on a block that did not end is looked at again only when it has doubled, which keeps a hostile
/// text from costing the square of its length.
const LOOKED_AT_AGAIN: usize = 4 * 1024;

/// The most bytes that are taken in one go.
const PIECE: usize = 4 * 1024;

/// Markdown as it arrives.
#[derive(Debug)]
pub(crate) struct MarkdownStream {
    paint: Paint,
    /// What is not shown yet.
    pending: String,
    /// The block of code that is open.
    code: Option<Fence>,
    /// `pending` begins with a further item of a list, and this is the number it has, if it has one.
    item: Option<Option<u64>>,
    /// How long `pending` was when it was last looked at in vain.
    in_vain: usize,
    /// Something was shown.
    has_shown: bool,
}

/// The marks around a block of code.
#[derive(Debug, Clone, PartialEq)]
struct Fence {
    mark: char,
    length: usize,
    indent: usize,
}

/// Where the first blocks of a text end.
#[derive(Debug, PartialEq)]
enum Split {
    /// A block ends here, and another one begins.
    Block(usize),
    /// An item ends here, and another one of the same list begins; the number that the first one has, if it has one.
    Item(usize, Option<u64>),
}

impl MarkdownStream {
    /// Nothing yet.
    pub fn new(paint: Paint) -> Self {
        Self { paint, pending: String::new(), code: None, item: None, in_vain: 0, has_shown: false }
    }

    /// More text; what can be shown now, in whole lines.
    pub fn push(&mut self, text: &str) -> String {
        let mut shown = String::new();
        let mut left = text;
        while !left.is_empty() {
            let (piece, rest) = left.split_at(left.ceil_char_boundary(PIECE.min(left.len())));
            // The parser takes a carriage return alone for the end of a line.
            self.pending.extend(piece.chars().filter(|c| *c != '\r'));
            if piece.contains('\n') {
                self.show_blocks(&mut shown);
            }
            left = rest;
        }
        shown
    }

    /// The text is complete: the rest of it.
    pub fn finish(&mut self) -> String {
        let mut shown = String::new();
        if !self.pending.is_empty() && !self.pending.ends_with('\n') {
            self.pending.push('\n');
        }
        self.in_vain = 0;
        self.show_blocks(&mut shown);
        if !self.pending.trim().is_empty() {
            let rest = std::mem::take(&mut self.pending);
            self.show_block(&rest, &mut shown);
        }
        *self = Self { has_shown: self.has_shown || !shown.is_empty(), ..Self::new(self.paint) };
        shown
    }

    /// The last line of what is not shown yet.
    pub fn unfinished(&self) -> String {
        sanitize_line(self.pending.trim_end().rsplit('\n').next().unwrap_or_default())
    }

    fn show_blocks(&mut self, shown: &mut String) {
        loop {
            if self.code.is_some() {
                if !self.show_code(shown) {
                    return;
                }
                continue;
            }
            let end = self.pending.rfind('\n').map_or(0, |end| end + 1);
            if self.in_vain >= LOOKED_AT_AGAIN && end < 2 * self.in_vain {
                return;
            }
            let (splits, code) = splits_of(&self.pending[..end]);
            let blocks = std::mem::take(&mut self.pending);
            let mut from = 0;
            for split in splits {
                let (Split::Block(to) | Split::Item(to, _)) = split;
                self.show_block(&blocks[from..to], shown);
                if let Split::Item(_, number) = split {
                    let number = number.map(|first| self.item.flatten().unwrap_or(first) + 1);
                    self.item = Some(number);
                } else {
                    self.item = None;
                }
                from = to;
            }
            self.pending = blocks[from..].to_owned();
            let Some(code) = code else {
                self.in_vain = end - from;
                return;
            };
            self.begin_code(code - from, shown);
        }
    }

    fn show_block(&mut self, source: &str, shown: &mut String) {
        if source.trim().is_empty() {
            return;
        }
        if self.has_shown && self.item.is_none() {
            shown.push('\n');
        }
        shown.push_str(&block(source, self.item.flatten(), &self.paint));
        self.has_shown = true;
    }

    /// `pending` has the first line of a block of code at `at`, and nothing else before it.
    fn begin_code(&mut self, at: usize, shown: &mut String) {
        let line_end = self.pending[at..].find('\n').map_or(self.pending.len(), |end| at + end);
        let line = self.pending[at..line_end].to_owned();
        self.pending.drain(..(line_end + 1).min(self.pending.len()));
        let marks = line.trim_start_matches(' ');
        let mark = marks.chars().next().unwrap_or('`');
        let language = marks.trim_start_matches(mark);
        let code = Fence { mark, length: marks.len() - language.len(), indent: line.len() - marks.len() };
        if self.has_shown {
            shown.push('\n');
        }
        shown.push_str(&fence(&marks[..code.length], language.trim(), &self.paint));
        shown.push('\n');
        (self.has_shown, self.item, self.in_vain) = (true, None, 0);
        self.code = Some(code);
    }

    /// Shows the next line of code, or its end; `false` if there is no whole line.
    fn show_code(&mut self, shown: &mut String) -> bool {
        let (Some(code), Some(end)) = (&self.code, self.pending.find('\n')) else { return false };
        let line = &self.pending[..end];
        if code.is_closed_by(line) {
            shown.push_str(&self.paint.dim(&sanitize_line(line.trim())));
            self.code = None;
        } else {
            let indent = line.len() - line.trim_start_matches(' ').len();
            let line = sanitize_line(&line[indent.min(code.indent)..]);
            shown.push_str(&self.paint.style("36", &line));
        }
        shown.push('\n');
        self.pending.drain(..=end);
        true
    }
}

impl Fence {
    fn is_closed_by(&self, line: &str) -> bool {
        let marks = line.trim_start_matches(' ');
        let rest = marks.trim_start_matches(self.mark);
        line.len() - marks.len() < 4 && marks.len() - rest.len() >= self.length && rest.trim().is_empty()
    }
}

/// Where blocks and items of whole lines end, up to the first fenced code that stands in no other block, and where that
/// begins.
fn splits_of(text: &str) -> (Vec<Split>, Option<usize>) {
    let (mut splits, mut depth, mut blocks, mut items) = (Vec::new(), 0_usize, 0, 0);
    let (mut list, mut last, mut end) = (None, None, 0);
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        let line = text[..range.start].rfind('\n').map_or(0, |end| end + 1);
        match event {
            Event::Start(tag) => {
                if depth == 0 {
                    if blocks > 0 {
                        splits.push(Split::Block(line));
                    }
                    blocks += 1;
                    items = 0;
                    list = None;
                    match tag {
                        Tag::CodeBlock(CodeBlockKind::Fenced(_)) => return (splits, Some(line)),
                        Tag::List(first) => list = Some(first),
                        _ => {}
                    }
                    last = Some(Last::of(&tag));
                } else if let (1, Tag::Item, Some(first)) = (depth, &tag, list) {
                    if items > 0 {
                        splits.push(Split::Item(line, first));
                    }
                    items += 1;
                }
                depth += 1;
            }
            Event::End(_) => {
                depth -= 1;
                end = range.end;
            }
            Event::Rule if depth == 0 => {
                if blocks > 0 {
                    splits.push(Split::Block(line));
                }
                blocks += 1;
                (list, last, end) = (None, Some(Last::AtOnce), range.end);
            }
            _ => {}
        }
    }
    // A block that nothing can go on with has ended, too.
    let after = text[end.min(text.len())..].trim_start_matches([' ', '\t']);
    let has_ended = match last {
        Some(Last::AtOnce) => true,
        Some(Last::AtEmptyLine) => text[..end].ends_with('\n') && after.starts_with('\n') || after.starts_with("\n\n"),
        Some(Last::Open) | None => false,
    };
    if has_ended {
        splits.push(Split::Block(text.len()));
    }
    (splits, None)
}

/// When the last block of a text has ended.
enum Last {
    AtOnce,
    AtEmptyLine,
    /// Only when another one begins.
    Open,
}

impl Last {
    fn of(tag: &Tag<'_>) -> Self {
        match tag {
            Tag::Heading { .. } => Self::AtOnce,
            Tag::Paragraph | Tag::Table(_) => Self::AtEmptyLine,
            _ => Self::Open,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    fn whole(text: &str, paint: Paint) -> String {
        let mut stream = MarkdownStream::new(paint);
        stream.push(text) + &stream.finish()
    }

    #[test]
    fn blocks_are_shown_as_soon_as_they_end() {
        let mut stream = MarkdownStream::new(Paint::full(40));
        assert_eq!(stream.push("One"), "");
        assert_eq!(stream.unfinished(), "One");
        assert_eq!(stream.push(" two.\n"), "");
        assert_eq!(stream.push("\n"), "One two.\n");
        assert_eq!(stream.push("- a\n"), "");
        assert_eq!(stream.push("- b\n"), "\n• a\n");
        assert_eq!(stream.push("```sh\nls"), "• b\n\n\x1b[2m```sh\x1b[0m\n");
        assert_eq!(stream.push(" -l\n"), "\x1b[36mls -l\x1b[0m\n");
        assert_eq!(stream.push("```\nend"), "\x1b[2m```\x1b[0m\n");
        assert_eq!(stream.finish(), "\nend\n");
        assert_eq!(stream.finish(), "");
    }

    #[test]
    fn items_go_on_counting() {
        let text = "1. a\n1. b\n1. c\n\nx\n\n7. d\n";
        assert_eq!(whole(text, Paint::full(40)), "1. a\n2. b\n3. c\n\nx\n\n7. d\n");
        let mut stream = MarkdownStream::new(Paint::full(40));
        let shown: String = text.chars().map(|c| stream.push(&c.to_string())).collect();
        assert_eq!(shown + &stream.finish(), "1. a\n2. b\n3. c\n\nx\n\n7. d\n");
    }

    #[test]
    fn a_text_that_never_ends_costs_no_more_than_its_length() {
        let mut stream = MarkdownStream::new(Paint::full(40));
        let started = std::time::Instant::now();
        (0..40_000).for_each(|_| _ = stream.push("> one of many lines of a quote\n"));
        assert!(stream.finish().len() > 1_000_000);
        assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
    }

    const PIECES: [&str; 34] = [
        "word ",
        "two words",
        "\n",
        "\n",
        "\n\n",
        "\n\n",
        "- ",
        "- a\n",
        "  - b\n",
        "1. ",
        "2) x\n",
        "> ",
        "> q\n",
        "```\n",
        "```rust\n",
        "~~~\n",
        "    ",
        "# ",
        "---\n",
        "===\n",
        "| a | b |\n",
        "|---|---|\n",
        "**",
        "*",
        "`",
        "[x](y)",
        "[[N]]",
        "<div>\n",
        "&#27;",
        "\u{1b}[2J",
        "\r",
        "\t",
        "日本語",
        "\u{202e}",
    ];

    fn text() -> impl Strategy<Value = String> {
        proptest::collection::vec(select(&PIECES[..]), 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn the_pieces_do_not_matter(text in text(), cuts in proptest::collection::vec(0_usize..200, 0..8)) {
            for paint in [Paint::full(40), Paint::default()] {
                let mut stream = MarkdownStream::new(paint);
                let mut cuts: Vec<usize> = cuts.iter().map(|cut| text.floor_char_boundary((*cut).min(text.len()))).collect();
                cuts.sort_unstable();
                let (mut shown, mut from) = (String::new(), 0);
                for cut in cuts.into_iter().chain([text.len()]) {
                    shown += &stream.push(&text[from..cut]);
                    from = cut;
                }
                shown += &stream.finish();
                prop_assert_eq!(shown, whole(&text, paint));
            }
        }

        #[test]
        fn nothing_acts_on_the_terminal_but_styles(text in text()) {
            let shown = whole(&text, Paint::full(40));
            let styles = without_styles(&shown);
            prop_assert!(!styles.chars().any(|c| c != '\n' && c.is_control() || c == '\u{202e}'), "{:?}", shown);
        }
    }

    /// Without the sequences that the styles are made of.
    fn without_styles(shown: &str) -> String {
        let mut rest = String::new();
        for part in shown.split("\x1b[") {
            let codes = part.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(part.len());
            rest.push_str(part[codes..].strip_prefix('m').unwrap_or(part));
        }
        rest
    }
}
