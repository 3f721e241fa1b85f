//! `util.slugifyTitle`: a title as a file name that is easy to type.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::policy::{Risk, Toolset};
use crate::tool::{Context, Tool};
use crate::tools::slug::slug;

pub(super) struct SlugifyTitle;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Args {
    /// The title.
    title: String,
    /// How many characters at most.
    #[serde(default = "hundred")]
    #[schemars(range(min = 1, max = 200))]
    max_length: usize,
}

fn hundred() -> usize {
    100
}

/// The slug.
#[derive(Serialize, JsonSchema)]
pub(super) struct Slug {
    /// Lower case, words joined by `-`; letters of any script are kept.
    slug: String,
}

impl Tool for SlugifyTitle {
    const NAME: &'static str = "util.slugifyTitle";
    const DESCRIPTION: &'static str = "Turn a title into a file name in lower case with - between words.";
    const TOOLSET: Toolset = Toolset::Actions;
    const RISK: Risk = Risk::Read;
    type Args = Args;
    type Output = Slug;

    fn call(&self, args: Args, _: &mut Context<'_, '_>) -> Result<Slug> {
        Ok(Slug { slug: slug(&args.title, args.max_length) })
    }
}
