//! The approval panel: the effect of a call, whether it can be undone, which data leaves the machine; then keys.

use std::io;
use std::time::Duration;

use agent_loop::{Decision, Question};
use crossterm::event::{
    DisableBracketedPaste, EnableBracketedPaste, Event, KeyCode, KeyEventKind, KeyModifiers, poll, read,
};
use crossterm::execute;
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use vault_search::tools::{PartChoice, choose_hunks, cut_beside, edited, page};
use vault_search::{Paint, sanitize, sanitize_line};
use vault_tools::{Error, Result};

use super::input::ask;
use crate::cli::screen::Screen;
use crate::cli::withheld_items::withheld;
use crate::conversation::{Conversation, OpenedQuestion, Panel, declined};
use crate::settings::add_permission;
use crate::terminal::plain_lines;

/// The rows of a panel beside the change: its title, two lines and an empty one above, the count of the missing lines
/// and up to seven keys below.
const OTHER_ROWS: usize = 12;

/// A person's answer to a question.
#[derive(Debug)]
pub(super) enum PanelAnswer {
    Decided(Decision),
    /// All open questions are denied, and the turn ends.
    Stop,
    /// The question stays open.
    Leave,
}

/// A pressed key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Letter(char),
    Interrupt,
    End,
}

/// A key on offer, and a description of its effect.
pub(super) type KeyLabel = (char, String);

/// A change on the screen. It can be approved only after all of it was shown.
pub(super) struct ChangeView {
    /// The part that fits on the screen.
    pub part: String,
    whole: String,
    /// Whether a part has not been shown yet.
    is_cut: bool,
    /// Whether the whole differs from the part that was shown first.
    differs: bool,
}

impl ChangeView {
    pub fn new(short: &str, whole: String) -> Self {
        let (part, is_cut) = cut_beside(short, &whole, OTHER_ROWS);
        let differs = part != whole;
        Self { part, whole, is_cut, differs }
    }

    pub fn is_whole(&self) -> bool {
        !self.is_cut
    }

    pub fn show_whole(&mut self, paint: Paint) {
        page(&paint.diff(&self.whole));
        self.is_cut = false;
    }

    /// The label of the key that approves.
    pub fn yes(&self) -> &'static str {
        if self.is_cut { "yes, once all of it is shown" } else { "yes" }
    }

    /// The key that shows the whole change, if it differs from the part on the screen.
    pub fn key(&self) -> Option<KeyLabel> {
        self.differs.then(|| ('w', "show the whole".to_owned()))
    }
}

/// Asks about one question of several: `number` of `count`.
///
/// # Errors
/// When the terminal cannot be read.
pub(super) fn ask_person(
    conversation: &Conversation,
    question: &Question,
    (number, count): (usize, usize),
    screen: &mut Screen,
) -> Result<PanelAnswer> {
    let place = if count > 1 { format!("{number} of {count}  ") } else { String::new() };
    let mut panel = match conversation.open_question(question) {
        OpenedQuestion::Panel(panel) => *panel,
        OpenedQuestion::Decided(decision) => return Ok(PanelAnswer::Decided(decision)),
    };
    if let Some(items) = &panel.items {
        return share(&panel, items, &place, screen);
    }
    let mut is_edited = false;
    // Parts are always chosen from the whole change, even the second time.
    let mut files = panel.files.clone();
    let mut view = show(&panel, &place, screen);
    loop {
        let has_parts = files.iter().map(|file| file.hunks().len()).sum::<usize>() > 1;
        match key(&keys(&panel, &view, is_edited, has_parts), screen)? {
            Key::Letter('y' | 'a' | 'l' | 'w') if !view.is_whole() => view.show_whole(screen.paint),
            Key::Letter('y') if is_edited => {
                screen.quiet("  yes, as edited");
                return Ok(PanelAnswer::Decided(Decision::AllowEdited { arguments: panel.arguments }));
            }
            Key::Letter('y') => {
                screen.quiet("  yes");
                return Ok(PanelAnswer::Decided(Decision::Allow));
            }
            Key::Letter('a') => {
                screen.quiet(&format!("  yes, and {} is not asked about again in this conversation", panel.tool));
                return Ok(PanelAnswer::Decided(Decision::AllowForSession));
            }
            Key::Letter('l') => match always(conversation, &panel, screen) {
                Ok(true) => return Ok(PanelAnswer::Decided(Decision::Allow)),
                Ok(false) => {}
                Err(error) => screen.warn(&error.one_line()),
            },
            Key::Letter('n') => {
                let Some(reason) = ask("  what instead? (Enter: no more to say)", screen) else { continue };
                screen.quiet("  no");
                return Ok(PanelAnswer::Decided(declined(Some(reason).filter(|reason| !reason.is_empty()))));
            }
            Key::Letter('e') => match edited("arguments", &panel.arguments) {
                Ok(Some(arguments)) => match conversation.panel_with(question, arguments, Vec::new()) {
                    Ok(again) => {
                        (files, is_edited) = (again.files.clone(), true);
                        panel = again;
                        view = show(&panel, &place, screen);
                    }
                    Err(error) => screen.warn(&error.one_line()),
                },
                Ok(None) => {}
                Err(error) => screen.warn(&error.one_line()),
            },
            Key::Letter('p') => match choose_hunks(files.clone(), &mut |question| ask(question, screen)) {
                PartChoice::Part(kept) => {
                    panel = conversation.panel_with(question, panel.arguments, kept)?;
                    view = show(&panel, &place, screen);
                }
                PartChoice::Whole => {}
                PartChoice::Nothing => screen.quiet("  nothing would be left: n says no"),
            },
            Key::Letter('w') => view.show_whole(screen.paint),
            Key::Letter(_) => {}
            Key::Interrupt => return Ok(PanelAnswer::Stop),
            Key::End => return Ok(PanelAnswer::Leave),
        }
    }
}

/// Grants the lasting permission that would cover this change, once the person has confirmed its exact words. Returns
/// whether it was granted.
fn always(conversation: &Conversation, panel: &Panel, screen: &mut Screen) -> Result<bool> {
    let (Some(permission), Some((vault, _))) = (&panel.lasting, &panel.change) else { return Ok(false) };
    let workspace = conversation.tools().workspace();
    let vault = &workspace.vaults()[*vault].name;
    let rule = format!(
        "From now on, {permission}, in the vault {vault}: in every program of yours that uses these settings, until you revoke \
         it (/permissions). Deletes, plans, commands and changes elsewhere still ask."
    );
    screen.show(&plain_lines(&sanitize_line(&rule), screen.paint.columns()).join("\n"));
    let keys = [('y', "yes, always".to_owned()), ('n', "no, back to this change (Esc)".to_owned())];
    if key(&keys, screen)? != Key::Letter('y') {
        return Ok(false);
    }
    let file = add_permission(vault, permission)?;
    workspace.reload_policies()?;
    screen.quiet(&format!("  yes, always; written to {}", file.display()));
    Ok(true)
}

/// Lets the person choose which items of a result are shared with the model.
fn share(panel: &Panel, items: &[String], place: &str, screen: &mut Screen) -> Result<PanelAnswer> {
    show(panel, place, screen);
    let read_line = &mut |question: &str| ask(question, screen);
    let (withheld, count) = withheld("Share the ticked ones?", items, read_line);
    screen.quiet(&format!("  shared {} of {count}", count - withheld.len()));
    Ok(PanelAnswer::Decided(Decision::Share { withheld }))
}

fn show(panel: &Panel, place: &str, screen: &mut Screen) -> ChangeView {
    let (paint, view) = (screen.paint, ChangeView::new(&panel.short, panel.whole.clone()));
    let mut lines = vec![paint.bold(&screen.fitted(&format!("{place}{}", sanitize_line(&panel.title))))];
    lines.push(screen.fitted(&format!("  risk: {}. {}", panel.risk.name(), panel.what_undo_does)));
    lines.push(screen.fitted(&format!("  {}", sanitize_line(&panel.leaves))));
    if panel.items.is_none() {
        lines.push(String::new());
        lines.push(paint.diff(&view.part).trim_end().to_owned());
    }
    screen.show(&lines.join("\n"));
    screen.ring();
    view
}

fn keys(panel: &Panel, view: &ChangeView, is_edited: bool, has_parts: bool) -> Vec<KeyLabel> {
    let label = |is_offered: bool, key, does: String| is_offered.then_some((key, does));
    let grant = panel.grant.is_some() && !is_edited;
    let lines = [
        label(true, 'y', view.yes().to_owned()),
        label(grant, 'a', format!("yes, and do not ask again for {} in this conversation", panel.tool)),
        label(panel.lasting.is_some() && !is_edited, 'l', "yes, and always in this folder".to_owned()),
        label(true, 'n', "no, and say what instead (Esc)".to_owned()),
        label(true, 'e', "edit the arguments".to_owned()),
        label(has_parts, 'p', "leave out parts".to_owned()),
        view.key(),
    ];
    lines.into_iter().flatten().collect()
}

/// Waits for one of the keys. Input from before the keys were shown is discarded.
///
/// # Errors
/// When the terminal cannot be read.
pub(super) fn key(labels: &[KeyLabel], screen: &mut Screen) -> Result<Key> {
    if !screen.is_live() {
        return Ok(typed_key(labels, screen));
    }
    let failed = |error: io::Error| Error::io("the terminal", &error);
    enable_raw_mode().map_err(failed)?;
    let pressed = (|| {
        // With bracketed paste, pasted text is one event and presses no keys.
        let _ = execute!(io::stderr(), EnableBracketedPaste);
        while poll(Duration::ZERO)? {
            read()?;
        }
        let lines: Vec<String> = labels.iter().map(|(key, does)| format!("  {key}  {}", sanitize(does))).collect();
        screen.draw(&lines);
        loop {
            let Event::Key(key) = read()? else { continue };
            let has_control = key.modifiers.contains(KeyModifiers::CONTROL);
            return Ok(match key.code {
                _ if key.kind == KeyEventKind::Release => continue,
                KeyCode::Char('c') if has_control => Key::Interrupt,
                KeyCode::Char('d') if has_control => Key::End,
                KeyCode::Esc => Key::Letter('n'),
                KeyCode::Char(letter) if !has_control && is_offered(labels, letter) => {
                    Key::Letter(letter.to_ascii_lowercase())
                }
                _ => continue,
            });
        }
    })();
    let _ = execute!(io::stderr(), DisableBracketedPaste);
    screen.erase();
    disable_raw_mode().map_err(failed)?;
    pressed.map_err(failed)
}

fn is_offered(labels: &[KeyLabel], letter: char) -> bool {
    labels.iter().any(|(key, _)| *key == letter.to_ascii_lowercase())
}

/// Reads a key as a line, for terminals where keys cannot be read one by one.
fn typed_key(labels: &[KeyLabel], screen: &mut Screen) -> Key {
    let keys: Vec<String> = labels.iter().map(|(key, does)| format!("{key} {does}")).collect();
    loop {
        let Some(line) = ask(&format!("[{}]", keys.join(", ")), screen) else { return Key::End };
        let typed = line.trim().to_lowercase();
        // A sentence is not a key, so only `yes`, `no` and single letters count.
        let letter = match typed.as_str() {
            "yes" => Some('y'),
            "no" => Some('n'),
            one => one.chars().next().filter(|_| one.chars().count() == 1),
        };
        if let Some(letter) = letter.filter(|letter| is_offered(labels, *letter)) {
            return Key::Letter(letter);
        }
    }
}
