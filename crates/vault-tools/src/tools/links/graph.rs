//! Lists facts about links in the vault: broken links, missing links, notes without links, notes with many links, and
//! neighbours: `list_broken_links`, `suggest_links`, `list_orphans`, `list_hubs`, `list_neighbors`.
//!
//! All of them use the index, so within a plan they see the vault before the plan.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vault_index::{Certainty, LinkRow, LinkSuggestion, RepairProposal, SuggestionReason, VaultPath};

use crate::error::Result;
use crate::sandbox::SafePath;
use crate::tool::{Context, PathArg};
use crate::tools::shared::arguments::{number, page};
use crate::tools::shared::{locate, ranked};

// The arguments of a list about one note, or about all.
#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct ListArgs {
    /// Only this note: its path, or its name as in a link.
    path: Option<PathArg>,
    /// The most to return.
    #[serde(default = "number::<50>")]
    #[schemars(range(min = 1, max = 10_000))]
    limit: usize,
    /// How many to skip.
    #[serde(default)]
    offset: usize,
}

impl ListArgs {
    fn note(&self, context: &Context<'_, '_>) -> Result<Option<SafePath>> {
        self.path.as_ref().map(|path| Ok(locate::linked(path, context)?.0)).transpose()
    }
}

/// A link that leads nowhere.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct BrokenLink {
    /// The note it stands in.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// Its line, from 1.
    line: u32,
    /// As it stands there.
    link: String,
    /// The note that it leads to, where only the heading or block is missing.
    #[schemars(extend("x-vault-path" = true))]
    target: Option<String>,
    /// Where it was probably meant to lead, the surest first; to repair it, give one of them to set_link.
    proposals: Vec<ProposedTarget>,
}

/// Where a broken link was probably meant to lead.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct ProposedTarget {
    /// The file.
    #[schemars(extend("x-vault-path" = true))]
    target: String,
    /// The heading or `^block`.
    heading: Option<String>,
    /// certain, likely or possible.
    #[schemars(with = "String")]
    certainty: Certainty,
    /// Why.
    reason: String,
}

pub(in crate::tools) fn list_broken_links(args: ListArgs, context: &mut Context<'_, '_>) -> Result<Vec<BrokenLink>> {
    let note = args.note(context)?;
    say_if_changed(context);
    let found = broken_links(note.as_ref(), context)?;
    let meant = |RepairProposal { target, subpath, certainty, reason, .. }: RepairProposal| {
        let target = target.to_string();
        ProposedTarget { target, heading: subpath, certainty, reason }
    };
    let broken = found.into_iter().map(|(link, proposals)| BrokenLink {
        path: link.source.to_string(),
        line: link.line,
        link: link.raw,
        target: link.target.map(|target| target.to_string()),
        proposals: proposals.into_iter().map(meant).collect(),
    });
    let broken: Vec<BrokenLink> = broken.collect();
    Ok(page(broken, args.limit, args.offset, "links lead nowhere", context))
}

/// Returns the broken links of the vault or of a note, by source and line, with proposals for their targets. Denied
/// files are treated as missing, so that no list reveals them.
pub(in crate::tools) fn broken_links(
    note: Option<&SafePath>,
    context: &Context<'_, '_>,
) -> Result<Vec<(LinkRow, Vec<RepairProposal>)>> {
    let index = context.vault.index()?;
    let mut found: Vec<(LinkRow, Vec<RepairProposal>)> = index
        .broken_links(note.map(SafePath::as_str))?
        .into_iter()
        .map(|broken| (broken.link, broken.proposals))
        .collect();
    if context.policy.permits_all_paths() {
        return Ok(found);
    }
    index.all_links(&mut |link| {
        let is_of_note = note.is_none_or(|note| *note.vault_path() == link.source);
        if is_of_note && !link.subpath_missing && link.target.as_ref().is_some_and(|target| !permits(target, context)) {
            found.push((link, Vec::new()));
        }
        Ok(())
    })?;
    found.retain(|(link, _)| permits(&link.source, context));
    for (link, proposals) in &mut found {
        link.target = link.target.take().filter(|target| permits(target, context));
        proposals.retain(|proposal| permits(&proposal.target, context));
        if link.target.is_none() {
            link.subpath_missing = false;
        }
    }
    found.sort_by(|(a, _), (b, _)| (&a.source, a.line).cmp(&(&b.source, b.line)));
    Ok(found)
}

/// A link that a note lacks.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct Suggestion {
    /// The note.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// Its line, from 1.
    line: u32,
    /// The words that name the other note; null where it is only meant. Give them to set_link.
    text: Option<String>,
    /// The sentence.
    sentence: String,
    /// The note to link to.
    #[schemars(extend("x-vault-path" = true))]
    target: String,
    /// 0 to 1.
    score: f32,
    /// name, link-text (words that other notes link to it with) or meaning.
    #[schemars(with = "String")]
    reason: SuggestionReason,
}

pub(in crate::tools) fn suggest_links(args: ListArgs, context: &mut Context<'_, '_>) -> Result<Vec<Suggestion>> {
    let note = args.note(context)?;
    say_if_changed(context);
    let index = if note.is_some() { ranked::index_with_vectors(context)? } else { context.vault.index()? };
    let found = index.suggest_links(note.as_ref().map(SafePath::as_str))?;
    let may_be_shown = |found: &LinkSuggestion| permits(&found.source, context) && permits(&found.target, context);
    let shown = |found: LinkSuggestion| Suggestion {
        path: found.source.to_string(),
        line: found.line,
        text: found.text,
        sentence: found.sentence,
        target: found.target.to_string(),
        score: found.score,
        reason: found.reason,
    };
    let found: Vec<Suggestion> = found.into_iter().filter(may_be_shown).map(shown).collect();
    Ok(page(found, args.limit, args.offset, "links are suggested", context))
}

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct OrphansArgs {
    /// Which notes: those that no link leads to, those that link to nothing, or those without any link.
    #[serde(default)]
    without: MissingLinks,
    /// The most to return.
    #[serde(default = "number::<100>")]
    #[schemars(range(min = 1, max = 10_000))]
    limit: usize,
    /// How many to skip.
    #[serde(default)]
    offset: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum MissingLinks {
    #[default]
    Backlinks,
    Links,
    Both,
}

/// A note, and how many links it has.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct LinkedNote {
    /// The note.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// The notes that link to it.
    backlinks: usize,
    /// The files that it links to.
    links: usize,
}

pub(in crate::tools) fn list_orphans(args: OrphansArgs, context: &mut Context<'_, '_>) -> Result<Vec<LinkedNote>> {
    let mut notes = linked_notes(context)?;
    notes.retain(|note| match args.without {
        MissingLinks::Backlinks => note.backlinks == 0,
        MissingLinks::Links => note.links == 0,
        MissingLinks::Both => note.backlinks + note.links == 0,
    });
    Ok(page(notes, args.limit, args.offset, "notes have no such links", context))
}

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct HubsArgs {
    /// The most to return.
    #[serde(default = "number::<20>")]
    #[schemars(range(min = 1, max = 10_000))]
    limit: usize,
}

pub(in crate::tools) fn list_hubs(args: HubsArgs, context: &mut Context<'_, '_>) -> Result<Vec<LinkedNote>> {
    let mut notes = linked_notes(context)?;
    notes.retain(|note| note.backlinks + note.links > 0);
    notes.sort_by(|a, b| (b.backlinks + b.links).cmp(&(a.backlinks + a.links)).then_with(|| a.path.cmp(&b.path)));
    notes.truncate(args.limit);
    Ok(notes)
}

/// Returns the notes that may be shown, by path, with the number of notes to which they are linked.
fn linked_notes(context: &mut Context<'_, '_>) -> Result<Vec<LinkedNote>> {
    say_if_changed(context);
    let graph = context.vault.index()?.graph()?;
    let is_shown = |at: &usize| {
        let node = &graph.nodes[*at];
        node.kind == "unresolved" || VaultPath::new(&node.path).is_some_and(|path| permits(&path, context))
    };
    let mut notes: BTreeMap<usize, LinkedNote> = BTreeMap::new();
    for (at, node) in graph.nodes.iter().enumerate().filter(|(at, node)| node.kind == "note" && is_shown(at)) {
        notes.insert(at, LinkedNote { path: node.path.clone(), backlinks: 0, links: 0 });
    }
    for (from, to, _) in graph.edges.iter().filter(|(from, to, _)| is_shown(from) && is_shown(to)) {
        if let Some(note) = notes.get_mut(from) {
            note.links += 1;
        }
        if let Some(note) = notes.get_mut(to) {
            note.backlinks += 1;
        }
    }
    let mut notes: Vec<LinkedNote> = notes.into_values().collect();
    notes.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(notes)
}

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct NeighborsArgs {
    /// The note.
    path: PathArg,
    /// How many links away, up to 5.
    #[serde(default = "number::<1>")]
    #[schemars(range(min = 1, max = 5))]
    depth: usize,
    /// The most to return, the nearest first.
    #[serde(default = "number::<100>")]
    #[schemars(range(min = 1, max = 10_000))]
    limit: usize,
}

/// A file near a note.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct Neighbor {
    /// The file.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// How many links away.
    distance: usize,
}

/// Searches breadth-first, along links in both directions.
pub(in crate::tools) fn list_neighbors(args: NeighborsArgs, context: &mut Context<'_, '_>) -> Result<Vec<Neighbor>> {
    let (path, _) = locate::linked(&args.path, context)?;
    say_if_changed(context);
    let graph = context.vault.index()?.graph()?;
    let is_file = |at: usize| graph.nodes[at].kind != "unresolved";
    let is_shown = |at: usize| VaultPath::new(&graph.nodes[at].path).is_some_and(|path| permits(&path, context));
    let mut beside: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (from, to, _) in graph.edges.iter().filter(|(from, to, _)| is_file(*from) && is_file(*to)) {
        beside.entry(*from).or_default().push(*to);
        beside.entry(*to).or_default().push(*from);
    }
    let start = graph.nodes.iter().position(|node| node.path == path.as_str());
    let mut seen: std::collections::BTreeSet<usize> = start.into_iter().collect();
    let mut level: Vec<usize> = start.into_iter().collect();
    let mut neighbors: Vec<Neighbor> = Vec::new();
    for distance in 1..=args.depth {
        let all = level.iter().flat_map(|at| beside.get(at).into_iter().flatten().copied());
        level = all.filter(|at| is_shown(*at) && seen.insert(*at)).collect();
        let first = neighbors.len();
        neighbors.extend(level.iter().map(|at| Neighbor { path: graph.nodes[*at].path.clone(), distance }));
        neighbors[first..].sort_by(|a, b| a.path.cmp(&b.path));
    }
    Ok(page(neighbors, args.limit, 0, "files are so near", context))
}

/// Returns whether a file may be shown.
pub(in crate::tools) fn permits(path: &VaultPath, context: &Context<'_, '_>) -> bool {
    SafePath::found(path.clone()).is_some_and(|path| context.permits(&path))
}

/// Adds a notice that the changes of earlier steps of a plan are not included.
pub(in crate::tools) fn say_if_changed(context: &mut Context<'_, '_>) {
    if context.overlay.is_changed() {
        context.overlay.notice("this is of the vault before the plan");
    }
}
