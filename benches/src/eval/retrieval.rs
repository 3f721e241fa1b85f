//! Evaluates retrieval: the queries of a collection, where each document is a note that is ranked by its best passage.

use std::collections::HashMap;
use std::path::Path;

use serde::Serialize;
use vault_index::{Grouping, Mode, VaultPath};

use super::as_notes::{NewNote, note_text, path_of, write_notes};
use super::{Collection, Indexed, Means, Plan, QueryRow, Result, Scores, reciprocal_rank_fusion};
use crate::median::median;

/// The length of a ranking for the evaluation.
const DEPTH: usize = 1000;
/// The length of a list that is timed, as a person would get it.
const SHOWN: usize = 10;
/// The rank at which recall is measured.
const RECALL_AT: usize = 100;
/// The name of the fusion of the two lists.
const RRF: &str = "rrf";

/// The report on a collection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RetrievalReport {
    /// Its name.
    pub collection: String,
    /// The model.
    pub model: String,
    /// The number of documents, each of which is a note.
    pub documents: usize,
    /// The number of their passages.
    pub passages: usize,
    /// The number of queries.
    pub queries: usize,
    /// The number of queries that were left out, because they have no judgments or no relevant document.
    pub unjudged: usize,
    /// The documents per second, from files to vectors; absent if the index existed.
    pub documents_a_second: Option<f64>,
    /// The results of each mode, and last of the reciprocal rank fusion of the lexical and the semantic list, if both
    /// modes were evaluated.
    pub modes: Vec<RetrievalMode>,
    /// The rankings that are better than the hybrid mode, by nDCG@10. It should be empty.
    pub above_hybrid: Vec<Above>,
}

/// The results of one mode.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RetrievalMode {
    /// The mode.
    pub mode: String,
    /// nDCG@10 over all queries.
    pub ndcg10: f64,
    /// Recall@100.
    pub recall100: f64,
    /// Mean reciprocal rank, 0 beyond rank 10.
    pub mrr10: f64,
    /// The median of milliseconds for ten results; absent for the fusion.
    pub ms: Option<f64>,
}

/// A ranking that is better than the hybrid mode.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Above {
    /// Its name.
    pub mode: String,
    /// The difference in nDCG@10.
    pub by: f64,
}

/// Writes the collection's notes below `folder`, indexes them there, and runs all queries in all modes.
///
/// If the folder is kept, the next run embeds nothing. A run takes as long as indexing, and some milliseconds per query
/// and mode.
///
/// # Errors
/// If notes cannot be written, indexed or searched.
pub fn retrieve(collection: &Collection, folder: &Path, plan: &Plan) -> Result<(RetrievalReport, Vec<QueryRow>)> {
    let paths: Vec<VaultPath> =
        collection.documents.iter().enumerate().map(|(at, document)| path_of(&document.id, at)).collect();
    let notes = collection.documents.iter().zip(&paths);
    let notes = notes.map(|(document, path)| NewNote { path: path.clone(), text: note_text(document) });
    write_notes(&folder.join("notes"), notes)?;
    let indexed = Indexed::sync(&folder.join("notes"), &folder.join("index/index.db"), plan)?;
    if indexed.notes != paths.len() {
        return Err(format!("{}: {} of {} notes", collection.name, indexed.notes, paths.len()).into());
    }

    let positions: HashMap<&VaultPath, usize> = paths.iter().zip(0..).collect();
    let queries = &collection.queries[..plan.queries.min(collection.queries.len())];
    let mut lists: Vec<(Mode, Lists)> = Vec::new();
    for &mode in &plan.modes {
        let mut all = Lists::default();
        if let Some(first) = queries.first() {
            indexed.warm_up(&first.text, mode)?;
        }
        for query in queries {
            all.ms.push(indexed.ask_timed(&query.text, mode, Grouping::BestPassage, SHOWN)?.1);
            let hits = indexed.ask(&query.text, mode, Grouping::BestPassage, DEPTH)?;
            all.rankings.push(hits.iter().filter_map(|hit| positions.get(&hit.path).copied()).collect());
        }
        lists.push((mode, all));
    }

    let (mut modes, mut rows) = (Vec::new(), Vec::new());
    let mut judge = |name: &str, rankings: &[Vec<usize>], ms: Option<f64>| {
        let new = judged(collection, name, rankings);
        let means = Means::of(new.iter().map(|row| &row.scores));
        let (ndcg10, recall100, mrr10) = (means.ndcg10, means.recall, means.mrr10);
        modes.push(RetrievalMode { mode: name.to_owned(), ndcg10, recall100, mrr10, ms });
        rows.extend(new);
    };
    for (mode, all) in &lists {
        judge(mode.name(), &all.rankings, Some(median(&all.ms)));
    }
    let of = |wanted: Mode| lists.iter().find(|(mode, _)| *mode == wanted).map(|(_, all)| &all.rankings);
    if let (Some(lexical), Some(semantic)) = (of(Mode::Lexical), of(Mode::Semantic)) {
        let pairs = lexical.iter().zip(semantic);
        let fused: Vec<Vec<usize>> = pairs.map(|(a, b)| reciprocal_rank_fusion(&[a, b])).collect();
        judge(RRF, &fused, None);
    }
    let report = RetrievalReport {
        collection: collection.name.clone(),
        documents: indexed.notes,
        passages: indexed.passages,
        queries: queries.len(),
        unjudged: collection.unjudged,
        documents_a_second: indexed.notes_a_second(),
        above_hybrid: above_hybrid(&modes),
        model: indexed.model,
        modes,
    };
    Ok((report, rows))
}

/// The answers of one mode, query by query.
#[derive(Default)]
struct Lists {
    /// The numbers of documents, best first.
    rankings: Vec<Vec<usize>>,
    ms: Vec<f64>,
}

fn judged(collection: &Collection, mode: &str, rankings: &[Vec<usize>]) -> Vec<QueryRow> {
    let id = |at: &usize| collection.documents[*at].id.as_str();
    let rows = collection.queries.iter().zip(rankings).map(|(query, ranking)| QueryRow {
        collection: collection.name.clone(),
        mode: mode.to_owned(),
        query: query.id.clone(),
        scores: Scores::of(ranking.iter().map(id), &query.judgments, RECALL_AT),
        top: ranking.iter().take(SHOWN).map(|at| id(at).to_owned()).collect(),
    });
    rows.collect()
}

fn above_hybrid(modes: &[RetrievalMode]) -> Vec<Above> {
    let Some(hybrid) = modes.iter().find(|mode| mode.mode == Mode::Hybrid.name()) else { return Vec::new() };
    let above = modes.iter().filter(|mode| mode.ndcg10 > hybrid.ndcg10);
    above.map(|mode| Above { mode: mode.mode.clone(), by: mode.ndcg10 - hybrid.ndcg10 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_better_than_the_default_is_named() {
        let mode =
            |mode: &str, ndcg10| RetrievalMode { mode: mode.into(), ndcg10, recall100: 0.0, mrr10: 0.0, ms: None };
        let modes = [mode("lexical", 0.25), mode("semantic", 0.75), mode("hybrid", 0.5), mode("rrf", 0.5)];
        assert_eq!(above_hybrid(&modes), [Above { mode: "semantic".into(), by: 0.25 }]);
        assert!(above_hybrid(&modes[..2]).is_empty());
    }
}
