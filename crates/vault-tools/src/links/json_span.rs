//! Where a text stands within the characters of its JSON, so that a part of it can be written anew alone.

use std::ops::Range;

/// The bytes of a JSON string, quotes included, in which a range of the text it stands for is written.
///
/// `None` for a range that is not in the text, or for what is no JSON string.
pub(crate) fn span_in_json(json: &str, range: &Range<usize>) -> Option<Range<usize>> {
    let (mut start, mut end) = (None, None);
    let mut decoded = 0;
    let mut rest = json.strip_prefix('"')?;
    loop {
        let at = json.len() - rest.len();
        if decoded == range.start && start.is_none() {
            start = Some(at);
        }
        if decoded == range.end && end.is_none() {
            end = Some(at);
        }
        if let (Some(start), Some(end)) = (start, end) {
            return Some(start..end);
        }
        let (length, letter) = first_letter(rest)?;
        decoded += letter.len_utf8();
        rest = &rest[length..];
    }
}

/// The letter that the first characters stand for, and how many bytes they are; `None` at the closing quote.
fn first_letter(json: &str) -> Option<(usize, char)> {
    let mut chars = json.chars();
    match chars.next()? {
        '"' => None,
        '\\' => match chars.next()? {
            'u' => {
                let unit = |at: usize| u16::from_str_radix(json.get(at + 2..at + 6)?, 16).ok();
                let first = unit(0)?;
                if let Some(letter) = char::from_u32(u32::from(first)) {
                    return Some((6, letter));
                }
                let letter = char::decode_utf16([first, unit(6)?]).next()?.ok()?;
                Some((12, letter))
            }
            escaped => Some((2, escaped)),
        },
        letter => Some((letter.len_utf8(), letter)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_of_the_text_is_found() {
        let json = r#""a\u00e9\/\"é\ud83d\ude00\n[[x]]\\""#;
        let text: String = serde_json::from_str(json).unwrap();
        assert_eq!(text, "aé/\"é😀\n[[x]]\\");
        let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        for (number, from) in ends.iter().enumerate() {
            for to in &ends[number..] {
                let span = span_in_json(json, &(*from..*to)).unwrap();
                let part: String = serde_json::from_str(&format!("\"{}\"", &json[span])).unwrap();
                assert_eq!(part, text[*from..*to]);
            }
        }
        assert_eq!(span_in_json(json, &(0..text.len() + 1)), None);
        assert_eq!(span_in_json(json, &(2..3)), None);
        assert_eq!(span_in_json("no", &(0..0)), None);
    }
}
