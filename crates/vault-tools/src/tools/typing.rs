//! Text typed into the active file: the file changes, the cursor moves behind it, the selection is gone.

use crate::edit::{LineEnding, TextEdit, apply_edits, offset_of, position_of};
use crate::error::{Error, ErrorKind, Result};
use crate::host::Span;
use crate::sandbox::{SafePath, View};
use crate::tool::{Context, PathArg};

/// What was typed, and where it stands now.
pub(super) struct Typed {
    pub path: SafePath,
    pub span: Span,
    /// The length of the text that was given, in UTF-16 units.
    pub units: usize,
}

/// Puts `text` in place of `span`, in which `expected` must stand.
///
/// # Errors
/// No active file; a span that is not in the file; a file that has changed since the text was selected.
pub(super) fn replace(span: Span, expected: &str, text: &str, context: &mut Context<'_, '_>) -> Result<Typed> {
    let Some(active) = context.editor.active_file.clone() else {
        return Err(Error::new(ErrorKind::Unsupported, "no file is active").remedy("give --active-file NOTE"));
    };
    let path = context.path(&PathArg(active.to_string()))?;
    let before = context.overlay.text(&path)?;
    let (from, to) = (offset_of(&before, span.from)?, offset_of(&before, span.to)?);
    if from > to || LineEnding::Lf.put(&before[from..to]) != LineEnding::Lf.put(expected) {
        return Err(Error::conflict(&path, "the selected text no longer stands where it was selected"));
    }
    // What is typed ends its lines as the file does.
    let typed = if before.contains('\n') { LineEnding::of(&before).put(text) } else { text.to_string() };
    let end = from + typed.len();
    let after = apply_edits(&before, &[TextEdit { span: from..to, text: typed }])?;
    let typed = Span { from: position_of(&after, from), to: position_of(&after, end) };
    context.overlay.write(&path, after)?;
    context.editor.selection = None;
    context.editor.cursor = Some(typed.to);
    Ok(Typed { path, span: typed, units: text.encode_utf16().count() })
}
