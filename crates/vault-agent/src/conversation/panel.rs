//! What a person is shown about a question before they decide: the content of an approval panel.

use agent_loop::{CallPermission, Decision, Question, QuestionSubject, ToolCall};
use serde_json::Value;
use vault_search::shortened;
use vault_search::tools::texts_of_change;
use vault_tools::{EditedFile, LastingPermission, Preview, Result, Risk};

use super::Conversation;
use crate::call_line::DECLINED;
use crate::change_text::{kind, what_undo_does};
use crate::model::Destination;

/// The maximum characters of a tool's description in a question about a call.
const LONGEST_SENTENCE: usize = 160;

/// A question that was opened for a person.
#[derive(Debug)]
pub(crate) enum OpenedQuestion {
    /// A person decides on this.
    Panel(Box<Panel>),
    /// No person is asked. A call that cannot be made is denied; one that does nothing that asks is allowed, and the
    /// model reads its result.
    Decided(Decision),
}

impl From<Panel> for OpenedQuestion {
    fn from(panel: Panel) -> Self {
        Self::Panel(Box::new(panel))
    }
}

/// The content of an approval panel.
#[derive(Debug)]
pub(crate) struct Panel {
    /// The question, in one line.
    pub title: String,
    /// The tool.
    pub tool: String,
    /// The arguments that it would run with.
    pub arguments: Value,
    /// The highest risk of the call.
    pub risk: Risk,
    /// How far undo can revert it.
    pub what_undo_does: &'static str,
    /// Which data leaves this machine, and who receives it.
    pub leaves: String,
    /// The change, and the number of its vault.
    pub change: Option<(usize, Preview)>,
    /// The effects on the app around the vault, each in a line.
    pub effects: Vec<String>,
    /// The change or the arguments, as a screen first shows them, and in full.
    pub short: String,
    pub whole: String,
    /// The items of a result, some of which a person can withhold.
    pub items: Option<Vec<String>>,
    /// The files whose parts can be left out.
    pub files: Vec<EditedFile>,
    /// The permission that "do not ask again" grants; `None` if it cannot be granted.
    pub grant: Option<String>,
    /// The permission that "always" grants, in the vault of the change.
    pub lasting: Option<LastingPermission>,
}

/// Returns a person's refusal of a call, with the person's reason after the fixed words.
pub(crate) fn declined(said: Option<String>) -> Decision {
    let said = said.map(|said| format!(": {said}")).unwrap_or_default();
    Decision::Deny { reason: Some(format!("{DECLINED}{said}")) }
}

impl Conversation {
    /// Opens a question. From now on an approval is for the content of its panel.
    pub fn open_question(&self, question: &Question) -> OpenedQuestion {
        let is_ours = self.tools.has(&question.call.name) && matches!(question.about, QuestionSubject::Running { .. });
        if is_ours && !self.tools.hold_question(&question.call) {
            return OpenedQuestion::Decided(Decision::Allow);
        }
        match self.panel_with(question, question.call.arguments.clone(), Vec::new()) {
            Ok(panel) => OpenedQuestion::from(panel),
            Err(error) => OpenedQuestion::Decided(Decision::Deny { reason: Some(error.to_string()) }),
        }
    }

    /// Returns the panel with edited arguments, and without the parts that a person left out of [`Panel::files`].
    ///
    /// # Errors
    /// A call that cannot be made with these arguments.
    pub fn panel_with(&self, question: &Question, arguments: Value, kept: Vec<EditedFile>) -> Result<Panel> {
        let tool = question.call.name.clone();
        let to = match &self.model.destination {
            Destination::ThisMachine => None,
            Destination::Host(host) => Some(host),
        };
        let mut panel = Panel {
            title: format!("Let the model use {tool}?{}", self.what_it_does(&tool)),
            short: arguments_text(&arguments),
            whole: arguments_text(&arguments),
            tool,
            arguments,
            risk: Risk::Read,
            what_undo_does: "Nothing is changed.",
            leaves: match to {
                None => "What it returns stays on this machine.".to_owned(),
                Some(host) => format!("What it returns is sent to {host}."),
            },
            change: None,
            effects: Vec::new(),
            items: None,
            files: Vec::new(),
            grant: Some(question.call.name.clone()),
            lasting: None,
        };
        if let QuestionSubject::Sharing { output } = &question.about {
            panel.title = format!("Share what {} found?", panel.tool);
            panel.leaves = match to {
                None => "What you tick is given to the model on this machine.".to_owned(),
                Some(host) => format!("What you tick is sent to {host}."),
            };
            panel.items = Some(output.items.clone());
            panel.grant = None;
            return Ok(panel);
        }
        if !self.tools.has(&question.call.name) {
            let is_vouched = self.is_asked_once(&question.call);
            panel.risk = if is_vouched { Risk::Read } else { Risk::Write };
            panel.what_undo_does = match is_vouched {
                true => "It is a tool of another program that only reads, as you said; you are asked once.",
                false => "It is a tool of another program: nothing here can undo it.",
            };
            panel.leaves = format!("That program is sent the arguments below. {}", panel.leaves);
            panel.grant = self.grant(&question.call);
            return Ok(panel);
        }
        if let Some((vault, change)) = self.tools.held_change(&question.call, &panel.arguments, kept)? {
            let name = &self.tools.workspace().vaults()[vault].name;
            panel.title = format!("{} in {name}?", kind(&change));
            panel.risk = change.risk();
            // A grant covers no more than the tool's own risk.
            panel.grant = panel.grant.filter(|tool| Some(change.risk()) <= self.tools.risk(tool));
            panel.what_undo_does = what_undo_does(change.risk());
            (panel.short, panel.whole) = texts_of_change(&change, Vec::new());
            panel.effects =
                change.effects().iter().map(|effect| vault_search::sanitize_line(&format!("it {effect}"))).collect();
            panel.files = change.separable_files();
            panel.lasting = change.lasting_permission().cloned();
            panel.change = Some((vault, change.preview().clone()));
            if to.is_some() {
                panel.leaves = panel.leaves.replace("What it returns", "What it answers, not the change,");
            }
        }
        Ok(panel)
    }

    /// Returns the first sentence of a tool's description, after a space.
    fn what_it_does(&self, tool: &str) -> String {
        let purpose = self.purpose(tool);
        // A tool of another program may make any claim about itself, so the claim is marked as its own.
        let says = if self.tools.has(tool) { " " } else { " It says of itself: " };
        if purpose.is_empty() { purpose } else { format!("{says}{purpose}") }
    }

    /// The first sentence of a tool's description; empty where it has none.
    pub fn purpose(&self, tool: &str) -> String {
        let spec = self.agent.context().tools.get(tool);
        let description = spec.map_or("", |spec| &*spec.description);
        shortened(description.split_inclusive(". ").next().unwrap_or_default().trim(), LONGEST_SENTENCE)
    }

    /// Returns the permission that "do not ask again" would grant, if it covers more than this call.
    fn grant(&self, call: &ToolCall) -> Option<String> {
        let context = self.agent.context();
        match context.policy.permission(call, context.tools.get(&call.name)?) {
            CallPermission::Ask { grant, .. } => Some(grant).filter(|grant| *grant == call.name),
            _ => None,
        }
    }
}

/// Formats arguments, one per line. A text of several lines is indented below its name.
fn arguments_text(arguments: &Value) -> String {
    let Value::Object(arguments) = arguments else { return vault_search::sanitize_line(&arguments.to_string()) };
    let line = |(name, value): (&String, &Value)| {
        let name = vault_search::sanitize_line(name);
        match value {
            Value::String(text) if text.contains('\n') => {
                let lines: String =
                    text.lines().map(|line| format!("\n    {}", vault_search::sanitize_line(line))).collect();
                format!("{name}:{lines}")
            }
            Value::String(text) => format!("{name}: {}", vault_search::sanitize_line(text)),
            other => format!("{name}: {}", vault_search::sanitize_line(&other.to_string())),
        }
    };
    arguments.iter().map(line).collect::<Vec<_>>().join("\n")
}
