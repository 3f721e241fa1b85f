//! The likeness of two names, and the names that may be meant by one that does not exist.

/// The most names that [`nearest`] returns.
const OFFERED: usize = 3;

/// The least likeness of a name that may be meant.
pub const LEAST: f64 = 0.5;

/// Returns the likeness of two names, from 0 to 1. Case, spaces and punctuation do not count.
///
/// The largest of three measures:
/// - the Sørensen-Dice coefficient of pairs of neighbouring letters if it is above [`LEAST`], which finds words in
///   another order. Short words that have half of their pairs in common, such as *nope* and *people*, mean different
///   things;
/// - `1 - 2 d / n` for `d` mistakes (letters missing, added, wrong or swapped) in `n` letters, which finds typos in
///   short words. A mistake counts twice because it changes two pairs;
/// - [`LEAST`] where one name begins with the other.
///
/// ```
/// use vault_index::likeness::likeness;
///
/// assert_eq!(likeness("topK", "top_k"), 1.0);
/// assert!(likeness("opneai", "openai") > 0.6);
/// assert_eq!(likeness("to", "toPath"), 0.5);
/// assert!(likeness("openai", "anthropic") < 0.2 && likeness("nope", "people") < 0.5);
/// ```
pub fn likeness(a: &str, b: &str) -> f64 {
    let letters = |text: &str| text.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect::<String>();
    let (a, b) = (letters(a), letters(b));
    let (least, most) = (a.chars().count().min(b.chars().count()), a.chars().count().max(b.chars().count()));
    let begins = least > 1 && (a.starts_with(&b) || b.starts_with(&a));
    let pairs = Some(strsim::sorensen_dice(&a, &b)).filter(|pairs| *pairs > LEAST).unwrap_or(0.0);
    let pairs = pairs.max(if begins { LEAST } else { 0.0 });
    match most {
        0 => 0.0,
        // Each letter that only the longer name has is a mistake, so for most names the distance need not be computed.
        _ if (most - least) * 4 > most => pairs,
        _ => pairs.max(1.0 - 2.0 * strsim::osa_distance(&a, &b) as f64 / most as f64),
    }
}

/// Returns up to three names that may be meant by `wanted`, the most similar first; more precisely, the values paired
/// with them.
pub fn nearest<'a, T: Ord>(wanted: &str, names: impl Iterator<Item = (&'a str, T)>) -> Vec<T> {
    let scored = names.map(|(name, beside)| (likeness(wanted, name), beside));
    let mut scored: Vec<(f64, T)> = scored.filter(|(score, _)| *score >= LEAST).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    scored.into_iter().take(OFFERED).map(|(_, beside)| beside).collect()
}
