//! The tools that are offered to clients, in a fixed order: those of the toolsets, then plans, undo and macros.

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};
use vault_tools::approval::UNDO;
use vault_tools::{EXPECT, Expectation, Risk, ToolSpec, Toolset, Vaults};

use super::macros::{LIST_MACROS, RUN_MACRO};

pub(super) const PLAN_PREVIEW: &str = "plan_preview";
pub(super) const PLAN_APPLY: &str = "plan_apply";

/// Tools that only add content, whatever their arguments.
const ADDITIVE: [&str; 6] = [
    "append_to_note",
    "create_daily_note",
    "insert_in_note",
    "create_periodic_note",
    "vault.ensureFolder",
    "editor.insertAtCursor",
];

/// Tools that change nothing more if they are repeated, whatever their arguments. Replacing a section is not among
/// them, because the new text can hold headings; nor is renaming a tag, because the new tag can be below the old one.
const IDEMPOTENT: [&str; 4] = ["write_note", "update_frontmatter", "edit_list_property", "vault.ensureFolder"];

/// The tools to offer, and how to announce them.
#[derive(Debug, Clone, Default)]
pub(crate) struct CatalogOptions {
    /// The toolsets; plans and undo are offered in any case.
    pub toolsets: Vec<Toolset>,
    /// Whether only tools that read are offered.
    pub read_only: bool,
    /// Whether clients are trusted to ask before a destructive tool. Every tool that writes is then announced as
    /// destructive.
    pub trust_client: bool,
    /// Whether the approval page may approve, in clients that show it.
    pub approval_page: bool,
    /// Whether no client is trusted to ask a person.
    pub ask_outside: bool,
    /// Whether every change must state how much it expects to touch.
    pub require_expect: bool,
}

/// Returns the tools, as `tools/list` lists them.
pub(super) fn tools(vaults: &Vaults, options: &CatalogOptions) -> Vec<Tool> {
    let specs = options.toolsets.iter().flat_map(|toolset| vaults.specs(Some(*toolset)));
    // Leave out tools whose every call would be denied.
    let mut tools: Vec<Tool> =
        specs.filter(|spec| vaults.denial(spec).is_none()).map(|spec| of_spec(&spec, options)).collect();
    let names: Vec<&str> = vaults.names().collect();
    tools.extend(plan_tools(&names, options));
    if options.toolsets.contains(&Toolset::Library) {
        tools.extend(macro_tools(&names, options));
    }
    tools.retain(|tool| {
        !options.read_only || tool.annotations.as_ref().is_some_and(|is| is.read_only_hint == Some(true))
    });
    tools
}

fn of_spec(spec: &ToolSpec, options: &CatalogOptions) -> Tool {
    let name = spec.alias.as_ref().unwrap_or(&spec.name).clone();
    let mut schema = spec.input_schema.clone();
    // Other tools accept `expect`, too, but it is not worth its tokens in every request.
    let says_expect = options.require_expect || matches!(spec.toolset, Toolset::Bulk | Toolset::Library);
    if spec.risk > Risk::Read && says_expect {
        add_expect(&mut schema, options);
    }
    let mut tool = Tool::new(name, spec.description.clone(), object(schema));
    tool.title = Some(title(&spec.name));
    tool.annotations = Some(annotations(&spec.name, spec.risk, options));
    // Tools that write have no output schema, because they can also return that a person has to approve or has
    // declined.
    if spec.risk == Risk::Read {
        tool.output_schema = Some(object(super::results::output_schema(&spec.output_schema)));
    }
    tool
}

/// Returns a readable title of a tool, for example `Read note` or `Vault: ensure folder`.
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

fn annotations(name: &str, risk: Risk, options: &CatalogOptions) -> ToolAnnotations {
    let hints = ToolAnnotations::new().read_only(risk == Risk::Read).open_world(false);
    match risk {
        Risk::Read => hints,
        _ => {
            hints.destructive(options.trust_client || !ADDITIVE.contains(&name)).idempotent(IDEMPOTENT.contains(&name))
        }
    }
}

/// Adds the argument that states how much a change expects to touch.
fn add_expect(schema: &mut Value, options: &CatalogOptions) {
    schema["properties"][EXPECT] = Expectation::schema();
    if options.require_expect {
        require(schema, EXPECT);
    }
}

fn require(schema: &mut Value, argument: &str) {
    schema["required"] = match schema["required"].take() {
        Value::Array(mut required) => {
            required.push(argument.into());
            required.into()
        }
        _ => json!([argument]),
    };
}

/// Creates a tool of the server itself.
fn own_tool(
    (name, description): (&'static str, &'static str),
    mut schema: Value,
    risk: Risk,
    vaults: &[&str],
    options: &CatalogOptions,
) -> Tool {
    if vaults.len() > 1 {
        schema["properties"]["vault"] = json!({ "type": "string", "enum": vaults, "description": "The vault." });
        require(&mut schema, "vault");
    }
    if options.require_expect && [PLAN_APPLY, RUN_MACRO].contains(&name) {
        add_expect(&mut schema, options);
    }
    let mut tool = Tool::new(Cow::Borrowed(name), description, object(schema));
    tool.title = Some(title(name));
    tool.annotations = Some(annotations(name, risk, options));
    tool
}

fn macro_tools(vaults: &[&str], options: &CatalogOptions) -> [Tool; 2] {
    [
        own_tool(
            (LIST_MACROS, "List the saved plans that run_macro runs, with their parameters."),
            json!({
                "type": "object",
                "properties": { "name": { "type": "string", "description": "Only those whose name has this in it." } },
            }),
            Risk::Read,
            vaults,
            options,
        ),
        own_tool(
            (RUN_MACRO, "Run a saved plan by its name, as plan_preview and plan_apply would."),
            json!({
                "type": "object",
                "properties": {
                    "name": { "type": "string", "description": "From list_macros." },
                    "parameters": {
                        "type": "object",
                        "properties": { "selection": { "type": "string" } },
                        "additionalProperties": true,
                        "description": "Values of its parameters.",
                    },
                },
                "required": ["name"],
            }),
            Risk::Write,
            vaults,
            options,
        ),
    ]
}

fn plan_tools(vaults: &[&str], options: &CatalogOptions) -> [Tool; 3] {
    let tool = |name, description, schema, risk| own_tool((name, description), schema, risk, vaults, options);
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

/// The outline of a plan's schema. The tool itself returns the full format if it is called without a plan. The
/// properties are listed because some providers reject objects without properties.
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
