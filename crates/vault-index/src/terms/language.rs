//! Detects the language of a text by its most frequent words, for a few languages.
//!
//! The letters are not enough: a model of English knows the letters of German, and fragments of its words, without
//! understanding it. For each language there are about forty words here that are frequent in it and rare in the others;
//! about every third word of a text is one of them.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::Terms;

/// A text with fewer of a language's words is undecided.
const LEAST_WORDS: usize = 3;

const ENGLISH: &str = "English";

const WORDS: [(&str, &str); 7] = [
    (
        ENGLISH,
        "the of and to is that it for was with be by this have are not but from they which you were their been there \
         when will would what about if can who has had into its than only some could these then",
    ),
    (
        "German",
        "der die das und ist nicht ein eine zu den mit von dem sich auf fur im des als auch wird werden sind einer wie \
         oder bei aus nach durch kann wenn nur uber noch zum zur hat man aber dass vor",
    ),
    (
        "Spanish",
        "el los las una que del por con para es se como mas pero sus su al lo son este esta esto cuando muy sin sobre \
         entre tambien ya hay donde desde todos puede ser tiene fue ha unos",
    ),
    (
        "French",
        "le les des une est dans qui que pour pas sur au avec plus par ce sont il elle ne se mais ou comme cette aux ses \
         nous vous leur etre fait tout peut entre sans deux ete donc",
    ),
    (
        "Portuguese",
        "o os as um uma que do da dos das em no na nos nas para com nao por mais se como mas ao sua seu ou quando muito \
         ja tambem pelo pela ate isso ser sao foi tem",
    ),
    (
        "Italian",
        "il lo gli di che un una della delle dei del nel nella per con non sono piu si come ma anche questo questa da \
         alla al dal ha essere dove quando ogni tra perche quindi cosi viene",
    ),
    (
        "Dutch",
        "de het een en van ik te dat die niet zijn op aan met als voor er maar om hem dan zou wat mijn dit zo door over \
         bij ook tot je naar wordt worden kan geen deze uit nog",
    ),
];

/// The language, if it is not English.
pub(crate) fn other_language(text: &str) -> Option<&'static str> {
    static LANGUAGES: OnceLock<HashMap<&'static str, Vec<usize>>> = OnceLock::new();
    let languages = LANGUAGES.get_or_init(|| {
        let mut languages: HashMap<&str, Vec<usize>> = HashMap::new();
        for (language, (_, words)) in WORDS.iter().enumerate() {
            words.split_whitespace().for_each(|word| languages.entry(word).or_default().push(language));
        }
        languages
    });
    let mut counts = [0_usize; WORDS.len()];
    Terms::new().each(text, |term, _| {
        languages.get(term).into_iter().flatten().for_each(|language| counts[*language] += 1);
    });
    let (best, most) = counts.iter().enumerate().max_by_key(|(language, count)| (**count, usize::MAX - language))?;
    let (name, _) = WORDS[best];
    (*most >= LEAST_WORDS && name != ENGLISH).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_told_by_their_words() {
        for (text, language) in [
            ("The heron stands in the water and waits for a fish.", None),
            ("Der Reiher steht im Wasser und wartet auf einen Fisch, der nicht zu groß ist.", Some("German")),
            ("La garza está en el agua y espera un pez que no es muy grande para ella.", Some("Spanish")),
            ("Le héron est dans l'eau et attend un poisson qui n'est pas trop grand pour lui.", Some("French")),
            ("A garça fica na água e espera um peixe que não é muito grande para ela.", Some("Portuguese")),
            ("L'airone sta nell'acqua e aspetta un pesce che non è troppo grande per lui.", Some("Italian")),
            ("De reiger staat in het water en wacht op een vis die niet te groot is.", Some("Dutch")),
            ("fn main() { println!(\"der die das\") }", Some("German")),
            ("cargo run --release", None),
            ("鷺は水の中に立っている", None),
            ("", None),
        ] {
            assert_eq!(other_language(text), language, "{text}");
        }
    }

    #[test]
    fn words_are_terms() {
        for (language, words) in WORDS {
            let terms: Vec<String> = Terms::new().words(words).into_iter().map(|term| term.text).collect();
            assert_eq!(terms, words.split_whitespace().collect::<Vec<_>>(), "{language}");
        }
    }
}
