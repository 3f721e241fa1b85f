//! The tools that clients are offered, in an order that never changes: those of the toolsets, and plans and undo.

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};
use vault_tools::approval::UNDO;
use vault_tools::{Risk, ToolSpec, Toolset, Vaults};

pub(super) const PLAN_PREVIEW: &str = "plan_preview";
pub(super) const PLAN_APPLY: &str = "plan_apply";

/// Tools that write and only add, whatever their arguments: all that was there stays.
const ADDITIVE: [&str; 6] = [
    "append_to_note",
    "create_daily_note",
    "insert_in_note",
    "create_periodic_note",
    "vault.ensureFolder",
    "editor.insertAtCursor",
];

/// Tools that write, and change nothing more when they are called again, whatever their arguments. Texts that hold
/// headings, and tags below themselves, leave out those that replace sections and rename tags.
const IDEMPOTENT: [&str; 4] = ["write_note", "update_frontmatter", "edit_list_property", "vault.ensureFolder"];

/// What is offered, and how it is announced.
#[derive(Debug, Clone, Default)]
pub(crate) struct Offered {
    /// Besides plans and undo.
    pub toolsets: Vec<Toolset>,
    /// Only what reads.
    pub read_only: bool,
    /// Whether clients are relied on to ask before a destructive tool: then every tool that writes is announced as one.
    pub trust_client: bool,
    /// Whether the approval page may approve, where the client shows it.
    pub approval_page: bool,
    /// Whether no client is relied on to ask anybody.
    pub ask_outside: bool,
}

/// The tools, as `tools/list` prints them.
pub(super) fn tools(vaults: &Vaults, offered: &Offered) -> Vec<Tool> {
    let specs = offered.toolsets.iter().flat_map(|toolset| vaults.specs(Some(*toolset)));
    // What every call of would be denied is not offered.
    let mut tools: Vec<Tool> =
        specs.filter(|spec| vaults.may_permit(spec)).map(|spec| of_spec(&spec, offered)).collect();
    let names: Vec<&str> = vaults.names().collect();
    tools.extend(plan_tools(&names, offered));
    tools.retain(|tool| {
        !offered.read_only || tool.annotations.as_ref().is_some_and(|is| is.read_only_hint == Some(true))
    });
    tools
}

fn of_spec(spec: &ToolSpec, offered: &Offered) -> Tool {
    let name = spec.alias.as_ref().unwrap_or(&spec.name).clone();
    let mut tool = Tool::new(name, spec.description.clone(), object(spec.input_schema.clone()));
    tool.title = Some(title(&spec.name));
    tool.annotations = Some(annotations(&spec.name, spec.risk, offered));
    // Tools that write also answer that a person has to approve, or has refused; the schema is of what reads.
    if spec.risk == Risk::Read {
        tool.output_schema = Some(object(super::answer::output_schema(&spec.output_schema)));
    }
    tool
}

/// A name as people write it: `Read note`, `Vault: ensure folder`.
fn title(name: &str) -> String {
    let mut title = String::new();
    for letter in name.chars() {
        match letter {
            '.' => title.push_str(": "),
            '_' => title.push(' '),
            _ if title.is_empty() => title.push(letter.to_ascii_uppercase()),
            _ if letter.is_ascii_uppercase() => title.extend([' ', letter.to_ascii_lowercase()]),
            _ => title.push(letter),
        }
    }
    title
}

fn annotations(name: &str, risk: Risk, offered: &Offered) -> ToolAnnotations {
    let hints = ToolAnnotations::new().read_only(risk == Risk::Read).open_world(false);
    match risk {
        Risk::Read => hints,
        _ => {
            hints.destructive(offered.trust_client || !ADDITIVE.contains(&name)).idempotent(IDEMPOTENT.contains(&name))
        }
    }
}

fn plan_tools(vaults: &[&str], offered: &Offered) -> [Tool; 3] {
    let with_vault = |mut schema: Value| {
        if vaults.len() > 1 {
            schema["properties"]["vault"] = json!({ "type": "string", "enum": vaults, "description": "The vault." });
            schema["required"] = match schema["required"].take() {
                Value::Array(mut required) => {
                    required.push("vault".into());
                    required.into()
                }
                _ => json!(["vault"]),
            };
        }
        object(schema)
    };
    let tool = |name: &'static str, description: &'static str, schema: Value, risk: Risk| {
        let mut tool = Tool::new(Cow::Borrowed(name), description, with_vault(schema));
        tool.title = Some(title(name));
        tool.annotations = Some(annotations(name, risk, offered));
        tool
    };
    [
        tool(
            PLAN_PREVIEW,
            "Check a plan of several calls, run it on a copy, and see every change as a diff; nothing is changed. For work \
             on several notes. Call it without a plan to read the format and which tools a plan can use.",
            json!({
                "type": "object",
                "properties": {
                    "plan": plan_outline(),
                    "parameters": {
                        "type": "object",
                        "properties": { "selection": { "type": "string" } },
                        "additionalProperties": true,
                        "description": "Values of the plan's parameters.",
                    },
                },
            }),
            Risk::Read,
        ),
        tool(
            PLAN_APPLY,
            "Carry out a plan as plan_preview showed it. Nothing is done if notes have changed since.",
            json!({
                "type": "object",
                "properties": { "id": { "type": "string", "description": "From plan_preview." } },
                "required": ["id"],
            }),
            Risk::Write,
        ),
        tool(
            UNDO,
            "Undo a change as a whole, byte for byte: the newest one, or the one named.",
            json!({
                "type": "object",
                "properties": { "transaction": { "type": "integer", "minimum": 1, "description": "Its number." } },
            }),
            Risk::Write,
        ),
    ]
}

/// The outline of a plan. Its format is what the tool answers without one; some providers refuse objects without
/// properties.
fn plan_outline() -> Value {
    let text = json!({ "type": "string" });
    let args = json!({ "type": "object", "properties": { "path": text }, "additionalProperties": true });
    let step = json!({
        "type": "object", "properties": { "id": text, "tool": text, "args": args }, "additionalProperties": true,
    });
    json!({
        "type": "object",
        "properties": {
            "version": text, "goal": text, "riskLevel": text, "steps": { "type": "array", "items": step },
        },
        "additionalProperties": true,
        "description": "The plan.",
    })
}

fn object(schema: Value) -> Arc<JsonObject> {
    match schema {
        Value::Object(object) => Arc::new(object),
        _ => Arc::new(JsonObject::new()),
    }
}

#[cfg(test)]
mod tests {
    use vault_tools::{builtin_tools, find_tool};

    use super::*;

    #[test]
    fn every_tool_that_is_named_is_there_and_writes() {
        let tools = builtin_tools();
        for name in ADDITIVE.into_iter().chain(IDEMPOTENT) {
            let tool = find_tool(&tools, name).unwrap();
            assert!(tool.spec().name == name && tool.spec().risk == Risk::Write, "{name}");
        }
    }
}
