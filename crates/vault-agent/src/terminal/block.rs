//! Renders one block of Markdown as lines for a terminal.
//!
//! Without colours the output is the Markdown source, which is readable as it is. The addresses of links are always
//! shown, because the text of a link can claim another target.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd};
use vault_search::{Paint, most_columns, sanitize, sanitize_line};

use super::table::Table;
use super::wrap::{Span, Style, wrapped};

/// Returns the extensions of CommonMark that are parsed.
pub(super) fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS | Options::ENABLE_WIKILINKS
}

/// Renders one block. `number` is the number of its first item if it continues a list.
pub(super) fn block(source: &str, number: Option<u64>, paint: &Paint) -> String {
    if !paint.has_colors() {
        return format!("{}\n", sanitize(from_first_line(source).trim_end()));
    }
    let mut writer = Writer::new(paint, number);
    Parser::new_ext(source, options()).for_each(|event| writer.event(event));
    writer.flush();
    writer.out
}

/// Prepended to a part of a paragraph, so that its beginning is not parsed as a list or another block.
pub(super) const LEAD: &str = "x ";

/// Parses a part of a paragraph into spans, with a space before them.
pub(super) fn paragraph_spans(source: &str, paint: &Paint) -> Vec<Span> {
    let mut spans = vec![Span::new(Style::default(), " ")];
    if !paint.has_colors() {
        spans.push(Span::new(Style::default(), source));
        return spans;
    }
    let mut writer = Writer::new(paint, None);
    let inside = |event: &Event<'_>| !matches!(event, Event::Start(Tag::Paragraph) | Event::End(TagEnd::Paragraph));
    Parser::new_ext(&format!("{LEAD}{source}"), options()).filter(inside).for_each(|event| writer.event(event));
    let mut inline = writer.spans;
    if let Some(first) = inline.first_mut() {
        *first = Span::new(first.style, first.text().strip_prefix(LEAD.trim_end()).unwrap_or(first.text()));
    }
    spans.extend(inline);
    spans
}

/// The prefix of the lines of a quote or an item. The first line can have a different one.
struct Prefix {
    first: Option<String>,
    others: String,
    columns: usize,
}

struct Writer<'a> {
    paint: &'a Paint,
    out: String,
    prefixes: Vec<Prefix>,
    /// Whether each open quote or item, and the whole, already has content.
    filled: Vec<bool>,
    /// The number of the next item of each open list.
    lists: Vec<Option<u64>>,
    number: Option<u64>,
    styles: Vec<Style>,
    /// The addresses of open links and images.
    links: Vec<String>,
    spans: Vec<Span>,
    table: Option<Table>,
    is_code: bool,
}

impl<'a> Writer<'a> {
    fn new(paint: &'a Paint, number: Option<u64>) -> Self {
        Self {
            paint,
            out: String::new(),
            prefixes: Vec::new(),
            filled: vec![false],
            lists: Vec::new(),
            number,
            styles: vec![Style::default()],
            links: Vec::new(),
            spans: Vec::new(),
            table: None,
            is_code: false,
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.is_code => {
                text.lines().for_each(|line| self.line(&self.paint.style("36", &sanitize_line(line))));
            }
            Event::Text(text) => self.text(&text),
            Event::Code(code) => self.add(Style { code: true, ..self.style() }, &code),
            Event::Html(html) => {
                // There is one event for each line.
                html.lines().for_each(|line| self.line(&self.paint.dim(&sanitize_line(line))));
            }
            Event::InlineHtml(html) => self.add(Style { dim: true, ..self.style() }, &html),
            Event::SoftBreak => self.text(" "),
            Event::HardBreak => self.spans.push(Span::new(self.style(), "\n")),
            Event::Rule => {
                self.begin_block();
                self.line(&self.paint.dim("────────"));
            }
            Event::TaskListMarker(is_done) => self.text(if is_done { "[x] " } else { "[ ] " }),
            Event::FootnoteReference(name) => self.text(&name),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin_block(),
            Tag::Heading { level, .. } => {
                self.begin_block();
                let marks = "#".repeat(depth(level));
                self.add(Style { dim: true, ..Style::default() }, &format!("{marks} "));
                self.push_style(|style| style.bold = true);
            }
            Tag::BlockQuote(_) => {
                self.begin_block();
                let bar = self.paint.dim("│ ");
                self.prefixes.push(Prefix { first: None, others: bar, columns: 2 });
                self.filled.push(false);
            }
            Tag::CodeBlock(kind) => {
                self.begin_block();
                if let CodeBlockKind::Fenced(language) = &kind {
                    self.line(&fence("```", language, self.paint));
                }
                self.is_code = true;
            }
            Tag::List(first) => {
                if self.lists.is_empty() {
                    self.begin_block();
                }
                self.flush();
                let goes_on = self.number.take().filter(|_| self.lists.is_empty());
                self.lists.push(first.map(|first| goes_on.unwrap_or(first)));
            }
            Tag::Item => {
                self.flush();
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "• ".to_owned(),
                };
                let columns = most_columns(&mark);
                self.prefixes.push(Prefix { first: Some(mark), others: " ".repeat(columns), columns });
                self.filled.push(false);
            }
            Tag::Table(_) => {
                self.begin_block();
                self.table = Some(Table::default());
            }
            Tag::TableHead | Tag::TableRow => {
                self.table.iter_mut().for_each(|table| table.rows.push(Vec::new()));
            }
            Tag::Emphasis => self.push_style(|style| style.italic = true),
            Tag::Strong => self.push_style(|style| style.bold = true),
            Tag::Strikethrough => self.push_style(|style| style.struck = true),
            Tag::Link { link_type: LinkType::WikiLink { .. }, .. } => {
                self.push_style(|style| style.code = true);
                self.links.push(String::new());
                self.text("[[");
            }
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.push_style(|style| style.underlined = true);
                self.links.push(dest_url.into_string());
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.flush(),
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.flush();
            }
            TagEnd::BlockQuote(_) | TagEnd::Item => {
                self.flush();
                if self.filled.pop() == Some(false) {
                    self.line("");
                }
                self.prefixes.pop();
                self.filled.last_mut().into_iter().for_each(|filled| *filled = true);
            }
            TagEnd::CodeBlock => {
                self.is_code = false;
                self.line(&self.paint.dim("```"));
            }
            TagEnd::List(_) => _ = self.lists.pop(),
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.spans);
                let row = self.table.as_mut().and_then(|table| table.rows.last_mut());
                row.into_iter().for_each(|row| row.push(cell.clone()));
            }
            TagEnd::Table => {
                let lines = self.table.take().map(|table| table.lines(self.width(), self.paint));
                lines.into_iter().flatten().for_each(|line| self.line(&line));
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => _ = self.styles.pop(),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => {}
        }
    }

    fn end_link(&mut self) {
        let Some(address) = self.links.pop() else { return };
        self.styles.pop();
        if address.is_empty() {
            let style = Style { code: true, ..self.style() };
            return self.add(style, "]]");
        }
        let is_said = self.spans.last().is_some_and(|span| span.text() == sanitize(&address));
        if !is_said {
            self.add(Style { dim: true, ..self.style() }, &format!(" ({address})"));
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn push_style(&mut self, change: impl FnOnce(&mut Style)) {
        let mut style = self.style();
        change(&mut style);
        self.styles.push(style);
    }

    fn text(&mut self, text: &str) {
        self.add(self.style(), text);
    }

    fn add(&mut self, style: Style, text: &str) {
        self.spans.push(Span::new(style, &text.replace('\n', " ")));
    }

    /// The columns that the prefixes leave.
    fn width(&self) -> usize {
        let prefixes: usize = self.prefixes.iter().map(|prefix| prefix.columns).sum();
        self.paint.columns().saturating_sub(prefixes).max(10)
    }

    /// Starts a block: writes the pending text, and an empty line between two blocks.
    fn begin_block(&mut self) {
        self.flush();
        if self.filled.last() == Some(&true) {
            self.line("");
        }
    }

    fn flush(&mut self) {
        let spans = std::mem::take(&mut self.spans);
        if !spans.is_empty() {
            wrapped(&spans, self.width(), self.paint).iter().for_each(|line| self.line(line));
        }
    }

    fn line(&mut self, text: &str) {
        let mut line = String::new();
        for prefix in &mut self.prefixes {
            line.push_str(&prefix.first.take().unwrap_or_else(|| prefix.others.clone()));
        }
        line.push_str(text);
        self.out.push_str(line.trim_end_matches(' '));
        self.out.push('\n');
        self.filled.last_mut().into_iter().for_each(|filled| *filled = true);
    }
}

/// Removes the empty lines at the beginning.
fn from_first_line(text: &str) -> &str {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('\n').filter(|(line, _)| line.trim().is_empty()) {
        rest = after;
    }
    rest
}

/// Returns the first line of a block of code.
pub(super) fn fence(marks: &str, language: &str, paint: &Paint) -> String {
    paint.dim(&format!("{marks}{}", sanitize_line(language)))
}

fn depth(level: HeadingLevel) -> usize {
    level as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(source: &str) -> String {
        block(source, None, &Paint::full(30))
    }

    #[test]
    fn inline_styles() {
        assert_eq!(
            shown("a **b** *c* `d` ~~e~~"),
            "a \x1b[1mb\x1b[0m \x1b[3mc\x1b[0m \x1b[36md\x1b[0m \x1b[9me\x1b[0m\n"
        );
        assert_eq!(shown("## T *i*"), "\x1b[2m## \x1b[0m\x1b[1mT \x1b[0m\x1b[1;3mi\x1b[0m\n");
        assert_eq!(shown("[[Note|here]]"), "\x1b[36m[[here]]\x1b[0m\n");
    }

    #[test]
    fn links_say_where_they_lead() {
        assert_eq!(shown("[a](https://b.c)"), "\x1b[4ma\x1b[0m\x1b[2m (https://b.c)\x1b[0m\n");
        assert_eq!(shown("<https://b.c>"), "\x1b[4mhttps://b.c\x1b[0m\n");
        assert_eq!(shown("![a](x.png)"), "\x1b[4ma\x1b[0m\x1b[2m (x.png)\x1b[0m\n");
    }

    #[test]
    fn lists_quotes_and_code() {
        assert_eq!(shown("- a\n  - b\n- c\n"), "• a\n  • b\n• c\n");
        assert_eq!(shown("3. a\n\n   b\n"), "3. a\n\n   b\n");
        assert_eq!(block("1. b\n", Some(4), &Paint::full(30)), "4. b\n");
        assert_eq!(shown("- [x] done"), "• [x] done\n");
        assert_eq!(shown("> a\n> b"), "\x1b[2m│ \x1b[0ma b\n");
        assert_eq!(shown("- ```sh\n  ls\n  ```"), "• \x1b[2m```sh\x1b[0m\n  \x1b[36mls\x1b[0m\n  \x1b[2m```\x1b[0m\n");
        assert_eq!(shown("-\n- a"), "•\n• a\n");
    }

    #[test]
    fn long_items_hang_below_their_text() {
        let shown = shown("- one two three four five six seven");
        assert_eq!(shown, "• one two three four five six\n  seven\n");
    }

    #[test]
    fn without_colours_it_is_the_markdown() {
        assert_eq!(block("\n**a**\u{1b}[2J\n\n", None, &Paint::default()), "**a**␛[2J\n");
    }

    #[test]
    fn what_entities_say_passes_the_filter() {
        assert_eq!(shown("a&#27;[2J&#x202e;"), "a␛[2J\u{fffd}\n");
    }
}
