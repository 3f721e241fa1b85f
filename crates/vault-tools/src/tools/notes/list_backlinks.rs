//! `list_backlinks`: the links that lead to a note.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::policy::Risk;
use crate::tool::{Context, PathArg, Tool};
use crate::tools::links::{kind_name, links_to, titles};
use crate::tools::locate;

pub(super) struct ListBacklinks;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The note, or another file that links lead to.
    path: PathArg,
}

/// A link that leads to the note.
#[derive(Serialize, JsonSchema)]
pub(super) struct Backlink {
    /// The note it stands in.
    source_path: String,
    /// The title of that note.
    source_title: String,
    /// The words it shows.
    link_text: String,
    /// `wikilink`, `markdown` or `embed`.
    link_type: &'static str,
    /// The line it stands on, from 1.
    line: u32,
}

impl Tool for ListBacklinks {
    const NAME: &'static str = "list_backlinks";
    const DESCRIPTION: &'static str = "List every link that leads to this note, its own links to itself included, \
        with its words, kind and line, ordered by the title of the note it stands in. Choose it to see what refers to \
        a note.";
    const RISK: Risk = Risk::Read;
    type Args = Args;
    type Output = Vec<Backlink>;

    fn call(&self, args: Args, context: &mut Context<'_, '_>) -> Result<Vec<Backlink>> {
        let path = locate::file(&args.path, context)?;
        let links = links_to(&path, context)?;
        let titles = titles(&links, context)?;
        let mut backlinks = Vec::new();
        for link in links {
            backlinks.push(Backlink {
                source_title: titles[&link.source].clone(),
                source_path: link.source.to_string(),
                link_text: link.text,
                link_type: kind_name(link.kind),
                line: link.line,
            });
        }
        backlinks.sort_by_cached_key(|link| (link.source_title.to_lowercase(), link.source_path.clone(), link.line));
        Ok(backlinks)
    }
}
