//! Renders Markdown that arrives in pieces: a block or an item of a list when the next one begins, code and long
//! paragraphs line by line.
//!
//! The output does not depend on how the text is split, because only whole words and lines are examined, and they
//! decide what is complete.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};
use vault_search::{Paint, sanitize_line};

use super::block::{LEAD, block, fence, options, paragraph_spans};
use super::wrap::Wrap;

/// From this many bytes, an unfinished block is parsed again only when it has doubled. Otherwise a hostile text would
/// take time quadratic in its length.
const LOOKED_AT_AGAIN: usize = 4 * 1024;

/// The maximum bytes of a paragraph that wait for the end of a style, a link or code.
const LONGEST_OPEN: usize = 200;

/// A renderer of Markdown that arrives in pieces.
#[derive(Debug)]
pub(crate) struct MarkdownStream {
    paint: Paint,
    /// The text that is not shown yet.
    pending: String,
    /// The open block of code.
    code: Option<Fence>,
    /// Set if `pending` begins with a further item of a list; the inner value is its number in a numbered list.
    item: Option<Option<u64>>,
    /// The length of `pending` when it was last parsed without finding the end of a block.
    in_vain: usize,
    /// The paragraph whose first lines are already shown; `pending` continues it.
    paragraph: Option<Paragraph>,
    /// Whether `pending` is known not to begin with a paragraph.
    is_no_paragraph: bool,
    /// Whether anything was shown.
    has_shown: bool,
}

/// A paragraph that is shown line by line.
#[derive(Debug)]
struct Paragraph {
    wrap: Wrap,
    /// Whether a line of the source has ended, so that the next line may not belong to the paragraph.
    is_line_over: bool,
}

/// The fence of a block of code.
#[derive(Debug, Clone, PartialEq)]
struct Fence {
    mark: char,
    length: usize,
    indent: usize,
}

/// The end of a block or an item in a text.
#[derive(Debug, PartialEq)]
enum Split {
    /// A block ends here, and another one begins.
    Block(usize),
    /// An item ends here, and another item of the same list begins. The number is that of the first item, if the list
    /// is numbered.
    Item(usize, Option<u64>),
}

impl MarkdownStream {
    /// Creates a renderer without text.
    pub fn new(paint: Paint) -> Self {
        Self {
            paint,
            pending: String::new(),
            code: None,
            item: None,
            in_vain: 0,
            paragraph: None,
            is_no_paragraph: false,
            has_shown: false,
        }
    }

    /// Adds text. Returns the lines that can be shown now.
    pub fn push(&mut self, text: &str) -> String {
        let mut shown = String::new();
        for piece in text.split_inclusive([' ', '\n']) {
            // Drop carriage returns, because the parser treats a single one as the end of a line.
            self.pending.extend(piece.chars().filter(|c| *c != '\r'));
            match piece.as_bytes().last() {
                Some(b'\n') if self.paragraph.is_some() => self.end_paragraph_line(&mut shown),
                Some(b'\n') => self.show_blocks(&mut shown),
                Some(b' ') => self.show_paragraph(&mut shown),
                _ => {}
            }
        }
        shown
    }

    /// Ends the text. Returns the remaining lines.
    pub fn finish(&mut self) -> String {
        let mut shown = String::new();
        if !self.pending.is_empty() && !self.pending.ends_with('\n') {
            self.pending.push('\n');
        }
        if self.paragraph.is_some() && !self.pending.is_empty() {
            self.end_paragraph_line(&mut shown);
        }
        self.end_paragraph(&mut shown);
        self.in_vain = 0;
        self.show_blocks(&mut shown);
        if !self.pending.trim().is_empty() {
            let rest = std::mem::take(&mut self.pending);
            self.show_block(&rest, &mut shown);
        }
        *self = Self { has_shown: self.has_shown || !shown.is_empty(), ..Self::new(self.paint) };
        shown
    }

    /// Returns the source of the text that is not shown yet.
    pub fn unfinished(&self) -> String {
        let line = self.paragraph.as_ref().map(|paragraph| paragraph.wrap.text()).unwrap_or_default();
        let space = if line.is_empty() { "" } else { " " };
        format!("{line}{space}{}", self.pending)
    }

    /// Shows the lines of a paragraph that later text cannot change.
    fn show_paragraph(&mut self, shown: &mut String) {
        if self.code.is_some() || self.item.is_some() || self.is_no_paragraph {
            return;
        }
        if let Some(paragraph) = &mut self.paragraph
            && std::mem::take(&mut paragraph.is_line_over)
            && !self.pending.starts_with(char::is_alphabetic)
        {
            // The next line may begin another block.
            self.end_paragraph(shown);
            return;
        }
        let width = self.paint.columns();
        if self.paragraph.is_none() && self.pending.len() <= width {
            return;
        }
        if self.paragraph.is_none() && !is_paragraph(&self.pending) {
            self.is_no_paragraph = true;
            return;
        }
        let end = settled(&self.pending);
        let spans = paragraph_spans(&self.pending[..end], &self.paint);
        match &mut self.paragraph {
            Some(paragraph) => {
                paragraph.wrap.push(&spans, &self.paint).into_iter().for_each(|line| shown.push_str(&(line + "\n")));
            }
            None => {
                let mut wrap = Wrap::new(width);
                let lines = wrap.push(&spans, &self.paint);
                if lines.is_empty() {
                    return;
                }
                if self.has_shown {
                    shown.push('\n');
                }
                lines.into_iter().for_each(|line| shown.push_str(&(line + "\n")));
                self.has_shown = true;
                self.paragraph = Some(Paragraph { wrap, is_line_over: false });
            }
        }
        self.pending.drain(..end);
    }

    /// Handles the end of a source line of the paragraph.
    fn end_paragraph_line(&mut self, shown: &mut String) {
        let Some(paragraph) = &mut self.paragraph else { return };
        let is_first = std::mem::replace(&mut paragraph.is_line_over, true);
        if !is_first || self.pending.starts_with(char::is_alphabetic) {
            let line = std::mem::take(&mut self.pending);
            let spans = paragraph_spans(line.trim_end(), &self.paint);
            paragraph.wrap.push(&spans, &self.paint).into_iter().for_each(|line| shown.push_str(&(line + "\n")));
            return;
        }
        self.end_paragraph(shown);
        self.show_blocks(shown);
    }

    fn end_paragraph(&mut self, shown: &mut String) {
        if let Some(mut paragraph) = self.paragraph.take() {
            shown.push_str(&paragraph.wrap.finish(&self.paint));
            shown.push('\n');
        }
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
            self.is_no_paragraph &= from == 0;
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

    /// Starts a block of code, whose first line is at `at` in `pending`, with nothing else before it.
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
        (self.has_shown, self.item, self.in_vain, self.is_no_paragraph) = (true, None, 0, false);
        self.code = Some(code);
    }

    /// Shows the next line of code, or its end. Returns `false` if there is no whole line.
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

/// Whether a text begins with a paragraph that cannot become a heading or a table.
fn is_paragraph(text: &str) -> bool {
    let mut events = Parser::new_ext(text, options());
    let begins = matches!(events.next(), Some(Event::Start(Tag::Paragraph)));
    // A number may still become the number of a list.
    begins && !text.contains('|') && !text.starts_with(|c: char| c.is_ascii_digit())
}

/// Returns how much of a part of a paragraph cannot be changed by later text. This ends before the first character that
/// may begin a style, a link or code, unless that has been open for too long.
fn settled(text: &str) -> usize {
    let inline = format!("{LEAD}{text}");
    for (event, range) in Parser::new_ext(&inline, options()).into_offset_iter() {
        let range = range.start.saturating_sub(LEAD.len())..range.end.saturating_sub(LEAD.len());
        if !matches!(event, Event::Text(_)) {
            continue;
        }
        let open = text[range.clone()]
            .char_indices()
            .map(|(at, c)| (range.start + at, c))
            .find(|(at, c)| text.len() - at <= LONGEST_OPEN && is_open(&text[..*at], *c, &text[at + c.len_utf8()..]));
        if let Some((at, _)) = open {
            return text[..at].rfind(' ').map_or(0, |space| space + 1);
        }
    }
    text.len()
}

/// Whether a character may begin something that has not ended yet.
fn is_open(before: &str, c: char, after: &str) -> bool {
    let follows_space = after.starts_with(char::is_whitespace);
    match c {
        '`' | '<' | '\\' | '&' => !follows_space,
        '*' | '~' => !follows_space,
        '_' => !follows_space && !before.ends_with(char::is_alphanumeric),
        // If another character follows the bracket, it is not a link.
        '[' => after
            .find(']')
            .is_none_or(|end| after[end + 1..].is_empty() || after[end + 1..].starts_with(['(', '[', ':'])),
        _ => false,
    }
}

/// Finds the ends of the blocks and items in whole lines, up to the first top-level fenced code. Also returns where
/// that code begins.
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
                    last = Some(BlockEnd::of(&tag));
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
                (list, last, end) = (None, Some(BlockEnd::AtOnce), range.end);
            }
            _ => {}
        }
    }
    // A block that no later text can continue has ended, too.
    let after = text[end.min(text.len())..].trim_start_matches([' ', '\t']);
    let has_ended = match last {
        Some(BlockEnd::AtOnce) => true,
        Some(BlockEnd::AtEmptyLine) => {
            text[..end].ends_with('\n') && after.starts_with('\n') || after.starts_with("\n\n")
        }
        Some(BlockEnd::Open) | None => false,
    };
    if has_ended {
        splits.push(Split::Block(text.len()));
    }
    (splits, None)
}

/// When the last block of a text ends.
enum BlockEnd {
    AtOnce,
    AtEmptyLine,
    /// Only when another one begins.
    Open,
}

impl BlockEnd {
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
    fn a_long_paragraph_is_shown_line_by_line() {
        let mut stream = MarkdownStream::new(Paint::full(20));
        let mut shown: Vec<String> = Vec::new();
        for word in "Prune them in **late winter**, when it is dry, and [see](u) more of it.".split_inclusive(' ') {
            shown.push(stream.push(word));
        }
        let styled = "Prune them in \x1b[1mlate\x1b[0m\n";
        assert!(shown.iter().any(|piece| piece == styled), "{shown:?}");
        assert_eq!(
            shown.concat() + &stream.push("\nIt goes on\n\nNext.") + &stream.finish(),
            whole(
                "Prune them in **late winter**, when it is dry, and [see](u) more of it.\nIt goes on\n\nNext.",
                Paint::full(20)
            )
        );
        // A style that is never closed is held back for a bounded time.
        let mut stream = MarkdownStream::new(Paint::full(20));
        let words: String = "an *open style ".chars().chain("and many words ".repeat(30).chars()).collect();
        assert!(stream.push(&words).starts_with("an *open style and\n"));
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
