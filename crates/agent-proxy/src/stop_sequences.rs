//! Cuts a reply's text at the first stop sequence, however the text is split.

/// The stop sequences of a reply, and the text that may be the beginning of one.
#[derive(Debug)]
pub(crate) struct StopSequences {
    sequences: Vec<String>,
    held: String,
}

impl StopSequences {
    pub(crate) fn new(sequences: Vec<String>) -> Self {
        Self { sequences, held: String::new() }
    }

    /// Adds text. Returns the text that can no longer be part of a stop sequence, and whether a sequence is complete.
    pub(crate) fn push(&mut self, text: &str) -> (String, bool) {
        self.held.push_str(text);
        // The sequence that is complete first counts, not the one that begins first, because a longer one may never be
        // completed.
        let complete = self.sequences.iter().filter_map(|stop| self.held.find(stop).map(|at| (at + stop.len(), at)));
        if let Some((_, at)) = complete.min() {
            self.held.truncate(at);
            return (self.flush(), true);
        }
        let longest = self.sequences.iter().map(String::len).max().unwrap_or(1);
        let first = self.held.ceil_char_boundary(self.held.len().saturating_sub(longest - 1));
        let begins = |at: &usize| {
            self.held.get(*at..).is_some_and(|end| self.sequences.iter().any(|stop| stop.starts_with(end)))
        };
        let kept = (first..self.held.len()).find(begins).unwrap_or(self.held.len());
        let rest = self.held.split_off(kept);
        (std::mem::replace(&mut self.held, rest), false)
    }

    /// Returns the text that was held back, when no text follows.
    pub(crate) fn flush(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut<'t>(sequences: &[String], pieces: impl IntoIterator<Item = &'t str>) -> String {
        let mut stop = StopSequences::new(sequences.to_vec());
        let mut said = String::new();
        for piece in pieces {
            let (text, is_over) = stop.push(piece);
            said.push_str(&text);
            if is_over {
                return said;
            }
        }
        said + &stop.flush()
    }

    proptest! {
        #[test]
        fn a_stop_sequence_cuts_alike_however_the_text_is_split(
            sequences in prop::collection::vec("[abä]{1,4}", 0..4),
            text in "[abcä]{0,20}",
        ) {
            let letters: Vec<String> = text.chars().map(String::from).collect();
            let whole = cut(&sequences, [&text[..]]);
            prop_assert_eq!(&whole, &cut(&sequences, letters.iter().map(|letter| &letter[..])));
            prop_assert!(sequences.iter().all(|stop| !whole.contains(stop.as_str())), "{}", whole);
            prop_assert!(text.starts_with(&whole));
            prop_assert!(whole == text || sequences.iter().any(|stop| text[whole.len()..].starts_with(stop.as_str())));
        }
    }
}
