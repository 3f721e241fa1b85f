//! A disk that takes no more: what was there stays whole, and the conversation loads again.

use std::process::Command;

use crate::chat::{KEYS, NOTES, append, command, leave};
use crate::model_server::{ModelServer, Reply};
use crate::stdio::Place;
use crate::terminal::Terminal;

/// A command that can write no file beyond so many kilobytes, as on a disk that is full.
fn on_a_full_disk(command: &Command, kilobytes: u32) -> Command {
    let mut limited = Command::new("bash");
    let script = format!("trap '' XFSZ; ulimit -f {kilobytes}; exec \"$@\"");
    limited.args(["-c", &script, "bash"]).arg(command.get_program()).args(command.get_args());
    limited.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    limited.current_dir(command.get_current_dir().unwrap());
    limited
}

#[test]
fn a_conversation_that_cannot_be_saved_is_said_and_loads_again() {
    let place = Place::new(NOTES);
    // The question fits on the disk, and the answer does not.
    let answer = "Yes. ".repeat(600);
    let model = ModelServer::that(move |_| Reply::text(&answer));
    let mut terminal = Terminal::start(&on_a_full_disk(&command(&place, &model, &["chat"]), 3), 100);
    terminal.say("something long enough");
    terminal.until("! ");
    terminal.until("\x1b[?2004h");
    let screen = terminal.screen();
    assert!(screen.contains("sessions") && screen.to_lowercase().contains("cannot be"), "{screen}");
    terminal.press("/quit\r");
    assert_eq!(terminal.end().1, 0);
    let mut terminal = Terminal::start(&command(&place, &model, &["resume"]), 100);
    terminal.until("resumed: something long enough");
    terminal.say("and now?");
    terminal.until("tokens");
    leave(terminal);
    assert_eq!(model.told("user"), ["something long enough", "and now?"]);
}

#[test]
fn a_note_that_cannot_be_written_stays_whole_and_the_conversation_goes_on() {
    let place = Place::new(NOTES);
    let long = "a line of the log\n".repeat(16_000);
    place.write("Log.md", &long);
    let before = place.tree();
    let model = ModelServer::with([
        append("- one"),
        Reply::text("It could not be written."),
        append("- two"),
        Reply::text("Done."),
    ]);
    // The index is made while there is room.
    assert!(place.command(&["ask", "log"]).output().unwrap().status.success());
    let mut terminal = Terminal::start(&on_a_full_disk(&command(&place, &model, &["chat"]), 200), 100);
    terminal.say("note it");
    terminal.until(KEYS);
    terminal.press("y");
    terminal.until("220 tokens");
    let screen = leave(terminal);
    assert_eq!(place.tree(), before, "nothing is half written, and nothing is left beside it: {screen}");
    let in_a_line = screen.replace("\n  ", " ");
    assert!(
        in_a_line.contains("append_to_note \"Log.md\": /") && in_a_line.contains("journal.db: cannot be read"),
        "{screen}"
    );
    let told = model.told("tool").remove(0);
    assert!(told.contains("cannot be read or written"), "{told}");
    // With room again, the same conversation does it.
    let mut terminal = Terminal::start(&command(&place, &model, &["resume"]), 100);
    terminal.until("resumed: note it");
    terminal.say("and now?");
    terminal.until(KEYS);
    terminal.press("y");
    terminal.until("220 tokens");
    leave(terminal);
    assert_eq!(place.read("Log.md"), format!("{long}\n- two\n"));
}
