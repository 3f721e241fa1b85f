//! The result of each query as a row, to compare two runs.

use std::fmt::Write as _;

use super::Scores;

/// One query in one mode.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryRow {
    /// The collection or vault.
    pub collection: String,
    /// The mode, or the name of another ranking.
    pub mode: String,
    /// The query's id; for a known item, its text.
    pub query: String,
    /// The scores of the ranking.
    pub scores: Scores,
    /// The first ten results: ids of documents, or paths, or for passages `path:line-line`.
    pub top: Vec<String>,
}

/// Formats rows as tab-separated text with a header: nDCG@10, reciprocal rank up to 10, the rank of the first relevant
/// result (empty without one), and the first ten as a JSON array.
pub fn rows_as_text(rows: &[QueryRow]) -> String {
    let mut text = String::from("collection\tmode\tquery\tndcg10\trr10\tfirst\ttop10\n");
    let field = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for row in rows {
        let QueryRow { collection, mode, query, scores, top } = row;
        let first = scores.first.map(|rank| rank.to_string()).unwrap_or_default();
        let top = serde_json::to_string(top).unwrap_or_default();
        let (collection, query) = (field(collection), field(query));
        let _ =
            writeln!(text, "{collection}\t{mode}\t{query}\t{:.6}\t{:.6}\t{first}\t{top}", scores.ndcg10, scores.rr10);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_line() {
        let row = QueryRow {
            collection: "c".into(),
            mode: "hybrid".into(),
            query: "a\tb\nc".into(),
            scores: Scores { ndcg10: 0.5, recall: 1.0, rr10: 0.25, first: Some(4) },
            top: vec!["x y".into(), "z".into()],
        };
        let none = QueryRow { scores: Scores::default(), top: Vec::new(), ..row.clone() };
        let text = rows_as_text(&[row, none]);
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(lines[0], "c\thybrid\ta b c\t0.500000\t0.250000\t4\t[\"x y\",\"z\"]");
        assert_eq!(lines[1], "c\thybrid\ta b c\t0.000000\t0.000000\t\t[]");
    }
}
