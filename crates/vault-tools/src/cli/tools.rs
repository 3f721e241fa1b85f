//! `vault-tools list` and `schema`: the tools, without any vault.

use serde_json::{Value, json};
use vault_cli::{CliResult, Out, Outcome};

use super::args::{ListToolsArgs, SchemaArgs};
use super::records::ToolRow;
use crate::policy::Toolset;
use crate::toolbox;

pub(super) fn list(args: &ListToolsArgs, out: &mut Out) -> CliResult {
    if args.output.schema {
        return out.list_schema::<ToolRow>(&args.output);
    }
    let wanted = args.toolset.map(Toolset::from);
    let specs = toolbox::built_in();
    let rows: Vec<ToolRow> =
        specs.iter().filter(|spec| wanted.is_none_or(|wanted| spec.toolset == wanted)).map(ToolRow::from).collect();
    out.list(args.output.format(), &rows, |out, rows| {
        let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
        for row in rows {
            let head = format!("{}  {:7}  {:7}", pad(&row.name, width), row.toolset.name(), row.risk.name());
            // Descriptions begin with what the tool does; the rest says when to choose it.
            let first = row.description.split_inclusive(". ").next().unwrap_or_default().trim();
            out.line(&format!("{head}  {first}"))?;
        }
        Ok(())
    })
}

pub(super) fn schema(args: &SchemaArgs, out: &mut Out) -> CliResult {
    let specs = toolbox::built_in();
    let one = |spec: &crate::tool::ToolSpec| {
        json!({
            "name": spec.name,
            "description": spec.description,
            "input_schema": spec.input_schema,
            "output_schema": spec.output_schema
        })
    };
    match args.tool.as_deref() {
        Some("plan") => out.json(&crate::plan::plan_schema())?,
        Some(name) => {
            let found = specs.iter().find(|spec| spec.name == name || spec.alias.as_deref() == Some(name));
            out.json(&one(found.ok_or_else(|| toolbox::unknown(name, &specs))?))?;
        }
        None => out.json(&specs.iter().map(one).collect::<Vec<Value>>())?,
    }
    Ok(Outcome::Done)
}

fn pad(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.len())))
}
