//! Permissions that last: given in a panel of `chat` by a second yes, listed, revoked, and what they do not cover.

use serde_json::json;

use crate::chat::{KEYS, chat, leave};
use crate::model_server::{ModelServer, Reply};
use crate::stdio::Place;

const NOTES: &str = "//- Log/2026.md\n# 2026\n\n//- Log/2025.md\n# 2025\n\n//- Home.md\nSee [[2026]].\n";

fn append(path: &str) -> Reply {
    Reply::call("append_to_note", json!({ "path": path, "content": "- one" }))
}

#[test]
fn one_lasts_until_it_is_revoked() {
    let place = Place::new(NOTES);
    place.configure("tools.toml", "# mine\nallow_delete = false # never\n");
    // The second names its note as a link does.
    let replies = || [append("Log/2026.md"), append("2025"), append("Home.md"), Reply::text("Done.")];
    let model = ModelServer::with(replies());
    let mut terminal = chat(&place, &model, &[]);
    terminal.say("note it everywhere");
    terminal.until("yes, and always in this folder");
    terminal.until(KEYS);
    terminal.press("l");
    // The second question has the exact rule, and a no leads back to the first.
    terminal.until("append_to_note changes notes below Log/ without asking");
    terminal.until("no, back to this change");
    terminal.press("n");
    terminal.until(KEYS);
    terminal.press("l");
    terminal.until("yes, always");
    terminal.press("y");
    terminal.until("yes, always; written to");
    // The second append is not asked about; the third one is in the root of the vault, where none can be given.
    terminal.until("Home.md");
    terminal.until(KEYS);
    terminal.press("l");
    terminal.press("n\r");
    terminal.until("440 tokens");
    let screen = leave(terminal);
    assert_eq!(screen.matches("From now on").count(), 2, "{screen}");
    assert_eq!(
        (place.read("Log/2026.md"), place.read("Log/2025.md")),
        ("# 2026\n\n- one\n".into(), "# 2025\n\n- one\n".into())
    );
    assert_eq!(place.read("Home.md"), "See [[2026]].\n");
    let file = place.home().join("vault-index/tools.toml");
    let written = std::fs::read_to_string(&file).unwrap();
    let vault = place.vault().file_name().unwrap().to_string_lossy().into_owned();
    let expected = format!(
        "# mine\nallow_delete = false # never\n\n[[vault.{vault}.permissions]]\ntool = \"append_to_note\"\nfolder = \"Log\"\n"
    );
    assert_eq!(written, expected);

    let model =
        ModelServer::with([append("Log/2026.md"), Reply::text("Done."), append("Log/2026.md"), Reply::text("Done.")]);
    let mut terminal = chat(&place, &model, &[]);
    terminal.until("1 lasting permission without asking");
    terminal.say("again");
    terminal.until("220 tokens");
    terminal.say("/permissions");
    terminal.until("append_to_note changes notes below Log/ without asking");
    terminal.say("/permissions revoke 2");
    terminal.until("there is no permission 2");
    terminal.say("/permissions revoke 1");
    terminal.until("revoked: append_to_note");
    terminal.say("and again");
    terminal.until(KEYS);
    terminal.press("y");
    terminal.until("220 tokens");
    leave(terminal);
    assert_eq!(place.read("Log/2026.md"), "# 2026\n\n- one\n- one\n- one\n");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "# mine\nallow_delete = false # never\n");
}

#[test]
fn none_can_be_given_for_what_reaches_farther() {
    let place = Place::new(NOTES);
    place.configure("tools.toml", "allow_delete = true\n");
    let model = ModelServer::with([
        // It changes the link in the root of the vault, too.
        Reply::call("rename_note", json!({ "path": "Log/2026.md", "new_path": "Log/This year.md" })),
        Reply::call("delete_note", json!({ "path": "Log/2025.md" })),
        Reply::text("Nothing done."),
    ]);
    let mut terminal = chat(&place, &model, &[]);
    terminal.say("tidy up");
    for _ in 0..2 {
        terminal.until(KEYS);
        terminal.press("l");
        terminal.press("n");
        terminal.until("what instead?");
        terminal.press("\r");
    }
    terminal.until("330 tokens");
    let screen = leave(terminal);
    assert!(!screen.contains("From now on"), "{screen}");
    assert_eq!(place.tree().len(), 3);
}
