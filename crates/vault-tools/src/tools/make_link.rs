//! Writes a link in the style of the vault: `make_link`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{locate, obsidian_settings};
use crate::error::{Error, ErrorKind, Result};
use crate::links::{LinkEncoding, LinkFormat, encode, new_path};
use crate::sandbox::SafePath;
use crate::tool::{Context, PathArg};

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// The file that the link is to lead to.
    path: PathArg,
    /// The note that the link is to stand in, which need not exist yet; default: one in the vault's root.
    from: Option<PathArg>,
    /// What a reader sees; default: the name of the file.
    text: Option<String>,
    /// Whether the file is to be shown in the note.
    #[serde(default)]
    embed: bool,
}

/// The link.
#[derive(Serialize, JsonSchema)]
pub(super) struct Link {
    /// As it stands in a note: `[[Note]]`, or `[Note](Note.md)` where the vault has Markdown links.
    link: String,
}

pub(super) fn make_link(args: Args, context: &mut Context<'_, '_>) -> Result<Link> {
    let from = args.from.as_ref().map(|from| context.path(from)).transpose()?;
    let link = link_to(&args.path, from.as_ref(), args.text.as_deref(), context)?;
    Ok(Link { link: if args.embed { format!("!{link}") } else { link } })
}

/// A link to a file, as it stands in the note `from`.
///
/// # Errors
/// No such file; one that no link can lead to.
pub(super) fn link_to(
    path: &PathArg,
    from: Option<&SafePath>,
    text: Option<&str>,
    context: &Context<'_, '_>,
) -> Result<String> {
    let (path, _) = locate::linked(path, context)?;
    let root = SafePath::new("-.md")?;
    let from = from.unwrap_or(&root);
    let settings = obsidian_settings::read(context.vault, "app.json")?;
    let is_markdown = settings["useMarkdownLinks"] == true;
    let encoding = if is_markdown { LinkEncoding::Destination } else { LinkEncoding::Wikilink };
    let format = LinkFormat::named(obsidian_settings::text(&settings, "newLinkFormat"));
    let ends = (from.vault_path(), path.vault_path());
    let target = new_path(ends, encoding, context.names()?, format).ok_or_else(|| {
        Error::new(ErrorKind::Refused, "no link can lead to a file of this name")
            .at(&path)
            .with_remedy("rename it first")
    })?;
    let name = if path.is_markdown() { path.stem() } else { path.file_name() };
    let text = text.map(str::trim).filter(|text| !text.is_empty());
    Ok(match is_markdown {
        true => format!("[{}]({})", escaped(text.unwrap_or(name)), encode(&target, encoding, "")),
        false => match text.filter(|text| *text != target) {
            Some(text) => format!("[[{target}|{}]]", plain(text)),
            None => format!("[[{target}]]"),
        },
    })
}

/// A text in which nothing ends a Markdown link.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '[' | ']' | '\\') {
            escaped.push('\\');
        }
        escaped.push(if c.is_control() { ' ' } else { c });
    }
    escaped
}

/// A text in which nothing ends a wikilink, which knows no escapes.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || matches!(c, '[' | ']' | '|') { ' ' } else { c }).collect()
}
