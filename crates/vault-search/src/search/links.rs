//! `vault-index links`, `backlinks`, `unresolved`, `orphans`, `deadends`, `tags` and `resolve`.

use std::cell::RefCell;
use std::io;

use schemars::JsonSchema;
use serde::Serialize;
use vault_index::links::Rule;
use vault_index::{Error, ErrorKind, Index, LinkRow, Result, VaultPath};

use crate::{CliResult, Format, Out, Outcome, Paint, counted, note, sanitize_line};

use super::index_args::{AskArgs, BacklinksArgs, LinksArgs, MentionsArgs, ResolveArgs, UnresolvedArgs};
use super::open::{self, SyncPolicy, Wait};
use super::records::{PathRecord, ResolvedRecord};
use super::settings::{IndexSettings, IndexedVaultArgs};
use crate::hyperlink::{Hyperlink, Target};

/// Opens the index of the vault, and brings text and links up to date unless `--no-sync` was given.
pub(super) fn open_index(vault_args: &IndexedVaultArgs, no_sync: bool) -> CliResult<Index> {
    Ok(open_with_links(vault_args, no_sync)?.index)
}

/// An index, and the setting for links of printed paths.
struct IndexWithLinks {
    index: Index,
    hyperlink: Hyperlink,
    /// Whether rows are printed while the index is being read, so that it cannot be queried for file names on disk.
    is_reading: bool,
}

fn open_with_links(vault_args: &IndexedVaultArgs, no_sync: bool) -> CliResult<IndexWithLinks> {
    let settings = IndexSettings::load(vault_args)?;
    let policy = if no_sync { SyncPolicy::Skip } else { SyncPolicy::Text(Wait::ForText) };
    let (index, why) = open::up_to_date(&settings, settings.only_vault()?, policy)?;
    if let Some(why) = why {
        note(&why);
    }
    Ok(IndexWithLinks { index, hyperlink: settings.config.hyperlink.clone(), is_reading: false })
}

impl IndexWithLinks {
    /// Makes `shown` a link that opens a file, if the terminal supports links.
    fn link(&self, path: &str, line: Option<u32>, shown: &str, paint: Paint) -> String {
        if !paint.has_links() {
            return shown.to_string();
        }
        let known = VaultPath::new(path).filter(|_| !self.is_reading).and_then(|path| self.index.file_of(&path).ok());
        let file = known.unwrap_or_else(|| self.index.vault().join(path));
        let (vault, line) = (self.index.vault(), line.unwrap_or(1));
        paint.link(&self.hyperlink.url(&Target { file: &file, vault, path, line, heading: None }), shown)
    }
}

/// Runs a command that answers with a list. `ask` queries the index; `show` prints a row for people.
fn list<T: Serialize + JsonSchema>(
    vault_args: &IndexedVaultArgs,
    args: &AskArgs,
    out: &mut Out,
    ask: impl FnOnce(&Index) -> Result<Vec<T>>,
    show: impl Fn(&IndexWithLinks, &T, &mut Out) -> io::Result<()>,
) -> CliResult {
    if args.output.schema {
        return out.list_schema::<T>(&args.output);
    }
    let opened = open_with_links(vault_args, args.no_sync)?;
    let rows = ask(&opened.index)?;
    out.list(args.output.format(), &rows, |out, rows| rows.iter().try_for_each(|row| show(&opened, row, out)))
}

pub(super) fn links(vault_args: &IndexedVaultArgs, args: &LinksArgs, out: &mut Out) -> CliResult {
    match &args.note {
        None if !args.ask.output.schema => {
            let opened = open_with_links(vault_args, args.ask.no_sync)?;
            all_links(&IndexWithLinks { is_reading: true, ..opened }, &args.ask, out)
        }
        note => list(
            vault_args,
            &args.ask,
            out,
            |index| index.links(note.as_deref().unwrap_or_default(), args.depth),
            show_links(),
        ),
    }
}

/// Prints every link of the vault. Rows are printed as they are read, because there may be many.
fn all_links(opened: &IndexWithLinks, args: &AskArgs, out: &mut Out) -> CliResult {
    let format = args.output.format();
    let mut failure: Option<io::Error> = None;
    let mut before = "[\n";
    let mut print = |row: &LinkRow, out: &mut Out| match format {
        Format::JsonLines => out.record(row),
        Format::Human => show_link(opened, row, out),
        Format::Json => {
            out.text(std::mem::replace(&mut before, ",\n"))?;
            out.text(&serde_json::to_string(row)?)
        }
    };
    let walked = opened.index.all_links(&mut |row| {
        print(&row, out).map_err(|error| {
            failure = Some(error);
            Error::new(ErrorKind::Cancelled, "the output has ended")
        })
    });
    if let Some(failure) = failure {
        return Err(failure.into());
    }
    walked?;
    if format == Format::Json {
        out.text(if before == ",\n" { "\n]\n" } else { "[]\n" })?;
    }
    Ok(Outcome::Done)
}

pub(super) fn backlinks(vault_args: &IndexedVaultArgs, args: &BacklinksArgs, out: &mut Out) -> CliResult {
    let note = args.note.as_deref().unwrap_or_default();
    list(vault_args, &args.ask, out, |index| index.backlinks(note, args.depth), show_links())
}

pub(super) fn mentions(vault_args: &IndexedVaultArgs, args: &MentionsArgs, out: &mut Out) -> CliResult {
    let name = args.note.as_deref().unwrap_or_default();
    let ask = |index: &Index| {
        let short = |name: &String| name.chars().filter(|c| c.is_alphanumeric()).count() < 3 && name.is_ascii();
        for name in index.names_of(name)?.into_iter().filter(short) {
            note(&format!("`{name}` is short, so some of these mentions may be other words"));
        }
        index.mentions(name)
    };
    list(vault_args, &args.ask, out, ask, |opened, row, out| {
        let paint = out.paint;
        let location =
            format!("{}{}", paint.path(&sanitize_line(row.path.as_str())), paint.dim(&format!(":{}", row.line)));
        let linked = opened.link(row.path.as_str(), Some(row.line), &location, paint);
        out.line(&format!("{linked}  {}", paint.bold(&sanitize_line(&row.name))))?;
        match row.text == row.name {
            true => Ok(()),
            false => out.line(&format!("    {}", paint.dim(&sanitize_line(&row.text)))),
        }
    })
}

/// Returns a function that prints links one after the other. Links on the same line share its text, which is printed
/// under the first of them.
fn show_links() -> impl Fn(&IndexWithLinks, &LinkRow, &mut Out) -> io::Result<()> {
    let shown: RefCell<Option<(VaultPath, u32, String)>> = RefCell::new(None);
    move |opened, row, out| {
        show_link(opened, row, out)?;
        let Some(text) = row.text.as_deref().map(str::trim).filter(|text| !text.is_empty() && *text != row.raw) else {
            return Ok(());
        };
        let line = (row.source.clone(), row.line, text.to_string());
        if shown.borrow().as_ref() == Some(&line) {
            return Ok(());
        }
        let indent = indent(row);
        out.line(&format!("{indent}    {}", out.paint.dim(&sanitize_line(text))))?;
        shown.replace(Some(line));
        Ok(())
    }
}

fn indent(row: &LinkRow) -> String {
    "  ".repeat(row.depth.unwrap_or(1).saturating_sub(1))
}

/// Prints where a link is, and its target.
fn show_link(opened: &IndexWithLinks, row: &LinkRow, out: &mut Out) -> io::Result<()> {
    let paint = out.paint;
    let indent = indent(row);
    let location =
        format!("{}{}", paint.path(&sanitize_line(row.source.as_str())), paint.dim(&format!(":{}", row.line)));
    let lacks = row.subpath.as_deref().filter(|_| row.subpath_missing).map(nothing_at);
    let target = match (&row.target, lacks) {
        (Some(target), None) => paint.path(&sanitize_line(target.as_str())),
        (Some(target), Some(lacks)) => {
            format!("{} {}", paint.path(&sanitize_line(target.as_str())), paint.bad(&format!("({lacks})")))
        }
        (None, _) => paint.bad("(no such file)"),
    };
    out.line(&format!(
        "{indent}{}  {}  → {target}",
        opened.link(row.source.as_str(), Some(row.line), &location, paint),
        sanitize_line(&row.raw)
    ))
}

pub(super) fn unresolved(vault_args: &IndexedVaultArgs, args: &UnresolvedArgs, out: &mut Out) -> CliResult {
    let is_human = args.ask.output.format() == Format::Human;
    let ask = |index: &Index| {
        let mut names = index.unresolved()?;
        if args.headings {
            names.extend(index.unresolved_subpaths()?);
        } else if is_human {
            let links = index.unresolved_subpaths()?.iter().map(|name| name.count).sum();
            if links > 0 {
                let links = counted(links, "link");
                note(&format!("{links} to a missing heading or block; --headings lists them"));
            }
        }
        Ok(names)
    };
    list(vault_args, &args.ask, out, ask, |_, row, out| {
        let mut sources = row.sources.iter().take(3).map(|s| sanitize_line(s.as_str())).collect::<Vec<_>>().join(", ");
        if row.sources.len() > 3 {
            sources.push_str(&format!(" and {} more", row.sources.len() - 3));
        }
        let name = out.paint.bold(&sanitize_line(&row.name));
        let lacks = row.target.as_ref().map_or_else(String::new, |target| {
            let target = sanitize_line(target.as_str());
            out.paint.bad(&format!("  ({} in {target})", nothing_at(&row.name)))
        });
        out.line(&format!("{:>5}  {name}{lacks}  {}", row.count, out.paint.dim(&sources)))
    })
}

/// Returns the message about a missing heading or block.
fn nothing_at(subpath: &str) -> &'static str {
    let last = subpath.rsplit('#').find(|part| !part.trim().is_empty()).unwrap_or_default();
    if last.trim_start().starts_with('^') { "no such block" } else { "no such heading" }
}

pub(super) fn orphans(vault_args: &IndexedVaultArgs, args: &AskArgs, out: &mut Out) -> CliResult {
    paths(vault_args, args, Index::orphans, out)
}

pub(super) fn deadends(vault_args: &IndexedVaultArgs, args: &AskArgs, out: &mut Out) -> CliResult {
    paths(vault_args, args, Index::deadends, out)
}

fn paths(
    vault_args: &IndexedVaultArgs,
    args: &AskArgs,
    ask: fn(&Index) -> Result<Vec<VaultPath>>,
    out: &mut Out,
) -> CliResult {
    let ask = |index: &Index| Ok(ask(index)?.iter().map(|path| PathRecord { path: path.to_string() }).collect());
    list(vault_args, args, out, ask, |opened, row, out| {
        let paint = out.paint;
        out.line(&opened.link(&row.path, None, &paint.path(&sanitize_line(&row.path)), paint))
    })
}

pub(super) fn tags(vault_args: &IndexedVaultArgs, args: &AskArgs, out: &mut Out) -> CliResult {
    list(vault_args, args, out, Index::tags, |_, row, out| {
        let below = row.nested.saturating_sub(row.notes);
        let below = if below > 0 { out.paint.dim(&format!("  (+{below} below it)")) } else { String::new() };
        out.line(&format!("{:>5}  {}{below}", row.notes, sanitize_line(&row.tag)))
    })
}

pub(super) fn resolve(vault_args: &IndexedVaultArgs, args: &ResolveArgs, out: &mut Out) -> CliResult {
    if args.output.schema {
        return out.schema::<ResolvedRecord>();
    }
    let link = args.link.as_deref().unwrap_or_default();
    let opened = open_with_links(vault_args, args.no_sync)?;
    let resolved = opened.index.resolve(link, args.from.as_deref())?;
    let leads_somewhere = resolved.target.is_some() || resolved.rule == Rule::External;
    let outcome = if leads_somewhere { Outcome::Done } else { Outcome::Nothing };
    let record = ResolvedRecord::new(link, args.from.as_deref(), &resolved);
    if args.output.json {
        out.json(&record)?;
        return Ok(outcome);
    }
    let paint = out.paint;
    match &record.target {
        Some(target) => {
            let line = record.line.map_or_else(String::new, |line| format!(":{line}"));
            let shown = format!("{}{}", paint.path(&sanitize_line(target)), paint.dim(&line));
            out.line(&opened.link(target, record.line, &shown, paint))?;
        }
        None if resolved.rule == Rule::External => out.line(&sanitize_line(link))?,
        None => out.line(&paint.bad("(no such file)"))?,
    }
    out.line(&format!("  {}: {}", record.rule, record.because))?;
    if record.subpath_missing {
        out.line(&format!("  {}", paint.bad("there is no such heading or block in it")))?;
    }
    if record.candidates.len() > 1 {
        out.line(&format!("  of {} files with this name:", record.candidates.len()))?;
        record.candidates.iter().try_for_each(|path| out.line(&format!("    {}", sanitize_line(path))))?;
    }
    Ok(outcome)
}
