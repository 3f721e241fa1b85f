//! `util.parseMarkdownBullets`: the items of a list as values.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::policy::{Risk, Toolset};
use crate::tool::{Context, Tool};
use crate::tools::bullets::{Bullet, Nesting, bullets};

pub(super) struct ParseMarkdownBullets;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Args {
    /// Markdown with one or more lists.
    text: String,
    /// Whether items within items count.
    #[serde(default = "yes")]
    allow_nested: bool,
}

fn yes() -> bool {
    true
}

/// The items.
#[derive(Serialize, JsonSchema)]
pub(super) struct Items {
    /// In the order of the text.
    items: Vec<Bullet>,
    /// How many there are.
    count: usize,
}

impl Tool for ParseMarkdownBullets {
    const NAME: &'static str = "util.parseMarkdownBullets";
    const DESCRIPTION: &'static str = "Take the items of Markdown lists (bullets, numbers, tasks) apart, for a loop \
        over them.";
    const TOOLSET: Toolset = Toolset::Actions;
    const RISK: Risk = Risk::Read;
    type Args = Args;
    type Output = Items;

    fn call(&self, args: Args, _: &mut Context<'_, '_>) -> Result<Items> {
        let nesting = if args.allow_nested { Nesting::All } else { Nesting::Outermost };
        let items = bullets(&args.text, nesting);
        Ok(Items { count: items.len(), items })
    }
}
