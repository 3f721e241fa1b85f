//! The options of `vault-search`, and the query that they become.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{CommandFactory, Parser};
use jiff::Zoned;
use vault_index::{
    DateEdge, DateRange, Error, ErrorKind, Grouping, Mode, PropertyTest, Query, Rerank, RerankerName, Result, Sort,
};

use crate::{CliResult, ListArgs};

use super::open::{SyncPolicy, Wait};
use super::settings::{IndexedVaultArgs, SETTINGS_HELP};
use crate::UserConfig;

const SYNTAX: &str = "\
Inside the query:
  \"exact phrase\"     notes with these words next to each other
  -word -\"phrase\"    leave out notes with this; - also negates an operator or a (group)
  word*              words that start with this
  a OR b   ( … )     either one; `a b OR c` means `(a b) OR c`
  tag:garden         notes with this tag or one nested below it, such as garden/roses
  path:Daily         notes in this folder, or whose path matches a glob; repeated: any of them
  file:plan          notes whose file name contains these characters
  date:2023-12       notes of these days: by a property `date`, the day in the file name, or a
                     property `created`. Also date:>=2026-01, date:2023-01..2023-06, date:friday
  [status]           notes with this property
  [status:draft]     … that contains this; [status:\"draft\"] equals it; [rating:>3] [due:<2026-03]
  link:\"Rose bed\"    notes that link to this note; linked-from:Home notes that Home links to;
                     is:orphan notes that no link leads to
  line:(a b)         notes with all of this on one line; block:(…) in one paragraph or list item,
                     section:(…) between two headings, content:(…) in the text of one passage
  task:call          notes with this in a task; task-todo:call in an open one, task-done:call in
                     a done one; task-todo:\"\" matches any open task
  /\\d{4}-\\d\\d/       notes whose text matches this regular expression; also after file: path: [key:
  match-case:Word    notes with this word in exactly this case; ignore-case:Word in any case
  --                 everything after it is searched for literally

Words rank notes: the more of them a note has, and the closer its meaning, the higher it ranks. A
word is required only inside line:(…) and similar scopes, when negated, or when OR-ed with an
operator. Case and diacritics are ignored. Unknown operators such as foo:bar are searched as words,
with a notice.

Examples:
  vault-search how to prune an apple tree
  vault-search rose -thorn tag:garden --after 'last month'
  vault-search '\"compound interest\"' --prop 'rating>=4' -n 3
  vault-search 'task-todo:(call OR mail) -path:Archive'
  vault-search --like 'Garden/Soil.md'
  vault-search --tag project --prop status=open --files
  vault-search --sort modified --mode lexical meeting
  vault-search --count --group folder tag:project
  vault-search -0 --absolute tag:draft | xargs -0 wc -w
  vault-search -- -x tag:y
  vault-search --queries questions.txt > answers.jsonl

Exit codes: 0 found, 1 nothing found, 2 error, 3 refused or index in use, 130 interrupted.";

/// The examples of the short help, few enough to leave room for the common options.
const SHORT: &str = "\
Examples:
  vault-search how to prune an apple tree
  vault-search '\"compound interest\" -bank tag:money' --after 'last month'";

/// Search a folder of Markdown notes by meaning and by words.
#[derive(Debug, Parser)]
#[command(
    name = "vault-search",
    version,
    after_help = SHORT,
    after_long_help = format!("{SYNTAX}\n\n{SETTINGS_HELP}"),
    max_term_width = 100,
    args_override_self = true
)]
pub(super) struct SearchArgs {
    /// The query; several words need no quotes
    ///
    /// A query of filters alone lists all notes that match, newest first.
    #[arg(value_name = "QUERY")]
    pub words: Vec<String>,

    /// Maximum number of results [default: 10]
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one, allow_hyphen_values = true)]
    pub limit: Option<usize>,
    /// Rank by meaning and words (hybrid), meaning (semantic) or words (lexical)
    ///
    /// [default: hybrid]
    #[arg(long, value_name = "MODE", value_parser = mode_parser(), hide_possible_values = true)]
    pub mode: Option<Mode>,
    /// List every matching passage, not only the best of each note
    #[arg(long)]
    pub chunks: bool,
    /// Drop results with a score below X, 0 to 1
    #[arg(long, value_name = "X", hide_short_help = true, value_parser = score, allow_hyphen_values = true)]
    pub min_score: Option<f32>,
    /// Find notes similar to this one, instead of a query
    #[arg(long, value_name = "NOTE", allow_hyphen_values = true)]
    pub like: Option<String>,
    /// Score the best passages again with a cross-encoder
    ///
    /// MODEL is fastembed:NAME (BGERerankerBase, BGERerankerV2M3, JINARerankerV1TurboEn or
    /// JINARerankerV2BaseMultilingual) or onnx:DIR. It reads each passage together with the query, and its scores order
    /// the results. Slow, because it runs once per passage; needs ONNX Runtime.
    #[arg(long, value_name = "MODEL", hide_short_help = true, allow_hyphen_values = true, hide = cfg!(not(feature = "fastembed")))]
    pub rerank: Option<RerankerName>,
    /// How many of the best passages --rerank scores [default: 50]
    #[arg(long, value_name = "N", hide_short_help = true, requires = "rerank", value_parser = at_least_one, allow_hyphen_values = true,
        hide = cfg!(not(feature = "fastembed")))]
    pub rerank_depth: Option<usize>,

    /// Notes with this tag or a nested one; repeated: with all of them
    #[arg(long, value_name = "TAG", help_heading = "Filters", allow_hyphen_values = true)]
    pub tag: Vec<String>,
    /// Notes in this folder, or whose path matches the glob; repeated: any of them
    ///
    /// ? matches any character, * any characters but /, ** any folders; case is ignored.
    #[arg(long, value_name = "GLOB", help_heading = "Filters", allow_hyphen_values = true)]
    pub path: Vec<String>,
    /// Changed on this day or later: 2026-01-31, 2026-01, yesterday, 'last week', 7d
    ///
    /// Also 31.1.2026, 'jan 2026' and friday.
    #[arg(long, value_name = "DATE", help_heading = "Filters")]
    pub after: Vec<String>,
    /// Changed on this day or earlier
    #[arg(long, value_name = "DATE", help_heading = "Filters")]
    pub before: Vec<String>,
    /// Notes of these days, like date:RANGE in the query; repeated: all must match
    ///
    /// For example, 2023-12, '>=2026-01' or 2023-01..2023-06.
    #[arg(long, value_name = "RANGE", help_heading = "Filters", hide_short_help = true)]
    pub date: Vec<String>,
    /// Notes with this property: KEY, KEY=VALUE, KEY!=VALUE, KEY~TEXT, KEY<VALUE …
    ///
    /// A property is in the frontmatter, or it is an inline field as in Dataview (KEY:: VALUE). KEY: it exists, even if
    /// empty; KEY!=VALUE: it exists and differs; KEY~TEXT: it contains TEXT; also KEY<=VALUE, KEY>VALUE and KEY>=VALUE.
    /// Repeated: all must match. Numbers compare as numbers; months, days and times as dates ('due<2026-03',
    /// 'due>=yesterday'; a month or a year equals every day in it); anything else as text, ignoring case. Of a list,
    /// one matching item is enough; MAP.KEY is a key of a map.
    #[arg(long, value_name = "TEST", help_heading = "Filters", allow_hyphen_values = true)]
    pub prop: Vec<String>,

    /// Print paths only
    ///
    /// Unless a terminal shows them, paths are spelled as on disk.
    #[arg(long, help_heading = "Output", conflicts_with_all = ["json", "jsonl"])]
    pub files: bool,
    /// Print one line per result: path:line, score, title › heading: passage
    #[arg(long, help_heading = "Output", conflicts_with_all = ["json", "jsonl", "files"])]
    pub compact: bool,
    /// Print absolute paths; in JSON, as absolute_path
    #[arg(long, help_heading = "Output", hide_short_help = true)]
    pub absolute: bool,
    /// Print path:line:text, one line per result, for editors and other programs
    ///
    /// The text is that line of the note. Paths are relative to the vault's folder, and spelled as on disk unless a
    /// terminal shows them; --absolute makes them absolute.
    #[arg(long, help_heading = "Output", hide_short_help = true, conflicts_with_all = ["json", "jsonl", "files", "compact", "explain", "best_last"])]
    pub grep: bool,
    /// Open the first result, or the N-th, at its line in your editor
    ///
    /// On a terminal only. The editor is the setting `editor` in config.toml (a command, or obsidian), else $VISUAL,
    /// else $EDITOR. Nothing is printed.
    #[arg(long, value_name = "N", help_heading = "Output", num_args = 0..=1, require_equals = true,
          default_missing_value = "1", value_parser = at_least_one,
          conflicts_with_all = ["json", "jsonl", "files", "compact", "grep", "print0", "count", "explain", "absolute", "best_last"])]
    pub open: Option<usize>,
    /// Print paths only, each followed by NUL: for xargs -0
    ///
    /// Paths are spelled as on disk.
    #[arg(short = '0', long, help_heading = "Output", hide_short_help = true, conflicts_with_all = ["json", "jsonl", "compact", "grep", "explain"])]
    pub print0: bool,
    /// Print the number of notes that match, or with --chunks of passages
    ///
    /// With --group folder, prints a number for each folder. A note matches if it has a word of the query, unless
    /// --mode says otherwise.
    #[arg(long, help_heading = "Output",
          conflicts_with_all = ["jsonl", "files", "compact", "grep", "print0", "explain", "limit", "sort", "rerank", "best_last"])]
    pub count: bool,
    /// Sort by score (best first), modified (newest first) or path
    ///
    /// modified and path also list weak matches; --mode lexical or --min-score drops them.
    #[arg(long, value_name = "ORDER", help_heading = "Output", hide_possible_values = true, value_parser = sort_parser(), conflicts_with = "rerank")]
    pub sort: Option<Sort>,
    /// Group the results by folder
    ///
    /// The folder with the first result comes first.
    #[arg(long, value_name = "WHAT", help_heading = "Output", hide_short_help = true, value_parser = ["folder"])]
    pub group: Option<String>,
    /// On a terminal, print the best result last, nearest the prompt
    #[arg(long, help_heading = "Output", hide_short_help = true)]
    pub best_last: bool,
    /// Show the parts of each score
    #[arg(long, help_heading = "Output", hide_short_help = true)]
    pub explain: bool,
    /// Answer one query per line as JSON Lines; `-` reads standard input
    ///
    /// Each query is searched literally, without operators. Answers come in the order of the queries.
    #[arg(long, value_name = "FILE", help_heading = "Output", hide_short_help = true, allow_hyphen_values = true,
          conflicts_with_all = ["words", "like", "json", "files", "grep", "open", "explain", "compact", "absolute", "print0", "count",
                                "group"])]
    pub queries: Option<PathBuf>,
    #[command(flatten)]
    pub output: ListArgs,

    /// Use the index as it is, without checking for changed files
    #[arg(long, help_heading = "Vault and index", conflicts_with = "wait")]
    pub no_sync: bool,
    /// Wait up to this many seconds for the index
    ///
    /// Waits for changed notes to be read, missing vectors to be computed, and other processes to finish writing. By
    /// default, changed notes are read to the end on a terminal, and elsewhere for up to 10 seconds; vectors are
    /// computed on a terminal if 5 seconds are enough for all of them, and elsewhere for up to 1 second; other
    /// processes are not waited for.
    #[arg(long, value_name = "SECONDS", hide_short_help = true, help_heading = "Vault and index", value_parser = seconds,
          allow_hyphen_values = true)]
    pub wait: Option<Duration>,
    #[command(flatten)]
    pub vault_args: IndexedVaultArgs,
}

fn mode_parser() -> impl TypedValueParser<Value = Mode> {
    PossibleValuesParser::new(["hybrid", "semantic", "lexical"]).map(|name| match name.as_str() {
        "semantic" => Mode::Semantic,
        "lexical" => Mode::Lexical,
        _ => Mode::Hybrid,
    })
}

fn sort_parser() -> impl TypedValueParser<Value = Sort> {
    PossibleValuesParser::new(["score", "modified", "path"]).map(|name| match name.as_str() {
        "modified" => Sort::Modified,
        "path" => Sort::Path,
        _ => Sort::Score,
    })
}

/// A whole number, 1 or more.
pub(super) fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| "expected a whole number, 1 or more".to_string())
}

fn score(text: &str) -> Result<f32, String> {
    text.parse().ok().filter(|x| (0.0..=1.0).contains(x)).ok_or_else(|| "expected a number from 0 to 1".to_string())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> = text.parse().ok();
    let duration = seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
    duration.ok_or_else(|| "expected a number of seconds, 0 or more".to_string())
}

/// Reads the command line.
///
/// # Errors
/// Usage errors of clap, and its output for `--help` and `--version`.
pub(super) fn parse(args: impl IntoIterator<Item = OsString>) -> CliResult<SearchArgs> {
    let command = SearchArgs::command();
    Ok(SearchArgs::try_parse_from(options_first(args, &command))?)
}

/// Moves the query's words after a `--`, so that `-word` is a word in any position. Long options stay options, and an
/// unknown one stays an error. A `--` that the user typed stays among the words, where it ends the query syntax.
fn options_first(args: impl IntoIterator<Item = OsString>, command: &clap::Command) -> Vec<OsString> {
    let mut args = args.into_iter();
    let mut options: Vec<OsString> = args.next().into_iter().collect();
    let mut words: Vec<OsString> = Vec::new();
    while let Some(arg) = args.next() {
        match kind(&arg.to_string_lossy(), command) {
            Kind::Word => words.push(arg),
            Kind::Option => options.push(arg),
            Kind::OptionAndValue => {
                options.push(arg);
                options.extend(args.next());
            }
            Kind::End => {
                words.push(arg);
                words.extend(args.by_ref());
            }
        }
    }
    if !words.is_empty() {
        options.push("--".into());
        options.append(&mut words);
    }
    options
}

enum Kind {
    Word,
    Option,
    OptionAndValue,
    End,
}

fn kind(arg: &str, command: &clap::Command) -> Kind {
    if arg == "--" {
        return Kind::End;
    }
    if let Some(long) = arg.strip_prefix("--") {
        let takes_value =
            |a: &clap::Arg| a.get_long() == Some(long) && a.get_action().takes_values() && !a.is_require_equals_set();
        return if command.get_arguments().any(takes_value) { Kind::OptionAndValue } else { Kind::Option };
    }
    match arg {
        "-n" => Kind::OptionAndValue,
        "-h" | "-V" | "-0" => Kind::Option,
        _ => {
            let number = arg.strip_prefix("-n").map(|rest| rest.trim_start_matches('='));
            let is_limit = number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
            if is_limit { Kind::Option } else { Kind::Word }
        }
    }
}

impl SearchArgs {
    /// Returns the query as it was typed.
    pub(super) fn typed(&self) -> String {
        self.words.join(" ")
    }

    /// Returns the query with all options.
    ///
    /// # Errors
    /// An invalid filter, options that contradict each other, or nothing to search for.
    pub(super) fn query(&self, config: &UserConfig, now: &Zoned) -> Result<Query> {
        let query = self.with_options(Query::parse_at(&self.typed(), now)?, config, now)?;
        let has_words = !query.text.is_empty();
        if query.like.is_some() && has_words {
            return Err(Error::new(ErrorKind::Query, "--like replaces the words to search for")
                .with_remedy("leave out one of them; filters go with both"));
        }
        if query.like.is_some() && query.mode == Mode::Lexical {
            return Err(Error::new(ErrorKind::Query, "--like compares by meaning, and --mode lexical by words alone")
                .with_remedy("leave out one of them"));
        }
        if self.rerank.is_some() && query.like.is_some() {
            return Err(Error::new(ErrorKind::Query, "--rerank compares passages with words, and --like has none")
                .with_remedy("leave out one of them"));
        }
        if self.rerank.is_some() && !has_words && !query.is_empty() {
            return Err(Error::new(ErrorKind::Query, "--rerank compares passages with words, and filters have none")
                .with_remedy("write what to search for, or leave out --rerank"));
        }
        if query.is_empty() {
            return Err(Error::new(ErrorKind::Query, "there is nothing to search for").with_remedy(
                "for example: vault-search how to prune an apple tree; or give a filter, such as --tag garden",
            ));
        }
        Ok(query)
    }

    /// Returns a query of `--queries`: the literal line, with all options.
    ///
    /// # Errors
    /// An invalid filter.
    pub(super) fn literal(&self, line: &str, config: &UserConfig, now: &Zoned) -> Result<Query> {
        self.with_options(Query::literal(line), config, now)
    }

    fn with_options(&self, mut query: Query, config: &UserConfig, now: &Zoned) -> Result<Query> {
        let filter = &mut query.filter;
        self.tag.iter().try_for_each(|tag| filter.add_tag(tag))?;
        self.path.iter().try_for_each(|glob| filter.add_path(glob))?;
        for date in &self.after {
            filter.after = filter.after.max(Some(DateEdge::Start.parse(date, now)?));
        }
        for date in &self.before {
            let moment = DateEdge::End.parse(date, now)?;
            filter.before = Some(filter.before.map_or(moment, |other| other.min(moment)));
        }
        for range in &self.date {
            filter.dates.push(DateRange::parse(range, now)?);
        }
        for test in &self.prop {
            filter.properties.push(test.parse::<PropertyTest>()?);
        }
        query.like.clone_from(&self.like);
        // Similar notes are found by meaning, so the mode in the configuration does not apply.
        let configured = config.mode.filter(|_| self.like.is_none());
        // Count by words, because everything is close in meaning to some degree: a count should not include notes that
        // do not have a word of the query.
        let counted = (self.count && self.like.is_none()).then_some(Mode::Lexical);
        query.mode = self.mode.or(configured).or(counted).unwrap_or_default();
        query.limit = self.limit.or(config.limit).unwrap_or(query.limit).max(self.open.unwrap_or(0));
        query.grouping = if self.chunks { Grouping::Passages } else { Grouping::BestPassage };
        query.min_score = self.min_score;
        query.sort = self.sort.unwrap_or_default();
        Ok(query)
    }

    /// Loads the reranker, if one was requested.
    ///
    /// # Errors
    /// It is not built in, its files do not exist, or ONNX Runtime is missing.
    pub(super) fn reranking(&self) -> Result<Option<Rerank>> {
        let Some(name) = &self.rerank else { return Ok(None) };
        let mut rerank = Rerank::new(name.load(None)?);
        rerank.depth = self.rerank_depth.unwrap_or(rerank.depth);
        Ok(Some(rerank))
    }

    /// Whether a person waits for the answer and reads it. Otherwise it is treated as a script, even if a person
    /// started it.
    pub(super) fn is_seen(&self) -> bool {
        std::io::stdout().is_terminal() && crate::stderr_is_terminal() && !self.is_for_programs()
    }

    fn is_for_programs(&self) -> bool {
        let output = &self.output;
        output.json || output.jsonl || self.files || self.grep || self.print0 || self.count || self.queries.is_some()
    }

    /// Returns how the index is brought up to date before the search.
    pub(super) fn sync_policy(&self, mode: Mode) -> SyncPolicy {
        let wait = self.wait.map_or(Wait::Unasked { is_seen: self.is_seen() }, Wait::AtMost);
        match mode {
            _ if self.no_sync => SyncPolicy::Skip,
            // A lexical search needs no vectors.
            Mode::Lexical if self.like.is_none() => SyncPolicy::Text(wait),
            _ => SyncPolicy::All(wait),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Failure;

    use super::*;

    fn args(line: &[&str]) -> CliResult<SearchArgs> {
        parse(std::iter::once("vault-search").chain(line.iter().copied()).map(OsString::from))
    }

    fn question(line: &[&str]) -> Result<Query> {
        let now: Zoned = "2026-03-18T12:00:00+01:00[Europe/Zurich]".parse().unwrap();
        args(line).unwrap().query(&UserConfig::default(), &now)
    }

    #[test]
    fn the_definition_is_sound() {
        SearchArgs::command().debug_assert();
        assert_eq!(SYNTAX.lines().find(|line| line.chars().count() > 100), None, "this line is wrapped");
    }

    #[test]
    fn words_and_options_in_any_order() {
        fn check(line: &[&str], text: &str, without: &[&str], limit: usize) {
            let query = question(line).unwrap();
            assert_eq!((query.text.as_str(), query.limit), (text, limit), "{line:?}");
            let excluded: String = without.iter().map(|word| format!(" -\"{word}\"")).collect();
            let condition = query.condition.map(|condition| condition.to_string()).unwrap_or_default();
            assert_eq!(condition, excluded.trim(), "{line:?}");
        }
        check(&["rose", "-thorn"], "rose", &["thorn"], 10);
        check(&["-thorn", "rose", "-n", "3", "tree"], "rose tree", &["thorn"], 3);
        check(&["rose", "-0", "-05"], "rose -05", &[], 10);
        check(&["-n5", "rose", "-nature", "-hello", "-V2"], "rose", &["nature", "hello", "V2"], 5);
        check(&["rose", "--limit=7", "--json", "-n=7"], "rose", &[], 7);
        check(&["a", "-", "b"], "a - b", &[], 10);
        check(&["--", "-x", "tag:y"], "-x tag:y", &[], 10);
        check(&["a", "-b", "--", "-c", "--json", "--"], "a -c --json --", &["b"], 10);
        check(&["how to prune", "trees"], "how to prune trees", &[], 10);
    }

    #[test]
    fn unknown_long_options_are_errors_with_a_hint() {
        for line in [&["rose", "--foo"][..], &["--foo=1", "rose"], &["--limt", "3", "rose"]] {
            let Err(Failure::Usage(error)) = args(line) else { panic!("{line:?}") };
            assert_eq!(error.exit_code(), 2);
        }
        for (line, says) in [(["x", "-n", "-1"], "1 or more"), (["x", "--wait", "-1"], "0 or more")] {
            let Err(Failure::Usage(error)) = args(&line) else { panic!("{line:?}") };
            assert!(error.to_string().contains(says), "{error}");
        }
        let Err(Failure::Usage(error)) = args(&["rose", "--foo"]) else { panic!() };
        assert!(error.to_string().contains("'-- --foo'"), "{error}");
    }

    #[test]
    fn filters() {
        let query = question(&[
            "tag:a",
            "x",
            "--tag",
            "#b",
            "--path",
            "Daily",
            "--after",
            "2026-01",
            "--before",
            "2026-01",
            "--after",
            "2025",
            "--before",
            "2027",
            "--date",
            ">=2026-01",
            "--prop",
            "rating>=4",
            "--prop",
            "-draft",
            "--min-score",
            "0.5",
            "--chunks",
            "--mode",
            "lexical",
        ])
        .unwrap();
        assert_eq!(query.condition.unwrap().to_string(), "tag:a");
        assert_eq!((query.filter.tags.as_slice(), query.filter.dates.len()), (&["b".to_string()][..], 1));
        assert_eq!(query.filter.paths, ["Daily"]);
        assert_eq!(query.filter.after.unwrap().to_string(), "2025-12-31T23:00:00Z");
        assert_eq!(query.filter.before.unwrap().to_string(), "2026-01-31T23:00:00Z");
        assert_eq!(query.filter.properties.len(), 2);
        assert_eq!((query.mode, query.grouping, query.min_score), (Mode::Lexical, Grouping::Passages, Some(0.5)));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            &[][..],
            &["--"],
            &[""],
            &["x", "--like", "a.md"],
            &["--like", "a.md", "--mode", "lexical"],
            &["--like", "a.md", "--rerank", "onnx:m"],
            &["--tag", "a", "--rerank", "onnx:m"],
            &["-word", "--rerank", "onnx:m"],
            &["x", "--after", "soon"],
            &["x", "--prop", "=3"],
            &["x", "--prop", "by~/(/"],
            &["x", "--date", "1/2/2026"],
            &["x", "--prop", "s=>1"],
            &["x", "--tag", ""],
            &["x", "--tag", "#"],
            &["x", "--path", "["],
            &["x", "--path", ""],
            &["x", "--path", "/"],
        ] {
            assert!(question(line).is_err(), "{line:?}");
        }
        for line in [
            &["x", "--limit", "0"][..],
            &["x", "--min-score", "2"],
            &["x", "--mode", "best"],
            &["x", "--rerank", "best"],
            &["x", "--rerank", "fastembed:"],
            &["x", "--rerank-depth", "5"],
            &["x", "--rerank", "onnx:m", "--rerank-depth", "0"],
            &["x", "--json", "--jsonl"],
            &["x", "--json", "--files"],
            &["x", "--no-sync", "--wait", "1"],
            &["x", "-0", "--json"],
            &["x", "--compact", "--files"],
            &["x", "--count", "--jsonl"],
            &["x", "--count", "--sort", "path"],
            &["x", "--sort", "size"],
            &["x", "--group", "tag"],
            &["--queries", "-", "--count"],
            &["x", "--wait", "-1"],
            &["x", "-n", "-1"],
            &["x", "--open=0"],
            &["x", "--open", "--json"],
            &["x", "--grep", "--files"],
            &["--queries", "-", "--grep"],
            &["x", "--queries", "-"],
            &["x", "--wait", "nan"],
        ] {
            assert!(args(line).is_err(), "{line:?}");
        }
    }

    #[test]
    fn the_value_of_open_is_not_a_word() {
        let open = |line: &[&str]| args(line).map(|args| (args.open, args.typed())).unwrap();
        assert_eq!(open(&["--open", "rose"]), (Some(1), "rose".to_string()));
        assert_eq!(open(&["rose", "--open=12", "3"]), (Some(12), "rose 3".to_string()));
        assert_eq!(question(&["rose", "--open=12"]).unwrap().limit, 12);
    }

    #[test]
    fn what_is_for_programs() {
        let is_for_programs = |line: &[&str]| args(&[&["x"], line].concat()).unwrap().is_for_programs();
        for line in [&["--json"][..], &["--jsonl"], &["--files"], &["--grep"], &["-0"], &["--count"]] {
            assert!(is_for_programs(line), "{line:?}");
        }
        assert!(args(&["--queries", "-"]).unwrap().is_for_programs());
        assert!(!is_for_programs(&[]) && !is_for_programs(&["--open"]) && !is_for_programs(&["--compact"]));
    }

    #[test]
    fn filters_alone_and_like_are_questions() {
        assert!(question(&["--tag", "a"]).is_ok());
        assert!(question(&["tag:a"]).is_ok());
        assert_eq!(question(&["--like", "a.md", "tag:b"]).unwrap().like.as_deref(), Some("a.md"));
    }

    #[test]
    fn rerankers() {
        let asked = args(&["x", "--rerank", "onnx:my model", "--rerank-depth", "7", "y"]).unwrap();
        assert_eq!(
            (asked.rerank.as_ref().map(ToString::to_string), asked.rerank_depth),
            (Some("onnx:my model".into()), Some(7))
        );
        assert_eq!(asked.typed(), "x y");
        assert!(question(&["\"a phrase\"", "--rerank", "onnx:m"]).is_ok());
        assert!(args(&["x"]).unwrap().reranking().unwrap().is_none());
        let help = SearchArgs::command().render_long_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        // A program without them does not show them.
        let has = |text: &str| assert_eq!(help.contains(text), cfg!(feature = "fastembed"), "{text}");
        has(&format!("--rerank scores [default: {}]", Rerank::DEPTH));
        RerankerName::FASTEMBED.iter().for_each(|name| has(name));
        has("fastembed:NAME");
        assert_eq!(help.contains("ollama:NAME"), cfg!(feature = "http"));
    }

    #[test]
    fn flags_go_before_the_configuration() {
        let config = UserConfig { limit: Some(3), mode: Some(Mode::Semantic), ..UserConfig::default() };
        let now = Zoned::now();
        let query = args(&["x"]).unwrap().query(&config, &now).unwrap();
        assert_eq!((query.limit, query.mode), (3, Mode::Semantic));
        let query = args(&["x", "-n", "1", "--mode", "hybrid"]).unwrap().query(&config, &now).unwrap();
        assert_eq!((query.limit, query.mode), (1, Mode::Hybrid));
    }

    #[test]
    fn how_long_is_waited() {
        let policy = |line: &[&str], mode| args(line).unwrap().sync_policy(mode);
        assert_eq!(policy(&["x", "--no-sync"], Mode::Hybrid), SyncPolicy::Skip);
        assert_eq!(policy(&["x"], Mode::Hybrid), SyncPolicy::All(Wait::Unasked { is_seen: false }));
        let wait = |seconds| Wait::AtMost(Duration::from_secs_f32(seconds));
        assert_eq!(policy(&["x", "--wait", "0.5"], Mode::Hybrid), SyncPolicy::All(wait(0.5)));
        assert_eq!(policy(&["x", "--wait", "3"], Mode::Lexical), SyncPolicy::Text(wait(3.0)));
    }

    #[test]
    fn a_query_may_be_long() {
        let long = "word ".repeat(20_000);
        assert_eq!(question(&[&long]).unwrap().text.len(), 99_999);
    }

    #[test]
    fn lines_of_queries_are_literal() {
        let args = args(&["--queries", "-", "--tag", "a"]).unwrap();
        let query = args.literal("-x tag:y \"z", &UserConfig::default(), &Zoned::now()).unwrap();
        assert_eq!((query.text.as_str(), query.filter.tags.as_slice()), ("-x tag:y \"z", &["a".to_string()][..]));
    }
}
