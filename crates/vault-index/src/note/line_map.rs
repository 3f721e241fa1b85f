//! The line numbers of a text's bytes in the file.

/// Line numbers by byte offset: sorted `(offset, line)` pairs, each valid up to the next.
///
/// A line ends at `\n`, `\r\n` or a lone `\r`, as in CommonMark. Lines count from 1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineMap {
    starts: Vec<(u32, u32)>,
}

impl LineMap {
    /// The lines of a text that is the whole file.
    pub fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut starts = Vec::with_capacity(bytes.len() / 40 + 1);
        let mut line = 1;
        starts.push((0, line));
        for at in memchr::memchr2_iter(b'\n', b'\r', bytes) {
            if !bytes[at..].starts_with(b"\r\n") {
                line += 1;
                starts.push(((at + 1) as u32, line));
            }
        }
        Self { starts }
    }

    /// Creates a map from `(offset, line)` pairs, for a text that is composed of parts of a file. Pairs with descending
    /// offsets are skipped.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (usize, u32)>) -> Self {
        let mut starts: Vec<(u32, u32)> = Vec::new();
        for (offset, line) in pairs {
            let offset = offset as u32;
            if starts.last().is_none_or(|&(last, _)| last < offset) {
                starts.push((offset, line));
            }
        }
        Self { starts }
    }

    /// The line of the byte at `offset`, from 1. Beyond the end, it is the last line. O(log lines).
    pub fn line_at(&self, offset: usize) -> u32 {
        let next = self.starts.partition_point(|&(start, _)| start as usize <= offset);
        match next.checked_sub(1) {
            Some(index) => self.starts[index].1,
            None => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_any_line_break() {
        for (text, expected) in [
            ("", vec![1]),
            ("a", vec![1, 1]),
            ("a\nb", vec![1, 1, 2, 2]),
            ("a\r\nb", vec![1, 1, 1, 2, 2]),
            ("a\rb\n", vec![1, 1, 2, 2, 3]),
            ("\n\n", vec![1, 2, 3]),
        ] {
            let map = LineMap::of(text);
            let lines: Vec<u32> = (0..=text.len()).map(|at| map.line_at(at)).collect();
            assert_eq!(lines, expected, "{text:?}");
        }
    }

    #[test]
    fn parts_keep_the_lines_they_are_given() {
        let map = LineMap::from_pairs([(0, 3), (10, 7), (10, 8), (20, 5)]);
        assert_eq!([0, 9, 10, 19, 20, 99].map(|at| map.line_at(at)), [3, 3, 7, 7, 5, 5]);
        assert_eq!(LineMap::default().line_at(5), 1);
    }
}
