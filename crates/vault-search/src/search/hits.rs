//! Prints search results for people, with as many lines of each as fit on the screen.

use std::io;
use std::path::PathBuf;

use vault_index::{Hit, NameMatch};

use crate::{Out, Paint, cut_to, most_columns, sanitize_line};

use super::answer::{SearchAnswer, SearchResult};
use super::excerpt::{excerpt, snippet};
use crate::hyperlink::{Hyperlink, Target};

/// Options for how results are printed.
pub(super) struct HitStyle<'a> {
    pub vaults: &'a [PathBuf],
    pub hyperlink: &'a Hyperlink,
    /// Whether the results are ranked. Without it, the query had only filters, and scores are meaningless.
    pub is_ranked: bool,
    /// Whether to print the parts of each score.
    pub explain: bool,
    /// Whether to print one line per result, whatever the height of the terminal.
    pub compact: bool,
    /// Whether to print the best result last on a terminal, nearest the prompt.
    pub best_last: bool,
    /// The rows of the screen to leave for notices.
    pub reserved: usize,
}

/// The layout of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// A line with path and score, the title, and up to `lines` lines of the passage. Blank lines between results if
    /// `apart`.
    Block { lines: usize, apart: bool },
    /// A line with path, score and title, and one line of the passage.
    Two,
    /// Everything on one line.
    One,
}

/// The layouts from the tallest to the most compact.
const LAYOUTS: [Layout; 7] = [
    ROOMY,
    Layout::Block { lines: 3, apart: true },
    Layout::Block { lines: 2, apart: true },
    Layout::Block { lines: 1, apart: true },
    Layout::Block { lines: 1, apart: false },
    Layout::Two,
    Layout::One,
];

const ROOMY: Layout = Layout::Block { lines: 4, apart: true };

/// The columns of a snippet on one line without a terminal.
const PIPED_SNIPPET: usize = 100;

/// The minimum columns for a text, enough for a word or two; narrower texts are left out.
const LEAST_TEXT: usize = 8;

/// Prints the results of an answer. On a terminal, uses the tallest layout in which all results fit its height.
pub(super) fn print(answer: &SearchAnswer, style: &HitStyle<'_>, out: &mut Out) -> io::Result<()> {
    let paint = out.paint;
    let lines = match (style.compact, paint.height()) {
        (true, _) => lines(answer, style, Layout::One, paint),
        (false, None) => lines(answer, style, ROOMY, paint),
        (false, Some(height)) => {
            // Leave one row for the prompt.
            let free = height.saturating_sub(style.reserved + 1);
            let tried = LAYOUTS.iter().map(|layout| lines(answer, style, *layout, paint));
            let rows = |lines: &Vec<Row>| lines.iter().map(|row| row.height(paint)).sum::<usize>();
            let mut fallback = Vec::new();
            let fit = tried.into_iter().find_map(|lines| {
                if rows(&lines) <= free {
                    return Some(lines);
                }
                fallback = lines;
                None
            });
            fit.unwrap_or(fallback)
        }
    };
    lines.iter().try_for_each(|row| out.line(&row.text))
}

/// A line with its number of columns.
struct Row {
    text: String,
    columns: usize,
}

impl Row {
    fn new(text: String, plain: &str) -> Self {
        Self { text, columns: most_columns(plain) }
    }

    /// Dims the whole line, including the parts with other styles.
    fn dim(self, paint: Paint) -> Self {
        let text = if paint.has_colors() { self.text.replace("\x1b[0m", "\x1b[0;2m") } else { self.text };
        Self { text: paint.dim(&text), ..self }
    }

    /// Returns the rows that the line takes on the terminal.
    fn height(&self, paint: Paint) -> usize {
        self.columns.div_ceil(paint.width().unwrap_or(usize::MAX)).max(1)
    }
}

/// Returns the lines of all results, grouped below their folders if there are any.
fn lines(answer: &SearchAnswer, style: &HitStyle<'_>, layout: Layout, paint: Paint) -> Vec<Row> {
    let mut groups: Vec<(Option<String>, Vec<&SearchResult>)> = Vec::new();
    for result in &answer.results {
        let folder = result.shown_folder();
        match groups.last_mut() {
            Some((last, results)) if *last == folder => results.push(result),
            _ => groups.push((folder, vec![result])),
        }
    }
    if style.best_last && paint.is_terminal() {
        groups.reverse();
        groups.iter_mut().for_each(|(_, results)| results.reverse());
    }
    let blank = || Row::new(String::new(), "");
    let apart = matches!(layout, Layout::Block { apart: true, .. });
    let weak = if let [(None, results)] = groups.as_slice() { line_about_weak(results, paint) } else { None };
    let mut lines = Vec::new();
    for (folder, results) in groups {
        if let Some(folder) = folder {
            if !lines.is_empty() {
                lines.push(blank());
            }
            let folder = sanitize_line(&folder);
            lines.push(Row::new(paint.bold(&folder), &folder));
        } else if apart && !lines.is_empty() {
            lines.push(blank());
        }
        for (n, result) in results.into_iter().enumerate() {
            if n > 0 && apart {
                lines.push(blank());
            }
            lines.extend(weak.filter(|(at, _)| *at == n).map(|(_, line)| Row::new(paint.dim(line), line)));
            let rows = of_result(result, answer, style, layout, paint);
            lines.extend(rows.into_iter().map(|row| if result.hit.is_weak { row.dim(paint) } else { row }));
        }
    }
    lines
}

/// Returns the heading that separates weak results from the others, and its position. With the best result last, the
/// heading is before the first better one. `None` if weak results are mixed with others, for example when sorted by
/// path.
fn line_about_weak(results: &[&SearchResult], paint: Paint) -> Option<(usize, &'static str)> {
    let weak: Vec<bool> = results.iter().map(|result| result.hit.is_weak).collect();
    let first = *weak.first()?;
    let others = weak.iter().position(|is_weak| *is_weak != first);
    let (at, line) = match (first, others) {
        (false, None) => return None,
        (true, None) => (0, "weak matches:"),
        (false, Some(at)) => (at, "weaker matches:"),
        (true, Some(at)) => (at, "better matches:"),
    };
    let is_together = others.is_none_or(|at| weak[at..].iter().all(|is_weak| *is_weak != first));
    (paint.is_terminal() && is_together).then_some((at, line))
}

fn of_result(
    result: &SearchResult,
    answer: &SearchAnswer,
    style: &HitStyle<'_>,
    layout: Layout,
    paint: Paint,
) -> Vec<Row> {
    let hit = &result.hit;
    let score = match style.is_ranked {
        true => format!("{:.2}", hit.score),
        false => hit.modified.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d").to_string(),
    };
    let rest = format!(":{}  {score}", hit.line);
    let mut path = sanitize_line(&result.shown_path());
    if let (Layout::One | Layout::Two, Some(width)) = (layout, paint.width()) {
        path = shortened(&path, width / 2, width.saturating_sub(rest.len()));
    }
    let plain = format!("{path}{rest}");
    let place = format!("{}{}", paint.path(&path), paint.dim(&format!(":{}", hit.line)));
    let place = format!("{}  {}", paint.link(&url(result, style, paint), &place), paint.good(&score));
    let text_columns = paint.columns() - 4;
    let terms = &hit.why.terms;
    let mut rows = match layout {
        Layout::Block { lines, .. } => {
            let title = titles(hit, true);
            let title = if paint.is_terminal() {
                cut_to(&sanitize_line(&title), paint.columns() - 2)
            } else {
                sanitize_line(&title)
            };
            let mut rows = vec![Row::new(place, &plain), Row::new(format!("  {}", paint.bold(&title)), &title)];
            let lines = excerpt(&hit.text, terms, text_columns, lines, &paint);
            rows.extend(lines.into_iter().map(|line| Row::new(format!("    {line}"), "")));
            rows
        }
        Layout::Two => {
            let room = paint.width().unwrap_or(PIPED_SNIPPET).saturating_sub(most_columns(&plain) + 2);
            let title =
                if room < LEAST_TEXT { String::new() } else { cut_to(&sanitize_line(&titles(hit, false)), room) };
            let snippet = snippet(&hit.text, terms, text_columns, &paint);
            vec![
                Row::new(format!("{place}  {}", paint.bold(&title)).trim_end().to_string(), ""),
                Row::new(format!("    {snippet}"), ""),
            ]
        }
        Layout::One => vec![compact(hit, place, &plain, paint)],
    };
    if style.explain {
        let explained = format!("    {}", explained(hit, answer.reranker.as_deref()));
        rows.push(Row::new(paint.dim(&explained), &explained));
    }
    rows
}

/// Returns `place  title › heading: snippet`, truncated to the width of the terminal.
fn compact(hit: &Hit, place: String, plain: &str, paint: Paint) -> Row {
    let room = paint.width().map(|width| width.saturating_sub(most_columns(plain) + 2));
    let mut titles = titles(hit, false);
    titles = match room {
        None => sanitize_line(&titles),
        // If room is short, text is more useful than half a title.
        Some(room) if room < 4 * LEAST_TEXT => String::new(),
        Some(room) => cut_to(&sanitize_line(&titles), room / 2),
    };
    let label = if titles.is_empty() { String::new() } else { format!("{titles}: ") };
    let room = room.map_or(PIPED_SNIPPET, |room| room.saturating_sub(most_columns(&label)));
    let snippet = if room < LEAST_TEXT { String::new() } else { snippet(&hit.text, &hit.why.terms, room, &paint) };
    let text = format!("{place}  {}{snippet}", paint.bold(&label));
    Row::new(text.trim_end().to_string(), "")
}

/// Returns the title and the headings below it. Unless `all`, a title equal to the file's name is left out, because the
/// path is printed next to it.
fn titles(hit: &Hit, all: bool) -> String {
    let title = Some(&hit.title).filter(|title| all || *title != hit.path.stem());
    let below = hit.headings.iter().filter(|heading| **heading != hit.title);
    title.into_iter().chain(below).map(String::as_str).collect::<Vec<_>>().join(" › ")
}

/// Truncates a path at its start to `width` columns. Keeps the file name, unless it alone is wider than `most`.
fn shortened(path: &str, width: usize, most: usize) -> String {
    if most_columns(path) <= width {
        return path.to_string();
    }
    let mut slashes = path.match_indices('/').map(|(at, _)| &path[at..]);
    let fits = slashes.clone().find(|end| most_columns(end) < width);
    let end = fits.or_else(|| slashes.next_back()).map(|end| format!("…{end}"));
    cut_to(&sanitize_line(end.as_deref().unwrap_or(path)), most)
}

fn url(result: &SearchResult, style: &HitStyle<'_>, paint: Paint) -> String {
    if !paint.has_links() {
        return String::new();
    }
    let hit = &result.hit;
    let heading = hit.headings.last().filter(|heading| **heading != hit.title).map(String::as_str);
    style.hyperlink.url(&Target {
        file: &result.file,
        vault: &style.vaults[result.vault_index],
        path: hit.path.as_str(),
        line: hit.line,
        heading,
    })
}

/// Returns the parts of a score on one line.
pub(super) fn explained(hit: &Hit, reranker: Option<&str>) -> String {
    let why = &hit.why;
    let mut parts = Vec::new();
    if let Some(estimated) = why.estimated {
        parts.push(format!("meaning about {estimated:.3} (not embedded yet) × {:.2}", why.weights.0));
    }
    if let Some(semantic) = why.semantic {
        parts.push(format!("meaning {semantic:.3} × {:.2}", why.weights.0));
    }
    parts.push(format!("words {:.3} × {:.2}", why.lexical, why.weights.1));
    let mut text = parts.join(" + ");
    if let Some(notes) = why.repeated {
        text += &format!("; half of its own, since {notes} notes have this very passage");
    }
    if let Some(least) = why.least {
        text += &format!("; the whole query word for word, as few have it: at least {least:.2}");
    }
    if let Some(name) = why.name {
        let how = match name {
            NameMatch::Equal => "a name of the note is the query: above 0.9",
            NameMatch::Begins => "a name of the note begins with the query: 0.8 to 0.9",
            NameMatch::Words => "a name of the note has all words of the query: 0.8 to 0.9",
        };
        text = format!("{how}; {text}");
    }
    if let Some(before) = why.rerank {
        let by = sanitize_line(reranker.unwrap_or_default());
        text = format!("reranked {:.3} by {by}; before: rank {}, {:.3} = {text}", hit.score, before.rank, before.score);
    }
    if let Some(title) = why.title {
        text.push_str(&format!("; file name {title:.3}"));
    }
    if !why.terms.is_empty() {
        text.push_str(&format!("; found: {}", sanitize_line(&why.terms.join(", "))));
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::CapturedOutput;

    use super::super::answer::tests::{hit, merged};
    use super::*;
    use vault_index::{Query, VaultPath};

    fn style<'a>(vaults: &'a [PathBuf], hyperlink: &'a Hyperlink) -> HitStyle<'a> {
        HitStyle { vaults, hyperlink, is_ranked: true, explain: false, compact: false, best_last: false, reserved: 0 }
    }

    fn answer() -> SearchAnswer {
        let mut soil = hit("Garden/Soil.md", 0.5);
        let text = "It is a long story about soil and everything that lives in it.\n";
        soil.text = format!("## Part\n\n{}", text.repeat(6));
        merged(vec![vec![soil, hit("A deep/folder with/a long name/of its own/Note.md", 0.25)]], &Query::literal("x"))
    }

    fn text(lines: &[Row]) -> Vec<&str> {
        lines.iter().map(|row| row.text.as_str()).collect()
    }

    #[test]
    fn blocks_in_a_pipe() {
        let (vaults, hyperlink) = ([PathBuf::from("/v0")], Hyperlink::default());
        let captured = CapturedOutput::default();
        let style = HitStyle { explain: true, ..style(&vaults, &hyperlink) };
        let one = merged(vec![vec![hit("Garden/Soil.md", 0.5)]], &Query::literal("x"));
        print(&one, &style, &mut Out::to(captured.clone())).unwrap();
        assert_eq!(
            captured.text().lines().collect::<Vec<_>>(),
            [
                "Garden/Soil.md:9  0.50",
                "  A ␛[31mtitle › Part",
                "    Some words about soil.",
                "    meaning 0.500 × 0.75 + words 0.250 × 0.25; found: soil",
            ]
        );
    }

    #[test]
    fn layouts() {
        let (vaults, hyperlink) = ([PathBuf::from("/v0")], Hyperlink::default());
        let answer = answer();
        let style = style(&vaults, &hyperlink);
        let rows = |layout| lines(&answer, &style, layout, Paint::default());
        assert_eq!(rows(ROOMY).len(), 10);
        assert_eq!(
            text(&rows(Layout::One)),
            [
                "Garden/Soil.md:9  0.50  A ␛[31mtitle › Part: It is a long story about soil and everything that lives in \
                 it. It is a long story about soil and …",
                "A deep/folder with/a long name/of its own/Note.md:9  0.25  A ␛[31mtitle › Part: Some words about soil.",
            ]
        );
        assert_eq!(
            text(&rows(Layout::Two))[2..],
            [
                "A deep/folder with/a long name/of its own/Note.md:9  0.25  A ␛[31mtitle › Part",
                "    Some words about soil.",
            ]
        );
    }

    /// Each line fits, whatever the width, but for paths where there is room for all of them.
    #[test]
    fn lines_fit_the_terminal() {
        let (vaults, hyperlink) = ([PathBuf::from("/v0")], Hyperlink::try_from("none".to_string()).unwrap());
        let style = style(&vaults, &hyperlink);
        let mut answer = answer();
        answer.results[0].hit.title = "☀\u{fe0f} 日本語".repeat(12);
        let named = answer.results[1].hit.path.to_string().replace("Note", &"A long name, 日本語 ".repeat(9));
        answer.results[1].hit.path = VaultPath::new(&named).unwrap();
        let unpainted = |text: &str| {
            text.replace("\u{1b}[0m", "")
                .split('\u{1b}')
                .map(|part| {
                    part.strip_prefix('[')
                        .and_then(|part| part.split_once('m'))
                        .map_or(part, |(_, rest)| rest)
                        .to_string()
                })
                .collect::<String>()
        };
        for width in 20..=120 {
            for layout in LAYOUTS {
                for row in lines(&answer, &style, layout, Paint::full(width)) {
                    let plain = unpainted(&row.text);
                    let columns = most_columns(&plain);
                    let may_wrap = plain.contains(".md:") && matches!(layout, Layout::Block { .. });
                    assert!(columns <= width || may_wrap, "{columns} of {width}: {plain}");
                }
            }
        }
    }

    #[test]
    fn the_best_nearest_the_prompt_by_folder() {
        let (vaults, hyperlink) = ([PathBuf::from("/v0")], Hyperlink::try_from("none".to_string()).unwrap());
        let hits = ["b/x.md", "a/y.md", "b/z.md"].iter().zip([0.9, 0.7, 0.6]).map(|(path, score)| hit(path, score));
        let mut answer = merged(vec![hits.collect()], &Query::literal("x"));
        answer.group_by_folder();
        let first_words = |best_last| -> Vec<String> {
            let style = HitStyle { best_last, ..style(&vaults, &hyperlink) };
            let rows = lines(&answer, &style, Layout::One, Paint::full(80));
            rows.iter()
                .map(|row| row.text.replace("\u{1b}[0m", " ").split_whitespace().next().unwrap_or("").into())
                .collect()
        };
        assert_eq!(
            first_words(false),
            ["\u{1b}[1mb/", "\u{1b}[36mb/x.md", "\u{1b}[36mb/z.md", "", "\u{1b}[1ma/", "\u{1b}[36ma/y.md"]
        );
        assert_eq!(
            first_words(true),
            ["\u{1b}[1ma/", "\u{1b}[36ma/y.md", "", "\u{1b}[1mb/", "\u{1b}[36mb/z.md", "\u{1b}[36mb/x.md"]
        );
    }

    #[test]
    fn weak_results_look_weak() {
        let (vaults, hyperlink) = ([PathBuf::from("/v0")], Hyperlink::try_from("none".to_string()).unwrap());
        let printed = |weak: [bool; 3], best_last, paint| -> Vec<String> {
            let mut hits: Vec<Hit> = ["a.md", "b.md", "c.md"].map(|path| hit(path, 0.5)).into();
            hits.iter_mut().zip(weak).for_each(|(hit, weak)| hit.is_weak = weak);
            let answer = merged(vec![hits], &Query::literal("x"));
            let rows = lines(&answer, &HitStyle { best_last, ..style(&vaults, &hyperlink) }, Layout::One, paint);
            rows.into_iter().map(|row| row.text.chars().take(18).collect()).collect()
        };
        let (dim, path) = ("\u{1b}[2m", "\u{1b}[36m");
        let [a, b, c] = ["a.md", "b.md", "c.md"].map(|name| format!("{path}{name}\u{1b}[0m\u{1b}[2m:"));
        let [weak_b, weak_c] = ["b.md", "c.md"].map(|name| format!("{dim}{path}{name}\u{1b}[0;2"));
        let paint = Paint::full(80);
        assert_eq!(printed([false; 3], false, paint), [&a[..], &b, &c]);
        let line = |text: &str| format!("{dim}{text}").chars().take(18).collect::<String>();
        assert_eq!(printed([false, false, true], false, paint), [&a[..], &b, &line("weaker matches:"), &weak_c]);
        assert_eq!(printed([false, true, true], true, paint), [&weak_c[..], &weak_b, &line("better matches:"), &a]);
        assert_eq!(printed([true; 3], false, paint)[0], line("weak matches:\u{1b}[0m"));
        assert_eq!(printed([false, true, false], false, paint), [&a[..], &weak_b, &c]);
        assert_eq!(printed([true, false, true], false, paint).len(), 3);
        assert_eq!(printed([false, false, true], false, Paint::default()).len(), 3);
    }

    #[test]
    fn long_paths_keep_their_names() {
        let shortened = |path| shortened(path, 8, 16);
        assert_eq!(shortened("a/b/c.md"), "a/b/c.md");
        assert_eq!(shortened("alpha/b/c.md"), "…/b/c.md");
        assert_eq!(shortened("alpha/beta/c.md"), "…/c.md");
        assert_eq!(shortened("alpha/a long name.md"), "…/a long name.md");
        assert_eq!(shortened("a long name.md"), "a long name.md");
        assert_eq!(shortened("alpha/a much longer name.md"), "…/a much longer…");
        assert_eq!(shortened("a much longer name.md"), "a much longer n…");
    }

    #[test]
    fn what_the_name_counts_is_explained() {
        let mut hit = hit("a.md", 0.98);
        hit.why.name = Some(NameMatch::Equal);
        let parts = "meaning 0.500 × 0.75 + words 0.250 × 0.25; found: soil";
        assert_eq!(explained(&hit, None), format!("a name of the note is the query: above 0.9; {parts}"));
    }

    #[test]
    fn what_a_reranker_did_is_explained() {
        let mut hit = hit("a.md", 0.875);
        hit.why.rerank = serde_json::from_str(r#"{ "rank": 7, "score": 0.4375 }"#).unwrap();
        assert_eq!(
            explained(&hit, Some("onnx:my \u{1b}model")),
            "reranked 0.875 by onnx:my ␛model; before: rank 7, 0.438 = meaning 0.500 × 0.75 + words 0.250 × 0.25; \
             found: soil"
        );
    }
}
