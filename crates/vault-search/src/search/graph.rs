//! `vault-index graph`: the link graph for Graphviz, as JSON, or as an HTML page that draws it.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use vault_index::{Error, ErrorKind, GraphData, GraphNode};

use crate::{CliResult, Failure, Out, Outcome, note};

use super::index_args::{GraphArgs, GraphFormat};
use super::links;
use super::settings::IndexedVaultArgs;

/// The HTML page. `__TITLE__` and after it `__DATA__` are placeholders for the vault's name and data.
const PAGE: &str = include_str!("graph.html");

/// The link graph.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct GraphRecord<'a> {
    /// Files, and link targets that do not exist.
    nodes: &'a [GraphNode],
    /// Links; those between the same two nodes are one edge.
    edges: Vec<EdgeRecord<'a>>,
}

/// An edge of the graph.
#[derive(Debug, Serialize, JsonSchema)]
struct EdgeRecord<'a> {
    /// The path of the note that links.
    source: &'a str,
    /// The path of the target.
    target: &'a str,
    /// The number of links from the source to the target.
    count: usize,
}

pub(super) fn run(vault_args: &IndexedVaultArgs, args: &GraphArgs, out: &mut Out) -> CliResult {
    if args.schema {
        return out.schema::<GraphRecord<'static>>();
    }
    if let Some(file) = &args.output {
        refuse_notes(file)?;
    }
    if args.format.is_none() && args.output.is_none() && out.paint.is_terminal() {
        let long = Error::new(ErrorKind::Query, "the link graph is one long line of JSON, which is not for a terminal");
        return Err(long
            .with_remedy(
                "`vault-index graph --format html -o graph.html` draws it as a page; --format json prints it anyway",
            )
            .into());
    }
    let format = args.format.unwrap_or(GraphFormat::Json);
    let index = links::open_index(vault_args, args.no_sync)?;
    let graph = index.graph()?;
    let vault = index.vault().file_name().map_or_else(|| "vault".into(), |name| name.to_string_lossy());
    match &args.output {
        None => write(&graph, format, &vault, out)?,
        Some(file) => {
            write_file(&graph, format, &vault, file)?;
            note(&format!("{} nodes and {} edges are in {}", graph.nodes.len(), graph.edges.len(), file.display()));
        }
    }
    Ok(Outcome::Done)
}

/// Refuses to overwrite a note with a graph.
fn refuse_notes(file: &Path) -> CliResult<()> {
    let extension = file.extension().map(|e| e.to_string_lossy().to_lowercase());
    if !matches!(extension.as_deref(), Some("md" | "markdown" | "canvas")) {
        return Ok(());
    }
    let refused = Error::new(ErrorKind::Io, "a graph must not overwrite a note").at(file);
    Err(Failure::Refused(refused.with_remedy("choose a file that ends in .html, .dot or .json").one_line()))
}

/// Writes the graph to a file. An old file is replaced only when the new one is complete.
fn write_file(graph: &GraphData, format: GraphFormat, vault: &str, file: &Path) -> CliResult<()> {
    let io = |error| Error::io(file, error);
    let cannot_write = |what: &str, error| Error::new(ErrorKind::Io, what).at(file).because(error);
    // Anything but a regular file, such as `/dev/stdout`, is written to as it is.
    if file.exists() && !file.is_file() {
        let mut out = Out::to(BufWriter::new(File::create(file).map_err(io)?));
        let written = write(graph, format, vault, &mut out).and_then(|()| out.flush());
        return match written {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(cannot_write("cannot be written", error).into())
            }
            written => Ok(written?),
        };
    }
    // Replace the target of a symbolic link, not the link.
    let file = &std::fs::canonicalize(file).unwrap_or_else(|_| file.to_path_buf());
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut new = tempfile::Builder::new();
    #[cfg(unix)]
    new.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let new = new.tempfile_in(folder).map_err(io)?;
    let mut out = Out::to(BufWriter::new(new.reopen().map_err(io)?));
    let written = write(graph, format, vault, &mut out).and_then(|()| out.flush());
    written.map_err(|error| cannot_write("cannot be written; the old file is unchanged", error))?;
    drop(out);
    if let Ok(old) = std::fs::metadata(file) {
        std::fs::set_permissions(new.path(), old.permissions()).map_err(io)?;
    }
    new.persist(file).map_err(|error| io(error.error))?;
    Ok(())
}

fn write(graph: &GraphData, format: GraphFormat, vault: &str, out: &mut Out) -> io::Result<()> {
    match format {
        GraphFormat::Json => out.json(&record(graph)),
        GraphFormat::Dot => dot(graph, out),
        GraphFormat::Html => page(graph, vault, out),
    }
}

fn record(graph: &GraphData) -> GraphRecord<'_> {
    let path = |n: usize| graph.nodes[n].path.as_str();
    let edges = graph.edges.iter().map(|&(from, to, count)| EdgeRecord { source: path(from), target: path(to), count });
    GraphRecord { nodes: &graph.nodes, edges: edges.collect() }
}

fn dot(graph: &GraphData, out: &mut Out) -> io::Result<()> {
    out.line("digraph vault {\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];")?;
    for node in &graph.nodes {
        let style = match node.kind.as_str() {
            "unresolved" => ", style=dashed",
            "attachment" => ", shape=note",
            _ => "",
        };
        out.line(&format!("  {} [label={}{style}];", quoted(&node.path), quoted(&node.title)))?;
    }
    for &(from, to, count) in &graph.edges {
        let weight = if count > 1 { format!(" [weight={count}]") } else { String::new() };
        out.line(&format!("  {} -> {}{weight};", quoted(&graph.nodes[from].path), quoted(&graph.nodes[to].path)))?;
    }
    out.line("}")
}

/// Returns a quoted string of DOT. Backslashes are escaped, because labels have escape sequences.
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace(|c: char| c.is_control(), " ");
    format!("\"{text}\"")
}

/// The data of the page: nodes and edges as short arrays, with folders and tags by position.
#[derive(Serialize)]
struct PageData<'a> {
    vault: &'a str,
    folders: Vec<&'a str>,
    tags: Vec<&'a str>,
    /// (path, title, kind: 0 note, 1 attachment, 2 unresolved; folder, tags)
    nodes: Vec<(&'a str, &'a str, u8, usize, Vec<usize>)>,
    edges: &'a [(usize, usize, usize)],
}

/// Distinct texts in the order of their first appearance.
#[derive(Default)]
struct Table<'a> {
    texts: Vec<&'a str>,
    positions: HashMap<&'a str, usize>,
}

impl<'a> Table<'a> {
    fn position(&mut self, text: &'a str) -> usize {
        *self.positions.entry(text).or_insert_with(|| {
            self.texts.push(text);
            self.texts.len() - 1
        })
    }
}

fn page(graph: &GraphData, vault: &str, out: &mut Out) -> io::Result<()> {
    let (mut folders, mut tags) = (Table::default(), Table::default());
    let nodes = graph.nodes.iter().map(|node| {
        let kind = match node.kind.as_str() {
            "attachment" => 1,
            "unresolved" => 2,
            _ => 0,
        };
        // A target that does not exist is in no folder, even if its name has slashes.
        let folder = if kind == 2 { "" } else { node.path.rsplit_once('/').map_or("", |(folder, _)| folder) };
        let tags = node.tags.iter().map(|tag| tags.position(tag)).collect();
        (node.path.as_str(), node.title.as_str(), kind, folders.position(folder), tags)
    });
    let nodes = nodes.collect();
    let data = PageData { vault, folders: folders.texts, tags: tags.texts, nodes, edges: &graph.edges };
    let json = for_script(&serde_json::to_string(&data)?);
    let (head, rest) = PAGE.split_once("__TITLE__").unwrap_or((PAGE, ""));
    let (middle, tail) = rest.split_once("__DATA__").unwrap_or((rest, ""));
    for part in [head, &escaped(vault), middle, &json, tail] {
        out.text(part)?;
    }
    Ok(())
}

/// Escapes JSON so that it cannot end the `<script>` element around it, nor start a comment in it.
fn for_script(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// Escapes text for an HTML element.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CapturedOutput;

    fn graph() -> GraphData {
        let node = |path: &str, title: &str, kind: &str| serde_json::json!({ "path": path, "title": title, "kind": kind, "tags": ["a/b"] });
        serde_json::from_value(serde_json::json!({
            "nodes": [
                node("F/x.md", "</script><script>alert(1)</script>", "note"),
                node("y \"q\" \\.md", "<!-- __DATA__ & more", "attachment"),
                node("Not/there", "Not there", "unresolved"),
            ],
            "edges": [[0, 1, 2], [0, 2, 1]],
        }))
        .unwrap()
    }

    fn written(format: GraphFormat, vault: &str) -> String {
        let captured = CapturedOutput::default();
        write(&graph(), format, vault, &mut Out::to(captured.clone())).unwrap();
        captured.text()
    }

    #[test]
    fn dot_is_quoted() {
        let text = written(GraphFormat::Dot, "v");
        assert!(text.contains(r#"  "y \"q\" \\.md" [label="<!-- __DATA__ & more", shape=note];"#), "{text}");
        assert!(text.contains(r#"  "F/x.md" -> "y \"q\" \\.md" [weight=2];"#), "{text}");
        assert!(text.ends_with("}\n"));
    }

    #[test]
    fn json_names_nodes_by_path() {
        let json: serde_json::Value = serde_json::from_str(&written(GraphFormat::Json, "v")).unwrap();
        assert_eq!(json["edges"][1], serde_json::json!({"source": "F/x.md", "target": "Not/there", "count": 1}));
        assert_eq!(json["nodes"][2]["kind"], "unresolved");
    }

    #[test]
    fn nothing_ends_the_script() {
        let page = written(GraphFormat::Html, "<b>&\"__DATA__");
        assert!(page.contains("<title>&lt;b&gt;&amp;&quot;__DATA__"));
        assert_eq!(page.matches("<script").count(), PAGE.matches("<script").count());
        assert_eq!(page.matches("</script").count(), PAGE.matches("</script").count());
        let start = page.find("type=\"application/json\">").unwrap() + "type=\"application/json\">".len();
        let data = &page[start..start + page[start..].find("</script").unwrap()];
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["nodes"][0][1], "</script><script>alert(1)</script>");
        assert_eq!(data["nodes"][1][1], "<!-- __DATA__ & more");
        assert_eq!((&data["folders"][0], &data["folders"][1]), (&"F".into(), &"".into()));
    }

    #[test]
    fn the_page_asks_the_network_for_nothing() {
        for word in ["http:", "https:", "//cdn", "@import", "url(", "fetch(", "XMLHttpRequest"] {
            assert!(!PAGE.contains(word), "{word}");
        }
        assert!(PAGE.contains("default-src 'none'"));
    }

    #[test]
    fn a_note_is_never_the_output() {
        assert!(matches!(refuse_notes(Path::new("v/Note.MD")), Err(Failure::Refused(_))));
        assert!(refuse_notes(Path::new("g.html")).is_ok());
    }
}
