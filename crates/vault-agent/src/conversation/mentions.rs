//! `@Note` in a person's message: the note is attached, or the image is sent to the model.
//!
//! ```text
//! sum up @[[Garden/Compost heap]] and @Log.md, as drawn in @sketch.png
//! ```
//!
//! A name with spaces needs no brackets: of the words after the `@`, as many belong to it as name a file.

use std::collections::BTreeSet;
use std::fs;

use agent_loop::{Image, ImageSupport, UserMessage};
use vault_search::counted;
use vault_tools::SafePath;

use super::Conversation;
use super::attachments::{Attachment, with_attached};
use super::cited_notes::first_cited_note;
use super::line_numbers::numbered;
use crate::workspace::Workspace;

/// The maximum bytes of a note to attach, which is the default of `read_note`.
const LONGEST_NOTE: usize = 40_000;

/// The maximum bytes of an image, which all providers accept.
const LARGEST_IMAGE: u64 = 5_000_000;

/// The average number of characters per token in English.
const PER_TOKEN: usize = 4;

/// The maximum number of words in a name without brackets.
const MOST_WORDS: usize = 8;

/// The types of images that the providers accept, by file extension.
const IMAGES: [(&str, &str); 5] =
    [("png", "image/png"), ("jpg", "image/jpeg"), ("jpeg", "image/jpeg"), ("webp", "image/webp"), ("gif", "image/gif")];

/// A message with its attachments, and the notices for the person.
pub(crate) struct ComposedMessage {
    pub message: UserMessage,
    pub notices: Vec<String>,
}

/// Attaches the notes and images that a message mentions, after the other attachments. Mentions of missing or denied
/// notes are reported. The words of the message do not change.
pub(crate) fn attach(said: &str, mut attached: Vec<Attachment>, conversation: &Conversation) -> ComposedMessage {
    let workspace = conversation.tools().workspace();
    let sees_images = conversation.model().model.image_support() == ImageSupport::Native;
    let (mut images, mut notices, mut known) = (Vec::new(), Vec::new(), BTreeSet::new());
    for Mention { names, is_certain } in mentions(said) {
        let [.., shortest] = names.as_slice() else { continue };
        let note = first_cited_note(workspace, &names);
        let image = match note {
            Some(_) => None,
            None => names.iter().find_map(|name| Some((*name, image_of(workspace, name)?))),
        };
        let name = note.as_ref().map(|note| &*note.path).or(image.as_ref().map(|(name, _)| *name)).unwrap_or(shortest);
        if !known.insert(name.to_owned()) {
            continue;
        }
        if let Some(note) = note {
            let end = note.text.floor_char_boundary(LONGEST_NOTE);
            let rest = if end < note.text.len() { ", its beginning: read_note reads the rest" } else { "" };
            let tokens = counted(note.text[..end].chars().count().div_ceil(PER_TOKEN), "token");
            notices.push(format!("attached {}, about {tokens}{rest}", note.path));
            let text = Some(numbered(&note.text[..end], 1));
            attached.push(Attachment { path: Some(note.path), text, ..Attachment::default() });
        } else if let Some((name, (image, about))) = image {
            match sees_images {
                true => notices.push(about),
                false => notices.push(format!("the model only reads text, so it is not shown {name}")),
            }
            images.extend(image.filter(|_| sees_images));
        } else if is_certain {
            notices.push(format!("there is no note {name}, so nothing is attached"));
        }
    }
    let message = UserMessage::from(with_attached(said, &attached));
    ComposedMessage { message: images.into_iter().fold(message, UserMessage::image), notices }
}

/// Returns an image of a vault and a notice about it, or `None` if the name is not that of an image.
fn image_of(workspace: &Workspace, name: &str) -> Option<(Option<Image>, String)> {
    let ending = name.rsplit_once('.')?.1.to_ascii_lowercase();
    let (_, media_type) = IMAGES.iter().find(|(known, _)| *known == ending)?;
    let file = workspace.vaults().iter().find_map(|open| {
        let below = match workspace.vaults().len() {
            1 => name,
            _ => name.strip_prefix(&open.name)?.strip_prefix('/')?,
        };
        let path = SafePath::new(below).ok()?;
        let real = open.vault.sandbox().real(&path).ok()?;
        let policy = open.policy();
        let is_permitted = policy.permits_path(path.as_str()) && policy.permits_path(real.as_str());
        is_permitted.then(|| open.vault.path().join(real.as_str())).filter(|file| file.is_file())
    })?;
    let size = fs::metadata(&file).ok()?.len();
    if size > LARGEST_IMAGE {
        let most = LARGEST_IMAGE / 1_000_000;
        return Some((None, format!("{name} has more than {most} MB, so the model is not shown it")));
    }
    let bytes = fs::read(&file).ok()?;
    Some((Some(Image::new(*media_type, bytes)), format!("the model is shown {name}, {} kB", size.div_ceil(1000))))
}

struct Mention<'m> {
    /// What the name can be, the longest first.
    names: Vec<&'m str>,
    /// Whether it can only be a mention, because it is in brackets or looks like a path.
    is_certain: bool,
}

/// Returns the mentions in the order of the message.
fn mentions(said: &str) -> Vec<Mention<'_>> {
    let mut found: Vec<Mention<'_>> = Vec::new();
    for (at, _) in said.match_indices('@') {
        let is_word =
            said[..at].chars().next_back().is_none_or(|before| before.is_whitespace() || "([\"'".contains(before));
        let rest = &said[at + 1..];
        let mention = match rest.strip_prefix("[[") {
            Some(link) => link.split_once("]]").map(|(name, _)| Mention { names: vec![name], is_certain: true }),
            None => {
                let names = names(rest);
                let is_path = |name: &&str| name.contains('/') || name.ends_with(".md");
                names
                    .last()
                    .is_some_and(|name| !name.is_empty())
                    .then(|| Mention { is_certain: names.last().is_some_and(is_path), names })
            }
        };
        found.extend(mention.filter(|_| is_word));
    }
    found
}

/// Returns the first words of a line, each time one fewer, without the signs of the sentence after them.
fn names(rest: &str) -> Vec<&str> {
    let line = rest.lines().next().unwrap_or_default();
    let ends = line.char_indices().filter(|(_, c)| c.is_whitespace()).map(|(at, _)| at).chain([line.len()]);
    let mut names: Vec<&str> = Vec::new();
    for end in ends {
        let name = line[..end].trim_end_matches(|sign: char| sign.is_whitespace() || ".,;:!?)]\"'".contains(sign));
        if names.is_empty() || names.last().is_some_and(|last| *last != name) {
            names.push(name);
        }
        if names.len() == MOST_WORDS {
            break;
        }
    }
    names.reverse();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mentioned() {
        let names = |said: &str| {
            let shortest = |mention: &Mention<'_>| mention.names.last().unwrap().to_string();
            mentions(said).iter().map(shortest).collect::<Vec<_>>()
        };
        assert_eq!(names("sum up @[[Compost heap]] and (@Log.md), then @a/b."), ["Compost heap", "Log.md", "a/b"]);
        assert_eq!(names("me@example.org, @ alone, @[[open"), Vec::<String>::new());
        let mention = &mentions("see @Compost heap, \"now\"\nand more")[0];
        assert_eq!(mention.names, ["Compost heap, \"now", "Compost heap", "Compost"]);
    }
}
