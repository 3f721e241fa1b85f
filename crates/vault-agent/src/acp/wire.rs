//! The names of the Agent Client Protocol, version 1, that the agent uses. No other file names the crate that defines
//! them, so a new version of the crate or the protocol only affects this file.
//!
//! Only stable parts of the protocol are used.

use std::path::Path;

pub(super) use agent_client_protocol_schema::ProtocolVersion;
pub(super) use agent_client_protocol_schema::v1::{
    AGENT_METHOD_NAMES as METHODS, AgentCapabilities, AuthMethod, AuthMethodAgent, AuthMethodTerminal,
    AuthenticateRequest, AuthenticateResponse, AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate,
    CLIENT_METHOD_NAMES as CLIENT_METHODS, CancelNotification, CancelRequestNotification, ClientCapabilities,
    CloseSessionRequest, CloseSessionResponse, CompactionStatus, CompactionUpdate, ConfigOptionUpdate, Content,
    ContentBlock, ContentChunk, Cost, CreateElicitationRequest, CreateElicitationResponse, CurrentModeUpdate,
    DeleteSessionRequest, DeleteSessionResponse, Diff, ElicitationAction, ElicitationContentValue, ElicitationFormMode,
    ElicitationSchema, ElicitationSessionScope, EmbeddedResourceResource, EnumOption, Error, ErrorCode, Implementation,
    InitializeRequest, InitializeResponse, ListSessionsRequest, ListSessionsResponse, LoadSessionRequest,
    LoadSessionResponse, McpCapabilities, McpServer, Meta, MultiSelectPropertySchema, NewSessionRequest,
    NewSessionResponse, Notice, NoticeSeverity, PROTOCOL_LEVEL_METHOD_NAMES as PROTOCOL_METHODS, PermissionOption,
    PermissionOptionKind, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, PromptCapabilities, PromptRequest,
    PromptResponse, RequestId, RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
    ResumeSessionRequest, ResumeSessionResponse, Role, SessionCapabilities, SessionCloseCapabilities,
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption, SessionDeleteCapabilities, SessionId,
    SessionInfo, SessionInfoUpdate, SessionListCapabilities, SessionMode, SessionModeState, SessionNotification,
    SessionResumeCapabilities, SessionUpdate, SetSessionConfigOptionRequest, SetSessionConfigOptionResponse,
    SetSessionModeRequest, SetSessionModeResponse, StopReason, StringPropertySchema, TextContent, ToolCall,
    ToolCallContent, ToolCallId, ToolCallLocation, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
    UnstructuredCommandInput, UsageUpdate,
};

/// A chunk of the agent's message.
pub(super) fn said(text: impl Into<String>) -> SessionUpdate {
    SessionUpdate::AgentMessageChunk(ContentChunk::new(ContentBlock::from(text.into())))
}

/// A chunk of the agent's reasoning.
pub(super) fn thought(text: impl Into<String>) -> SessionUpdate {
    SessionUpdate::AgentThoughtChunk(ContentChunk::new(ContentBlock::from(text.into())))
}

/// A chunk of the person's message.
pub(super) fn heard(text: impl Into<String>) -> SessionUpdate {
    SessionUpdate::UserMessageChunk(ContentChunk::new(ContentBlock::from(text.into())))
}

/// A text within a tool call.
pub(super) fn text(text: impl Into<String>) -> ToolCallContent {
    ToolCallContent::Content(Content::new(ContentBlock::from(text.into())))
}

/// A place in a file; lines count from 1.
pub(super) fn location(path: &Path, line: Option<u32>) -> ToolCallLocation {
    ToolCallLocation::new(path).line(line)
}

/// An error of the protocol; the message says what is wrong and what to do.
pub(super) fn error(code: ErrorCode, message: impl Into<String>) -> Error {
    Error::new(code.into(), message)
}

/// Whether the client supports forms.
pub(super) fn has_forms(client: &ClientCapabilities) -> bool {
    client.elicitation.as_ref().is_some_and(|modes| modes.supports_form())
}

/// Returns metadata of ours for a message of the protocol.
pub(super) fn vault_meta(value: serde_json::Value) -> Meta {
    Meta::from_iter([("vault".to_owned(), value)])
}

/// Whether the client renders approvals itself, from `_meta.vault` of the question.
pub(super) fn has_approvals(client: &ClientCapabilities) -> bool {
    let vault = client.meta.as_ref().and_then(|meta| meta.get("vault"));
    vault.and_then(|vault| vault.get("approvals")).and_then(serde_json::Value::as_bool).unwrap_or(false)
}

/// Returns the declaration of a client that is a live host, from `_meta.vault`.
pub(super) fn host_of(client: &ClientCapabilities) -> Option<serde_json::Value> {
    client.meta.as_ref()?.get("vault")?.get("host").cloned()
}

/// Whether the client shows notices that are not part of the conversation.
pub(super) fn has_notices(client: &ClientCapabilities) -> bool {
    client.session.as_ref().is_some_and(|session| session.notices.is_some())
}

/// Whether the client shows that a conversation is compacted.
pub(super) fn has_compaction(client: &ClientCapabilities) -> bool {
    client.session.as_ref().is_some_and(|session| session.compaction.is_some())
}

/// Whether a text is marked as meant for the model, not for the person.
pub(super) fn is_for_model(text: &TextContent) -> bool {
    let audience = text.annotations.as_ref().and_then(|annotations| annotations.audience.as_ref());
    audience.is_some_and(|audience| !audience.is_empty() && !audience.contains(&Role::User))
}
