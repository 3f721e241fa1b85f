//! Checks a vault for probable mistakes: `lint_vault`.
//!
//! | rule | a finding is |
//! | --- | --- |
//! | `broken-link` | a link that leads to no file |
//! | `broken-heading` | a link to a heading that its note does not have |
//! | `broken-block` | a link to a block that its note does not have |
//! | `frontmatter` | frontmatter that cannot be read |
//! | `unreadable` | a file that cannot be read, or not as text |
//! | `ambiguous-link` | a link by a name that several files have |
//! | `tag-case` | a tag that is spelled in several cases |
//! | `unused-attachment` | an attachment that no note uses |
//! | `okf` | a file that does not conform to the Open Knowledge Format; off unless it is named |
//!
//! The table `[lint]` of the vault's `.vault.toml` sets which rules are used; it only affects the reported findings.

use std::collections::{BTreeMap, BTreeSet};

use globset::{Glob, GlobSet, GlobSetBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vault_index::links::ranked;
use vault_index::{LinkRow, LintTable, NoteWarning, SkippedNote, VaultPath, WarningKind};

use super::okf;
use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::{EntryKind, SafePath, View};
use crate::tool::Context;
use crate::tools::find::attachments;
use crate::tools::links::graph::{broken_links, permits, say_if_changed};
use crate::tools::shared::arguments::{number, page};
use crate::tools::shared::known_notes::known_notes;
use crate::tools::shared::locate::parsed;

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct Args {
    /// Only these rules, also where the vault's settings turn them off.
    #[serde(default)]
    rules: BTreeSet<Rule>,
    /// The most findings to return.
    #[serde(default = "number::<200>")]
    #[schemars(range(min = 1, max = 1_000_000))]
    limit: usize,
    /// How many findings to skip.
    #[serde(default)]
    offset: usize,
}

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Rule {
    BrokenLink,
    BrokenHeading,
    BrokenBlock,
    Frontmatter,
    Unreadable,
    AmbiguousLink,
    TagCase,
    UnusedAttachment,
    Okf,
}

impl Rule {
    const ALL: [Self; 9] = [
        Self::BrokenLink,
        Self::BrokenHeading,
        Self::BrokenBlock,
        Self::Frontmatter,
        Self::Unreadable,
        Self::AmbiguousLink,
        Self::TagCase,
        Self::UnusedAttachment,
        Self::Okf,
    ];
}

/// Something that is probably wrong.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub(in crate::tools) struct Finding {
    /// The file.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// Its line, from 1; null for the file as a whole.
    line: Option<u32>,
    /// The rule.
    #[schemars(with = "String")]
    rule: Rule,
    /// What is wrong.
    message: String,
}

pub(in crate::tools) fn lint_vault(args: Args, context: &mut Context<'_, '_>) -> Result<Vec<Finding>> {
    say_if_changed(context);
    let LintTable { on, off, ignore } = LintTable::of(context.vault.path())?;
    let (on, off, ignored) = (rules(&on, "on")?, rules(&off, "off")?, globs(&ignore)?);
    let is_on = |rule: Rule| match args.rules.is_empty() {
        true => !off.contains(&rule) && (rule != Rule::Okf || on.contains(&rule)),
        false => args.rules.contains(&rule),
    };
    let mut findings = Vec::new();
    links(&mut findings, context)?;
    warnings(&mut findings, context)?;
    tags(&mut findings, context)?;
    if is_on(Rule::UnusedAttachment) {
        let unused = attachments::unused(context)?.into_iter();
        let message = || "no note uses it".to_owned();
        findings.extend(unused.map(|path| Finding {
            path,
            line: None,
            rule: Rule::UnusedAttachment,
            message: message(),
        }));
    }
    if is_on(Rule::Okf) {
        concepts(&mut findings, context)?;
    }
    findings.retain(|finding| is_on(finding.rule) && !ignored.is_match(&finding.path));
    findings.sort();
    Ok(page(findings, args.limit, args.offset, "findings are there", context))
}

/// Parses a list of rules in the settings.
fn rules(names: &[String], list: &str) -> Result<BTreeSet<Rule>> {
    names.iter().map(|name| rule(name, list)).collect()
}

fn rule(name: &str, list: &str) -> Result<Rule> {
    serde_json::from_value(name.into()).map_err(|_| {
        let names: Vec<String> =
            Rule::ALL.iter().filter_map(|rule| serde_json::to_value(rule).ok()?.as_str().map(str::to_owned)).collect();
        Error::new(ErrorKind::Config, format!("there is no rule {name:?}"))
            .at(format!(".vault.toml, [lint] {list}"))
            .with_remedy(format!("the rules are {}", names.join(", ")))
    })
}

fn globs(globs: &[String]) -> Result<GlobSet> {
    let wrong = |error: globset::Error| {
        Error::new(ErrorKind::Config, error.to_string()).at(".vault.toml, [lint] ignore").with_remedy("write a glob")
    };
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        // A folder matches everything in it.
        set.add(Glob::new(glob).map_err(wrong)?);
        set.add(Glob::new(&format!("{}/**", glob.trim_end_matches('/'))).map_err(wrong)?);
    }
    set.build().map_err(wrong)
}

/// Finds broken links, and links by a name that several files have.
fn links(findings: &mut Vec<Finding>, context: &Context<'_, '_>) -> Result<()> {
    let index = context.vault.index()?;
    for (link, proposals) in broken_links(None, context)? {
        // Web servers can show a folder, and scroll to the top of a page.
        if leads_to_folder(&link, context)
            || link.subpath.as_deref().is_some_and(|subpath| subpath.eq_ignore_ascii_case("top"))
        {
            continue;
        }
        let (rule, what) = match (&link.target, &link.subpath) {
            (Some(target), Some(subpath)) if subpath.contains('^') => {
                (Rule::BrokenBlock, format!("{target} has no such block"))
            }
            (Some(target), _) => (Rule::BrokenHeading, format!("{target} has no such heading")),
            (None, _) => (Rule::BrokenLink, "leads to no file".to_owned()),
        };
        let best = proposals.into_iter().next().map(|best| {
            let subpath = best.subpath.map(|subpath| format!("#{subpath}")).unwrap_or_default();
            format!("; {} means {}{subpath}", best.certainty.adverb(), best.target)
        });
        let message = format!("{} {what}{}", link.raw, best.unwrap_or_default());
        findings.push(Finding { path: link.source.to_string(), line: Some(link.line), rule, message });
    }
    let names = context.names()?;
    index.all_links(&mut |link| {
        if link.path.is_empty() || link.path.contains('/') || link.target.is_none() || !permits(&link.source, context) {
            return Ok(());
        }
        let others = ranked(names, &link.path, &link.source);
        let others: Vec<&VaultPath> =
            others.into_iter().filter_map(|id| names.path(id)).filter(|path| permits(path, context)).collect();
        if let [first, second, ..] = others[..] {
            let message = format!("{} leads to {first}, but {second} has the same name", link.raw);
            let (path, line, rule) = (link.source.to_string(), Some(link.line), Rule::AmbiguousLink);
            findings.push(Finding { path, line, rule, message });
        }
        Ok(())
    })?;
    Ok(())
}

/// Returns whether a link leads to a folder, relative to its note or to the vault's root.
fn leads_to_folder(link: &LinkRow, context: &Context<'_, '_>) -> bool {
    let written = link.path.trim_end_matches('/');
    let from_note = format!("{}/{written}", link.source.folder());
    link.target.is_none()
        && [from_note.as_str(), written].into_iter().filter_map(VaultPath::new).filter_map(SafePath::found).any(
            |place| {
                let stat = context.overlay.stat(&place).ok().flatten();
                stat.is_some_and(|stat| stat.kind == EntryKind::Folder) && context.permits(&place)
            },
        )
}

/// Finds files that do not conform to the Open Knowledge Format.
fn concepts(findings: &mut Vec<Finding>, context: &Context<'_, '_>) -> Result<()> {
    let listing = context.listing()?;
    let notes = context.overlay.walk(None)?.into_iter();
    for entry in notes.filter(|entry| entry.stat.kind == EntryKind::File && entry.path.extension() == Some("md")) {
        context.cancel.check()?;
        if !listing.has(&entry) {
            continue;
        }
        let note = parsed(&entry.path, &context.overlay.read(&entry.path)?);
        let finding = |(line, message)| {
            let (path, rule) = (entry.path.to_string(), Rule::Okf);
            Finding { path, line, rule, message }
        };
        findings.extend(okf::faults(&entry.path, &note).into_iter().map(finding));
    }
    Ok(())
}

/// Finds files that the index could not read.
fn warnings(findings: &mut Vec<Finding>, context: &Context<'_, '_>) -> Result<()> {
    let index = context.vault.index()?;
    let permits = |path: &str| VaultPath::new(path).is_some_and(|path| permits(&path, context));
    for SkippedNote { path, reason, .. } in index.skipped()?.into_iter().filter(|skipped| permits(&skipped.path)) {
        findings.push(Finding { path, line: None, rule: Rule::Unreadable, message: reason });
    }
    for NoteWarning { path, warning, .. } in index.warnings()?.into_iter().filter(|warning| permits(&warning.path)) {
        let rule = if warning.kind == WarningKind::Frontmatter { Rule::Frontmatter } else { Rule::Unreadable };
        findings.push(Finding { path, line: warning.line, rule, message: warning.message });
    }
    Ok(())
}

/// Finds tags that differ only in case, and reports the less frequent spellings at their notes.
fn tags(findings: &mut Vec<Finding>, context: &Context<'_, '_>) -> Result<()> {
    let mut spellings: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    for note in known_notes(context)? {
        for tag in note.tags {
            let notes = spellings.entry(tag.to_lowercase()).or_default().entry(tag).or_default();
            notes.push(note.path.to_string());
        }
    }
    for (_, mut spelled) in spellings.into_iter().filter(|(_, spelled)| spelled.len() > 1) {
        let most = spelled.iter().max_by_key(|(tag, notes)| (notes.len(), std::cmp::Reverse((*tag).clone())));
        let Some(most) = most.map(|(tag, _)| tag.clone()) else { continue };
        spelled.remove(&most);
        for (tag, notes) in spelled {
            let message = |tag: &str| format!("the tag #{tag} is spelled #{most} elsewhere");
            let finding = |path| Finding { path, line: None, rule: Rule::TagCase, message: message(&tag) };
            findings.extend(notes.into_iter().map(finding));
        }
    }
    Ok(())
}
