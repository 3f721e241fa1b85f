//! `vault-tools links` and `lint`: missing links, broken links and other findings, as lists or as plans.

use serde_json::{Value, json};
use vault_tools::{Cancel, Error, ErrorKind, Result, Toolbox};

use crate::{CliResult, Out, Outcome, VaultArgs, counted, note, sanitize_line};

use super::args::{LinksArgs, LinksCommand, LintArgs, RepairArgs};
use super::context::with_toolbox;
use super::note_commands::literal;
use super::note_name::NamedNotes;
use super::plan_args::ContextArgs;
use super::records::{BrokenLinkRow, FindingRow, SuggestedLinkRow};

/// The default maximum numbers of links to list, and of repairs to plan.
const LISTED: u32 = 50;
const PLANNED: u32 = 10_000;

pub(super) fn links(vault_args: &VaultArgs, command: &LinksCommand, out: &mut Out) -> CliResult {
    match command {
        LinksCommand::Suggest(args) => suggest(vault_args, args, out),
        LinksCommand::Repair(args) => repair(vault_args, args, out),
    }
}

/// Calls a read-only tool, prints its notices and returns its output.
fn ask(toolbox: &mut Toolbox, tool: &str, args: Value) -> Result<Value> {
    let asked = toolbox.propose(tool, args, Cancel::default())?;
    asked.preview().notices.iter().for_each(|notice| note(notice));
    Ok(asked.output)
}

/// Prints a line that contains names or text of notes.
fn line(out: &mut Out, text: &str) -> std::io::Result<()> {
    out.line(&sanitize_line(text))
}

fn rows<T: serde::de::DeserializeOwned>(found: Value) -> Result<Vec<T>> {
    serde_json::from_value(found).map_err(|error| Error::new(ErrorKind::Unsupported, error.to_string()))
}

/// Returns the arguments of a tool that lists links of one note or of all notes.
fn list_args(args: &LinksArgs, most: u32, toolbox: &Toolbox) -> Result<Value> {
    let path = args.note.as_deref().map(|name| NamedNotes::new(toolbox)?.find(name)).transpose()?;
    Ok(json!({ "path": path, "limit": args.limit.unwrap_or(most) }))
}

fn suggest(vault_args: &VaultArgs, args: &LinksArgs, out: &mut Out) -> CliResult {
    if args.output.schema {
        return out.list_schema::<SuggestedLinkRow>(&args.output);
    }
    with_toolbox(vault_args, &ContextArgs::default(), |toolbox| {
        let asked = list_args(args, LISTED, toolbox)?;
        let found: Vec<SuggestedLinkRow> = rows(ask(toolbox, "suggest_links", asked)?)?;
        if args.plan {
            let steps = found.iter().map(|row| {
                let mut link = json!({ "path": row.path, "line": row.line, "target": row.target });
                if let Some(text) = &row.text {
                    link["text"] = text.as_str().into();
                }
                (format!("{}:{} links to {} ({})", row.path, row.line, row.target, row.reason), link)
            });
            return print_plan("Make the links that notes lack", steps.collect(), out);
        }
        if found.is_empty() && !args.output.json && !args.output.jsonl {
            note("no link is suggested");
        }
        out.list(args.output.format(), &found, |out, rows| {
            for row in rows {
                let named = row.text.as_ref().map_or_else(|| row.reason.clone(), |text| format!("{text:?}"));
                line(out, &format!("{}:{}  {named} -> {}", row.path, row.line, row.target))?;
                line(out, &format!("    {}", row.sentence))?;
            }
            Ok(())
        })
    })
}

fn repair(vault_args: &VaultArgs, args: &RepairArgs, out: &mut Out) -> CliResult {
    let list = &args.list;
    if list.output.schema {
        return out.list_schema::<BrokenLinkRow>(&list.output);
    }
    with_toolbox(vault_args, &ContextArgs::default(), |toolbox| {
        let asked = list_args(list, if list.plan { PLANNED } else { LISTED }, toolbox)?;
        let found: Vec<BrokenLinkRow> = rows(ask(toolbox, "list_broken_links", asked)?)?;
        if list.plan {
            let is_in_canvas = |row: &BrokenLinkRow| row.path.to_lowercase().ends_with(".canvas");
            let steps = found.iter().filter(|row| !is_in_canvas(row)).filter_map(|row| {
                let best = row.proposals.first().filter(|best| args.least.includes(&best.certainty))?;
                let mut link = json!({ "path": row.path, "line": row.line, "text": row.link, "target": best.target });
                if let Some(heading) = &best.heading {
                    link["heading"] = heading.as_str().into();
                }
                let to = best.heading.as_ref().map_or_else(String::new, |heading| format!("#{heading}"));
                let what = format!("{}:{} {} leads to {}{to}", row.path, row.line, row.link, best.target);
                Some((format!("{what} ({}: {})", best.certainty, best.reason), link))
            });
            let steps = steps.collect();
            let in_canvases = found.iter().filter(|row| is_in_canvas(row)).count();
            if in_canvases > 0 {
                note(&format!("{} in canvases cannot be repaired by a plan", counted(in_canvases, "link")));
            }
            return print_plan("Repair the links that lead nowhere", steps, out);
        }
        if found.is_empty() && !list.output.json && !list.output.jsonl {
            note("no link is broken");
        }
        out.list(list.output.format(), &found, |out, rows| {
            for row in rows {
                line(out, &format!("{}:{}  {}", row.path, row.line, row.link))?;
                for best in &row.proposals {
                    let to = best.heading.as_ref().map_or_else(String::new, |heading| format!("#{heading}"));
                    line(out, &format!("    {}: {}{to}  {}", best.certainty, best.target, best.reason))?;
                }
            }
            Ok(())
        })
    })
}

/// Prints a plan. If there is no step, prints a notice instead, and the exit code is 1.
fn print_plan(goal: &str, links: Vec<(String, Value)>, out: &mut Out) -> CliResult {
    if links.is_empty() {
        note("there is nothing to plan");
        return Ok(Outcome::Nothing);
    }
    out.json(&plan_of(goal, links))?;
    Ok(Outcome::Done)
}

/// Returns a plan with one step per link, so that each link can be chosen or left out.
fn plan_of(goal: &str, links: Vec<(String, Value)>) -> Value {
    let step = |(number, (preview, mut args)): (usize, (String, Value))| {
        let texts = args.as_object_mut().into_iter().flat_map(serde_json::Map::values_mut);
        texts.filter(|value| value.is_string()).for_each(|text| {
            *text = literal(text.as_str().unwrap_or_default()).into();
        });
        json!({ "id": format!("link-{}", number + 1), "tool": "set_link", "preview": preview, "args": args,
            "onError": "skip" })
    };
    let steps: Vec<Value> = links.into_iter().enumerate().map(step).collect();
    json!({ "version": "1.0", "goal": goal, "riskLevel": "writes", "steps": steps })
}

/// Runs `lint`. The exit code is 1 if there are findings, so that it can be used in CI.
pub(super) fn lint(vault_args: &VaultArgs, args: &LintArgs, out: &mut Out) -> CliResult {
    if args.output.schema {
        return out.list_schema::<FindingRow>(&args.output);
    }
    with_toolbox(vault_args, &ContextArgs::default(), |toolbox| {
        let asked = json!({ "rules": args.rules, "limit": 1_000_000 });
        let found: Vec<FindingRow> = rows(ask(toolbox, "lint_vault", asked)?)?;
        out.list(args.output.format(), &found, |out, rows| {
            for row in rows {
                let number = row.line.map_or_else(String::new, |line| format!(":{line}"));
                line(out, &format!("{}{number}  {}  {}", row.path, row.rule, row.message))?;
            }
            Ok(())
        })?;
        Ok(if found.is_empty() { Outcome::Done } else { Outcome::Nothing })
    })
}
