//! The cosine of texts that have nothing to do with each other, by which scores of different models are compared.
//!
//! Some models give any two texts a cosine of .75, others one near 0. Whoever adds a cosine to another score needs to
//! know where it begins.

use crate::Model;

/// Questions, and passages that answer none of them; each of another subject.
const QUESTIONS: [&str; 8] = [
    "how often should I water an orchid",
    "which passport do I need for the ferry",
    "why does the engine make a rattling noise",
    "who won the chess tournament in spring",
    "what is a closure in JavaScript",
    "when is the next payment of the mortgage due",
    "how do bats find their way in the dark",
    "ideas for a birthday present for my sister",
];
const PASSAGES: [&str; 12] = [
    "The bread rises twice: once in the bowl for two hours, and once more in the tin before it goes into the oven.",
    "Parliament passed the reform in 1832, after riots in Bristol and a change of government.",
    "Tune the lowest string first. The capo goes on the third fret, close behind the metal.",
    "The committee meets on Thursday at nine in room 4; Martha writes the minutes.",
    "Glaciers move because ice deforms under its own weight and slides over wet rock.",
    "Knit two together, pass the yarn over the needle, and repeat until twelve stitches are left.",
    "The defendant appealed, and the higher court returned the case for a new hearing.",
    "After the third kilometre keep your shoulders low, and breathe out on every second step.",
    "Insulin lets cells take up sugar from the blood; without it, the level rises after each meal.",
    "The second violin enters eight bars later, a fifth below, with the same theme.",
    "Shares of the shipping company fell by a tenth after the canal was closed.",
    "Sand the old paint, brush away the dust, and apply a thin first coat in the direction of the grain.",
];

/// The mean cosine of each question with each passage, both after their prompts.
pub(super) fn unrelated_cosine(model: &Model) -> f32 {
    let prompts = &model.description().prompts;
    mean_cosine(|texts| model.embed_batch(texts, 1), &prompts.query, &prompts.passage)
}

/// The same for any model.
fn mean_cosine(embed: impl Fn(&[&str]) -> Vec<Vec<f32>>, query: &str, passage: &str) -> f32 {
    let sum_of = |prompt: &str, texts: &[&str]| {
        let texts: Vec<String> = texts.iter().map(|text| [prompt, text].concat()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let mut sum = Vec::new();
        for vector in embed(&texts) {
            sum.resize(vector.len(), 0.0f64);
            sum.iter_mut().zip(vector).for_each(|(sum, x)| *sum += f64::from(x));
        }
        sum
    };
    // The sum of all products of two sets of vectors is the product of their sums.
    let (questions, passages) = (sum_of(query, &QUESTIONS), sum_of(passage, &PASSAGES));
    let product: f64 = questions.iter().zip(&passages).map(|(a, b)| a * b).sum();
    (product / (QUESTIONS.len() * PASSAGES.len()) as f64) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MiniLm, UNRELATED_COSINE};

    #[test]
    fn the_bundled_model_has_the_stated_cosine() {
        let model = MiniLm::load();
        assert_eq!(mean_cosine(|texts| model.embed_batch(texts, 1), "", ""), UNRELATED_COSINE);
    }
}
