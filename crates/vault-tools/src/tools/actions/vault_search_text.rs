//! `vault.searchText`: where a text or a pattern stands.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::Result;
use crate::policy::{Risk, Toolset};
use crate::tool::{Context, PathArg, Tool};
use crate::tools::search_text::{Matches, SearchMode, TextQuery, search};

pub(super) struct SearchText;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Args {
    /// The text, or with mode regex the pattern, looked for within lines.
    #[schemars(length(min = 1))]
    query: String,
    /// How the query is read; plain unless told.
    #[serde(default)]
    mode: SearchMode,
    /// Folders and files to look into; all notes unless told.
    #[serde(default)]
    paths: Vec<PathArg>,
    /// Whether upper and lower case differ.
    #[serde(default)]
    case_sensitive: bool,
    /// How many matches at most.
    #[serde(default = "fifty")]
    #[schemars(range(min = 1, max = 1000))]
    limit: usize,
    /// How many characters of the line around a match are shown.
    #[serde(default = "around")]
    #[schemars(range(min = 10, max = 2000))]
    snippet_length: usize,
}

fn fifty() -> usize {
    50
}

fn around() -> usize {
    120
}

impl Tool for SearchText {
    const NAME: &'static str = "vault.searchText";
    const DESCRIPTION: &'static str = "Find every place where a text or a regular expression stands in the notes, with \
        line and columns. Exact; for questions by meaning use search_notes.";
    const TOOLSET: Toolset = Toolset::Actions;
    const RISK: Risk = Risk::Read;
    type Args = Args;
    type Output = Matches;

    fn call(&self, args: Args, context: &mut Context<'_, '_>) -> Result<Matches> {
        let query = TextQuery {
            query: args.query,
            mode: args.mode,
            case_sensitive: args.case_sensitive,
            limit: args.limit,
            snippet_length: args.snippet_length,
        };
        search(&query, &args.paths, context)
    }
}
