//! The answers are right: our top k is that of a plain f32 loop, bit for bit, and sqlite-vec finds the same scores.

use std::num::NonZeroUsize;

use benches::peers::{Element, SqliteVec, plain_scores, plain_top_k};
use benches::{random_rows, resample};
use vault_index::vectors::{Bitmap, Codes, QueryCodes, Threads, Wanted, rescore, top_k, top_k_many};

const DIMENSIONS: usize = 384;
const COUNT: usize = 10_000;
/// How far the scores of sqlite-vec, which adds up in another order, may be from ours.
const TOLERANCE: f32 = 2e-6;

/// Rows of 200 topics, rows of none, and rows that are there twice.
fn rows() -> Vec<f32> {
    let mut rows = resample(&random_rows(DIMENSIONS, 200, 1), DIMENSIONS, COUNT - 1_500, 2);
    rows.extend(random_rows(DIMENSIONS, 1_000, 3));
    let twice = rows[..500 * DIMENSIONS].to_vec();
    rows.extend(twice);
    assert_eq!(rows.len(), COUNT * DIMENSIONS);
    rows
}

/// Near some rows, and near none; one is a row that is there twice.
fn queries(rows: &[f32]) -> Vec<Vec<f32>> {
    let mut queries = resample(&rows[..50 * DIMENSIONS], DIMENSIONS, 4, 4);
    queries.extend(random_rows(DIMENSIONS, 2, 5));
    queries.extend(&rows[7 * DIMENSIONS..8 * DIMENSIONS]);
    queries.chunks_exact(DIMENSIONS).map(<[f32]>::to_vec).collect()
}

fn codes(rows: &[f32]) -> Codes {
    let mut codes = Codes::new(DIMENSIONS);
    for (slot, row) in rows.chunks_exact(DIMENSIONS).enumerate() {
        codes.set(slot, row).unwrap();
    }
    codes
}

fn row(rows: &[f32], slot: usize) -> &[f32] {
    &rows[slot * DIMENSIONS..][..DIMENSIONS]
}

/// Scores as bits: equal means equal.
fn bits(found: &[(usize, f32)]) -> Vec<(usize, u32)> {
    found.iter().map(|(slot, score)| (*slot, score.to_bits())).collect()
}

#[test]
fn ours_is_the_plain_loop() {
    let rows = rows();
    let (queries, codes) = (queries(&rows), codes(&rows));
    let every = |step: usize| -> Bitmap { (0..COUNT).step_by(step).collect() };
    let filters = [None, Some(every(10)), Some(every(100)), Some(Bitmap::new(COUNT))];
    for query in &queries {
        let query_codes = QueryCodes::new(query).unwrap();
        for filter in &filters {
            let filter = filter.as_ref();
            // The longest is enough: shorter ones are its beginning.
            let expected = plain_top_k(&rows, query, COUNT, filter);
            for (k, threads) in [
                (1, Threads::One),
                (10, Threads::One),
                (10, Threads::Exactly(NonZeroUsize::new(2).unwrap())),
                (100, Threads::Auto),
            ] {
                let wanted = Wanted { query: &query_codes, k, filter };
                let found = top_k(&codes, wanted, threads, |slot| Ok(rescore(query, row(&rows, slot)))).unwrap();
                assert_eq!(bits(&found), bits(&expected[..k.min(expected.len())]), "k = {k}, {threads:?}");
            }
        }
    }
}

#[test]
fn many_queries_at_once_find_the_same() {
    let rows = rows();
    let (queries, codes) = (queries(&rows), codes(&rows));
    let query_codes: Vec<QueryCodes> = queries.iter().map(|query| QueryCodes::new(query).unwrap()).collect();
    let wanted: Vec<Wanted<'_>> = query_codes.iter().map(|query| Wanted { query, k: 10, filter: None }).collect();
    let exact = |query: usize, slot: usize| Ok(rescore(&queries[query], row(&rows, slot)));
    let found = top_k_many(&codes, &wanted, Threads::One, exact).unwrap();
    for (query, found) in queries.iter().zip(&found) {
        assert_eq!(bits(found), bits(&plain_top_k(&rows, query, 10, None)));
    }
}

#[test]
fn sqlite_vec_finds_the_same_scores() {
    let rows = rows();
    let (queries, codes) = (queries(&rows), codes(&rows));
    let table = SqliteVec::new(&rows, DIMENSIONS, Element::F32).unwrap();
    for query in &queries {
        let (query_codes, scores) = (QueryCodes::new(query).unwrap(), plain_scores(&rows, query));
        for k in [1, 10, 100] {
            let wanted = Wanted { query: &query_codes, k, filter: None };
            let ours = top_k(&codes, wanted, Threads::Auto, |slot| Ok(rescore(query, row(&rows, slot)))).unwrap();
            let theirs = table.top_k(query, k).unwrap();
            assert_eq!((ours.len(), theirs.len()), (k, k));
            for ((_, our), (slot, distance)) in ours.iter().zip(&theirs) {
                let their = 1.0 - distance;
                assert!((our - their).abs() <= TOLERANCE, "k = {k}: {our} and {their}");
                // The row that they found has that score by our reckoning, too.
                assert!((our - scores[*slot]).abs() <= TOLERANCE, "k = {k}: {our} and {}", scores[*slot]);
            }
        }
    }
}
