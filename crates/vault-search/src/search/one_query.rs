//! `vault-search`: searches one vault or several, and prints the results.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;
use std::time::Instant;

use jiff::Zoned;
use vault_index::{Condition, Error, ErrorKind, Expression, Index, Mode, Query, UnmatchedConditions};

use crate::{CliResult, Failure, Format, Out, Outcome, counted, note, sanitize_line};

use super::answer::{FolderCount, SearchAnswer, SearchResult};
use super::background;
use super::editor;
use super::hits::{self, HitStyle};
use super::notices;
use super::open;
use super::search_args::SearchArgs;
use super::settings::IndexSettings;

/// The results of a search of each vault. With several, a vault whose database does not answer, or has tables of another
/// version, has none, and the reason is printed.
///
/// # Errors
/// Any other error, and the first one if no database answers.
pub(super) fn of_each<T: Send>(
    settings: &IndexSettings,
    indexes: &[Index],
    search: impl Fn(&Index) -> Result<T, Error> + Sync,
) -> CliResult<Vec<Option<T>>> {
    let mut results = Vec::with_capacity(indexes.len());
    let mut missing = None;
    let all: Vec<_> = indexes.iter().enumerate().collect();
    for (found, vault) in at_once(settings, &all, search).into_iter().zip(&settings.vaults) {
        match found {
            Ok(found) => results.push(Some(found)),
            Err(error) if is_missing(&error) && settings.database_of(vault).is_some() => {
                if indexes.len() > 1 {
                    note(&format!("{} is missing: {}", sanitize_line(&vault.to_string_lossy()), error.one_line()));
                }
                results.push(None);
                missing = missing.or(Some(error));
            }
            Err(error) => return Err(error.into()),
        }
    }
    match missing {
        Some(error) if results.iter().all(Option::is_none) => Err(error.into()),
        _ => Ok(results),
    }
}

/// Whether an error is of one database: it does not answer, or its tables are of another version.
fn is_missing(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Store | ErrorKind::OtherFormat)
}

/// Asks some of the vaults, each by its position and what it is asked with; the answers are in the same order. Databases
/// are asked at the same time, each by a thread of its own, so that together they take as long as the slowest one. Index
/// files are read one after the other meanwhile, because a search of one uses all cores.
pub(super) fn at_once<V: Copy + Send, T: Send>(
    settings: &IndexSettings,
    vaults: &[(usize, V)],
    ask: impl Fn(V) -> T + Sync,
) -> Vec<T> {
    let ask = &ask;
    thread::scope(|scope| {
        let start = |(n, vault): &(usize, V)| {
            let vault = *vault;
            settings.database_of(&settings.vaults[*n]).is_some().then(|| scope.spawn(move || ask(vault)))
        };
        let threads: Vec<_> = vaults.iter().map(start).collect();
        let answers = vaults.iter().zip(threads).map(|((_, vault), thread)| match thread {
            Some(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            None => ask(*vault),
        });
        answers.collect()
    })
}

/// Opens the index of every vault, and brings it up to date as the options demand. Also returns why something may be
/// missing.
pub(super) fn open_all(
    settings: &IndexSettings,
    args: &SearchArgs,
    mode: Mode,
) -> CliResult<(Vec<Index>, Option<String>)> {
    let policy = args.sync_policy(mode);
    let mut indexes = Vec::with_capacity(settings.vaults.len());
    let mut missing = None;
    for vault in &settings.vaults {
        let (index, why) = open::up_to_date(settings, vault, policy)?;
        indexes.push(index);
        missing = missing.or(why);
    }
    Ok((indexes, missing))
}

pub(super) fn run(args: &SearchArgs, out: &mut Out) -> CliResult {
    if args.output.schema {
        return match args.output.jsonl && args.queries.is_none() {
            true => out.schema::<SearchResult>(),
            false => out.schema::<SearchAnswer>(),
        };
    }
    if args.open.is_some() && !out.paint.is_terminal() {
        return Err(Failure::Error(
            "--open starts an editor, which needs a terminal (--grep is for programs)".to_owned(),
        ));
    }
    let settings = IndexSettings::load(&args.vault_args)?;
    let query = args.query(&settings.config, &Zoned::now())?;
    if query.like.is_some() && settings.vaults.len() > 1 {
        return Err(Error::new(ErrorKind::Query, "--like searches one vault at a time")
            .with_remedy("give --vault once")
            .into());
    }
    // Load the reranker first, so that an error comes before any work.
    let rerank = args.reranking()?;
    let (indexes, why) = open_all(&settings, args, query.mode)?;
    let started = Instant::now();
    let search = |index: &Index| match &rerank {
        _ if args.count => index.searcher().map(|searcher| searcher.nothing(query.mode)),
        Some(rerank) => index.search_reranked(&query, rerank),
        None => index.search(&query),
    };
    let hits = of_each(&settings, &indexes, search)?;
    // By their position.
    let answering: Vec<(usize, &Index)> = indexes.iter().enumerate().filter(|(n, _)| hits[*n].is_some()).collect();
    let mut answer = SearchAnswer::new(args.typed(), &query, hits, &settings.vaults);
    if args.count {
        count(&settings, &mut answer, &answering, &query, args.group.is_some())?;
    } else if args.group.is_some() {
        answer.group_by_folder();
    }
    answer.took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    if args.absolute || args.print0 || args.files || args.grep || args.open.is_some() || out.paint.has_links() {
        find_files(&mut answer, &indexes, args.absolute)?;
    }

    let found = answer.count.unwrap_or(answer.results.len());
    let outcome = if found == 0 { Outcome::Nothing } else { Outcome::Done };
    let unmatched = unmatched(&settings, &answering, &query, outcome)?;
    let answering: Vec<&Index> = answering.into_iter().map(|(_, index)| index).collect();
    // Embed in the background, so that the next answer can rank these passages by meaning.
    let is_going_on =
        args.is_seen() && !args.no_sync && answer.pending > answer.unread && notices::needs_vectors(&query);
    let going_on: Vec<&Index> =
        answering.iter().copied().filter(|index| is_going_on && background::is_due(index, &settings.config)).collect();
    answer.notices = notices::of(&answer, &answering, why, &unmatched, &query, !going_on.is_empty());
    let said_before = notices::unknown_words(&answer);
    said_before.iter().for_each(|text| note(text));
    match args.output.format() {
        _ if args.open.is_some() => {}
        _ if args.grep => print_lines(&answer, out)?,
        _ if args.print0 => print_files(&answer, b"\0", out)?,
        _ if args.files && !out.paint.is_terminal() => print_files(&answer, b"\n", out)?,
        _ if args.files => print_paths(&answer, out)?,
        Format::Json => out.json(&answer)?,
        Format::JsonLines => answer.results.iter().try_for_each(|result| out.record(result))?,
        Format::Human if args.count => print_count(&answer, out)?,
        Format::Human => {
            let style = HitStyle {
                vaults: &settings.vaults,
                hyperlink: &settings.config.hyperlink,
                is_ranked: is_ranked(&query),
                explain: args.explain,
                compact: args.compact,
                best_last: args.best_last || settings.config.best_last,
                reserved: notices::rows(&answer.notices, out.paint),
            };
            hits::print(&answer, &style, out)?;
        }
    }
    out.flush()?;
    for index in going_on {
        if let Err(error) = background::start(index) {
            note(&format!("cannot embed in the background: {error}"));
        }
    }
    answer.notices.iter().skip(said_before.iter().len()).for_each(|text| note(text));
    match (args.open, args.open.and_then(|number| answer.results.get(number - 1))) {
        (Some(_), Some(result)) => editor::open(settings.config.editor.as_deref(), &result.file, result.hit.line)?,
        (Some(number), None) if found > 0 => {
            note(&format!("there is no result {number}, only {}", counted(found, "result")));
            return Ok(Outcome::Nothing);
        }
        _ => {}
    }
    Ok(outcome)
}

/// Counts the matches, in total and by folder.
fn count(
    settings: &IndexSettings,
    answer: &mut SearchAnswer,
    indexes: &[(usize, &Index)],
    query: &Query,
    by_folder: bool,
) -> CliResult<()> {
    let mut folders: BTreeMap<String, usize> = BTreeMap::new();
    let mut count = 0;
    let matches = at_once(settings, indexes, |index| index.searcher()?.matches(query));
    for ((n, index), matches) in indexes.iter().zip(matches) {
        // Notes of another searched vault inside this one are counted there.
        let others = indexes.iter().map(|(_, other)| other.vault()).filter(|other| *other != index.vault());
        let nested: Vec<&Path> = others.filter_map(|other| other.strip_prefix(index.vault()).ok()).collect();
        for path in matches? {
            if nested.iter().any(|nested| Path::new(path.as_str()).starts_with(nested)) {
                continue;
            }
            count += 1;
            let folder = match answer.vaults.get(*n) {
                Some(vault) => format!("{vault}/{}", path.folder()).trim_end_matches('/').to_string(),
                None => path.folder().to_string(),
            };
            *folders.entry(folder).or_default() += 1;
        }
    }
    answer.count = Some(count);
    if by_folder {
        answer.folders = folders.into_iter().map(|(folder, count)| FolderCount { folder, count }).collect();
        answer.folders.sort_by_key(|folder| std::cmp::Reverse(folder.count));
    }
    Ok(())
}

fn print_count(answer: &SearchAnswer, out: &mut Out) -> io::Result<()> {
    if answer.folders.is_empty() {
        return out.line(&answer.count.unwrap_or_default().to_string());
    }
    let width = answer.folders[0].count.to_string().len();
    for FolderCount { folder, count } in &answer.folders {
        let folder = if folder.is_empty() { "." } else { folder };
        out.line(&format!("{count:width$}  {}/", out.paint.path(&sanitize_line(folder))))?;
    }
    Ok(())
}

/// Looks up how the names of the files are spelled on disk.
fn find_files(answer: &mut SearchAnswer, indexes: &[Index], absolute: bool) -> CliResult<()> {
    for result in &mut answer.results {
        result.file = indexes[result.vault_index].file_of(&result.hit.path)?;
        if absolute {
            result.absolute_path = Some(result.file.to_string_lossy().into_owned());
        }
    }
    Ok(())
}

/// Returns the path of a result as spelled on disk: relative to the vault, or absolute with `--absolute` or several
/// vaults.
fn file_on_disk<'a>(answer: &SearchAnswer, result: &'a SearchResult) -> &'a Path {
    let is_whole = result.absolute_path.is_some() || result.vault.is_some();
    let vault = answer.vault.as_deref().filter(|_| !is_whole);
    vault.and_then(|vault| result.file.strip_prefix(vault).ok()).unwrap_or(&result.file)
}

/// Prints `path:line:text` for each result. Unless a terminal shows them, paths are spelled as on disk.
fn print_lines(answer: &SearchAnswer, out: &mut Out) -> io::Result<()> {
    for result in &answer.results {
        let hit = &result.hit;
        // The first line of a passage is its first line that is not blank.
        let text = hit.text.trim_start().lines().nth((hit.line - hit.start_line) as usize).unwrap_or_default().trim();
        if out.paint.is_terminal() {
            out.line(&sanitize_line(&format!("{}:{}:{text}", result.shown_path(), hit.line)))?;
            continue;
        }
        out.bytes(file_on_disk(answer, result).as_os_str().as_encoded_bytes())?;
        out.line(&format!(":{}:{text}", hit.line))?;
    }
    Ok(())
}

/// Prints the path of each file once, as [`file_on_disk`] returns it.
fn print_files(answer: &SearchAnswer, end: &[u8], out: &mut Out) -> io::Result<()> {
    let mut printed = HashSet::new();
    for result in &answer.results {
        let file = file_on_disk(answer, result);
        if printed.insert(file) {
            out.bytes(file.as_os_str().as_encoded_bytes())?;
            out.bytes(end)?;
        }
    }
    Ok(())
}

/// Prints paths for people.
fn print_paths(answer: &SearchAnswer, out: &mut Out) -> io::Result<()> {
    let mut printed = HashSet::new();
    for result in &answer.results {
        let path = sanitize_line(&result.shown_path());
        if !printed.contains(&path) {
            out.line(&path)?;
            printed.insert(path);
        }
    }
    Ok(())
}

/// Whether a query has anything but filters, so that its results are ranked.
fn is_ranked(query: &Query) -> bool {
    query.like.is_some() || !query.text.trim().is_empty()
}

/// Returns the conditions that no note of any vault meets. If something was found, only negated conditions are checked.
fn unmatched(
    settings: &IndexSettings,
    indexes: &[(usize, &Index)],
    query: &Query,
    outcome: Outcome,
) -> CliResult<UnmatchedConditions> {
    let exclusions = || {
        let parts = query.condition.clone().map(Condition::into_parts).unwrap_or_default();
        let exclusions = parts.into_iter().filter(|part| matches!(part, Expression::Not(_)));
        exclusions.fold(Query::default(), Query::condition)
    };
    let query = if outcome == Outcome::Done { exclusions() } else { query.clone() };
    if query.condition.is_none() && query.filter.is_empty() && query.text.is_empty() {
        return Ok(UnmatchedConditions::default());
    }
    // Compare only the text before the semicolon, because after it come suggestions from that vault.
    let condition = |text: &String| text.split(';').next().map(str::to_owned);
    let mut in_all: Option<UnmatchedConditions> = None;
    for here in at_once(settings, indexes, |index| index.searcher()?.unmatched(&query)) {
        let here = here?;
        in_all = Some(match in_all {
            Some(mut before) => {
                for (text, notes) in here.left_out {
                    match before.left_out.iter_mut().find(|(known, _)| *known == text) {
                        Some((_, sum)) => *sum += notes,
                        None => before.left_out.push((text, notes)),
                    }
                }
                before.wanted.retain(|text| here.wanted.iter().any(|here| condition(here) == condition(text)));
                before.excluded.retain(|text| here.excluded.iter().any(|here| condition(here) == condition(text)));
                before
            }
            None => here,
        });
    }
    Ok(in_all.unwrap_or_default())
}
