//! Sends the events of a run as updates of a session: text and reasoning in chunks, each call of a tool from its first
//! character to its result, tokens, notices.
//!
//! A call has one id in the editor from the moment the model begins to write it. The loop assigns its own id only when
//! the reply is complete, so the two ids are matched here.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent_loop::{CallId, Event, Message, Part, Status, ToolCall, ToolResult};
use serde_json::{Value, json};

use super::display::{Places, fenced, kind, title};
use super::rpc::Client;
use super::wire::{
    self, CLIENT_METHODS, ClientCapabilities, CompactionStatus, CompactionUpdate, Cost, Notice, NoticeSeverity,
    SessionId, SessionNotification, SessionUpdate, ToolCallId, ToolCallLocation, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, ToolKind, UsageUpdate, said, thought, vault_meta,
};
use crate::call_line::item_line;
use crate::conversation::{CitationCheck, NoteTools, ON_SCREEN, Source, citation_check, without_attached};
use crate::loop_error::retry_text;

/// Sends the updates of one session to an editor.
pub(super) struct Updates {
    client: Client,
    session: SessionId,
    capabilities: Arc<ClientCapabilities>,
    tools: NoteTools,
    places: Places,
    /// The model's context length in tokens, if known.
    context_length: Option<u64>,
    /// The cost of the session since it was opened, in millionths of a US dollar, if the provider reports costs.
    cost: Option<u64>,
    /// The calls of the current reply, by their index in it.
    live: BTreeMap<usize, LiveCall>,
    /// The editor's ids of calls, by the ids of the loop.
    named: BTreeMap<CallId, ToolCallId>,
    /// The calls whose changes the editor already shows.
    changes: Vec<ToolCallId>,
    last_call: u64,
    last_compaction: u64,
    last_text: TextKind,
    citations: Option<CitationCheck<'static>>,
}

/// A call that the model is writing or has written.
struct LiveCall {
    id: ToolCallId,
    name: String,
    arguments: String,
    is_named: bool,
}

/// The kind of the last text, if nothing else was sent after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextKind {
    Nothing,
    Commentary,
    Answer,
}

impl Updates {
    pub fn new(client: Client, session: SessionId, capabilities: Arc<ClientCapabilities>, tools: NoteTools) -> Self {
        let places = Places::of(tools.workspace());
        Self {
            client,
            session,
            capabilities,
            tools,
            places,
            context_length: None,
            cost: None,
            live: BTreeMap::new(),
            named: BTreeMap::new(),
            changes: Vec::new(),
            last_call: 0,
            last_compaction: 0,
            last_text: TextKind::Nothing,
            citations: None,
        }
    }

    pub fn places(&self) -> &Places {
        &self.places
    }

    pub fn set_tools(&mut self, tools: NoteTools) {
        self.tools = tools;
    }

    pub fn set_context_length(&mut self, tokens: Option<u64>) {
        self.context_length = tokens;
    }

    pub fn send(&self, update: SessionUpdate) {
        let notification = SessionNotification::new(self.session.clone(), update);
        self.client.notify(CLIENT_METHODS.session_update, &notification);
    }

    /// Shows a notice that is not part of the conversation, or a separate paragraph if the editor does not support
    /// notices.
    pub fn notice(&mut self, severity: NoticeSeverity, text: &str) {
        if wire::has_notices(&self.capabilities) {
            self.send(SessionUpdate::Notice(Notice::new(severity, text)));
        } else {
            self.paragraph(text);
        }
    }

    /// Sends a paragraph that is not from the model.
    pub fn paragraph(&mut self, text: &str) {
        let before = if self.last_text == TextKind::Nothing { "" } else { "\n\n" };
        self.send(said(format!("{before}{text}\n\n")));
        self.last_text = TextKind::Nothing;
    }

    /// Starts a turn, in which the answer to the message is checked for citations that do not exist.
    pub fn begin_turn(&mut self, message: &str) {
        self.citations = Some(citation_check(&self.tools, message, Some(ON_SCREEN)));
        self.last_text = TextKind::Nothing;
    }

    /// Ends a turn: sends the part of the answer that was held back, and reports citations, quotes and links that lead to
    /// nothing. Returns the places that the answer cites, and these reports.
    pub fn end_turn(&mut self) -> (Vec<Source>, Vec<String>) {
        let Some(mut citations) = self.citations.take() else { return Default::default() };
        let rest = citations.finish();
        self.answer(&rest);
        for removed in citations.removed() {
            self.notice(NoticeSeverity::Warning, &format!("Not found: {removed}"));
        }
        (citations.sources().to_vec(), citations.removed().to_vec())
    }

    pub fn event(&mut self, event: Event) {
        match event {
            Event::Text(text) => {
                let shown = self.citations.as_mut().map_or(text.clone(), |citations| citations.push(&text));
                self.answer(&shown);
            }
            Event::Commentary(text) => self.text(&text, TextKind::Commentary),
            Event::Reasoning(text) => self.send(thought(text)),
            Event::CallStarted { index, name, .. } => self.call_started(index, name),
            Event::CallArguments { index, text } => {
                self.live.entry(index).and_modify(|call| call.arguments.push_str(&text));
            }
            Event::ToolStarted { index, call } => self.tool_started(index, &call),
            Event::ToolFinished { index, result } => self.tool_finished(index, &result),
            Event::Warning(warning) => self.notice(NoticeSeverity::Warning, &warning),
            Event::Retry { delay, failure, .. } => {
                self.notice(NoticeSeverity::Warning, &retry_text(&failure, delay));
            }
            Event::Usage(usage) => {
                self.cost = usage.cost.map_or(self.cost, |cost| Some(self.cost.unwrap_or(0).saturating_add(cost)));
                if let Some(size) = self.context_length {
                    let cost = self.cost.map(|millionths| Cost::new(millionths as f64 / 1e6, "USD"));
                    self.send(SessionUpdate::UsageUpdate(UsageUpdate::new(usage.total(), size).cost(cost)));
                }
            }
            Event::Compacted { .. } => self.compacted(CompactionStatus::Completed, None),
            Event::NotCompacted { failure } => self.compacted(CompactionStatus::Failed, Some(failure.to_string())),
            _ => {}
        }
    }

    fn answer(&mut self, text: &str) {
        self.text(text, TextKind::Answer);
    }

    fn text(&mut self, text: &str, is: TextKind) {
        if text.is_empty() {
            return;
        }
        let is_after_other = self.last_text != TextKind::Nothing && self.last_text != is;
        self.send(said(if is_after_other { format!("\n\n{text}") } else { text.to_owned() }));
        self.last_text = is;
    }

    /// Reports that the conversation was compacted, or the reason why it could not be.
    pub fn compacted(&mut self, status: CompactionStatus, why_not: Option<String>) {
        if wire::has_compaction(&self.capabilities) {
            self.last_compaction += 1;
            let id = format!("compaction-{}-{}", self.last_compaction, fastrand::u32(..));
            let update = CompactionUpdate::new(id, status);
            let update = why_not.into_iter().fold(update, |update, why| update.error(why));
            return self.send(SessionUpdate::CompactionUpdate(update));
        }
        match why_not {
            None => self.notice(NoticeSeverity::Info, "The conversation was long for the model and was made shorter."),
            Some(why) => {
                self.notice(NoticeSeverity::Warning, &format!("The conversation could not be made shorter: {why}"));
            }
        }
    }

    fn call_started(&mut self, index: usize, name: String) {
        // The calls of a reply start in order, so an index that is already present belongs to the previous reply.
        if self.live.contains_key(&index) {
            self.live.clear();
        }
        let id = self.new_id();
        self.begin(&id, &name, &Value::Null, ToolCallStatus::Pending);
        self.live.insert(index, LiveCall { id, name, arguments: String::new(), is_named: false });
    }

    fn new_id(&mut self) -> ToolCallId {
        self.last_call += 1;
        ToolCallId::new(format!("call-{}-{:08x}", self.last_call, fastrand::u32(..)))
    }

    /// Shows the effect of a person's command as a call.
    pub fn command(&mut self, name: &str, kind: ToolKind, title: &str) -> ToolCallId {
        let id = self.new_id();
        let call = wire::ToolCall::new(id.clone(), title).name(name.to_owned()).kind(kind);
        self.send(SessionUpdate::ToolCall(call));
        self.last_text = TextKind::Nothing;
        id
    }

    /// Shows what the agent is doing, as reasoning.
    pub fn thinking(&mut self, text: &str) {
        self.send(thought(text));
    }

    /// Starts a call in the editor.
    fn begin(&mut self, id: &ToolCallId, name: &str, arguments: &Value, status: ToolCallStatus) {
        let kind = kind(name, self.tools.risk(name));
        let call = wire::ToolCall::new(id.clone(), title(name, arguments)).name(name.to_owned()).kind(kind);
        let call = call.status(status).locations(self.named_in(name, arguments));
        self.send(SessionUpdate::ToolCall(match arguments.is_null() {
            true => call,
            false => call.raw_input(arguments.clone()),
        }));
        self.last_text = TextKind::Nothing;
    }

    /// Returns the places of the vaults if the tool is ours, because paths of other programs' tools have another
    /// meaning.
    fn places_of(&self, tool: &str) -> Option<&Places> {
        self.tools.has(tool).then_some(&self.places)
    }

    fn named_in(&self, tool: &str, arguments: &Value) -> Vec<ToolCallLocation> {
        self.places_of(tool).map(|places| places.named_in(arguments)).unwrap_or_default()
    }

    pub fn update(&self, id: &ToolCallId, fields: ToolCallUpdateFields) {
        self.send(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id.clone(), fields)));
    }

    /// Ends a command's call. `_meta.vault.transaction` names its transaction, so that a client can undo it or save its
    /// plan whatever has changed since.
    pub fn end_command(&self, id: &ToolCallId, status: ToolCallStatus, transaction: Option<u64>) {
        let mut update = ToolCallUpdate::new(id.clone(), ToolCallUpdateFields::new().status(status));
        if let Some(transaction) = transaction {
            update = update.meta(vault_meta(json!({ "transaction": transaction })));
        }
        self.send(SessionUpdate::ToolCallUpdate(update));
    }

    /// Returns the editor's id of a call that the loop asks about.
    pub fn id_of(&mut self, call: &ToolCall) -> ToolCallId {
        if let Some(id) = self.named.get(&call.id) {
            return id.clone();
        }
        let is_same = |live: &LiveCall| {
            let arguments = serde_json::from_str::<Value>(&live.arguments);
            !live.is_named && live.name == call.name && arguments.is_ok_and(|arguments| arguments == call.arguments)
        };
        let at = self.live.iter().find(|(_, live)| is_same(live)).map(|(index, _)| *index);
        self.name(at, call)
    }

    /// Assigns the loop's id to a live call, or starts a new call.
    fn name(&mut self, live: Option<usize>, call: &ToolCall) -> ToolCallId {
        let id = match live.and_then(|index| self.live.get_mut(&index)).filter(|live| !live.is_named) {
            Some(live) => {
                live.is_named = true;
                let id = live.id.clone();
                let fields = ToolCallUpdateFields::new().title(title(&call.name, &call.arguments));
                let fields =
                    fields.locations(self.named_in(&call.name, &call.arguments)).raw_input(call.arguments.clone());
                self.update(&id, fields);
                id
            }
            None => {
                let id = self.new_id();
                self.begin(&id, &call.name, &call.arguments, ToolCallStatus::Pending);
                id
            }
        };
        self.named.insert(call.id.clone(), id.clone());
        id
    }

    fn tool_started(&mut self, index: usize, call: &ToolCall) {
        let id = match self.named.get(&call.id) {
            Some(id) => id.clone(),
            None => self.name(Some(index), call),
        };
        let mut fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
        // Show the change even if it needed no approval.
        if !self.changes.contains(&id)
            && let Some((vault, preview)) = self.tools.preview(call)
        {
            self.changes.push(id.clone());
            fields = fields.content(self.places.change(vault, &preview));
            fields = fields.locations(self.places.changed_by(vault, &preview));
        }
        self.update(&id, fields);
    }

    /// Records that the editor shows the change of a call.
    pub fn change_is_shown(&mut self, id: &ToolCallId) {
        if !self.changes.contains(id) {
            self.changes.push(id.clone());
        }
    }

    fn tool_finished(&mut self, index: usize, result: &ToolResult) {
        let id = match (self.named.get(&result.call), self.live.get(&index)) {
            (Some(id), _) => id.clone(),
            (None, Some(live)) if live.name == result.name => live.id.clone(),
            (None, _) => {
                let id = self.new_id();
                self.begin(&id, &result.name, &Value::Null, ToolCallStatus::Pending);
                id
            }
        };
        let is_change_shown = self.changes.contains(&id);
        self.update(&id, finished(self.places_of(&result.name), result, is_change_shown));
        self.last_text = TextKind::Nothing;
    }

    /// Sends a saved conversation from its beginning.
    pub fn replay<'m>(&mut self, messages: impl Iterator<Item = &'m Message>) {
        for message in messages {
            match message {
                Message::User { text, .. } => self.send(wire::heard(without_attached(text))),
                Message::Note { .. } => {}
                Message::Assistant { parts } => parts.iter().for_each(|part| self.replay_part(part)),
                Message::Results { results } => {
                    for result in results {
                        let Some(id) = self.named.get(&result.call).cloned() else { continue };
                        self.update(&id, finished(self.places_of(&result.name), result, false));
                    }
                }
            }
            self.last_text = TextKind::Nothing;
        }
    }

    fn replay_part(&mut self, part: &Part) {
        match part {
            Part::Text { text, .. } => self.answer(text),
            Part::Reasoning { text, .. } if !text.is_empty() => self.send(thought(text.clone())),
            Part::Reasoning { .. } => {}
            Part::Call(call) => {
                let id = self.new_id();
                self.begin(&id, &call.name, &call.arguments, ToolCallStatus::Pending);
                self.named.insert(call.id.clone(), id);
            }
        }
    }
}

/// Returns the final fields of a call. A change stays as it was shown; otherwise the result replaces the content.
fn finished(places: Option<&Places>, result: &ToolResult, is_change_shown: bool) -> ToolCallUpdateFields {
    let status = if result.status == Status::Ok { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
    let fields = ToolCallUpdateFields::new().status(status);
    if is_change_shown && result.status == Status::Ok {
        return fields;
    }
    let found = places.map(|places| places.found_in(&result.items)).unwrap_or_default();
    let text = match &result.items[..] {
        // One line for each passage, note or tag that was found.
        [_, _, ..] if !found.is_empty() => result.items.iter().map(|item| item_line(item) + "\n").collect(),
        _ => result.text(),
    };
    let fields = fields.content(vec![wire::text(fenced(&text))]);
    if found.is_empty() { fields } else { fields.locations(found) }
}
