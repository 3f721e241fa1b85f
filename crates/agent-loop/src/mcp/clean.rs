//! Removes control characters from the texts of a server that a person reads: descriptions, questions, errors.

/// Removes control characters except line ends and tabs. Results of tools are not cleaned: they are data, and the model
/// gets all of it.
pub(super) fn clean(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_lose_their_power() {
        assert_eq!(clean("a\u{1b}[31mb\r\u{9b}2Jc\n\td\0"), "a[31mb2Jc\n\td");
    }
}
