//! `vault-index list`: all indexes of this user, and which of them can be deleted.

use std::io;

use vault_index::{FolderState, Index, ListedIndex};

use crate::{CliResult, ListArgs, Out, bytes, counted, sanitize_line};

use super::status::local_time;

pub(super) fn run(args: &ListArgs, out: &mut Out) -> CliResult {
    if args.schema {
        return out.list_schema::<ListedIndex>(args);
    }
    let indexes = Index::list()?;
    out.list(args.format(), &indexes, |out, indexes| {
        indexes.iter().try_for_each(|index| show(index, out))?;
        let sum = indexes.iter().map(|index| index.index_bytes).sum();
        let count = if indexes.len() == 1 { "1 index".to_string() } else { format!("{} indexes", indexes.len()) };
        out.line(&format!("{count}, {}", bytes(sum)))
    })
}

fn show(index: &ListedIndex, out: &mut Out) -> io::Result<()> {
    let paint = out.paint;
    let name = index.vault.as_ref().unwrap_or(&index.index);
    out.line(&paint.bold(&sanitize_line(&name.to_string_lossy())))?;
    let mut facts = Vec::new();
    facts.extend(index.notes.map(|notes| counted(notes, "note")));
    facts.push(bytes(index.index_bytes));
    facts.extend(index.model.clone());
    let last = index.last_sync.map_or_else(|| "never".to_string(), local_time);
    facts.push(format!("last sync {last}"));
    out.line(&format!("  {}", paint.dim(&sanitize_line(&facts.join(", ")))))?;
    if let Some(problem) = &index.problem {
        out.line(&format!("  {}", paint.bad(&sanitize_line(problem))))?;
    }
    let advice = match (&index.vault, index.state) {
        (Some(vault), FolderState::Gone) => {
            format!(
                "this folder no longer exists: if it has moved, run vault-index adopt \"{0}\" in the new folder, else \
                 vault-index forget --vault \"{0}\"",
                vault.display()
            )
        }
        (Some(_), FolderState::Unknown) => "the folder cannot be accessed now".to_string(),
        _ => return Ok(()),
    };
    out.line(&format!("  {}", paint.bad(&sanitize_line(&advice))))
}
