//! `vault-tools list` and `schema`: the tools, without any vault.

use serde_json::{Value, json};
use vault_cli::{CliResult, Out, Outcome, padded};

use super::args::{ListToolsArgs, Provider, SchemaArgs};
use super::records::ToolRow;
use crate::error::{Error, ErrorKind};
use crate::tool::{Tool, ToolSpec};
use crate::toolbox::find;
use crate::tools::all;

pub(super) fn list(args: &ListToolsArgs, out: &mut Out) -> CliResult {
    if args.output.schema {
        return out.list_schema::<ToolRow>(&args.output);
    }
    let tools = all();
    let specs = tools.iter().map(Tool::spec).filter(|spec| args.toolset.is_none_or(|wanted| spec.toolset == wanted));
    let rows: Vec<ToolRow> = specs.map(ToolRow::from).collect();
    out.list(args.output.format(), &rows, |out, rows| {
        let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
        for row in rows {
            let head = format!("{}  {:7}  {:7}", padded(&row.name, width), row.toolset.name(), row.risk.name());
            // Descriptions begin with what the tool does; the rest says when to choose it.
            let first = row.description.split_inclusive(". ").next().unwrap_or_default().trim();
            out.line(&format!("{head}  {first}"))?;
        }
        Ok(())
    })
}

pub(super) fn schema(args: &SchemaArgs, out: &mut Out) -> CliResult {
    let tools = all();
    let one = |spec: &ToolSpec| definition(spec, args.provider);
    match args.tool.as_deref() {
        Some("plan") if args.provider.is_some() => {
            return Err(Error::new(ErrorKind::InvalidArguments, "a plan is no tool, so no API takes it as one")
                .at("--for")
                .with_remedy("leave out --for")
                .into());
        }
        Some("plan") => out.json(&crate::plan::plan_schema())?,
        Some(name) => match (args.provider, one(find(&tools, name)?.spec())) {
            (Some(Provider::Gemini), tool) => out.json(&json!([{ "functionDeclarations": [tool] }]))?,
            (_, tool) => out.json(&tool)?,
        },
        None => {
            let specs = tools.iter().map(Tool::spec);
            let specs = specs.filter(|spec| args.toolset.is_none_or(|wanted| spec.toolset == wanted));
            let all: Vec<Value> = specs.map(one).collect();
            match args.provider {
                Some(Provider::Gemini) => out.json(&json!([{ "functionDeclarations": all }]))?,
                _ => out.json(&all)?,
            }
        }
    }
    Ok(Outcome::Done)
}

/// A tool as the list of tools of a provider's request has it.
fn definition(spec: &ToolSpec, provider: Option<Provider>) -> Value {
    let ToolSpec { name, alias, description, input_schema, output_schema, .. } = spec;
    let plain = alias.as_ref().unwrap_or(name);
    match provider {
        None => json!({
            "name": name, "description": description, "input_schema": input_schema, "output_schema": output_schema
        }),
        // Not strict: there, every argument would be required.
        Some(Provider::Openai) => json!({
            "type": "function", "name": plain, "description": description, "parameters": input_schema, "strict": false
        }),
        Some(Provider::Anthropic) => {
            json!({ "name": plain, "description": description, "input_schema": input_schema })
        }
        Some(Provider::Gemini) => {
            json!({ "name": plain, "description": description, "parametersJsonSchema": input_schema })
        }
    }
}
