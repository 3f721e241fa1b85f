//! Retrieval: a collection's questions, each document a note, ranked by its best passage.

use std::collections::HashMap;
use std::path::Path;

use serde::Serialize;
use vault_index::{Grouping, Mode, VaultPath};

use super::as_notes::{NewNote, note_text, path_of, write_notes};
use super::{Collection, Indexed, Means, Plan, QueryRow, Result, Scores, reciprocal_rank_fusion};
use crate::median::median;

/// How long a ranking is that is judged.
const DEPTH: usize = 1000;
/// How long a list is that a person waits for.
const SHOWN: usize = 10;
/// Where recall is measured.
const RECALL_AT: usize = 100;
/// What the fusion of the two lists is called.
const RRF: &str = "rrf";

/// What came of a collection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RetrievalReport {
    /// Its name.
    pub collection: String,
    /// The model.
    pub model: String,
    /// Documents, each a note.
    pub documents: usize,
    /// Passages they were cut into.
    pub passages: usize,
    /// Queries that were asked.
    pub queries: usize,
    /// Queries that were left out, since nobody judged them or nothing is relevant.
    pub unjudged: usize,
    /// Documents a second, from files to vectors; absent when the index was there already.
    pub documents_a_second: Option<f64>,
    /// Each mode; last the reciprocal rank fusion of the lexical and the semantic list, where both were asked for.
    pub modes: Vec<RetrievalMode>,
    /// What the hybrid mode is worse than, by nDCG@10. It should be empty.
    pub above_hybrid: Vec<Above>,
}

/// What came of one mode.
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
    /// Milliseconds for ten results, the median; absent for the fusion.
    pub ms: Option<f64>,
}

/// Something that ranks better than the hybrid mode.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Above {
    /// What it is.
    pub mode: String,
    /// By how much, in nDCG@10.
    pub by: f64,
}

/// Writes the collection's notes below `folder`, indexes them there, and asks all queries in all modes.
///
/// The folder can be kept: the next run then embeds nothing. It takes about as long as indexing, and some
/// milliseconds a query and mode.
///
/// # Errors
/// When notes cannot be written, indexed or searched.
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

/// What one mode answers, query by query.
#[derive(Default)]
struct Lists {
    /// Documents by number, best first.
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
