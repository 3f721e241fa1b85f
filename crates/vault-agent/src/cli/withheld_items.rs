//! The choice of the items of a result that are withheld from the model.

use vault_search::tools::{ReadLine, tick};
use vault_search::{Paint, cut_to};

use crate::call_line::{item_line, shared_items};

/// The columns before an item in the checkbox list, `  [x] 12 `, without the digits of its number.
const TICK_COLUMNS: usize = 7;

/// Lets a person untick items of a result; `read_line` reads what is typed. Returns the unticked ones, and how many were
/// offered.
pub(super) fn withheld(question: &str, items: &[String], read_line: &mut ReadLine<'_>) -> (Vec<usize>, usize) {
    let offered = shared_items(items);
    // Cut the lines to the width that the checkboxes leave.
    let width = Paint::stderr().width().unwrap_or(80);
    let columns = width.saturating_sub(TICK_COLUMNS + offered.len().to_string().len());
    let lines: Vec<String> = offered.iter().map(|at| cut_to(&item_line(&items[*at]), columns)).collect();
    let ticked = tick(question, &lines, |number| items[offered[number]].clone(), read_line);
    let unticked = offered.iter().zip(ticked).filter(|(_, is_ticked)| !is_ticked).map(|(at, _)| *at);
    (unticked.collect(), offered.len())
}
