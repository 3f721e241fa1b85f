//! Reads and edits the open file in the editor: `editor.getSelection`, `editor.replaceSelection`,
//! `editor.insertAtCursor`, `editor.getActiveFilePath`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::edit::{LineEnding, TextEdit, apply_edits, offset_of, position_of};
use crate::error::{Error, ErrorKind, Result};
use crate::host::{Position, Span};
use crate::sandbox::{SafePath, View};
use crate::tool::{Context, PathArg};
use crate::tools::links::make_link::link_to;
use crate::tools::shared::arguments::NoArgs;
use crate::tools::shared::expected_version;

/// The selection.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct SelectedText {
    /// The selected text.
    text: String,
    /// Whether nothing is selected.
    is_empty: bool,
    /// The file that contains it, if any.
    #[schemars(extend("x-vault-path" = true))]
    file_path: Option<String>,
    /// Its position in that file.
    range: Option<Span>,
}

pub(in crate::tools) fn get_selection(_: NoArgs, context: &mut Context<'_, '_>) -> Result<SelectedText> {
    let editor = context.editor()?;
    let selection = editor.selection.clone().unwrap_or_default();
    Ok(SelectedText {
        is_empty: selection.text.is_empty(),
        text: selection.text,
        file_path: editor.active_file.as_ref().map(ToString::to_string),
        range: selection.span,
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct ReplaceArgs {
    /// The new text.
    text: Option<String>,
    /// In place of text: files to link to, each in an item of a list, as the vault writes links.
    #[serde(default)]
    links: Vec<PathArg>,
    /// The etag of the active file: if it has changed since, nothing is written.
    expected_etag: Option<String>,
}

/// The new text in the file.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct ReplacedSelection {
    /// The file.
    #[schemars(extend("x-vault-path" = true))]
    file_path: String,
    /// The position of the new text.
    range: Span,
    /// Its length in UTF-16 units.
    inserted_chars: usize,
    /// The file's new etag.
    etag: String,
}

pub(in crate::tools) fn replace_selection(
    args: ReplaceArgs,
    context: &mut Context<'_, '_>,
) -> Result<ReplacedSelection> {
    let text = match (args.text, &args.links[..]) {
        (Some(text), []) => text,
        (None, links) if !links.is_empty() => list_of_links(links, context)?,
        _ => {
            return Err(Error::new(ErrorKind::InvalidArguments, "either text or links is wanted")
                .with_remedy("give one of them"));
        }
    };
    let editor = context.editor()?;
    let (span, selected) = match (editor.selection.clone(), editor.cursor) {
        (Some(selection), _) => match selection.span {
            Some(span) => (span, selection.text),
            None => {
                let message = "the selection is not from a file, so it cannot be replaced";
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
        },
        (None, Some(cursor)) => (Span { from: cursor, to: cursor }, String::new()),
        (None, None) => {
            return Err(Error::new(ErrorKind::Unsupported, "nothing is selected, and there is no cursor"));
        }
    };
    let (path, range) = type_text(span, &selected, &text, args.expected_etag.as_deref(), context)?;
    Ok(ReplacedSelection {
        etag: expected_version::of(&path, context)?,
        file_path: path.to_string(),
        range,
        inserted_chars: text.encode_utf16().count(),
    })
}

/// Formats links as a list, with the same markers as the selected list.
fn list_of_links(paths: &[PathArg], context: &mut Context<'_, '_>) -> Result<String> {
    let editor = context.editor()?;
    let from = editor.active_file.clone();
    let selected = editor.selection.as_ref().map_or("", |selection| &selection.text);
    let first = selected.trim_start_matches(['\r', '\n']);
    let indent = &first[..first.len() - first.trim_start_matches([' ', '\t']).len()];
    let mark = first.trim_start().chars().next().filter(|c| matches!(c, '*' | '+')).unwrap_or('-');
    let start = format!("{indent}{mark} ");
    let links: Result<Vec<String>> =
        paths.iter().map(|path| Ok(format!("{start}{}", link_to(path, from.as_ref(), None, None, context)?))).collect();
    Ok(links?.join("\n"))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct InsertArgs {
    /// The text.
    text: String,
    /// The etag of the active file: if it has changed since, nothing is written.
    expected_etag: Option<String>,
}

/// The inserted text.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct InsertedText {
    /// The file.
    #[schemars(extend("x-vault-path" = true))]
    file_path: String,
    /// The cursor, after the text.
    cursor_after: Position,
    /// The text's length in UTF-16 units.
    inserted_chars: usize,
    /// The file's new etag.
    etag: String,
}

pub(in crate::tools) fn insert_at_cursor(args: InsertArgs, context: &mut Context<'_, '_>) -> Result<InsertedText> {
    let editor = context.editor()?;
    let behind = editor.selection.as_ref().and_then(|selection| selection.span).map(|span| span.to);
    let Some(cursor) = editor.cursor.or(behind) else {
        return Err(Error::new(ErrorKind::Unsupported, "the editor has no cursor"));
    };
    let span = Span { from: cursor, to: cursor };
    let (path, range) = type_text(span, "", &args.text, args.expected_etag.as_deref(), context)?;
    Ok(InsertedText {
        etag: expected_version::of(&path, context)?,
        file_path: path.to_string(),
        cursor_after: range.to,
        inserted_chars: args.text.encode_utf16().count(),
    })
}

/// The active file.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct ActiveFile {
    /// Its path; null if no file is active.
    #[schemars(extend("x-vault-path" = true))]
    path: Option<String>,
    /// Whether it exists.
    exists: bool,
}

pub(in crate::tools) fn get_active_file_path(_: NoArgs, context: &mut Context<'_, '_>) -> Result<ActiveFile> {
    let path = context.editor()?.active_file.clone();
    let exists = path.as_ref().map_or(Ok(false), |path| context.overlay.exists(path))?;
    Ok(ActiveFile { path: path.map(|path| path.to_string()), exists })
}

/// Replaces `span` of the active file, which must contain `expected`, and moves the cursor after the new text. Returns
/// the file and the position of the new text.
///
/// # Errors
/// No active file; a span outside the file; a file that has changed since the text was selected.
fn type_text(
    span: Span,
    expected: &str,
    text: &str,
    etag: Option<&str>,
    context: &mut Context<'_, '_>,
) -> Result<(SafePath, Span)> {
    let Some(active) = context.editor()?.active_file.clone() else {
        return Err(Error::new(ErrorKind::Unsupported, "no file is active"));
    };
    let path = context.path(&PathArg(active.to_string()))?;
    expected_version::require(etag, &path, context)?;
    let before = context.overlay.text(&path)?;
    let (from, to) = (offset_of(&before, span.from)?, offset_of(&before, span.to)?);
    if from > to || LineEnding::Lf.put(&before[from..to]) != LineEnding::Lf.put(expected) {
        return Err(Error::conflict(&path, "the selected text has changed since it was selected"));
    }
    // The new lines get the file's line endings.
    let typed = if before.contains('\n') { LineEnding::of(&before).put(text) } else { text.to_string() };
    let end = from + typed.len();
    let after = apply_edits(&before, &[TextEdit { span: from..to, text: typed }])?;
    let range = Span { from: position_of(&after, from), to: position_of(&after, end) };
    context.overlay.write(&path, after)?;
    let editor = context.editor()?;
    editor.selection = None;
    editor.cursor = Some(range.to);
    Ok((path, range))
}
