//! Filters the text of a reply so that it ends before a stop text.

/// Holds back text that may be the beginning of a stop text, and white space that may be the last text.
#[derive(Debug, Default)]
pub(super) struct StopFilter {
    stops: Vec<String>,
    held: String,
    has_begun: bool,
}

impl StopFilter {
    pub(super) fn new(stops: Vec<String>) -> Self {
        Self { stops: stops.into_iter().filter(|stop| !stop.is_empty()).collect(), ..Self::default() }
    }

    /// Adds text, and returns the text that may be shown and whether a stop text ends it.
    pub(super) fn push(&mut self, text: &str) -> (String, bool) {
        self.held.push_str(text);
        if let Some(at) = self.stops.iter().filter_map(|stop| self.held.find(stop.as_str())).min() {
            self.held.truncate(at);
            return (self.shown(self.held.trim_end().len()), true);
        }
        let may_begin = |at: usize| self.stops.iter().any(|stop| stop.starts_with(&self.held[at..]));
        let end = self.held.char_indices().map(|(at, _)| at).find(|at| may_begin(*at)).unwrap_or(self.held.len());
        (self.shown(self.held[..end].trim_end().len()), false)
    }

    /// Returns the rest before a call or at the end, without trailing white space.
    pub(super) fn finish(&mut self) -> String {
        let text = self.shown(self.held.trim_end().len());
        self.held.clear();
        text
    }

    fn shown(&mut self, end: usize) -> String {
        let rest = self.held.split_off(end);
        let mut text = std::mem::replace(&mut self.held, rest);
        if !self.has_begun {
            text = text.trim_start().into();
        }
        self.has_begun |= !text.is_empty();
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(stops: &[&str], pieces: &[&str]) -> (String, bool) {
        let mut filter = StopFilter::new(stops.iter().map(|stop| stop.to_string()).collect());
        let mut text = String::new();
        for piece in pieces {
            let (shown, is_over) = filter.push(piece);
            text += &shown;
            if is_over {
                return (text, true);
            }
        }
        (text + &filter.finish(), false)
    }

    #[test]
    fn text_ends_before_a_stop_and_without_white_space_around_it() {
        for (stops, pieces, expected) in [
            (&["STOP"][..], &["a b ST", "O", "P c"][..], ("a b", true)),
            (&["STOP"], &["a ST", "AY", " S"], ("a STAY S", false)),
            (&[], &["\n\n", " a", "\n", "b\n ", "\n"], ("a\nb", false)),
            (&["\n\n", "é!"], &["ab", "é", "c\n", "\n", "d"], ("abéc", true)),
            (&[""], &["x"], ("x", false)),
        ] {
            let (text, is_over) = all(stops, pieces);
            assert_eq!((text.as_str(), is_over), expected, "{pieces:?}");
        }
    }
}
