//! `vault-tools list` and `schema`: describe the tools, without opening a vault.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use vault_tools::{Error, ErrorKind, Tool, ToolSpec, builtin_tools, find_tool};

use crate::{CliResult, Out, Outcome, padded};

use super::args::{ListToolsArgs, Provider, SchemaArgs};
use super::records::ToolRow;

pub(super) fn list(args: &ListToolsArgs, out: &mut Out) -> CliResult {
    if args.output.schema {
        return out.list_schema::<ToolRow>(&args.output);
    }
    let tools = builtin_tools();
    let specs = tools.iter().map(Tool::spec).filter(|spec| args.toolset.is_none_or(|wanted| spec.toolset == wanted));
    let counts = token_counts();
    let rows: Vec<ToolRow> =
        specs.map(|spec| ToolRow::new(spec, counts.get(&spec.name).copied().unwrap_or_default())).collect();
    out.list(args.output.format(), &rows, |out, rows| {
        let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
        if args.tokens {
            return print_tokens(rows, width, out);
        }
        for row in rows {
            let head = format!("{}  {:7}  {:7}", padded(&row.name, width), row.toolset.name(), row.risk.name());
            // The first sentence of a description says what the tool does; the rest says when to choose it.
            let first = row.description.split_inclusive(". ").next().unwrap_or_default().trim();
            out.line(&format!("{head}  {first}"))?;
        }
        Ok(())
    })
}

/// Returns the cost of each tool in tokens, without and with the schema of its output. A test checks the counts.
fn token_counts() -> BTreeMap<String, [u32; 2]> {
    serde_json::from_str(include_str!("tool_tokens.json")).expect("the counts are JSON")
}

fn print_tokens(rows: &[ToolRow], width: usize, out: &mut Out) -> std::io::Result<()> {
    let print = |out: &mut Out, name: &str, tokens: u32, with_output: u32| {
        out.line(&format!(
            "{}  {tokens:>5} tokens  {with_output:>5} with the schema of its output",
            padded(name, width)
        ))
    };
    for rows in rows.chunk_by(|a, b| a.toolset == b.toolset) {
        let sum = |tokens: fn(&ToolRow) -> u32| rows.iter().map(tokens).sum();
        rows.iter().try_for_each(|row| print(out, &row.name, row.tokens, row.tokens_with_output))?;
        print(
            out,
            &format!("all of {}", rows[0].toolset.name()),
            sum(|row| row.tokens),
            sum(|row| row.tokens_with_output),
        )?;
        out.line("")?;
    }
    Ok(())
}

pub(super) fn schema(args: &SchemaArgs, out: &mut Out) -> CliResult {
    let tools = builtin_tools();
    let one = |spec: &ToolSpec| definition(spec, args.provider);
    match args.tool.as_deref() {
        Some("plan") if args.provider.is_some() => {
            return Err(Error::new(ErrorKind::InvalidArguments, "a plan is not a tool, so no API accepts it as one")
                .at("--for")
                .with_remedy("leave out --for")
                .into());
        }
        Some("plan") => out.json(&vault_tools::plan::plan_schema())?,
        Some(name) => match (args.provider, one(find_tool(&tools, name)?.spec())) {
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

/// Returns the definition of a tool for the list of tools in a provider's request.
fn definition(spec: &ToolSpec, provider: Option<Provider>) -> Value {
    let ToolSpec { name, alias, description, input_schema, output_schema, .. } = spec;
    let plain = alias.as_ref().unwrap_or(name);
    match provider {
        None => json!({
            "name": name, "description": description, "input_schema": input_schema, "output_schema": output_schema
        }),
        // Not strict, because in strict mode every argument would be required.
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
