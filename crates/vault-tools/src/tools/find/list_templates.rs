//! Lists the templates of the vault: `list_templates`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::Result;
use crate::sandbox::{EntryKind, View};
use crate::tool::{Context, PathArg};
use crate::tools::obsidian::templates::Templates;
use crate::tools::shared::arguments::NoArgs;

/// A template.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct Template {
    /// Its path: what create_from_template takes.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// Its name.
    name: String,
}

pub(in crate::tools) fn list_templates(_: NoArgs, context: &mut Context<'_, '_>) -> Result<Vec<Template>> {
    let templates = Templates::of(context.vault, context.now)?;
    let mut found = Vec::new();
    for folder in templates.folders() {
        let folder = context.path(&PathArg(folder.clone()))?;
        if !context.overlay.exists(&folder)? {
            context.overlay.notice(format!("the settings name the folder of templates {folder}, which is not there"));
            continue;
        }
        for entry in context.overlay.walk(Some(&folder))? {
            if entry.stat.kind == EntryKind::File && entry.path.is_markdown() && context.permits(&entry.path) {
                found.push(Template { name: entry.path.stem().to_owned(), path: entry.path.to_string() });
            }
        }
    }
    if templates.folders().is_empty() {
        context.overlay.notice("Obsidian's settings name no folder of templates; create_from_template takes any note");
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found.dedup_by(|a, b| a.path == b.path);
    Ok(found)
}
