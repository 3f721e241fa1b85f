//! A judged collection in BEIR's layout: `corpus.jsonl`, `queries.jsonl`, `qrels.tsv` (or `qrels/test.tsv`).
//!
//! | file | a line is |
//! | --- | --- |
//! | `corpus.jsonl` | a JSON object with `_id`, `text` and perhaps `title` |
//! | `queries.jsonl` | a JSON object with `_id` and `text` |
//! | `qrels.tsv` | `query-id<TAB>corpus-id<TAB>score`; the first line is a header |

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Judgments, Result};

/// Documents, and queries with their judgments.
#[derive(Debug, Clone, PartialEq)]
pub struct Collection {
    /// The name of its folder.
    pub name: String,
    /// The documents in the order of the file, with distinct ids.
    pub documents: Vec<Document>,
    /// The queries with a relevant document, in the order of the file.
    pub queries: Vec<JudgedQuery>,
    /// The number of queries that were left out, because they have no judgments or no relevant document.
    pub unjudged: usize,
}

/// A document of a collection.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Document {
    /// Its id.
    #[serde(rename = "_id")]
    pub id: String,
    /// Its title; empty if it has none.
    #[serde(default)]
    pub title: String,
    /// Its text.
    pub text: String,
}

/// A query with the documents that should be found.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedQuery {
    /// Its id.
    pub id: String,
    /// Its text.
    pub text: String,
    /// The judgments of documents; at least one document is relevant.
    pub judgments: Judgments,
}

#[derive(Deserialize)]
struct QueryLine {
    #[serde(rename = "_id")]
    id: String,
    text: String,
}

impl Collection {
    /// Reads the folder.
    ///
    /// # Errors
    /// If a file or line cannot be read, an id is not unique, a judged query has no text, or no query is judged.
    pub fn read(folder: &Path) -> Result<Self> {
        let folder = folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let documents: Vec<Document> = lines(&folder.join("corpus.jsonl"))?;
        let mut seen = HashSet::new();
        if let Some(twice) = documents.iter().find(|document| !seen.insert(document.id.as_str())) {
            return Err(format!("{name}: the document {} is there twice", twice.id).into());
        }
        let one = folder.join("qrels.tsv");
        let mut judged = judgments(&if one.exists() { one } else { folder.join("qrels/test.tsv") })?;
        let all: Vec<QueryLine> = lines(&folder.join("queries.jsonl"))?;
        let (count, mut queries) = (all.len(), Vec::new());
        for QueryLine { id, text } in all {
            if let Some(judgments) = judged.remove(&id).filter(|judgments| judgments.values().any(|s| *s > 0)) {
                queries.push(JudgedQuery { id, text, judgments });
            }
        }
        if let Some(id) = judged.iter().find(|(_, judgments)| judgments.values().any(|s| *s > 0)).map(|(id, _)| id) {
            return Err(format!("{name}: the query {id} is judged and has no text").into());
        }
        if queries.is_empty() {
            return Err(format!("{name}: no query is judged").into());
        }
        let unjudged = count - queries.len();
        Ok(Self { name, documents, queries, unjudged })
    }
}

fn lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    let text = read(path)?;
    let value = |(at, line): (usize, &str)| -> Result<T> {
        serde_json::from_str(line).map_err(|error| format!("{}:{}: {error}", path.display(), at + 1).into())
    };
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(value).collect()
}

/// Judgments by query.
fn judgments(path: &Path) -> Result<HashMap<String, Judgments>> {
    let mut judged: HashMap<String, Judgments> = HashMap::new();
    for (at, line) in read(path)?.lines().enumerate().skip(1).filter(|(_, line)| !line.trim().is_empty()) {
        let mut fields = line.split('\t').map(str::trim);
        let (Some(query), Some(document), Some(score)) = (fields.next(), fields.next(), fields.next()) else {
            return Err(format!("{}:{}: not three fields", path.display(), at + 1).into());
        };
        let score = score
            .parse::<i64>()
            .map_err(|error| format!("{}:{}: the score {score}: {error}", path.display(), at + 1))?;
        // Some collections have negative scores for spam, which count as not relevant.
        let score = u32::try_from(score.max(0))?;
        judged.entry(query.to_owned()).or_default().insert(document.to_owned(), score);
    }
    Ok(judged)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(qrels: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let corpus = "{\"_id\": \"1\", \"title\": \"One\", \"text\": \"first\"}\n\
                      {\"_id\": \"b/2\", \"text\": \"second\", \"metadata\": {}}\n";
        let queries = "{\"_id\": \"q1\", \"text\": \"x\"}\n{\"_id\": \"q2\", \"text\": \"y\"}\n\n\
                       {\"_id\": \"q3\", \"text\": \"z\"}\n{\"_id\": \"q4\", \"text\": \"w\"}\n";
        for (name, text) in [("corpus.jsonl", corpus), ("queries.jsonl", queries), ("qrels.tsv", qrels)] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    fn judged(judgments: [(&str, u32); 2]) -> Judgments {
        judgments.map(|(id, s)| (id.to_owned(), s)).into()
    }

    #[test]
    fn queries_without_judgments_are_left_out() {
        // q2 has only a judgment that nothing is relevant, q4 none at all; a document that is gone is still judged.
        let folder = folder("query-id\tcorpus-id\tscore\nq3\tb/2\t2\nq3\tgone\t1\nq1\t1\t1\nq1\tb/2\t-1\nq2\t1\t0\n");
        let collection = Collection::read(folder.path()).unwrap();
        assert_eq!(collection.unjudged, 2);
        let ids: Vec<&str> = collection.queries.iter().map(|query| query.id.as_str()).collect();
        assert_eq!(ids, ["q1", "q3"]);
        assert_eq!(collection.queries[0].judgments, judged([("1", 1), ("b/2", 0)]));
        assert_eq!(collection.queries[1].judgments, judged([("b/2", 2), ("gone", 1)]));
        assert_eq!((collection.documents[1].id.as_str(), collection.documents[1].title.as_str()), ("b/2", ""));
    }

    #[test]
    fn what_cannot_be_right_is_refused() {
        for (qrels, says) in [
            ("query-id\tcorpus-id\tscore\nq1\t1\n", "qrels.tsv:2: not three fields"),
            ("query-id\tcorpus-id\tscore\nq1\t1\thigh\n", "qrels.tsv:2: the score high"),
            ("query-id\tcorpus-id\tscore\nq9\t1\t1\n", "q9 is judged and has no text"),
            ("query-id\tcorpus-id\tscore\n", "no query is judged"),
        ] {
            let error = Collection::read(folder(qrels).path()).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        assert!(Collection::read(Path::new("/nowhere")).unwrap_err().to_string().contains("/nowhere"));
    }
}
