//! The answers are right: a search is the plain f32 loop, bit for bit, and sqlite-vec finds the same scores.

use std::sync::Arc;

use benches::peers::{Element, SqliteVec, plain_scores, plain_top_k};
use benches::{IndexedRows, StoredVectors, TAG_1, TAG_10, random_rows, resample};
use tempfile::TempDir;
use vault_index::{Mode, Query};

const DIMENSIONS: usize = 384;
const COUNT: usize = 5_000;
/// How far the scores of sqlite-vec, which adds up in another order, may be from ours.
const TOLERANCE: f32 = 2e-6;

/// Rows of 200 topics, rows of none, and rows that are there twice.
fn rows() -> Vec<f32> {
    let mut rows = resample(&random_rows(DIMENSIONS, 200, 1), DIMENSIONS, COUNT - 1_500, 2);
    rows.extend(random_rows(DIMENSIONS, 1_000, 3));
    let twice = rows[..500 * DIMENSIONS].to_vec();
    rows.extend(twice);
    rows
}

/// Near some rows, and near none; one is a row that is there twice.
fn queries(rows: &[f32]) -> Vec<f32> {
    let mut queries = resample(&rows[..50 * DIMENSIONS], DIMENSIONS, 4, 4);
    queries.extend(random_rows(DIMENSIONS, 2, 5));
    queries.extend(&rows[7 * DIMENSIONS..8 * DIMENSIONS]);
    queries
}

fn indexed() -> (TempDir, Arc<StoredVectors>, IndexedRows) {
    let (folder, rows) = (tempfile::tempdir().unwrap(), rows());
    let queries = queries(&rows);
    let vectors = Arc::new(StoredVectors::new(DIMENSIONS, rows, queries));
    let indexed = IndexedRows::new(folder.path(), &vectors).unwrap();
    (folder, vectors, indexed)
}

/// Scores as bits: equal means equal. Those above 0, which are all that a search finds, and at most 1.
fn bits(found: &[(usize, f32)]) -> Vec<(usize, u32)> {
    let found = found.iter().filter(|(_, score)| *score > 0.0);
    found.map(|(row, score)| (*row, score.min(1.0).to_bits())).collect()
}

#[test]
fn a_search_is_the_plain_loop() {
    let (_folder, vectors, indexed) = indexed();
    for number in 0..7 {
        for tag in [None, Some(TAG_10), Some(TAG_1)] {
            let passing = IndexedRows::tagged(COUNT, tag);
            for k in [1, 10, 100, COUNT] {
                let expected = plain_top_k(vectors.rows(), vectors.query(number), k, |row| passing.contains(&row));
                let by_vector = Query::from_vector(vectors.query(number));
                let by_text = Query::literal(format!("query {number}")).mode(Mode::Semantic);
                for query in [by_vector, by_text] {
                    let hits = indexed.search(&IndexedRows::query(query, k, tag));
                    assert_eq!(bits(&IndexedRows::rows(&hits)), bits(&expected), "k = {k}, {tag:?}");
                }
            }
        }
    }
}

#[test]
fn many_queries_at_once_find_the_same() {
    let (_folder, vectors, indexed) = indexed();
    let query = |number| IndexedRows::query(Query::literal(format!("query {number}")).mode(Mode::Semantic), 10, None);
    let queries: Vec<Query> = (0..7).map(query).collect();
    for (number, hits) in indexed.search_many(&queries).iter().enumerate() {
        let expected = plain_top_k(vectors.rows(), vectors.query(number), 10, |_| true);
        assert_eq!(bits(&IndexedRows::rows(hits)), bits(&expected));
    }
}

#[test]
fn sqlite_vec_finds_the_same_scores() {
    let (_folder, vectors, indexed) = indexed();
    let table = SqliteVec::new(vectors.rows(), DIMENSIONS, Element::F32).unwrap();
    for number in 0..7 {
        let query = vectors.query(number);
        let scores = plain_scores(vectors.rows(), query);
        for k in [1, 10, 100] {
            let hits = indexed.search(&IndexedRows::query(Query::from_vector(query), k, None));
            let (ours, theirs) = (IndexedRows::rows(&hits), table.top_k(query, k).unwrap());
            assert_eq!((ours.len(), theirs.len()), (k, k));
            for ((_, our), (row, distance)) in ours.iter().zip(&theirs) {
                let their = 1.0 - distance;
                assert!((our - their).abs() <= TOLERANCE, "k = {k}: {our} and {their}");
                // The row that they found has that score by our reckoning, too.
                assert!((our - scores[*row]).abs() <= TOLERANCE, "k = {k}: {our} and {}", scores[*row]);
            }
        }
    }
}
