//! Rejects request settings that the wire has no field for, if leaving them out would change the reply.

use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};
use crate::message::Image;
use crate::model::{Request, ToolChoice};

use super::{Provider, ReasoningField, Wire};

/// # Errors
/// `BadRequest`, with the first of them and an alternative.
pub(super) fn check(request: &Request, provider: &Provider) -> Result<()> {
    let (settings, wire) = (&request.settings, provider.wire);
    let has_budget = match wire {
        Wire::Anthropic | Wire::Gemini => true,
        Wire::OpenAiChat | Wire::Chat => provider.reasoning_field == ReasoningField::Reasoning,
        Wire::OpenAiResponses | Wire::Ollama => false,
    };
    let is_forced = matches!(request.tool_choice, ToolChoice::Required | ToolChoice::Tool(_));
    let mut images = request.messages.iter().flat_map(|message| message.images());
    let has_address = images.any(|image| matches!(image, Image::Url { .. }));
    let (what, remedy) = if wire == Wire::OpenAiResponses && !settings.stop.is_empty() {
        ("stop sequences", "leave them out, or speak Chat Completions to this provider")
    } else if matches!(wire, Wire::OpenAiResponses | Wire::Anthropic) && settings.seed.is_some() {
        ("a seed", "leave it out")
    } else if !has_budget && settings.thinking_budget.is_some() {
        ("a thinking budget", "set the reasoning effort instead")
    } else if wire == Wire::Ollama && is_forced && !request.tools.is_empty() {
        ("a required call", "let the model decide, or use Ollama's compatible address with Wire::Chat")
    } else if wire == Wire::Ollama && has_address {
        ("an image given by its address", "send the image itself")
    } else if !matches!(settings.extra_body, Value::Null | Value::Object(_)) {
        ("an extra body that is not an object", "use an object of fields")
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::BadRequest, format!("this format has no field for {what}")).with_remedy(remedy))
}
