//! Tracks whether a text is inside a JSON value, character by character.

/// The position in a value. Quotes count only within brackets.
#[derive(Debug, Default)]
pub(super) struct JsonScan {
    depth: usize,
    is_in_string: bool,
    is_escaped: bool,
}

impl JsonScan {
    /// Processes the next character, and returns whether a value is still open after it.
    pub(super) fn is_inside_after(&mut self, next: char) -> bool {
        match next {
            _ if self.is_escaped => self.is_escaped = false,
            '\\' if self.is_in_string => self.is_escaped = true,
            '"' if self.depth > 0 => self.is_in_string = !self.is_in_string,
            _ if self.is_in_string => {}
            '{' | '[' => self.depth += 1,
            '}' | ']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.depth > 0
    }
}
