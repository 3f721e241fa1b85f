//! Questions to the person: a permission request for each, and forms if the client supports them.
//!
//! A client may answer without its person. Such an answer counts as an approval, but it cannot lift a denial: calls
//! that the settings deny are denied before the question, and again when the call runs.

use std::collections::BTreeSet;

use agent_loop::{Decision, Question, QuestionSubject};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use vault_search::counted;
use vault_tools::{EditedFile, Preview, Risk};

use super::display::{title, whole};
use super::forms::{self, FormValues};
use super::rpc::Client;
use super::updates::Updates;
use super::vault_methods::{Approval, ApprovalPart, shown};
use super::wire::{
    CLIENT_METHODS, CreateElicitationRequest, CreateElicitationResponse, ElicitationAction, ElicitationFormMode,
    ElicitationSchema, ElicitationSessionScope, ErrorCode, PermissionOption, PermissionOptionKind as Is,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, SessionId, ToolCallContent,
    ToolCallId, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, text, vault_meta,
};
use crate::conversation::{Conversation, OpenedQuestion, Panel, declined};

/// How often a person is asked about one call. Each edit and each closed form asks again.
pub(super) const ROUNDS: usize = 10;

/// The choices of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    Yes,
    Always,
    /// Edit the arguments first.
    Edit,
    /// Leave out parts of the change, or items of a result.
    Pick,
    /// Prepare the change again, because notes have changed since.
    Again,
    No,
    /// Deny, and say what to do instead.
    NoBut,
    Never,
}

impl Choice {
    const ALL: [(Self, &str, Is); 8] = [
        (Self::Yes, "allow", Is::AllowOnce),
        (Self::Always, "allow_always", Is::AllowAlways),
        (Self::Edit, "edit", Is::AllowOnce),
        (Self::Pick, "pick", Is::AllowOnce),
        (Self::Again, "prepare_again", Is::AllowOnce),
        (Self::No, "reject", Is::RejectOnce),
        (Self::NoBut, "reject_and_say", Is::RejectOnce),
        (Self::Never, "reject_always", Is::RejectAlways),
    ];

    fn of(id: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known, _)| *known == id).map(|(choice, ..)| *choice)
    }

    fn option(self, label: impl Into<String>) -> PermissionOption {
        let (_, id, is) = Self::ALL[self as usize];
        PermissionOption::new(id, label, is)
    }
}

/// The client's response to a question.
#[derive(Debug, PartialEq)]
pub(super) enum ClientAnswer<T> {
    Given(T),
    /// No answer: the person closed it, or the client cannot ask.
    None(&'static str),
    /// The turn was cancelled.
    Cancelled,
}

/// Asks the person through the client during a turn.
#[derive(Clone, Copy)]
pub(super) struct Questioner<'a> {
    pub client: &'a Client,
    pub session: &'a SessionId,
    pub has_forms: bool,
    /// Whether it shows what is approved from a structure of its own.
    pub has_approvals: bool,
    pub cancel: &'a CancellationToken,
}

/// The result of picking parts or items.
enum PickResult {
    /// The decision about which items of a result are shared, or a denial if all parts of a change were left out.
    Decided(Decision),
    /// The files of a change, without the parts that were left out.
    Parts(Vec<EditedFile>),
}

/// The subject of a permission request.
pub(super) struct PermissionPrompt<'a> {
    pub id: &'a ToolCallId,
    pub title: String,
    pub content: Vec<ToolCallContent>,
    pub change: Option<(usize, &'a Preview)>,
    pub arguments: Value,
    /// For clients that show it by themselves, without the files of the change.
    pub approval: Approval,
}

impl Questioner<'_> {
    /// Asks about a call until there is a decision. Returns `None` if the turn is cancelled. `refused` holds the tools
    /// that the person denies for the whole session.
    pub async fn ask_person(
        &self,
        conversation: &Conversation,
        updates: &mut Updates,
        question: &Question,
        refused: &mut BTreeSet<String>,
    ) -> Option<Decision> {
        let tool = &question.call.name;
        let id = updates.id_of(&question.call);
        let is_running = matches!(question.about, QuestionSubject::Running { .. });
        if is_running && refused.contains(tool) {
            return Some(deny(format!("the person refuses every {tool} in this conversation")));
        }
        let (mut edited, mut said): (Option<Value>, Option<String>) = (None, None);
        let (mut left_out, mut is_first): (Vec<EditedFile>, bool) = (Vec::new(), true);
        for _ in 0..ROUNDS {
            let kept = left_out.clone();
            let arguments = edited.as_ref().unwrap_or(&question.call.arguments).clone();
            let opened = tokio::task::block_in_place(|| match is_first {
                true => Ok(conversation.open_question(question)),
                false => conversation.panel_with(question, arguments, kept).map(OpenedQuestion::from),
            });
            is_first = false;
            let panel = match opened {
                Ok(OpenedQuestion::Panel(panel)) => *panel,
                Ok(OpenedQuestion::Decided(decision)) => return Some(decision),
                Err(error) if edited.take().is_some() => {
                    said = Some(format!("With these arguments the call cannot be made: {}", error.one_line()));
                    continue;
                }
                Err(error) => return Some(deny(error.to_string())),
            };
            let options = options(&panel, question, self);
            let approval = approval(&panel, conversation.purpose(tool), said.clone());
            let prompt = PermissionPrompt {
                id: &id,
                title: if is_running { title(tool, &panel.arguments) } else { panel.title.clone() },
                content: content(&panel, said.take()),
                change: panel.change.as_ref().map(|(vault, preview)| (*vault, preview)),
                arguments: panel.arguments.clone(),
                approval,
            };
            let choice = match self.permission(updates, prompt, options).await {
                ClientAnswer::Given(choice) => choice,
                ClientAnswer::None(why) => return Some(deny(why)),
                ClientAnswer::Cancelled => return None,
            };
            match choice {
                Choice::Yes | Choice::Always if edited.is_some() => {
                    return edited.map(|arguments| Decision::AllowEdited { arguments });
                }
                Choice::Yes => return Some(Decision::Allow),
                Choice::Always => return Some(Decision::AllowForSession),
                Choice::No => return Some(declined(None)),
                Choice::Never => {
                    refused.insert(tool.clone());
                    return Some(deny(format!("the person refuses every {tool} in this conversation")));
                }
                Choice::NoBut => match self.form(&id, "What should be done instead?", forms::reason()).await {
                    ClientAnswer::Given(filled) => return Some(declined(forms::reason_in(&filled))),
                    ClientAnswer::None(_) => return Some(declined(None)),
                    ClientAnswer::Cancelled => return None,
                },
                Choice::Edit => {
                    let message = format!("The arguments of {tool}");
                    match self.form(&id, &message, forms::arguments(&panel.arguments)).await {
                        ClientAnswer::Given(filled) => match forms::arguments_in(&panel.arguments, &filled) {
                            Ok(arguments) => {
                                edited = Some(arguments);
                                said = whole_again(&mut left_out);
                            }
                            Err(fault) => said = Some(fault),
                        },
                        ClientAnswer::None(_) => {}
                        ClientAnswer::Cancelled => return None,
                    }
                }
                Choice::Again => {
                    conversation.tools().forget_held(&question.call);
                    said = whole_again(&mut left_out);
                }
                Choice::Pick => match self.pick(&id, panel).await {
                    ClientAnswer::Given(PickResult::Decided(decision)) => return Some(decision),
                    // The remaining change is shown before it is made.
                    ClientAnswer::Given(PickResult::Parts(files)) => leave_out(&mut left_out, files),
                    ClientAnswer::None(_) => {}
                    ClientAnswer::Cancelled => return None,
                },
            }
        }
        Some(deny("the person did not decide"))
    }

    /// Lets a person tick the items to share, which also approves sharing them, or the parts of a change to make.
    async fn pick(&self, id: &ToolCallId, panel: Panel) -> ClientAnswer<PickResult> {
        if let Some(items) = &panel.items {
            return match self.form(id, &panel.leaves, forms::ticks("Share", items)).await {
                ClientAnswer::Given(filled) => ClientAnswer::Given(PickResult::Decided(Decision::Share {
                    withheld: forms::unticked(&filled, items.len()),
                })),
                ClientAnswer::None(why) => ClientAnswer::None(why),
                ClientAnswer::Cancelled => ClientAnswer::Cancelled,
            };
        }
        let mut files = panel.files;
        let parts = parts(&files);
        let labels: Vec<String> = parts.iter().map(|(file, hunk)| label(&files[*file], *hunk)).collect();
        match self.form(id, "The parts of the change that are made", forms::ticks("Make", &labels)).await {
            ClientAnswer::Given(filled) => match forms::unticked(&filled, parts.len()) {
                all if all.len() == parts.len() => {
                    ClientAnswer::Given(PickResult::Decided(Decision::Deny { reason: None }))
                }
                some => {
                    some.iter().map(|at| parts[*at]).for_each(|(file, hunk)| files[file].leave_out(hunk));
                    ClientAnswer::Given(PickResult::Parts(files))
                }
            },
            ClientAnswer::None(why) => ClientAnswer::None(why),
            ClientAnswer::Cancelled => ClientAnswer::Cancelled,
        }
    }

    /// Shows the subject of the question, and asks.
    pub async fn permission(
        &self,
        updates: &mut Updates,
        prompt: PermissionPrompt<'_>,
        options: Vec<PermissionOption>,
    ) -> ClientAnswer<Choice> {
        let PermissionPrompt { id, title, mut content, change, arguments, mut approval } = prompt;
        let mut locations = Vec::new();
        if let Some((vault, preview)) = change {
            content.extend(updates.places().change(vault, preview));
            locations = updates.places().changed_by(vault, preview);
        }
        let fields = ToolCallUpdateFields::new().title(title).content(content).status(ToolCallStatus::Pending);
        let fields = if locations.is_empty() { fields } else { fields.locations(locations) };
        let fields = if arguments.is_null() { fields } else { fields.raw_input(arguments) };
        // Update the call first, so that it still shows the change after the question is closed.
        updates.update(id, fields.clone());
        if change.is_some() {
            updates.change_is_shown(id);
        }
        let offered: Vec<_> = options.iter().map(|option| option.option_id.clone()).collect();
        let mut call = ToolCallUpdate::new(id.clone(), fields);
        if self.has_approvals {
            if let Some((_, preview)) = change {
                (approval.files, approval.folders) = shown(preview);
                approval.notices.extend(preview.notices.iter().cloned());
            }
            call = call.meta(vault_meta(serde_json::to_value(approval).unwrap_or_default()));
        }
        let request = RequestPermissionRequest::new(self.session.clone(), call, options);
        let method = CLIENT_METHODS.session_request_permission;
        match self.client.request::<RequestPermissionResponse>(method, &request, self.cancel).await {
            Ok(RequestPermissionResponse { outcome: RequestPermissionOutcome::Selected(selected), .. }) => {
                // Only offered options count, because an editor may remember the answer to another question.
                let chosen = Some(selected.option_id).filter(|chosen| offered.contains(chosen));
                chosen
                    .and_then(|chosen| Choice::of(&chosen.0))
                    .map_or(ClientAnswer::None("the editor sent an invalid response"), ClientAnswer::Given)
            }
            Ok(_) if self.cancel.is_cancelled() => ClientAnswer::Cancelled,
            Ok(_) => ClientAnswer::None("the person closed the question"),
            Err(error) if error.code == ErrorCode::RequestCancelled && self.cancel.is_cancelled() => {
                ClientAnswer::Cancelled
            }
            Err(_) => ClientAnswer::None("the editor could not ask the person"),
        }
    }

    /// Shows a form.
    pub async fn form(&self, id: &ToolCallId, message: &str, form: ElicitationSchema) -> ClientAnswer<FormValues> {
        let scope = ElicitationSessionScope::new(self.session.clone()).tool_call_id(id.clone());
        let request = CreateElicitationRequest::new(ElicitationFormMode::new(scope, form), message);
        let method = CLIENT_METHODS.elicitation_create;
        match self.client.request::<CreateElicitationResponse>(method, &request, self.cancel).await {
            Ok(CreateElicitationResponse { action: ElicitationAction::Accept(accepted), .. }) => {
                ClientAnswer::Given(accepted.content.unwrap_or_default())
            }
            _ if self.cancel.is_cancelled() => ClientAnswer::Cancelled,
            _ => ClientAnswer::None("the person closed the form"),
        }
    }
}

fn deny(reason: impl Into<String>) -> Decision {
    Decision::Deny { reason: Some(reason.into()) }
}

/// Returns the options for a call.
fn options(panel: &Panel, question: &Question, questioner: &Questioner<'_>) -> Vec<PermissionOption> {
    let has_forms = questioner.has_forms;
    let tool = &question.call.name;
    if let Some(items) = &panel.items {
        let mut options = vec![Choice::Yes.option(format!("Share {}", counted(items.len(), "item")))];
        if has_forms && items.len() > 1 {
            options.push(Choice::Pick.option("Choose what is shared…"));
        }
        options.push(Choice::No.option("Share nothing"));
        return options;
    }
    let mut options = vec![Choice::Yes.option("Yes")];
    if panel.grant.is_some() && panel.risk <= Risk::Write {
        options.push(Choice::Always.option(format!("Yes, and do not ask again for {tool} in this conversation")));
    }
    if has_forms {
        options.push(Choice::Edit.option("Edit the arguments first…"));
        if parts(&panel.files).len() > 1 {
            options.push(Choice::Pick.option("Leave out parts of the change…"));
        }
    }
    if panel.change.is_some() {
        options.extend(again(questioner));
    }
    options.push(Choice::No.option("No"));
    if has_forms {
        options.push(Choice::NoBut.option("No, and say what to do instead…"));
    }
    options.push(Choice::Never.option(format!("No, and refuse every {tool} in this conversation")));
    options
}

/// Returns the options yes and no and, for clients that render approvals themselves, leaving out steps of a plan and
/// preparing the change again.
pub(super) fn yes_or_no(questioner: &Questioner<'_>, has_steps: bool) -> Vec<PermissionOption> {
    let mut options = vec![Choice::Yes.option("Yes")];
    if has_steps {
        options.push(Choice::Pick.option("Leave out steps…"));
    }
    options.extend(again(questioner));
    options.push(Choice::No.option("No"));
    options
}

/// Returns the remark on a change that is prepared again after the person had left out parts of it, which may be in
/// other places now.
fn whole_again(left_out: &mut Vec<EditedFile>) -> Option<String> {
    (!std::mem::take(left_out).is_empty()).then(|| "The parts that you left out are in the change again.".to_owned())
}

/// Adds parts that were left out of what is left of a change. Files with nothing more left out stay as they are.
fn leave_out(left_out: &mut Vec<EditedFile>, files: Vec<EditedFile>) {
    for file in files.into_iter().filter(|file| file.left_out().is_some()) {
        left_out.retain(|known| known.path() != file.path());
        left_out.push(file);
    }
}

/// A client that saves open editors before a yes can find that a note has changed by that.
fn again(questioner: &Questioner<'_>) -> Option<PermissionOption> {
    questioner.has_approvals.then(|| Choice::Again.option("Show the change as it would be now"))
}

/// Returns the content above the change.
fn content(panel: &Panel, said: Option<String>) -> Vec<ToolCallContent> {
    let mut content: Vec<ToolCallContent> = said.map(text).into_iter().collect();
    content.push(text(format!("{}\n\n{}", panel.what_undo_does, panel.leaves)));
    if !panel.effects.is_empty() {
        content.push(text(whole(&panel.effects.join("\n"))));
    }
    match &panel.items {
        Some(items) => content.push(text(whole(&items.join("\n")))),
        None if panel.change.is_none() => content.push(text(whole(&panel.whole))),
        None => {}
    }
    content
}

/// Returns the panel as data, for clients that render it themselves.
fn approval(panel: &Panel, purpose: String, problem: Option<String>) -> Approval {
    let parts = parts(&panel.files).into_iter().map(|(file, hunk)| {
        let file = &panel.files[file];
        let diff = file.hunks().get(hunk).copied().unwrap_or_default().to_owned();
        ApprovalPart { path: file.path().to_string(), diff }
    });
    Approval {
        tool: panel.tool.clone(),
        purpose: Some(purpose).filter(|purpose| !purpose.is_empty()),
        question: panel.title.clone(),
        risk: panel.risk.into(),
        undo: panel.what_undo_does.to_owned(),
        leaves: Some(panel.leaves.clone()),
        problem,
        plan: None,
        files: Vec::new(),
        folders: Vec::new(),
        notices: panel.effects.clone(),
        parts: parts.collect(),
        items: panel.items.clone().unwrap_or_default(),
    }
}

/// Returns each hunk of each file.
fn parts(files: &[EditedFile]) -> Vec<(usize, usize)> {
    files.iter().enumerate().flat_map(|(at, file)| (0..file.hunks().len()).map(move |hunk| (at, hunk))).collect()
}

/// Describes a hunk in one line: its file, and the first lines that differ.
fn label(file: &EditedFile, hunk: usize) -> String {
    let diff = file.hunks().get(hunk).copied().unwrap_or_default().to_owned();
    let differing = diff.lines().filter(|line| line.starts_with(['+', '-'])).take(2).collect::<Vec<_>>().join(" ");
    format!("{}: {differing}", file.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_has_its_own_option() {
        for (at, (choice, id, _)) in Choice::ALL.into_iter().enumerate() {
            assert_eq!((choice as usize, Choice::of(id)), (at, Some(choice)));
        }
        assert_eq!(Choice::of("yes"), None);
    }
}
