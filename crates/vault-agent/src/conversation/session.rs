//! Saved conversations: each has a transcript, written after every step, and a small file with its metadata.
//!
//! ```text
//! ID.jsonl   the transcript (agent-loop's format)
//! ID.lock    held by the program that has the conversation open
//! ID.json    title, vaults, model, times, and the places that answers cited
//! ```
//!
//! They are in the user's state folder, private to the user.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use agent_loop::{Message, ToolResult, Transcript, to_markdown};
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vault_index::private_file::private_file;
use vault_tools::{Error, ErrorKind, Result, State};

use super::attachments::without_attached;
use super::citations::Source;
use crate::call_line::call_line;
use crate::loop_error::of_loop;
use crate::state_folder::state_of_user;

/// How often, and with which pause, to retry a conversation that another program holds.
const HELD_TRIES: usize = 40;
const HELD_PAUSE: Duration = Duration::from_millis(50);

/// How long a conversation without messages is kept, because an editor may open its thread again.
const EMPTY_KEPT: SignedDuration = SignedDuration::from_hours(24 * 30);

/// The maximum characters of a title.
const LONGEST_TITLE: usize = 72;

/// The metadata of a conversation.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SessionInfo {
    /// The id.
    pub id: String,
    /// The person's first message, shortened.
    pub title: String,
    /// The folders of the vaults.
    pub vaults: Vec<PathBuf>,
    /// The provider of the model.
    pub provider: String,
    /// The model.
    pub model: String,
    /// When it was started.
    #[schemars(with = "String")]
    pub created: Timestamp,
    /// When it was last written.
    #[schemars(with = "String")]
    pub updated: Timestamp,
    /// The places that its answers cited.
    pub sources: Vec<Source>,
    /// Citations and quotes in its answers that do not exist, with the reasons.
    #[serde(default)]
    pub removed: Vec<String>,
    /// Whether it waits for a person's decision.
    pub waits: bool,
}

impl SessionInfo {
    /// Whether it has no messages yet, and so no transcript.
    pub fn is_empty(&self) -> bool {
        self.title.is_empty()
    }
}

/// The folder of saved conversations.
#[derive(Debug, Clone)]
pub(crate) struct Sessions {
    pub(super) folder: State,
}

impl Sessions {
    /// Opens the folder of the user.
    ///
    /// # Errors
    /// When the system names no folder for the state of programs.
    pub fn of_user() -> Result<Self> {
        Ok(Self { folder: state_of_user("sessions")? })
    }

    /// Returns all conversations with messages, the last written first. Unreadable ones are left out.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn list(&self) -> Result<Vec<SessionInfo>> {
        let entries = match fs::read_dir(self.folder.folder()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::io(self.folder.folder().display(), &error)),
        };
        let mut all = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(id) = name.strip_suffix(".json") else { continue };
            let text = self.folder.read(&name)?.unwrap_or_default();
            let Some(info) = serde_json::from_str::<SessionInfo>(&text).ok().filter(|info| info.id == id) else {
                continue;
            };
            if !info.is_empty() {
                all.push(info);
            } else if Timestamp::now().duration_since(info.updated) > EMPTY_KEPT {
                self.folder.remove(&name)?;
            }
        }
        all.sort_by(|a, b| b.updated.cmp(&a.updated).then_with(|| a.id.cmp(&b.id)));
        Ok(all)
    }

    /// Returns the conversation with exactly this id.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub fn get(&self, id: &str) -> Result<Option<SessionInfo>> {
        if !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Ok(None);
        }
        let text = self.folder.read(&format!("{id}.json"))?.unwrap_or_default();
        Ok(serde_json::from_str::<SessionInfo>(&text).ok().filter(|info| info.id == id))
    }

    /// Finds a conversation by its id or a prefix of it; without a name, the last written one.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] without a match; an ambiguous prefix.
    pub fn find(&self, name: Option<&str>) -> Result<SessionInfo> {
        let all = self.list()?;
        let Some(name) = name else {
            return all.into_iter().next().ok_or_else(|| {
                Error::new(ErrorKind::NotFound, "there is no saved conversation")
                    .with_remedy("vault-agent chat starts one")
            });
        };
        let wanted = name.trim().to_lowercase();
        let mut found = all.into_iter().filter(|info| !wanted.is_empty() && info.id.starts_with(&wanted));
        match (found.next(), found.next()) {
            (Some(info), None) => Ok(info),
            (None, _) => Err(Error::new(ErrorKind::NotFound, format!("no saved conversation has the id {name}"))
                .with_remedy("vault-agent sessions lists all")),
            (Some(_), Some(_)) => {
                let message = format!("several saved conversations have ids that begin with {name}");
                Err(Error::new(ErrorKind::InvalidArguments, message).with_remedy("give more characters of the id"))
            }
        }
    }

    /// Returns the conversations that contain all words, without regard to case.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn search(&self, query: &str) -> Result<Vec<SessionInfo>> {
        let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
        let mut all = self.list()?;
        all.retain(|info| {
            let said = self.messages(info).map(|messages| said(&messages)).unwrap_or_default();
            let text = format!("{} {said}", info.title).to_lowercase();
            words.iter().all(|word| text.contains(word))
        });
        Ok(all)
    }

    /// Returns all messages of a conversation.
    fn messages(&self, info: &SessionInfo) -> Result<Vec<Message>> {
        Transcript::messages(self.transcript(info)).map_err(of_loop)
    }

    /// Exports the conversation as Markdown: questions, answers, a line for each call, its sources, and the citations
    /// that do not exist. If `is_whole`, it includes the results of the tools.
    ///
    /// # Errors
    /// A transcript that cannot be read.
    pub fn export(&self, info: &SessionInfo, is_whole: bool) -> Result<String> {
        let messages = self.messages(info)?;
        let mut text = if is_whole { to_markdown(&messages) } else { as_talk(&messages) };
        text.truncate(text.trim_end().len());
        if !info.sources.is_empty() {
            text.push_str("\n\n## Sources\n");
            for source in &info.sources {
                let name = source.path.strip_suffix(".md").unwrap_or(&source.path);
                let line = source.line.map(|line| format!(", line {line}")).unwrap_or_default();
                let last = source.last.map(|last| format!("-{last}")).unwrap_or_default();
                text.push_str(&format!("\n- [[{name}]]{line}{last}"));
            }
        }
        if !info.removed.is_empty() {
            text.push_str("\n\n## Not in the notes\n");
            info.removed.iter().for_each(|removed| text.push_str(&format!("\n- {removed}")));
        }
        Ok(text + "\n")
    }

    /// Deletes a conversation.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] if another program holds it; a file that cannot be removed.
    pub fn delete(&self, info: &SessionInfo) -> Result<()> {
        let held = self.hold(info)?;
        self.folder.remove(&format!("{}.jsonl", info.id))?;
        self.folder.remove(&format!("{}.json", info.id))?;
        // Windows does not remove open files.
        drop(held);
        self.folder.remove(&format!("{}.lock", info.id))?;
        Ok(())
    }

    /// Locks a conversation against other programs until the file is dropped.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] if another program holds it.
    pub fn hold(&self, info: &SessionInfo) -> Result<fs::File> {
        let path = self.folder.folder().join(format!("{}.lock", info.id));
        let failed = |error: io::Error| Error::io(path.display(), &error);
        let file = private_file(&path)?;
        for _ in 0..HELD_TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                // A turn that has just ended releases it in a moment.
                Err(fs::TryLockError::WouldBlock) => std::thread::sleep(HELD_PAUSE),
                Err(fs::TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
        Err(Error::new(ErrorKind::Conflict, "this conversation is open in another program")
            .with_remedy("close it there first"))
    }

    /// Returns the path of a conversation's transcript.
    pub fn transcript(&self, info: &SessionInfo) -> PathBuf {
        self.folder.folder().join(format!("{}.jsonl", info.id))
    }

    /// Writes the metadata of a conversation.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, info: &SessionInfo) -> Result<()> {
        let json = serde_json::to_vec_pretty(info).map_err(|error| Error::io("a conversation", &error.into()))?;
        self.folder.replace(&format!("{}.json", info.id), json)
    }
}

/// Formats questions and answers, with a line for each call between them.
fn as_talk(messages: &[Message]) -> String {
    let (mut talk, mut answer) = (String::new(), None);
    let mut calls = BTreeMap::new();
    let end = |talk: &mut String, answer: Option<String>| {
        let answer = answer.filter(|answer| !answer.trim().is_empty());
        answer.into_iter().for_each(|answer| talk.push_str(&format!("## Answer\n\n{}\n\n", answer.trim())));
    };
    for message in messages {
        match message {
            Message::User { text, .. } => {
                end(&mut talk, answer.take());
                talk.push_str(&format!("## Question\n\n{}\n\n", without_attached(text).trim()));
            }
            // Text before calls is not an answer.
            Message::Assistant { .. } => {
                calls.extend(message.calls().map(|call| (call.id.clone(), call.clone())));
                answer = message.calls().next().is_none().then(|| message.text());
            }
            Message::Results { results } => {
                let line = |result: &ToolResult| format!("- {}\n", call_line(calls.get(&result.call), result));
                talk.extend(results.iter().map(line));
                talk.push('\n');
            }
            Message::Note { .. } => {}
        }
    }
    end(&mut talk, answer);
    talk
}

/// Returns the text of all messages.
fn said(messages: &[Message]) -> String {
    messages.iter().map(Message::text).collect::<Vec<_>>().join("\n")
}

/// Returns the title of a conversation from its first message.
pub(super) fn title_of(message: &str) -> String {
    let line = without_attached(message).split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST_TITLE - 1) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use agent_loop::{Durability, Run, RunId, RunOptions};

    use super::*;

    fn info(id: &str, title: &str, updated: i64) -> SessionInfo {
        let updated = Timestamp::from_second(updated).unwrap();
        SessionInfo {
            id: id.to_owned(),
            title: title.to_owned(),
            vaults: vec!["/notes".into()],
            provider: "p".to_owned(),
            model: "m".to_owned(),
            created: updated,
            updated,
            sources: vec![Source { path: "a/B.md".to_owned(), line: Some(3), ..Source::default() }],
            removed: vec!["[b.md:1]: there is no such note".to_owned()],
            waits: false,
        }
    }

    #[test]
    fn conversations_are_listed_found_searched_exported_and_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let sessions = Sessions { folder: State::at(folder.path().join("sessions")) };
        assert!(sessions.list().unwrap().is_empty());
        for (id, title, updated) in [("abc1", "Roses", 10), ("abd2", "Lilies", 20)] {
            sessions.write(&info(id, title, updated)).unwrap();
            let run = Run::new(RunId(id.to_owned()), RunOptions::default(), format!("How do I prune {title}?"));
            Transcript::create(sessions.transcript(&info(id, title, 0)), &run, Durability::Process).unwrap();
        }
        let ids = |all: Vec<SessionInfo>| all.into_iter().map(|info| info.id).collect::<Vec<_>>();
        assert_eq!(ids(sessions.list().unwrap()), ["abd2", "abc1"]);
        assert_eq!(sessions.find(None).unwrap().id, "abd2");
        assert_eq!(sessions.find(Some("ABC")).unwrap().id, "abc1");
        assert_eq!(sessions.find(Some("ab")).unwrap_err().kind(), ErrorKind::InvalidArguments);
        assert_eq!(sessions.find(Some("x")).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(ids(sessions.search("prune ROSES").unwrap()), ["abc1"]);
        let roses = sessions.find(Some("abc1")).unwrap();
        let text = sessions.export(&roses, false).unwrap();
        assert!(sessions.export(&roses, true).unwrap().starts_with("## User\n"));
        assert!(text.contains("How do I prune Roses?") && text.contains("- [[a/B]], line 3"), "{text}");
        assert!(text.ends_with("\n## Not in the notes\n\n- [b.md:1]: there is no such note\n"), "{text}");
        sessions.delete(&roses).unwrap();
        assert_eq!(ids(sessions.list().unwrap()), ["abd2"]);
        assert!(!sessions.transcript(&roses).exists());
    }

    #[test]
    fn a_conversation_is_open_in_one_program() {
        let folder = tempfile::tempdir().unwrap();
        let sessions = Sessions { folder: State::at(folder.path().join("sessions")) };
        let info = info("abc1", "Roses", 10);
        sessions.write(&info).unwrap();
        let held = sessions.hold(&info).unwrap();
        assert_eq!(sessions.hold(&info).unwrap_err().kind(), ErrorKind::Conflict);
        assert_eq!(sessions.delete(&info).unwrap_err().kind(), ErrorKind::Conflict);
        assert_eq!(sessions.list().unwrap().len(), 1);
        drop(held);
        assert!(sessions.hold(&info).is_ok());
    }

    #[test]
    fn a_title_is_one_short_line() {
        assert_eq!(title_of(" a\n b "), "a b");
        assert_eq!(title_of(&"long ".repeat(40)).chars().count(), LONGEST_TITLE);
    }
}
