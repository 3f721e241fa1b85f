//! Calls of tools: what is asked for becomes a [`Request`], which is prepared, approved where the policy asks, and
//! carried out.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Zoned;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, InputResponses, ProgressNotificationParam, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use vault_tools::plan::Event;
use vault_tools::{Approval, Cancel, Error, ErrorKind, Permission, Result, Vaults};

use super::catalog::{Offered, PLAN_APPLY, PLAN_PREVIEW, tools};
use super::consent::{Answer, Asked, Consent, Way, answer_in, elicit, way};
use super::page_calls::PageKeys;
use super::{answer, app};
use crate::pending::{Pending, PendingChanges};
use crate::plan_writer::plan_format;
use crate::request::{Done, Prepared, Request, UNDO, digest_of, now, read_all};
use crate::workspace::Workspace;

/// The longest that a call may take, the person's time aside.
const LONGEST: Duration = Duration::from_secs(300);

/// Previews of plans that can be applied; the oldest gives way.
const PREVIEWS: usize = 32;

/// What all clients of a server share.
pub(super) struct Calls {
    pub workspace: Workspace,
    pub tools: Vec<Tool>,
    pub offered: Offered,
    consent: Consent,
    page_keys: PageKeys,
    pending: PendingChanges,
    previews: Mutex<VecDeque<Previewed>>,
}

/// A plan that was previewed.
#[derive(Clone)]
struct Previewed {
    id: String,
    vault: usize,
    request: Request,
    seen: Seen,
}

/// What somebody was shown, and when.
#[derive(Clone)]
struct Seen {
    now: Zoned,
    digest: String,
}

/// A request on its way to being carried out.
struct Wanted {
    /// The tool as it is offered, and its arguments as they came: what a yes is bound to.
    name: String,
    args: Value,
    vault: usize,
    request: Request,
    /// Of a plan: what was previewed.
    seen: Option<Seen>,
}

impl Calls {
    /// # Errors
    /// When the system has no random numbers, or no folder for what waits.
    pub fn new(workspace: Workspace, offered: Offered) -> Result<Self> {
        let tools = workspace.with(|vaults| tools(vaults, &offered));
        let (consent, pending) = (Consent::new()?, PendingChanges::of_user()?);
        let (page_keys, previews) = (PageKeys::default(), Mutex::default());
        Ok(Self { workspace, tools, offered, consent, page_keys, pending, previews })
    }

    /// The tools that a client is offered: with the approval page, where it shows pages and cannot ask by itself.
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

    /// Whether the approval page is there for a client.
    pub fn has_page(&self, context: &RequestContext<RoleServer>) -> bool {
        let declared = || context.client_capabilities().is_some_and(|client| app::is_declared(&client));
        self.offered.approval_page && way(context, &self.offered) == Way::Code && declared()
    }

    /// Answers a call. What goes wrong in it is an answer that the model reads; only a tool that is not offered is an
    /// error of the protocol.
    ///
    /// # Errors
    /// No such tool.
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
        let args = Value::Object(params.arguments.unwrap_or_default());
        let state = params.request_state.map(|state| (state, params.input_responses));
        let answered = match name.as_str() {
            app::TOOL => {
                let page =
                    move |calls: &Self, _: Cancel<'_>| calls.page_keys.call(&args, &calls.workspace, &calls.pending);
                self.blocking(&context, page).await.map(CallToolResponse::from)
            }
            PLAN_PREVIEW => self.preview_plan(args, &context).await.map(CallToolResponse::from),
            PLAN_APPLY => match self.previewed(&args) {
                Ok(Previewed { vault, request, seen, .. }) => {
                    self.change(Wanted { name, args, vault, request, seen: Some(seen) }, state, &context).await
                }
                Err(error) => Err(error),
            },
            UNDO => match self.undo(&args) {
                Ok((vault, request)) => {
                    self.change(Wanted { name, args, vault, request, seen: None }, state, &context).await
                }
                Err(error) => Err(error),
            },
            _ => self.call_tool(name, args, state, &context).await,
        };
        Ok(answered.unwrap_or_else(|error| answer::failed(&error).into()))
    }

    /// A tool of the toolboxes: one that reads may be for several vaults.
    async fn call_tool(
        self: &Arc<Self>,
        name: String,
        args: Value,
        state: Option<(String, Option<InputResponses>)>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse> {
        let (tool, given) = (name.clone(), args.clone());
        let route = self.workspace.with(|vaults| vaults.route(&tool, given))?;
        if let [vault] = route.vaults[..] {
            let request = Request::Call { tool: name.clone(), args: route.args };
            let answer = self.change(Wanted { name, args, vault, request, seen: None }, state, context).await?;
            return Ok(match (answer, route.notice) {
                (CallToolResponse::Complete(result), Some(notice)) => answer::with_notice(result, notice).into(),
                (answer, _) => answer,
            });
        }
        let read = move |calls: &Self, cancel: Cancel<'_>| {
            calls.workspace.with(|vaults| read_all(vaults, &tool, &route, cancel))
        };
        let done = self.blocking(context, read).await?;
        Ok(answer::done(done).into())
    }

    /// The vault and the transaction that are to be undone.
    fn undo(&self, args: &Value) -> Result<(usize, Request)> {
        let transaction = match args.get("transaction").filter(|given| !given.is_null()) {
            None => None,
            Some(given) => Some(given.as_u64().ok_or_else(|| {
                Error::new(ErrorKind::InvalidArguments, "`transaction` is the number of a transaction, from 1")
            })?),
        };
        Ok((self.vault(args)?, Request::Undo { transaction }))
    }

    /// The vault that the argument `vault` names; the only one, where there is one.
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
        let Some(plan) = args.get("plan").filter(|plan| !plan.is_null()).cloned() else {
            return Ok(answer::plain(self.workspace.with(|vaults| plan_format(vaults))));
        };
        let parameters = match args.get("parameters") {
            Some(Value::Object(parameters)) => parameters.clone(),
            _ => Map::new(),
        };
        let vault = self.vault(&args)?;
        let request = Request::Plan { plan, parameters };
        let now = now();
        let prepared = self.prepare(context, vault, request.clone(), now.clone()).await?;
        let seen = Seen { now, digest: prepared.digest.clone() };
        let id = digest_of(&format!("{} {}", prepared.digest, fastrand::u64(..)))[..12].to_owned();
        let mut previews = self.previews.lock().unwrap_or_else(PoisonError::into_inner);
        previews.push_back(Previewed { id: id.clone(), vault, request, seen });
        if previews.len() > PREVIEWS {
            previews.pop_front();
        }
        Ok(answer::plan_preview(&id, &prepared, prepared.permission == Permission::Ask))
    }

    fn previewed(&self, args: &Value) -> Result<Previewed> {
        let id = args.get("id").and_then(Value::as_str).unwrap_or_default();
        let previews = self.previews.lock().unwrap_or_else(PoisonError::into_inner);
        previews.iter().find(|previewed| previewed.id == id).cloned().ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("no plan was previewed under the id {id:?}"))
                .with_remedy("call plan_preview again, and apply the id that it answers")
        })
    }

    /// Prepares a request, has it approved where the policy asks, and carries it out.
    async fn change(
        self: &Arc<Self>,
        wanted: Wanted,
        state: Option<(String, Option<InputResponses>)>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse> {
        let way = way(context, &self.offered);
        let bound_to = digest_of(&format!("{} {}", wanted.name, wanted.args));
        let mut seen = wanted.seen.clone();
        // What came back from a client that was asked, and what waits for a yes or has it.
        let (mut answered, mut waiting) = (None, None);
        if let Some((state, responses)) = state {
            let asked = self.consent.open(&state, &bound_to)?;
            seen = Some(Seen { now: asked.now, digest: asked.digest });
            answered = Some(answer_in(responses.as_ref()));
        } else if way == Way::Code {
            let folder = self.workspace.vaults()[wanted.vault].vault.path();
            waiting = self.pending.of_request(folder, &wanted.request)?;
        }
        let time = match (&seen, &waiting) {
            (Some(seen), _) => seen.now.clone(),
            (None, Some(waiting)) => waiting.now.clone(),
            (None, None) => now(),
        };
        let prepared = self.prepare(context, wanted.vault, wanted.request.clone(), time.clone()).await?;
        if let Some(seen) = seen.filter(|seen| seen.digest != prepared.digest) {
            let _ = seen;
            let message = "the notes have changed since this was shown, so it would do something else";
            return Err(Error::new(ErrorKind::Conflict, message).with_remedy("nothing was done; ask for it again"));
        }
        let approval = match &prepared.permission {
            Permission::Deny(reason) => return Err(Error::new(ErrorKind::Denied, reason.clone())),
            Permission::Allow => Approval::Allowed,
            Permission::Ask => {
                let vault = &self.workspace.vaults()[wanted.vault].name;
                let answer = match (way, answered) {
                    (Way::Trusted, _) => return self.carry_out(wanted, prepared, Approval::Preapproved, context).await,
                    (_, Some(answered)) => answered,
                    (Way::InputRequired, None) => {
                        let asked = Asked { nonce: fastrand::u64(..), digest: prepared.digest.clone(), now: time };
                        return Ok(self.consent.input_required(&prepared.question(vault), &asked, &bound_to)?.into());
                    }
                    (Way::Elicit, None) => {
                        let question = prepared.question(vault);
                        tokio::select! {
                            answer = elicit(&context.peer, &question) => answer?,
                            () = context.ct.cancelled() => Answer::Nothing,
                        }
                    }
                    (Way::Code, None) => match waiting.filter(|it| it.approved && it.digest == prepared.digest) {
                        // Once: it is removed first, so that no second call finds it.
                        Some(approved) if self.pending.remove(&approved.code)? => Answer::Yes,
                        _ => return Ok(self.wait_for_a_yes(wanted, &prepared, time)?.into()),
                    },
                };
                if answer != Answer::Yes {
                    let how =
                        if answer == Answer::No { "declined in the client" } else { "not answered in the client" };
                    return Ok(self.refuse(wanted.vault, &prepared, how).into());
                }
                Approval::Approved
            }
        };
        self.carry_out(wanted, prepared, approval, context).await
    }

    /// Keeps what was prepared under a code.
    fn wait_for_a_yes(&self, wanted: Wanted, prepared: &Prepared, now: Zoned) -> Result<CallToolResult> {
        let open = &self.workspace.vaults()[wanted.vault];
        let pending = self.pending.add(Pending {
            code: String::new(),
            vault: open.vault.path().to_owned(),
            index: open.index.index_file.clone(),
            request: wanted.request,
            now,
            digest: prepared.digest.clone(),
            asked: jiff::Timestamp::now(),
            approved: false,
        })?;
        Ok(answer::needs_approval(&pending, prepared))
    }

    fn refuse(&self, vault: usize, prepared: &Prepared, how: &str) -> CallToolResult {
        let reason = Error::new(ErrorKind::Denied, how);
        self.workspace.with(|vaults| prepared.refuse(vaults.toolbox(vault), &reason));
        answer::declined(how)
    }

    async fn prepare(
        self: &Arc<Self>,
        context: &RequestContext<RoleServer>,
        vault: usize,
        request: Request,
        now: Zoned,
    ) -> Result<Prepared> {
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
        wanted: Wanted,
        prepared: Prepared,
        approval: Approval,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse> {
        let progress = context.meta.get_progress_token().map(|token| (token, context.peer.clone()));
        let steps = prepared.plan().map_or(0, |plan| plan.steps.len());
        let (runtime, gone) = (Handle::current(), context.ct.clone());
        let done = self.blocking(context, move |calls, cancel| {
            let mut steps_done = 0;
            let mut report = |event: &Event| {
                let (Some((token, peer)), Event::StepFinished { step, .. }) = (&progress, event) else { return };
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
            calls.workspace.with(|vaults| {
                let done = prepared.carry_out(vaults.toolbox(wanted.vault), approval, cancel, &mut report);
                let done = done.map_err(|error| vaults.shown_error(wanted.vault, error))?;
                shown(vaults, &wanted, done)
            })
        });
        Ok(answer::done(done.await?).into())
    }

    /// Runs on a thread that may block, until it is done; it is told when the client cancels the call.
    async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        context: &RequestContext<RoleServer>,
        act: impl FnOnce(&Self, Cancel<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (calls, flag) = (Arc::clone(self), Arc::new(AtomicBool::new(false)));
        let cancelled = Arc::clone(&flag);
        let mut running =
            tokio::task::spawn_blocking(move || act(&calls, Cancel::on(&cancelled).until(Instant::now() + LONGEST)));
        let ended = tokio::select! {
            ended = &mut running => ended,
            () = context.ct.cancelled() => {
                flag.store(true, Ordering::Relaxed);
                running.await
            }
        };
        ended.unwrap_or_else(|_| {
            Err(Error::new(ErrorKind::Unsupported, "this call met a fault of the program")
                .with_remedy("nothing more was done; please report it"))
        })
    }
}

/// An output as the caller reads it: with several vaults, paths have their names.
fn shown(vaults: &mut Vaults, wanted: &Wanted, mut done: Done) -> Result<Done> {
    if let Request::Call { tool, .. } = &wanted.request {
        done.value = vaults.shown(wanted.vault, tool, done.value)?;
    }
    Ok(done)
}
