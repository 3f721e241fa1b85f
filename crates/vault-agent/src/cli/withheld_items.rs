//! Which items of a result a person keeps from the model.

use vault_search::tools::tick;
use vault_search::{Paint, cut_to};

use crate::call_line::{item_line, shared_items};

/// Columns before an item in the list of those to tick, `  [x] 12 `, but for those of its number.
const TICK_COLUMNS: usize = 7;

/// The items of a result that a person unticks, and how many could be.
pub(super) fn withheld(question: &str, items: &[String]) -> (Vec<usize>, usize) {
    let offered = shared_items(items);
    // As wide as what stands before it in the list leaves room for.
    let width = Paint::stderr().width().unwrap_or(80);
    let columns = width.saturating_sub(TICK_COLUMNS + offered.len().to_string().len());
    let lines: Vec<String> = offered.iter().map(|at| cut_to(&item_line(&items[*at]), columns)).collect();
    let ticked = tick(question, &lines, |number| items[offered[number]].clone());
    let unticked = offered.iter().zip(ticked).filter(|(_, is_ticked)| !is_ticked).map(|(at, _)| *at);
    (unticked.collect(), offered.len())
}
