//! The cosines of a question with its answer and with anything else, by which scores of different models are compared.
//!
//! Some models give any two texts a cosine of .75 and a question and its answer .83, others .02 and .38. Whoever adds a
//! cosine to another score, or shows nothing below some cosine, needs to know both.

use crate::Model;
use crate::model_file::CosineRange;

/// Questions and their answers in other words, each of another subject.
const PAIRS: [(&str, &str); 8] = [
    (
        "how often should I water an orchid",
        "Give the moth orchid a bath of ten minutes once a week, and let it drain; in winter every ten days is enough.",
    ),
    (
        "which passport do I need for the ferry",
        "On the boat to Dover an identity card is no longer accepted: bring a document that is valid for six more months.",
    ),
    (
        "why does the engine make a rattling noise",
        "If it clatters when cold, the chain tensioner has no oil pressure yet; a loose heat shield sounds similar.",
    ),
    (
        "who won the chess tournament in spring",
        "In April Nadia took first place with seven points out of nine, half a point ahead of Leon.",
    ),
    (
        "what is a closure in JavaScript",
        "A function keeps the variables of the scope in which it was written, even after that scope has returned.",
    ),
    (
        "when is the next payment of the mortgage due",
        "The bank collects the instalment for the house on the first working day of each quarter; next is 1 April.",
    ),
    (
        "how do bats find their way in the dark",
        "They emit calls that people cannot hear and locate obstacles and moths by the echoes.",
    ),
    (
        "ideas for a birthday present for my sister",
        "Anna turns forty in June. She mentioned a pottery course, and her old umbrella is broken.",
    ),
];

/// The range of a model's cosines, with its prompts.
pub(super) fn cosine_range(model: &Model) -> CosineRange {
    let prompts = &model.description().prompts;
    range(|texts| model.embed_batch(texts, 1), &prompts.query, &prompts.passage)
}

/// The same for any model.
fn range(embed: impl Fn(&[&str]) -> Vec<Vec<f32>>, query: &str, passage: &str) -> CosineRange {
    let vectors = |prompt: &str, texts: [&str; PAIRS.len()]| {
        let texts = texts.map(|text| [prompt, text].concat());
        embed(&texts.each_ref().map(String::as_str))
    };
    let questions = vectors(query, PAIRS.map(|(question, _)| question));
    let answers = vectors(passage, PAIRS.map(|(_, answer)| answer));
    let (mut related, mut unrelated) = (0.0, 0.0);
    for (i, question) in questions.iter().enumerate() {
        for (j, answer) in answers.iter().enumerate() {
            let cosine: f64 = question.iter().zip(answer).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            *if i == j { &mut related } else { &mut unrelated } += cosine;
        }
    }
    let count = PAIRS.len() as f64;
    CosineRange { unrelated: (unrelated / (count * (count - 1.0))) as f32, related: (related / count) as f32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{COSINE_RANGE, MiniLm};

    #[test]
    fn the_bundled_model_has_the_stated_range() {
        let model = MiniLm::load();
        assert_eq!(range(|texts| model.embed_batch(texts, 1), "", ""), COSINE_RANGE);
    }
}
