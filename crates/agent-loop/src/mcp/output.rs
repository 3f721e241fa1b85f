//! Converts the result of a server's tool to the output that the model gets. Parts other than text are described.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

use crate::tool::{ToolError, ToolOutput};

use super::clean::clean;

/// Returns an item for each part of the result. The structured output is another item, unless a part has it as text.
pub(super) fn output(result: CallToolResult) -> Result<ToolOutput, ToolError> {
    let mut items: Vec<String> = result.content.into_iter().map(item).collect();
    if let Some(structured) = result.structured_content {
        let is_the_same = |text: &String| serde_json::from_str::<Value>(text).is_ok_and(|value| value == structured);
        if !items.iter().any(is_the_same) {
            items.push(structured.to_string());
        }
    }
    if result.is_error == Some(true) {
        let text = clean(&items.join("\n"));
        let said = if text.trim().is_empty() { "The tool failed, and does not say why.".into() } else { text };
        return Err(ToolError(said));
    }
    Ok(ToolOutput { items })
}

fn item(part: ContentBlock) -> String {
    let data = |kind: &str, mime_type: &str, base64: &str| {
        format!("[{kind}, {}, {} bytes, which is not shown]", clean(mime_type), base64.len() / 4 * 3)
    };
    match part {
        ContentBlock::Text(text) => text.text,
        ContentBlock::Image(image) => data("an image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => data("a sound", &audio.mime_type, &audio.data),
        ContentBlock::Resource(resource) => match resource.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("{uri}\n{text}"),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                format!("{uri}\n{}", data("a file", mime_type.as_deref().unwrap_or("of unknown type"), &blob))
            }
            _ => "[a resource of an unknown kind]".into(),
        },
        ContentBlock::ResourceLink(link) => {
            let described = link.title.or(link.description).unwrap_or(link.name);
            format!("[a resource: {described}, {}]", link.uri)
        }
        _ => "[a part of an unknown kind]".into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(result: Value) -> Result<ToolOutput, ToolError> {
        output(serde_json::from_value(result).unwrap())
    }

    #[test]
    fn structured_output_is_given_once() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let same = of(json!({"content": [text("{\"a\": 1}")], "structuredContent": {"a": 1}}));
        assert_eq!(same.unwrap().items, ["{\"a\": 1}"]);
        let more = of(json!({"content": [text("One.")], "structuredContent": {"b": 1, "a": [2]}}));
        assert_eq!(more.unwrap().items, ["One.", "{\"b\":1,\"a\":[2]}"]);
        let alone = of(json!({"structuredContent": [1, null]}));
        assert_eq!(alone.unwrap().items, ["[1,null]"]);
    }

    #[test]
    fn what_is_no_text_is_named() {
        let parts = json!({"content": [
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "audio", "data": "AAAAAAAA", "mimeType": "audio/wav\u{1b}"},
            {"type": "resource", "resource": {"uri": "file:///a.md", "text": "Text."}},
            {"type": "resource", "resource": {"uri": "file:///b", "blob": "AAAA"}},
            {"type": "resource_link", "uri": "file:///c", "name": "c"},
        ]});
        let expected = [
            "[an image, image/png, 3 bytes, which is not shown]",
            "[a sound, audio/wav, 6 bytes, which is not shown]",
            "file:///a.md\nText.",
            "file:///b\n[a file, of unknown type, 3 bytes, which is not shown]",
            "[a resource: c, file:///c]",
        ];
        assert_eq!(of(parts).unwrap().items, expected);
    }

    #[test]
    fn an_error_is_one_whatever_it_holds() {
        let error = of(json!({"content": [{"type": "text", "text": "No \u{1b}[1msuch file."}], "isError": true}));
        assert_eq!(error.unwrap_err().0, "No [1msuch file.");
        let silent = of(json!({"content": [], "isError": true}));
        assert!(silent.unwrap_err().0.contains("does not say why"));
        assert_eq!(of(json!({"content": [], "isError": false})).unwrap().items, Vec::<String>::new());
    }
}
