//! The lines that say where an answer is from: the places that it cites, as clickable links, or else the notes that
//! were read for it.

use vault_search::{Hyperlink, Paint, Target, UserConfig, sanitize_line};

use super::turn::TurnAnswer;
use crate::conversation::{Conversation, Source};
use crate::workspace::Workspace;

/// The maximum number of read notes listed if the answer cites none.
const MOST_READ: usize = 5;

/// Returns a line per cited place, or one line with the notes that were read if the answer cites none.
pub(super) fn source_lines(answer: &TurnAnswer, conversation: &Conversation, paint: Paint) -> Vec<String> {
    if !answer.sources.is_empty() {
        return cited_lines(&answer.sources, conversation.tools().workspace(), paint);
    }
    let read = conversation.notes_of_turn();
    if answer.text.is_empty() || read.is_empty() {
        return Vec::new();
    }
    let named: Vec<String> = read.iter().take(MOST_READ).map(|path| sanitize_line(path)).collect();
    let more = read.len().saturating_sub(MOST_READ);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    vec![format!("the answer cites no note; read for it: {}{more}", named.join(", "))]
}

fn cited_lines(sources: &[Source], workspace: &Workspace, paint: Paint) -> Vec<String> {
    let hyperlink = UserConfig::load().map(|config| config.hyperlink).unwrap_or_default();
    let line = |source: &Source| {
        let place = paint.path(&sanitize_line(&source.place()));
        let unread = if source.unread { paint.dim("  (not read here)") } else { String::new() };
        format!("  {}{unread}", paint.link(&url(source, workspace, &hyperlink), &place))
    };
    [paint.dim("Sources")].into_iter().chain(sources.iter().map(line)).collect()
}

fn url(source: &Source, workspace: &Workspace, hyperlink: &Hyperlink) -> String {
    let vaults = workspace.vaults();
    let of_one = |path: &str| vaults.first().map(|open| (open.vault.path().to_owned(), path.to_owned()));
    let named = source.path.split_once('/').filter(|_| vaults.len() > 1);
    let found = match named {
        None => of_one(&source.path),
        Some((name, path)) => vaults
            .iter()
            .find(|open| open.name == name)
            .map(|open| (open.vault.path().to_owned(), path.to_owned()))
            .or_else(|| of_one(&source.path)),
    };
    let Some((vault, path)) = found else { return String::new() };
    let line = u32::try_from(source.line.unwrap_or(1)).unwrap_or(1);
    hyperlink.url(&Target { file: &vault.join(&path), vault: &vault, path: &path, line, heading: None })
}
