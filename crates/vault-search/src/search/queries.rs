//! `vault-search --queries`: answers many queries in their order, one line each, with model and index loaded once.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::time::Instant;

use jiff::Zoned;
use vault_index::{Error, ErrorKind, Hits, Index, Query, Rerank, Result, Searcher};

use crate::{CliResult, Out, Outcome, note};

use super::answer::SearchAnswer;
use super::one_query::{at_once, of_each, open_all};
use super::search_args::SearchArgs;
use super::settings::IndexSettings;

/// The maximum number of queries that are answered together. Only lines that are already buffered are taken together,
/// so that a program can write a line and read its answer.
const TOGETHER: usize = 64;

pub(super) fn run(args: &SearchArgs, file: &Path, out: &mut Out) -> CliResult {
    let settings = IndexSettings::load(&args.vault_args)?;
    // Check the options first, so that an error comes before any work.
    let options = args.literal("", &settings.config, &Zoned::now())?;
    let input: Box<dyn Read> = match file.to_str() {
        Some("-") => Box::new(io::stdin()),
        _ => Box::new(File::open(file).map_err(|error| Error::io(file, error))?),
    };
    let mut input = BufReader::new(input);
    let rerank = args.reranking()?;
    let (indexes, why) = open_all(&settings, args, options.mode)?;
    if let Some(why) = why {
        note(&why);
    }
    let searchers = of_each(&settings, &indexes, Index::searcher)?;
    // With a reranker, answer one query at a time: it is slow, and the first answer should not wait for the others.
    let together = if rerank.is_some() { 1 } else { TOGETHER };
    let (mut asked, mut found, mut failed) = (0, 0, 0);
    loop {
        let lines = next_lines(&mut input, together, asked == 0).map_err(|error| Error::io(file, error))?;
        if lines.is_empty() {
            break;
        }
        for answer in answers(&lines, &options, rerank.as_ref(), &searchers, &settings) {
            asked += 1;
            found += usize::from(!answer.results.is_empty());
            failed += usize::from(answer.error.is_some());
            out.record(&answer)?;
        }
        out.flush()?;
    }
    match (failed, asked, found) {
        (0, 1.., 0) => Ok(Outcome::Nothing),
        (0, ..) => Ok(Outcome::Done),
        _ => Err(Error::new(ErrorKind::Query, format!("{failed} of {asked} queries could not be answered"))
            .with_remedy("their lines say why in `error`")
            .into()),
    }
}

/// Reads the next lines, at most `together`: one line, and those that are buffered after it. Empty at the end of the
/// input.
fn next_lines(input: &mut BufReader<Box<dyn Read>>, together: usize, at_start: bool) -> io::Result<Vec<String>> {
    let mut lines = Vec::new();
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        if input.read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_end_matches(['\n', '\r']);
        let text = if at_start && lines.is_empty() { text.trim_start_matches('\u{feff}') } else { text };
        lines.push(text.to_string());
        if lines.len() == together || !input.buffer().contains(&b'\n') {
            break;
        }
    }
    Ok(lines)
}

fn answers(
    lines: &[String],
    options: &Query,
    rerank: Option<&Rerank>,
    searchers: &[Option<Searcher>],
    settings: &IndexSettings,
) -> Vec<SearchAnswer> {
    let started = Instant::now();
    let with_text = |line: &String| {
        let mut query = options.clone();
        query.text.clone_from(line);
        query
    };
    let queries: Vec<Query> = lines.iter().map(with_text).collect();
    let mut per_query: Vec<Vec<Result<Option<Hits>>>> = lines.iter().map(|_| Vec::new()).collect();
    let all: Vec<_> = searchers.iter().enumerate().collect();
    let search = |searcher: &Option<Searcher>| -> Vec<Result<Option<Hits>>> {
        let hits = match (searcher, rerank) {
            (None, _) => return queries.iter().map(|_| Ok(None)).collect(),
            (Some(searcher), Some(rerank)) => {
                queries.iter().map(|query| searcher.search_reranked(query, rerank)).collect()
            }
            (Some(searcher), None) => searcher.search_many(&queries),
        };
        hits.into_iter().map(|hits| hits.map(Some)).collect()
    };
    for hits in at_once(settings, &all, search) {
        per_query.iter_mut().zip(hits).for_each(|(of_query, hits)| of_query.push(hits));
    }
    // Queries that are answered together share the time.
    let took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX) / lines.len().max(1) as u64;
    let answer = |(query, hits): (Query, Vec<Result<Option<Hits>>>)| {
        let nothing = || {
            let nothing =
                |searcher: &Option<Searcher>| searcher.as_ref().map(|searcher| searcher.nothing(options.mode));
            searchers.iter().map(nothing).collect()
        };
        let (hits, error) = match hits.into_iter().collect::<Result<Vec<_>>>() {
            Ok(hits) => (hits, None),
            // An empty line without filters is not an error: it finds nothing.
            Err(_) if query.is_empty() => (nothing(), None),
            Err(error) => (nothing(), Some(error.one_line())),
        };
        let mut answer = SearchAnswer::new(query.text, options, hits, &settings.vaults);
        answer.reranker = rerank.map(|rerank| rerank.reranker.id().to_owned());
        (answer.took_ms, answer.error) = (took_ms, error);
        answer
    };
    queries.into_iter().zip(per_query).map(answer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_stand_ready_come_together() {
        let text = "\u{feff}one\r\ntwo\n\nlast without an end";
        let mut input = BufReader::new(Box::new(text.as_bytes()) as Box<dyn Read>);
        assert_eq!(next_lines(&mut input, TOGETHER, true).unwrap(), ["one", "two", ""]);
        assert_eq!(next_lines(&mut input, 1, false).unwrap(), ["last without an end"]);
        assert!(next_lines(&mut input, TOGETHER, false).unwrap().is_empty());
    }

    #[test]
    fn at_most_so_many_together() {
        let text = "q\n".repeat(TOGETHER + 1);
        let mut input = BufReader::new(Box::new(io::Cursor::new(text)) as Box<dyn Read>);
        assert_eq!(next_lines(&mut input, TOGETHER, true).unwrap().len(), TOGETHER);
        assert_eq!(next_lines(&mut input, TOGETHER, false).unwrap().len(), 1);
    }
}
