//! Writes a link in the style of the vault: `make_link`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::links::{LinkEncoding, LinkFormat, encode, new_path, plain_subpath};
use crate::sandbox::{SafePath, View};
use crate::tool::{Context, PathArg};
use crate::tools::obsidian::settings;
use crate::tools::shared::locate;

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct Args {
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
pub(in crate::tools) struct Link {
    /// As it stands in a note: `[[Note]]`, or `[Note](Note.md)` where the vault has Markdown links.
    link: String,
}

pub(in crate::tools) fn make_link(args: Args, context: &mut Context<'_, '_>) -> Result<Link> {
    let from = args.from.as_ref().map(|from| context.path(from)).transpose()?;
    let link = link_to(&args.path, from.as_ref(), None, args.text.as_deref(), context)?;
    Ok(Link { link: if args.embed { format!("!{link}") } else { link } })
}

/// Returns a link to a file, or to a heading or `^block` of it, as it is written in the note `from`: in the style of
/// the vault's settings, or, without such settings, in the style of the other links in the note.
///
/// # Errors
/// No such file; a file that no link can lead to.
pub(in crate::tools) fn link_to(
    path: &PathArg,
    from: Option<&SafePath>,
    subpath: Option<&str>,
    text: Option<&str>,
    context: &Context<'_, '_>,
) -> Result<String> {
    let (path, _) = locate::linked(path, context)?;
    let root = SafePath::new("-.md")?;
    let from = from.unwrap_or(&root);
    let settings = settings::read(context.vault, "app.json")?;
    let is_plain = context.vault.sandbox().parse_options().relative_destinations;
    let is_markdown = settings["useMarkdownLinks"] == true || is_plain && has_markdown_links(from, context);
    let encoding = if is_markdown { LinkEncoding::Destination } else { LinkEncoding::Wikilink };
    let format = match is_plain && is_markdown {
        true => LinkFormat::Relative,
        false => LinkFormat::named(settings::text(&settings, "newLinkFormat")),
    };
    let ends = (from.vault_path(), path.vault_path());
    let target = new_path(ends, encoding, context.names()?, format).ok_or_else(|| {
        Error::new(ErrorKind::Refused, "no link can lead to a file of this name")
            .at(&path)
            .with_remedy("rename it first")
    })?;
    let name = if path.is_markdown() { path.stem() } else { path.file_name() };
    let text = text.map(str::trim).filter(|text| !text.is_empty());
    let hash = |subpath: String| format!("#{subpath}");
    if is_markdown {
        let subpath = subpath.map(|subpath| hash(encode(subpath, encoding, ""))).unwrap_or_default();
        let target = target.strip_prefix("./").filter(|_| is_plain).unwrap_or(&target);
        return Ok(format!("[{}]({}{subpath})", escaped(text.unwrap_or(name)), encode(target, encoding, "")));
    }
    let target = format!("{target}{}", subpath.map(plain_subpath).map(hash).unwrap_or_default());
    Ok(match text.filter(|text| *text != target) {
        Some(text) => format!("[[{target}|{}]]", plain(text)),
        None => format!("[[{target}]]"),
    })
}

/// Returns whether a note exists and has Markdown links to files and no wikilinks.
fn has_markdown_links(note: &SafePath, context: &Context<'_, '_>) -> bool {
    let content = context.overlay.read(note).ok();
    let links = content.map(|content| locate::parsed(note, &content).links).unwrap_or_default();
    links.iter().any(|link| link.raw.contains("](")) && !links.iter().any(|link| link.raw.contains("[["))
}

/// Escapes a text so that nothing in it ends a Markdown link.
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

/// Replaces the characters that would end a wikilink, which has no escapes.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || matches!(c, '[' | ']' | '|') { ' ' } else { c }).collect()
}
