//! The approval page as an MCP App: a static page that a client shows beside a result, and the tool that it calls.
//!
//! No result holds a secret for the page, since a model may read every result. The page calls [`TOOL`], which clients
//! hide from their model, twice: `{code}` returns the change and a key, `{code, key, decision}` decides.

use std::sync::Arc;

use rmcp::model::{
    ClientCapabilities, ExtensionCapabilities, JsonObject, MetaObject, Resource, ResourceContents, Tool,
    ToolAnnotations,
};
use rmcp::object;

/// The name of the extension in the capabilities of both sides.
pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/ui";
/// The URI of the page.
pub(crate) const URI: &str = "ui://vault-agent/approve";
/// The tool that the page calls.
pub(crate) const TOOL: &str = "approve_change";

const MIME_TYPE: &str = "text/html;profile=mcp-app";
const PAGE: &str = include_str!("approve.html");

/// Whether the client shows such pages.
pub(crate) fn is_declared(client: &ClientCapabilities) -> bool {
    let settings = client.extensions.as_ref().and_then(|extensions| extensions.get(EXTENSION));
    let types = settings.and_then(|settings| settings.get("mimeTypes")?.as_array());
    types.is_some_and(|types| types.iter().any(|name| name == MIME_TYPE))
}

/// Returns the server's declaration of the extension.
pub(crate) fn extension() -> ExtensionCapabilities {
    ExtensionCapabilities::from([(EXTENSION.to_owned(), JsonObject::new())])
}

/// Returns the metadata of a tool whose results are shown with the page.
pub(crate) fn shown_by_page() -> MetaObject {
    // Older clients read the second name.
    MetaObject(object!({"ui": {"resourceUri": URI}, "ui/resourceUri": URI}))
}

/// The tool that the page calls. It is offered only to clients that [declare](is_declared) the extension, because
/// others would show it to their model.
pub(crate) fn tool() -> Tool {
    let schema = object!({
        "type": "object",
        "properties": {
            "code": {"type": "string"},
            "key": {"type": "string"},
            "decision": {"type": "string", "enum": ["approve", "decline"]}
        },
        "required": ["code"],
        "additionalProperties": false
    });
    Tool::new(TOOL, "Used by the approval page, not by a model.", Arc::new(schema))
        .with_title("Approve a change")
        .with_annotations(ToolAnnotations::new().read_only(false).destructive(true).open_world(false))
        .with_meta(MetaObject(object!({"ui": {"visibility": ["app"]}})))
}

/// The page in a list of resources.
pub(crate) fn resource() -> Resource {
    Resource::new(URI, "approve")
        .with_title("Approve a change")
        .with_mime_type(MIME_TYPE)
        .with_size(PAGE.len() as u64)
        .with_meta(page_meta())
}

/// The content of the page.
pub(crate) fn contents() -> ResourceContents {
    ResourceContents::text(PAGE, URI).with_mime_type(MIME_TYPE).with_meta(page_meta())
}

/// The page must not load anything from anywhere.
fn page_meta() -> MetaObject {
    MetaObject(object!({"ui": {"csp": {}, "prefersBorder": true}}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_stands_alone_and_is_small() {
        assert!(PAGE.len() < 20_000, "{} bytes", PAGE.len());
        for way_in in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "srcdoc"]
        {
            assert!(!PAGE.contains(way_in), "{way_in}");
        }
        for way_out in
            ["http:", "https:", "fetch(", "XMLHttpRequest", "WebSocket", "import(", "import ", "src=", "href=", "url("]
        {
            assert!(!PAGE.contains(way_out), "{way_out}");
        }
        assert!(PAGE.contains(&format!("name: \"{TOOL}\"")));
    }

    #[test]
    fn only_clients_that_show_html_are_asked_by_the_page() {
        fn check(extensions: serde_json::Value, expected: bool) {
            let client = serde_json::json!({ "extensions": extensions });
            assert_eq!(is_declared(&serde_json::from_value(client).unwrap()), expected);
        }
        check(serde_json::json!({ EXTENSION: {"mimeTypes": ["text/html;profile=mcp-app"]} }), true);
        check(serde_json::json!({ EXTENSION: {"mimeTypes": ["text/uri-list"]} }), false);
        check(serde_json::json!({ EXTENSION: {} }), false);
        check(serde_json::json!({}), false);
        assert!(!is_declared(&ClientCapabilities::default()));
    }
}
