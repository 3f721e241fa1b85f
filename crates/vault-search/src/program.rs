//! The name by which this program was started, because one executable file serves several commands.

use std::ffi::{OsStr, OsString};
use std::io;
use std::iter::once;
use std::path::Path;
use std::process::Command;

/// A first argument after which comes the name of the command, which then replaces the name of the file. A launcher on
/// Windows uses it, because a zip archive cannot hold links: `vault-agent.exe --started-as vault-search WORDS`.
pub(crate) const STARTED_AS: &str = "--started-as";

/// Returns the arguments of this process, the first of which is the name by which it was started. Use this instead of
/// [`std::env::args_os`], which does not handle launchers.
pub fn arguments() -> impl Iterator<Item = OsString> {
    named(std::env::args_os().collect()).into_iter()
}

/// Returns the name by which this program was started, for messages that suggest a command.
pub fn program() -> String {
    arguments().next().map(|path| stem(&path)).unwrap_or_default()
}

/// Returns the command line that starts this program again from any folder.
pub fn command_line() -> Vec<String> {
    let name = program();
    let Ok(file) = std::env::current_exe() else { return vec![name] };
    let words = once(file.to_string_lossy().into_owned());
    // The names differ if a symbolic link was resolved or a launcher started the file.
    match stem(file.as_os_str()) == name {
        true => words.collect(),
        false => words.chain([STARTED_AS.to_owned(), name]).collect(),
    }
}

/// Returns a command that runs this file under the name of another of its commands.
///
/// # Errors
/// The system does not tell the path of this file.
pub fn command_named(name: &str) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([STARTED_AS, name]);
    Ok(command)
}

fn named(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.len() > 2 && words[1] == STARTED_AS {
        words.drain(..2);
    }
    words
}

fn stem(path: &OsStr) -> String {
    Path::new(path).file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_gives_the_name() {
        let named = |words: &[&str]| named(words.iter().map(OsString::from).collect());
        assert_eq!(named(&["/bin/vault-agent", STARTED_AS, "vault-search", "a"]), ["vault-search", "a"]);
        for words in [&["vault-agent", STARTED_AS][..], &["vault-search", "a", STARTED_AS, "b"], &["vault-agent"], &[]]
        {
            assert_eq!(named(words), words);
        }
    }
}
