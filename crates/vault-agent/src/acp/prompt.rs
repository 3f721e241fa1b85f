//! A prompt of the editor: the person's message, the attachments, and the state of the editor (the open note, the
//! selection), which is the context of the tools `editor.*`.
//!
//! Notes that the settings deny are passed on neither to the model nor to a tool.

use std::path::{Path, PathBuf};

use agent_loop::Image;
use percent_encoding::percent_decode_str;
use vault_tools::edit::position_of;
use vault_tools::{Editor, Leaf, Position, SafePath, Selection, Span, View};

use super::display::below;
use super::wire::{ContentBlock, EmbeddedResourceResource, Error, ErrorCode, TextContent, error, is_for_model};
use crate::conversation::Attachment;
use crate::workspace::{OpenVault, Workspace};

/// The maximum bytes of a path that is searched for in the URI of an unknown scheme.
const LONGEST_PATH: usize = 1024;

/// A parsed prompt.
#[derive(Debug, Default)]
pub(super) struct Prompt {
    /// The person's message.
    pub said: String,
    pub attached: Vec<Attachment>,
    pub images: Vec<Image>,
    /// The state of the editor, in the first vault; `None` if the prompt does not mention it.
    pub editor: Option<Editor>,
    /// Notices for the person.
    pub notices: Vec<String>,
}

/// A file of a vault.
struct VaultFile<'w> {
    vault: usize,
    open: &'w OpenVault,
    path: SafePath,
    /// The path as tools name it.
    name: String,
}

/// Parses a prompt.
///
/// # Errors
/// Invalid params for content that the agent did not declare support for, such as audio.
pub(super) fn read(blocks: Vec<ContentBlock>, workspace: &Workspace) -> Result<Prompt, Error> {
    let mut prompt = Prompt::default();
    let last_text = blocks.iter().rposition(|block| matches!(block, ContentBlock::Text(text) if !is_for_model(text)));
    // The cursor is taken from the most specific block: a selection ranks above a note with text, and that above a
    // mention.
    let mut best = 0;
    for (at, block) in blocks.into_iter().enumerate() {
        let (uri, text) = match block {
            ContentBlock::Text(text) if is_for_model(&text) => {
                let TextContent { text, .. } = text;
                prompt.attached.push(Attachment {
                    source: Some("the editor".to_owned()),
                    text: Some(text),
                    ..Attachment::default()
                });
                continue;
            }
            ContentBlock::Text(text) => {
                prompt.said.push_str(&text.text);
                continue;
            }
            ContentBlock::ResourceLink(link) => (link.uri, None),
            ContentBlock::Resource(resource) => match resource.resource {
                EmbeddedResourceResource::TextResourceContents(contents) => (contents.uri, Some(contents.text)),
                _ => return Err(not_taken("embedded bytes")),
            },
            ContentBlock::Image(image) => {
                let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
                if image.data.is_empty() || !image.data.bytes().all(is_base64) {
                    return Err(error(ErrorCode::InvalidParams, "the data of an image is not in Base64"));
                }
                prompt.images.push(Image::Inline { media_type: image.mime_type, base64: image.data });
                continue;
            }
            ContentBlock::Audio(_) => return Err(not_taken("audio")),
            _ => return Err(not_taken("blocks of this type")),
        };
        let (file, lines) = file_of(&uri);
        let Some(found) = file.as_deref().and_then(|file| find(file, workspace)) else {
            let is_of = |open: &OpenVault| file.as_deref().is_some_and(|file| below(open.vault.path(), file).is_some());
            if workspace.vaults().iter().any(is_of) {
                // No tool can name it, so the settings cannot be checked for it.
                prompt.notices.push(format!("{uri} has a name that no tool accepts; it was not passed on"));
                continue;
            }
            if names_denied(&uri, workspace) {
                prompt.notices.push(format!("{uri} is denied by your settings; it was not passed on"));
                continue;
            }
            prompt.attached.push(Attachment { source: Some(uri), text, ..Attachment::default() });
            continue;
        };
        if !permits(found.open, &found.path) {
            prompt.notices.push(format!("{} is denied by your settings; it was not passed on", found.name));
            continue;
        }
        if !prompt.said.is_empty() && last_text.is_some_and(|last| at < last) {
            // A mention in the middle of a sentence.
            prompt.said.push_str(&found.name);
        }
        let selection = text.as_deref().and_then(|text| selection(&found, text, lines));
        let rank = 1 + usize::from(text.is_some()) + usize::from(selection.is_some());
        let span = selection.as_ref().and_then(|selection| selection.span);
        let lines = span.map(|span| (span.from.line + 1, span.to.line + 1)).or(lines);
        prompt.attached.push(Attachment {
            path: Some(found.name),
            lines: lines.map(|(from, to)| format!("{from}-{to}")),
            text,
            source: None,
        });
        if found.vault == 0 && found.path.is_note() {
            let editor = prompt.editor.get_or_insert_default();
            if rank > best {
                best = rank;
                editor.show(&found.path, Leaf::New);
                editor.cursor = span.map(|span| span.to);
                editor.selection = selection;
            } else if !editor.open.contains(&found.path) {
                editor.open.push(found.path);
            }
        }
    }
    if prompt.said.trim().is_empty()
        && prompt.images.is_empty()
        && prompt.attached.is_empty()
        && prompt.notices.is_empty()
    {
        return Err(error(ErrorCode::InvalidParams, "the prompt is empty"));
    }
    Ok(prompt)
}

fn not_taken(what: &str) -> Error {
    error(ErrorCode::InvalidParams, format!("the prompt has {what}, which this agent does not support; send text"))
}

/// Parses a URI such as `file:///folder/Note.md#L3:9` into a file and its lines from 1, if it names them.
fn file_of(uri: &str) -> (Option<PathBuf>, Option<(u32, u32)>) {
    let (scheme, rest) = uri.split_once(':').unwrap_or_default();
    if !scheme.eq_ignore_ascii_case("file") {
        return (uri.starts_with('/').then(|| uri.into()), None);
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let rest = rest.split_once('?').map_or(rest, |(rest, _)| rest);
    // `//` is followed by a host, which is usually empty.
    let rest = rest.strip_prefix("//").map_or(rest, |rest| rest.find('/').map_or("", |path| &rest[path..]));
    let Ok(path) = percent_decode_str(rest).decode_utf8() else { return (None, None) };
    let is_windows = matches!(path.as_bytes(), [b'/', drive, b':', ..] if drive.is_ascii_alphabetic());
    let path = if is_windows { &path[1..] } else { &path };
    (Some(path.into()), lines_of(fragment))
}

/// Parses `L3:9`, `L3-9`, `L3-L9` or `L3`.
fn lines_of(fragment: &str) -> Option<(u32, u32)> {
    let range = fragment.strip_prefix('L')?;
    let (from, to) = range.split_once([':', '-']).unwrap_or((range, range));
    let (from, to) = (from.parse().ok()?, to.strip_prefix('L').unwrap_or(to).parse().ok()?);
    (0 < from && from <= to).then_some((from, to))
}

fn find<'w>(file: &Path, workspace: &'w Workspace) -> Option<VaultFile<'w>> {
    let vaults = workspace.vaults();
    vaults.iter().enumerate().find_map(|(vault, open)| {
        let path = below(open.vault.path(), file)?;
        let name = if vaults.len() > 1 { format!("{}/{path}", open.name) } else { path.clone() };
        Some(VaultFile { vault, open, path: SafePath::new(&path).ok()?, name })
    })
}

/// Whether the settings permit reading a file.
fn permits(open: &OpenVault, path: &SafePath) -> bool {
    let real = open.vault.sandbox().real(path).unwrap_or_else(|_| path.clone());
    let policy = open.policy();
    policy.permits_path(path.as_str()) && policy.permits_path(real.as_str())
}

/// Whether a URI of another scheme, for example `vault://VAULT/PATH` or `zed://…?path=PATH`, names an existing note
/// that the settings deny.
fn names_denied(uri: &str, workspace: &Workspace) -> bool {
    let is_denied = |path: &str| {
        let Ok(path) = SafePath::new(path) else { return false };
        let of = |open: &OpenVault| open.vault.sandbox().exists(&path).unwrap_or(true) && !permits(open, &path);
        workspace.vaults().iter().any(of)
    };
    // Each of these characters can end the path, or be a part of it if it was encoded, so every possible path is
    // checked.
    let uri = percent_decode_str(uri).decode_utf8_lossy();
    let starts = std::iter::once(0).chain(uri.match_indices(['/', '=', ':']).map(|(at, _)| at + 1));
    let mut paths = starts.flat_map(|start| {
        let rest = &uri[start..];
        let ends = rest.match_indices(['#', '?', '&']).map(|(at, _)| at).chain([rest.len()]);
        ends.take_while(|end| *end <= LONGEST_PATH).map(move |end| &rest[..end])
    });
    paths.any(|path| ["", ".md", ".markdown"].into_iter().any(|end| is_denied(&format!("{path}{end}"))))
}

/// Returns the selection if the text that the editor sent is a part of the note: in the given lines, or else where it
/// occurs exactly once. Without a match, the position of the selection is unknown.
fn selection(found: &VaultFile<'_>, sent: &str, lines: Option<(u32, u32)>) -> Option<Selection> {
    let note = found.open.vault.sandbox().text(&found.path).ok();
    let note = note.as_deref().unwrap_or_default();
    let part = sent.trim_end_matches(['\n', '\r']);
    if part.trim().is_empty() || note.trim() == part.trim() {
        return None;
    }
    let span = match lines {
        Some(lines) => span_of_lines(note, lines).filter(|(_, text)| *text == part).map(|(span, _)| span),
        None => {
            let mut found = note.match_indices(part);
            let (start, _) = found.next()?;
            if found.next().is_some() {
                return None;
            }
            Some(Span { from: position_of(note, start), to: position_of(note, start + part.len()) })
        }
    };
    Some(Selection { text: part.to_owned(), span })
}

/// Returns the range of whole lines, and their text without the last line ending.
fn span_of_lines(note: &str, (from, to): (u32, u32)) -> Option<(Span, &str)> {
    let mut starts = std::iter::once(0).chain(note.match_indices('\n').map(|(at, _)| at + 1));
    let start = starts.nth(from as usize - 1)?;
    let last = if to > from { starts.nth((to - from - 1) as usize)? } else { start };
    let end = note[last..].find('\n').map_or(note.len(), |end| last + end);
    let text = note[start..end].trim_end_matches('\r');
    let span = Span { from: Position { line: from - 1, ch: 0 }, to: position_of(note, start + text.len()) };
    Some((span, text))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_name_files_and_lines() {
        for (uri, path, lines) in [
            ("file:///n/A%20b.md", Some("/n/A b.md"), None),
            ("file:///n/a.md#L3:9", Some("/n/a.md"), Some((3, 9))),
            ("file:///n/a.md#L3-L9", Some("/n/a.md"), Some((3, 9))),
            ("file:///n/a.md?symbol=x#L4", Some("/n/a.md"), Some((4, 4))),
            ("file://localhost/n/a.md#top", Some("/n/a.md"), None),
            ("FILE://127.0.0.1/n/a.md", Some("/n/a.md"), None),
            ("file:/n/a.md#L3", Some("/n/a.md"), Some((3, 3))),
            ("file:///C:/n/a.md", Some("C:/n/a.md"), None),
            ("/n/a%20.md#L3", Some("/n/a%20.md#L3"), None),
            ("https://host/n/a.md", None, None),
            ("file:///n/%ff.md", None, None),
            ("file:///a.md#L9:3", Some("/a.md"), None),
            ("file:///a.md#L0", Some("/a.md"), None),
        ] {
            assert_eq!(file_of(uri), (path.map(PathBuf::from), lines), "{uri}");
        }
    }

    #[test]
    fn lines_have_a_range_without_their_last_end() {
        let note = "one\ntwo\r\nthree";
        let at = |line, ch| Position { line, ch };
        let of = |from, to| span_of_lines(note, (from, to));
        assert_eq!(of(1, 1), Some((Span { from: at(0, 0), to: at(0, 3) }, "one")));
        assert_eq!(of(1, 2), Some((Span { from: at(0, 0), to: at(1, 3) }, "one\ntwo")));
        assert_eq!(of(3, 3), Some((Span { from: at(2, 0), to: at(2, 5) }, "three")));
        assert_eq!((of(4, 4), of(2, 4)), (None, None));
    }

    proptest! {
        #[test]
        fn no_address_breaks_the_reader(uri in "(file://)?[/a-zA-Z0-9%#?:L.-]{0,40}") {
            let _ = file_of(&uri);
        }

        #[test]
        fn a_range_of_lines_is_within_the_note(note in "[a\r\né]{0,30}", from in 1_u32..8, more in 0_u32..8) {
            if let Some((_, text)) = span_of_lines(&note, (from, from + more)) {
                prop_assert!(note.contains(text));
            }
        }
    }
}
