//! Calls of tools: each becomes a [`ChangeRequest`], which is prepared, approved where the policy asks, and carried
//! out.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Zoned;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, InputResponses, ProgressNotificationParam, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use vault_tools::approval::{
    Answer, ApprovedChange, AutoApprover, ChangeRequest, GivenAnswer, PreparedChange, UNDO, UnapprovedChange, now,
    settle,
};
use vault_tools::plan;
use vault_tools::{Cancel, EXPECT, Error, ErrorKind, Expectation, Grants, Permission, Result};

use super::catalog::{CatalogOptions, PLAN_APPLY, PLAN_PREVIEW, tools};
use super::consent::{
    ConsentMethod, Form, FormAnswer, QuestionState, QuestionStates, answer_in, consent_method, elicit,
};
use super::macros::{LIST_MACROS, RUN_MACRO};
use super::page_calls::PageKeys;
use super::{app, macros, results};
use crate::change_text::{digest_of, question, too_long};
use crate::changes::{blocking, carry_out, limited, read_all};
use crate::pending_changes::{PendingChange, PendingChanges};
use crate::plan_writer::plan_format;
use crate::workspace::Workspace;

/// The tools of the server itself.
const OWN: [&str; 5] = [PLAN_PREVIEW, PLAN_APPLY, UNDO, LIST_MACROS, RUN_MACRO];

/// The maximum number of plan previews that can be applied; the oldest is dropped first.
const PREVIEWS: usize = 32;

/// The state that all clients of a server share.
pub(super) struct CallHandler {
    pub workspace: Workspace,
    pub tools: Vec<Tool>,
    pub options: CatalogOptions,
    question_states: QuestionStates,
    page_keys: PageKeys,
    pending: PendingChanges,
    previews: Mutex<VecDeque<SavedPreview>>,
}

/// The sealed state of a question, and the answers, as a client sends them back.
type ReturnedState = Option<(String, Option<InputResponses>)>;

/// A plan that was previewed and can be applied.
#[derive(Clone)]
struct SavedPreview {
    id: String,
    vault: usize,
    request: ChangeRequest,
    shown: PreviewDigest,
}

/// The digest of a preview that was shown, and its time.
#[derive(Clone)]
struct PreviewDigest {
    now: Zoned,
    digest: String,
}

/// A call of a client, and the change that it requests of a vault.
struct IncomingCall {
    /// The tool and the arguments as they were sent; an approval is bound to them.
    name: String,
    args: Value,
    vault: usize,
    request: ChangeRequest,
    /// The preview that showed the plan, if this applies one.
    shown: Option<PreviewDigest>,
    /// The number of notes and links that a plan is expected to touch. The toolbox checks those of other calls.
    expect: Option<Expectation>,
}

impl CallHandler {
    /// # Errors
    /// When the system has no random numbers, or no folder for pending changes.
    pub fn new(workspace: Workspace, options: CatalogOptions) -> Result<Self> {
        let tools = workspace.with(|vaults| tools(vaults, &options));
        let (question_states, pending) = (QuestionStates::new()?, PendingChanges::of_user()?);
        let (page_keys, previews) = (PageKeys::default(), Mutex::default());
        Ok(Self { workspace, tools, options, question_states, page_keys, pending, previews })
    }

    /// Returns the tools for a client. The approval page is among them if the client shows pages.
    pub fn tools_for(&self, context: &RequestContext<RoleServer>) -> Vec<Tool> {
        let mut tools = self.tools.clone();
        if self.has_page(context) {
            for tool in &mut tools {
                let reads = tool.annotations.as_ref().is_some_and(|hints| hints.read_only_hint == Some(true));
                tool.meta = (!reads).then(app::shown_by_page);
            }
            tools.push(app::tool());
        }
        tools
    }

    /// Whether a client can use the approval page.
    pub fn has_page(&self, context: &RequestContext<RoleServer>) -> bool {
        let declared = || context.client_capabilities().is_some_and(|client| app::is_declared(&client));
        self.options.approval_page && consent_method(context, &self.options) != ConsentMethod::Trusted && declared()
    }

    /// Handles a call. Errors are results that the model can read; only an unknown tool is an error of the protocol.
    ///
    /// # Errors
    /// An unknown tool.
    pub async fn call(
        self: &Arc<Self>,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> std::result::Result<CallToolResponse, ErrorData> {
        let name = params.name.to_string();
        let is_page = name == app::TOOL && self.has_page(&context);
        if !is_page && !self.tools.iter().any(|tool| tool.name == params.name) {
            let names: Vec<&str> = self.tools.iter().map(|tool| &*tool.name).collect();
            let message = format!("Unknown tool: {name}; there are {}", names.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        }
        let mut args = Value::Object(params.arguments.unwrap_or_default());
        let state = params.request_state.map(|state| (state, params.input_responses));
        let expect = match self.expected(&name, &mut args) {
            Ok(expect) => expect,
            Err(error) => return Ok(results::failed(&error).into()),
        };
        if let Some(error) = self.unknown_argument(&name, &args).filter(|_| !is_page) {
            return Ok(results::failed(&error).into());
        }
        let answered = match name.as_str() {
            app::TOOL => {
                let page =
                    move |calls: &Self, _: Cancel<'_>| calls.page_keys.call(&args, &calls.workspace, &calls.pending);
                self.blocking(&context, page).await.map(CallToolResponse::from)
            }
            PLAN_PREVIEW => self.preview_plan(args, &context).await.map(CallToolResponse::from),
            PLAN_APPLY => match self.saved_preview(&args) {
                Ok(SavedPreview { vault, request, shown, .. }) => {
                    self.change(
                        IncomingCall { name, args, vault, request, shown: Some(shown), expect },
                        state,
                        &context,
                    )
                    .await
                }
                Err(error) => Err(error),
            },
            LIST_MACROS => self.list_macros(&args).map(CallToolResponse::from),
            RUN_MACRO => match self.macro_request(&args) {
                Ok((vault, request)) => {
                    self.change(IncomingCall { name, args, vault, request, shown: None, expect }, state, &context).await
                }
                Err(error) => Err(error),
            },
            UNDO => match self.undo(&args) {
                Ok((vault, request)) => {
                    self.change(IncomingCall { name, args, vault, request, shown: None, expect }, state, &context).await
                }
                Err(error) => Err(error),
            },
            _ => self.call_tool(name, args, state, &context).await,
        };
        Ok(answered.unwrap_or_else(|error| results::failed(&error).into()))
    }

    /// Finds an argument that a tool of the server itself does not have. It is an error, because ignoring it could
    /// ignore the caller's intent. The toolboxes check all other tools.
    fn unknown_argument(&self, name: &str, args: &Value) -> Option<Error> {
        let tool = self.tools.iter().find(|tool| tool.name == name && OWN.contains(&name))?;
        let known = tool.input_schema.get("properties")?.as_object()?;
        let unknown = args.as_object()?.keys().find(|key| !known.contains_key(*key))?;
        let names = known.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let what = format!("`{unknown}` is not an argument of {name}");
        Some(
            Error::new(ErrorKind::InvalidArguments, what)
                .at(format!("/{unknown}"))
                .with_remedy(format!("there are {names}")),
        )
    }

    /// Returns how much a change expects to touch. For a plan, the expectation is removed from the arguments.
    ///
    /// # Errors
    /// An expectation that is missing where it is required, or that is invalid.
    fn expected(&self, name: &str, args: &mut Value) -> Result<Option<Expectation>> {
        let tool = self.tools.iter().find(|tool| tool.name == name);
        let is_required = tool
            .and_then(|tool| tool.input_schema.get("required")?.as_array())
            .is_some_and(|required| required.iter().any(|argument| argument == EXPECT));
        if is_required && args.get(EXPECT).is_none_or(Value::is_null) {
            let message = "expect is missing: how many notes and links the change is to touch";
            let remedy =
                "give it as {\"notes\": 1, \"links\": 0}; plan_preview and the lists of links tell the numbers";
            return Err(Error::new(ErrorKind::InvalidArguments, message).at("/expect").with_remedy(remedy));
        }
        if [PLAN_APPLY, RUN_MACRO].contains(&name) { Expectation::take(args) } else { Ok(None) }
    }

    fn list_macros(&self, args: &Value) -> Result<CallToolResult> {
        let vault = self.vault(args)?;
        let part = args.get("name").and_then(Value::as_str).unwrap_or_default();
        self.workspace.with(|vaults| macros::list(vaults.toolbox(vault), part)).map(results::plain)
    }

    /// Returns the vault and the plan of a macro.
    fn macro_request(&self, args: &Value) -> Result<(usize, ChangeRequest)> {
        let vault = self.vault(args)?;
        let name = args.get("name").and_then(Value::as_str).unwrap_or_default();
        let parameters = match args.get("parameters").map(json_in) {
            Some(Value::Object(parameters)) => parameters,
            _ => Map::new(),
        };
        let request = self.workspace.with(|vaults| macros::request(vaults.toolbox(vault), name, &parameters))?;
        Ok((vault, request))
    }

    /// Calls a tool of the toolboxes. A tool that reads may run in several vaults.
    async fn call_tool(
        self: &Arc<Self>,
        name: String,
        args: Value,
        state: ReturnedState,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse> {
        let (tool, given) = (name.clone(), args.clone());
        let route = self.workspace.with(|vaults| vaults.route(&tool, given))?;
        if let [vault] = route.vaults[..] {
            let request = ChangeRequest::Call { tool: name.clone(), args: route.args };
            let call = IncomingCall { name, args, vault, request, shown: None, expect: None };
            let answer = self.change(call, state, context).await?;
            return Ok(match (answer, route.notice) {
                (CallToolResponse::Complete(result), Some(notice)) => results::with_notice(result, notice).into(),
                (answer, _) => answer,
            });
        }
        let read = move |calls: &Self, cancel: Cancel<'_>| {
            calls.workspace.with(|vaults| read_all(vaults, &tool, &route, cancel))
        };
        let done = self.blocking(context, read).await?;
        Ok(results::done(done).into())
    }

    /// Returns the vault and the transaction to undo.
    fn undo(&self, args: &Value) -> Result<(usize, ChangeRequest)> {
        let transaction = match args.get("transaction").filter(|given| !given.is_null()) {
            None => None,
            Some(given) => Some(json_in(given).as_u64().ok_or_else(|| {
                Error::new(ErrorKind::InvalidArguments, "`transaction` is the number of a transaction, from 1")
            })?),
        };
        Ok((self.vault(args)?, ChangeRequest::Undo { transaction }))
    }

    /// Returns the vault in the argument `vault`. It can be left out if there is only one vault.
    fn vault(&self, args: &Value) -> Result<usize> {
        let vaults = self.workspace.vaults();
        let named = args.get("vault").and_then(Value::as_str);
        let found = match named {
            Some(named) => vaults.iter().position(|vault| vault.name == named),
            None => (vaults.len() == 1).then_some(0),
        };
        found.ok_or_else(|| {
            let names: Vec<&str> = vaults.iter().map(|vault| vault.name.as_str()).collect();
            let message =
                named.map_or_else(|| "`vault` is missing".to_owned(), |named| format!("there is no vault {named}"));
            Error::new(ErrorKind::InvalidArguments, message).with_remedy(format!("give one of {}", names.join(", ")))
        })
    }

    async fn preview_plan(
        self: &Arc<Self>,
        args: Value,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult> {
        let Some(plan) = args.get("plan").filter(|plan| !plan.is_null()).map(json_in) else {
            return Ok(results::plain(self.workspace.with(|vaults| plan_format(vaults))));
        };
        let parameters = match args.get("parameters").map(json_in) {
            Some(Value::Object(parameters)) => parameters,
            _ => Map::new(),
        };
        let vault = self.vault(&args)?;
        let request = ChangeRequest::Plan { plan, parameters };
        let now = now();
        let prepared = self.prepare(context, vault, request.clone(), now.clone()).await?;
        let shown = PreviewDigest { now, digest: prepared.digest().to_owned() };
        let id = digest_of(&format!("{} {}", prepared.digest(), fastrand::u64(..)))[..12].to_owned();
        let mut previews = self.previews.lock().unwrap_or_else(PoisonError::into_inner);
        previews.push_back(SavedPreview { id: id.clone(), vault, request, shown });
        if previews.len() > PREVIEWS {
            previews.pop_front();
        }
        Ok(results::plan_preview(&id, &prepared, *prepared.permission() == Permission::Ask))
    }

    fn saved_preview(&self, args: &Value) -> Result<SavedPreview> {
        let id = args.get("id").and_then(Value::as_str).unwrap_or_default();
        let previews = self.previews.lock().unwrap_or_else(PoisonError::into_inner);
        previews.iter().find(|saved_preview| saved_preview.id == id).cloned().ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("no plan was previewed under the id {id:?}"))
                .with_remedy("call plan_preview again, and apply the id that it answers")
        })
    }

    /// Prepares a request, has it approved if the policy asks, and carries it out. `state` comes with the answer of a
    /// form.
    async fn change(
        self: &Arc<Self>,
        call: IncomingCall,
        state: ReturnedState,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse> {
        let bound_to = digest_of(&format!("{} {}", call.name, call.args));
        let Some((state, responses)) = state else { return self.change_of_first_call(call, &bound_to, context).await };
        let QuestionState { now, digest, code, .. } = self.question_states.open(&state, &bound_to)?;
        let answer = self.answer(answer_in(responses.as_ref()), code.as_deref())?;
        let prepared = self.prepare_as_shown(&call, Some(&digest), now.clone(), context).await?;
        let settled = settle(prepared, &Grants::default(), &mut GivenAnswer(Some(answer)));
        self.conclude(call, settled, now, context).await
    }

    /// Like [`Self::change`], for a call without an answer. The same change may be pending under a code.
    async fn change_of_first_call(
        self: &Arc<Self>,
        call: IncomingCall,
        bound_to: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse> {
        let (method, grants) = (consent_method(context, &self.options), Grants::default());
        let folder = self.workspace.vaults()[call.vault].vault.path();
        let pending = self.pending.of_request(folder, &call.request)?;
        let pending = pending.filter(|pending| method == ConsentMethod::Code || pending.approved);
        let of_shown = call.shown.as_ref().map(|shown| &shown.now);
        let time = of_shown.or(pending.as_ref().map(|pending| &pending.now)).cloned().unwrap_or_else(now);
        let digest = call.shown.as_ref().map(|shown| shown.digest.as_str());
        let prepared = self.prepare_as_shown(&call, digest, time.clone(), context).await?;
        let mut settled = match method {
            ConsentMethod::Trusted => settle(prepared, &grants, &mut AutoApprover),
            _ => settle(prepared, &grants, &mut GivenAnswer(None)),
        };
        if let Err(UnapprovedChange::Later(change)) = settled {
            let approved = pending.filter(|it| it.approved && it.digest == change.digest());
            // Remove it first, so that no second call can use the approval.
            let answer = match approved.map(|it| self.pending.remove(&it.code)).transpose()? {
                Some(true) => Answer::Yes,
                _ => match self.ask(&call, &change, time.clone(), method, context, bound_to).await? {
                    AskOutcome::Answered(answer) => answer,
                    AskOutcome::Response(response) => return Ok(*response),
                },
            };
            settled = settle(*change, &grants, &mut GivenAnswer(Some(answer)));
        }
        self.conclude(call, settled, time, context).await
    }

    /// Prepares the change of a call.
    ///
    /// # Errors
    /// If it touches more or less than expected, or is another change than the one that was shown.
    async fn prepare_as_shown(
        self: &Arc<Self>,
        call: &IncomingCall,
        digest: Option<&str>,
        time: Zoned,
        context: &RequestContext<RoleServer>,
    ) -> Result<PreparedChange> {
        let prepared = self.prepare(context, call.vault, call.request.clone(), time).await?;
        call.expect.map_or(Ok(()), |expect| expect.check(prepared.touched()))?;
        match digest.is_none_or(|digest| digest == prepared.digest()) {
            true => Ok(prepared),
            false => Err(PreparedChange::is_other_than_shown()),
        }
    }

    /// Carries out a change that is approved, stores one that is not decided under a code, or refuses it.
    async fn conclude(
        self: &Arc<Self>,
        call: IncomingCall,
        settled: std::result::Result<ApprovedChange, UnapprovedChange>,
        time: Zoned,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse> {
        match settled {
            Ok(approved) => self.carry_out(call, approved, context).await,
            Err(UnapprovedChange::Later(change)) => Ok(self.wait_for_approval(&call, &change, time)?.into()),
            Err(refused) => self.refuse(call.vault, refused).map(CallToolResponse::from),
        }
    }

    /// Asks the person in the way that the client supports.
    async fn ask(
        &self,
        call: &IncomingCall,
        change: &PreparedChange,
        now: Zoned,
        method: ConsentMethod,
        context: &RequestContext<RoleServer>,
        bound_to: &str,
    ) -> Result<AskOutcome> {
        if !matches!(method, ConsentMethod::InputRequired | ConsentMethod::Elicit) {
            return Ok(AskOutcome::Response(Box::new(self.wait_for_approval(call, change, now)?.into())));
        }
        let vault = &self.workspace.vaults()[call.vault].name;
        let (form, code) = match question(change, vault) {
            Some(question) => (Form::approving(question), None),
            None => {
                let code = self.add_pending(call, change, now.clone())?.code;
                (Form::declining(too_long(change, vault, &code, self.has_page(context))), Some(code))
            }
        };
        if method == ConsentMethod::InputRequired {
            let state = QuestionState { nonce: fastrand::u64(..), digest: change.digest().to_owned(), now, code };
            let response = self.question_states.input_required(form, &state, bound_to)?;
            return Ok(AskOutcome::Response(Box::new(response.into())));
        }
        let form_answer = tokio::select! {
            form_answer = elicit(&context.peer, form) => form_answer?,
            () = context.ct.cancelled() => FormAnswer::NoAnswer,
        };
        self.answer(form_answer, code.as_deref()).map(AskOutcome::Answered)
    }

    /// Converts the answer of a form to an answer about the change. The form of a change that is pending under a code
    /// cannot approve it.
    fn answer(&self, form_answer: FormAnswer, code: Option<&str>) -> Result<Answer> {
        let no = |how: &str| Answer::Declined(Some(how.to_owned()));
        Ok(match (form_answer, code) {
            (FormAnswer::No, code) => {
                code.map(|code| self.pending.remove(code)).transpose()?;
                no("declined in the client")
            }
            (_, Some(_)) => Answer::Later,
            (FormAnswer::Yes, None) => Answer::Yes,
            (FormAnswer::NoAnswer, None) => no("not answered in the client"),
        })
    }

    /// Stores a change under a code, and tells the client to have it approved.
    fn wait_for_approval(&self, call: &IncomingCall, change: &PreparedChange, now: Zoned) -> Result<CallToolResult> {
        Ok(results::needs_approval(&self.add_pending(call, change, now)?, change))
    }

    /// Stores the change under a code, unless the same change is already pending.
    fn add_pending(&self, call: &IncomingCall, change: &PreparedChange, now: Zoned) -> Result<PendingChange> {
        let open = &self.workspace.vaults()[call.vault];
        self.pending.add(PendingChange {
            code: String::new(),
            vault: open.vault.path().to_owned(),
            index: open.index.index_file.clone(),
            request: call.request.clone(),
            now,
            digest: change.digest().to_owned(),
            asked: jiff::Timestamp::now(),
            approved: false,
        })
    }

    /// Logs a refusal. A refusal by a person is a result, a denial by the policy is an error.
    fn refuse(&self, vault: usize, refused: UnapprovedChange) -> Result<CallToolResult> {
        let is_persons = matches!(&refused, UnapprovedChange::Refused { change, .. }
            if *change.permission() == Permission::Ask && change.plan().is_none_or(|plan| plan.blocked.is_none()));
        let reason = self.workspace.with(|vaults| refused.log(vaults.toolbox(vault)));
        if is_persons { Ok(results::declined(reason.message())) } else { Err(reason) }
    }

    async fn prepare(
        self: &Arc<Self>,
        context: &RequestContext<RoleServer>,
        vault: usize,
        request: ChangeRequest,
        now: Zoned,
    ) -> Result<PreparedChange> {
        self.blocking(context, move |calls, cancel| {
            calls.workspace.with(|vaults| {
                let prepared = request.prepare(vaults.toolbox(vault), &now, cancel);
                prepared.map_err(|error| vaults.shown_error(vault, error))
            })
        })
        .await
    }

    async fn carry_out(
        self: &Arc<Self>,
        call: IncomingCall,
        approved: ApprovedChange,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse> {
        let progress = context.meta.get_progress_token().map(|token| (token, context.peer.clone()));
        let steps = approved.change().plan().map_or(0, |plan| plan.steps.len());
        let (runtime, gone) = (Handle::current(), context.ct.clone());
        let done = self.blocking(context, move |calls, cancel| {
            let mut steps_done = 0;
            let mut report = |event: &plan::Event| {
                let (Some((token, peer)), plan::Event::StepFinished { step, .. }) = (&progress, event) else { return };
                steps_done += 1;
                let params = ProgressNotificationParam::new(token.clone(), f64::from(steps_done))
                    .with_total(steps as f64)
                    .with_message(step.clone());
                // A client that is gone or has cancelled needs no progress, and may not read it.
                let gone = gone.cancelled();
                runtime.block_on(async {
                    tokio::select! { _ = peer.notify_progress(params) => {} () = gone => {} }
                });
            };
            calls.workspace.with(|vaults| carry_out(approved, vaults, call.vault, cancel, &mut report))
        });
        Ok(results::done(done.await?).into())
    }

    /// Runs a closure on a thread that may block. The closure is notified when the client cancels the call.
    async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        context: &RequestContext<RoleServer>,
        act: impl FnOnce(&Self, Cancel<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let calls = Arc::clone(self);
        blocking(context.ct.cancelled(), move |cancel| act(&calls, limited(cancel))).await
    }
}

/// Parses a text as JSON, because some clients send objects and numbers as strings.
fn json_in(value: &Value) -> Value {
    value.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_else(|| value.clone())
}

/// The outcome of a question.
enum AskOutcome {
    Answered(Answer),
    /// The answer comes with another call.
    Response(Box<CallToolResponse>),
}
