//! Classifies characters for search: part of a word, part of a run indexed in pairs, an emoji, or a separator.

use unicode_normalization::char::is_combining_mark;

/// The class of a character in a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Ends a word.
    Separator,
    /// A letter or digit of a script with words.
    Letter,
    /// A mark on the preceding character.
    Mark,
    /// Affects only the rendering of its neighbours: part of a word, but not of the term.
    Joiner,
    /// An apostrophe of any kind.
    Apostrophe,
    /// Part of a run that is indexed in pairs.
    Paired(Script),
    /// An emoji.
    Emoji,
    /// Half of a flag.
    FlagLetter,
}

/// Scripts that are indexed in pairs; a run ends where the script changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Script {
    /// Han and kana, which words combine.
    Cjk,
    /// Hangul.
    Hangul,
    /// Thai and Lao.
    Thai,
    /// Khmer.
    Khmer,
    /// Myanmar.
    Myanmar,
}

/// The class of a character.
pub(super) fn class(c: char) -> Class {
    match c {
        '\0'..='\x7F' => match c {
            '\'' => Class::Apostrophe,
            _ if c.is_ascii_alphanumeric() => Class::Letter,
            _ => Class::Separator,
        },
        // Checked before the table look-ups: the characters of most text that is not English.
        '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{FF}' | '\u{400}'..='\u{481}' => Class::Letter,
        '\u{3041}'..='\u{3096}' | '\u{30A1}'..='\u{30FA}' | '\u{4E00}'..='\u{9FFF}' => Class::Paired(Script::Cjk),
        '\u{AC00}'..='\u{D7A3}' => Class::Paired(Script::Hangul),
        // Soft hyphen, tatweel, zero-width joiners, word joiner, variation selectors, skin tones.
        '\u{AD}'
        | '\u{640}'
        | '\u{200C}'
        | '\u{200D}'
        | '\u{2060}'
        | '\u{FE00}'..='\u{FE0F}'
        | '\u{1F3FB}'..='\u{1F3FF}'
        | '\u{E0100}'..='\u{E01EF}' => Class::Joiner,
        '\u{2019}' | '\u{2BB}' | '\u{2BC}' | '\u{FF07}' => Class::Apostrophe,
        // Fractions would fold into other numbers: 1⁄2 into 12.
        '\u{BC}'..='\u{BE}' | '\u{2150}'..='\u{215F}' | '\u{2189}' => Class::Separator,
        '\u{80}'..='\u{2FF}' => alphanumeric(c),
        '\u{1F1E6}'..='\u{1F1FF}' => Class::FlagLetter,
        _ if is_combining_mark(c) => Class::Mark,
        _ if is_emoji(c) => Class::Emoji,
        _ => match (alphanumeric(c), script(c)) {
            (Class::Letter, Some(script)) => Class::Paired(script),
            (class, _) => class,
        },
    }
}

fn alphanumeric(c: char) -> Class {
    if c.is_alphanumeric() { Class::Letter } else { Class::Separator }
}

fn script(c: char) -> Option<Script> {
    Some(match c {
        '\u{3005}'..='\u{30FF}' | '\u{31A0}'..='\u{31FF}' | '\u{3100}'..='\u{312F}' => Script::Cjk,
        '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' => Script::Cjk,
        '\u{FF66}'..='\u{FF9F}' | '\u{1AFF0}'..='\u{1B16F}' | '\u{20000}'..='\u{3FFFD}' => Script::Cjk,
        '\u{1100}'..='\u{11FF}' | '\u{3130}'..='\u{318F}' | '\u{A960}'..='\u{A97F}' => Script::Hangul,
        '\u{AC00}'..='\u{D7FF}' | '\u{FFA0}'..='\u{FFDC}' => Script::Hangul,
        '\u{E00}'..='\u{EFF}' => Script::Thai,
        '\u{1780}'..='\u{17FF}' => Script::Khmer,
        '\u{1000}'..='\u{109F}' | '\u{A9E0}'..='\u{A9FF}' | '\u{AA60}'..='\u{AA7F}' => Script::Myanmar,
        _ => return None,
    })
}

/// Letters that belong to the character before them: the vowel and final of a Korean syllable that is
/// written in parts (as macOS writes file names), and the half-width voicing marks of kana.
pub(super) fn extends_unit(c: char) -> bool {
    matches!(c, '\u{1160}'..='\u{11FF}' | '\u{D7B0}'..='\u{D7FF}' | '\u{FF9E}' | '\u{FF9F}')
}

fn is_emoji(c: char) -> bool {
    matches!(c,
        '\u{231A}' | '\u{231B}' | '\u{2328}' | '\u{23CF}' | '\u{23E9}'..='\u{23FA}'
        | '\u{2600}'..='\u{27BF}' | '\u{2934}' | '\u{2935}' | '\u{2B05}'..='\u{2B07}'
        | '\u{2B1B}' | '\u{2B1C}' | '\u{2B50}' | '\u{2B55}' | '\u{1F004}' | '\u{1F0CF}'
        | '\u{1F300}'..='\u{1FAFF}')
        // Circled digits among the dingbats are numbers.
        && !c.is_alphanumeric()
}

/// Whether the apostrophe at `at` belongs to the word around it. It does before one or two last letters: `don't`,
/// `we're`, `garden's`. The text after a longer elision is a word of its own: `l'été`, `O'Brien`.
pub(super) fn apostrophe_joins(text: &str, at: usize) -> bool {
    let mut after = text[at..].chars().skip(1);
    let (first, second, third) = (after.next(), after.next(), after.next());
    let letter = |c: Option<char>| c.is_some_and(|c| class(c) == Class::Letter && !c.is_numeric());
    let goes_on = |c: Option<char>| c.is_some_and(|c| matches!(class(c), Class::Letter | Class::Mark));
    letter(first) && (!goes_on(second) || (letter(second) && !goes_on(third)))
}
