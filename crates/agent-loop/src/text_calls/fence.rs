//! Tracks Markdown's fenced code blocks byte by byte.

/// Follows a text and tracks whether it is inside a fenced code block.
#[derive(Debug, Clone, Default)]
pub(super) struct Fences {
    line: Line,
    open: Option<Fence>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fence {
    mark: u8,
    length: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// So far only this many spaces.
    Start(u8),
    /// A run of marks at the start of the line.
    Marks(Fence),
    /// The rest of the line after the marks that open a block of backticks. Another backtick makes it inline code.
    Info,
    /// The rest of the line after the marks that may close a block. Anything but white space makes it text.
    Closing,
    /// Anything else.
    Text,
}

impl Default for Line {
    fn default() -> Self {
        Self::Start(0)
    }
}

impl Fences {
    /// Returns whether the next byte is inside a block, including its fences.
    pub(super) fn is_inside(&self) -> bool {
        self.open.is_some()
    }

    /// Returns whether the marks so far open a block; more marks may follow.
    pub(super) fn is_opening(&self) -> bool {
        self.open.is_none() && matches!(self.line, Line::Marks(marks) if marks.length >= 3)
    }

    /// Returns whether only spaces precede the next byte in its line, outside of a block.
    pub(super) fn is_line_start(&self) -> bool {
        self.open.is_none() && matches!(self.line, Line::Start(_))
    }

    /// Returns whether nothing before the end of the line can change the state.
    pub(super) fn is_settled(&self) -> bool {
        self.line == Line::Text
    }

    /// Returns whether a text that ends here ends with a closing fence.
    pub(super) fn ends_closed(&self) -> bool {
        match (self.open, self.line) {
            (None, _) | (Some(_), Line::Closing) => true,
            (Some(open), Line::Marks(marks)) => closes(open, marks),
            _ => false,
        }
    }

    /// Treats the rest of this line as text, whatever its beginning is.
    pub(super) fn treat_as_text(&mut self) {
        self.line = Line::Text;
    }

    /// Processes the next byte.
    pub(super) fn take(&mut self, byte: u8) {
        if byte == b'\n' {
            if let Line::Marks(marks) = self.line {
                self.marks_end(marks, byte);
            }
            if self.line == Line::Closing {
                self.open = None;
            }
            self.line = Line::Start(0);
            return;
        }
        match self.line {
            Line::Start(spaces) if byte == b' ' && spaces < 3 => self.line = Line::Start(spaces + 1),
            Line::Start(_) if byte == b'`' || byte == b'~' => {
                self.line = Line::Marks(Fence { mark: byte, length: 1 });
            }
            Line::Start(_) => self.line = Line::Text,
            Line::Marks(marks) if byte == marks.mark => {
                self.line = Line::Marks(Fence { length: marks.length + 1, ..marks });
            }
            Line::Marks(marks) => self.marks_end(marks, byte),
            Line::Info if byte == b'`' => {
                self.open = None;
                self.line = Line::Text;
            }
            Line::Closing if !byte.is_ascii_whitespace() => self.line = Line::Text,
            Line::Info | Line::Closing | Line::Text => {}
        }
    }

    fn marks_end(&mut self, marks: Fence, byte: u8) {
        self.line = match self.open {
            Some(open) if closes(open, marks) && byte.is_ascii_whitespace() => Line::Closing,
            None if marks.length >= 3 => {
                self.open = Some(marks);
                if marks.mark == b'`' { Line::Info } else { Line::Text }
            }
            _ => Line::Text,
        };
    }
}

fn closes(open: Fence, marks: Fence) -> bool {
    marks.mark == open.mark && marks.length >= open.length
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks which bytes are inside a block; `expected` has a `^` under each.
    fn check(text: &str, expected: &str) {
        let mut fences = Fences::default();
        let inside: String = text
            .bytes()
            .map(|byte| {
                fences.take(byte);
                if byte == b'\n' { '\n' } else { ['.', '^'][usize::from(fences.is_inside())] }
            })
            .collect();
        assert_eq!(inside, expected, "{text}");
    }

    #[test]
    fn blocks_begin_and_end() {
        check("a\n```x\nb\n```\nc", ".\n...^\n^\n^^^\n.");
        check("~~~~\n~~~\n~~~~  \nc", "....\n^^^\n^^^^^^\n.");
        check("```a``` b\nc", "...^... .\n.".replace(' ', ".").as_str());
        check("    ```\nc", ".......\n.");
        check("```\n``` x\nc", "...\n^^^^^\n^");
    }
}
