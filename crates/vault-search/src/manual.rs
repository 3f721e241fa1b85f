//! Shell completions and manual pages, which a package installs along with a command.

use std::fs;
use std::io;
use std::path::Path;

use clap::{Args, Command};
use clap_complete::{Shell, generate};
use clap_mangen::Man;

use crate::exit::{CliResult, Failure, Outcome};
use crate::output::Out;

/// The options of a command that prints completions.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// Prints the completions of all commands as one script.
///
/// # Errors
/// Output that cannot be written.
pub fn completions(commands: impl IntoIterator<Item = Command>, shell: Shell, out: &mut Out) -> CliResult {
    for (n, mut command) in commands.into_iter().enumerate() {
        // The generator panics if it cannot write, so let it write to memory.
        let mut script = Vec::new();
        let name = command.get_name().to_string();
        generate(shell, &mut command, &name, &mut script);
        let mut script = String::from_utf8_lossy(&script).into_owned();
        if shell == Shell::Bash {
            // In half of its labels, the generator treats the `-` in a program's name as the separator of a
            // sub-command, and then no option of a sub-command is completed.
            script = script.replace(&name.replace('-', "__subcmd__"), &name.replace('-', "__"));
        }
        for line in script.lines() {
            // PowerShell accepts `using` only at the top of a script.
            if n == 0 || !(shell == Shell::PowerShell && line.starts_with("using ")) {
                out.line(line)?;
            }
        }
    }
    Ok(Outcome::Done)
}

/// Prints one page per command, which includes its sub-commands; or writes a page for each command and sub-command to a
/// folder.
///
/// # Errors
/// Output that cannot be written.
pub fn pages(commands: impl IntoIterator<Item = Command>, folder: Option<&Path>, out: &mut Out) -> CliResult {
    // `help` gets no page. Building a command gives its sub-commands the global options and their full names.
    let commands = commands.into_iter().map(|command| {
        let mut command = command.disable_help_subcommand(true);
        command.build();
        command
    });
    let Some(folder) = folder else {
        for command in commands {
            out.text(&page_with_sections(&command)?)?;
        }
        return Ok(Outcome::Done);
    };
    if folder.exists() && !folder.is_dir() {
        let folder = folder.display();
        return Err(Failure::Error(format!("{folder}: not a folder (name a folder, or none to print the pages)")));
    }
    fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
    commands.into_iter().try_for_each(|command| write_pages(command, folder, out))?;
    Ok(Outcome::Done)
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::Error(format!("{}: cannot be written: {error}", path.display()))
}

fn write_pages(command: Command, folder: &Path, out: &mut Out) -> CliResult<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let file = folder.join(format!("{name}.1"));
    let below: Vec<Command> = command.get_subcommands().cloned().collect();
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    fs::write(&file, page).map_err(|error| cannot_write(&file, &error))?;
    out.line(&file.to_string_lossy())?;
    below.into_iter().try_for_each(|sub| write_pages(sub, folder, out))
}

fn page_with_sections(command: &Command) -> io::Result<String> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    let mut text = String::from_utf8_lossy(&page).into_owned();
    add_sections(command, &mut text)?;
    Ok(text)
}

/// Adds a section for each sub-command, with its options.
fn add_sections(command: &Command, text: &mut String) -> io::Result<()> {
    for sub in command.get_subcommands() {
        if sub.has_subcommands() {
            add_sections(sub, text)?;
            continue;
        }
        let name = sub.get_bin_name().unwrap_or(sub.get_name()).to_uppercase();
        let man = Man::new(sub.clone());
        let mut section = Vec::new();
        man.render_description_section(&mut section)?;
        man.render_synopsis_section(&mut section)?;
        man.render_options_section(&mut section)?;
        man.render_extra_section(&mut section)?;
        text.push_str(&format!(".SH \"{name}\"\n"));
        for line in String::from_utf8_lossy(&section).lines() {
            // The head of the page has already set the quotes for all sections.
            if line.starts_with(".ie ") || line.starts_with(".el ") {
                continue;
            }
            let heading = line.strip_prefix(".SH ").map(|heading| format!(".SS {heading}"));
            text.push_str(heading.as_deref().unwrap_or(line));
            text.push('\n');
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;
    use crate::output::CapturedOutput;

    fn commands() -> [Command; 2] {
        let sub = Command::new("grow").about("Grow it").arg(Arg::new("speed").long("min-speed").help("How fast"));
        [Command::new("tree").about("A tree").subcommand(sub), Command::new("bush").about("A bush")]
    }

    #[test]
    fn completions_name_all_commands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell, Shell::Elvish] {
            let captured = CapturedOutput::default();
            completions(commands(), shell, &mut Out::to(captured.clone())).unwrap();
            let text = captured.text();
            assert!(["tree", "bush", "min-speed"].iter().all(|word| text.contains(word)), "{shell}");
            if shell == Shell::PowerShell {
                let last_using = text.rfind("using namespace").unwrap();
                assert!(text.find("Register-").unwrap() > last_using);
            }
        }
    }

    #[test]
    fn a_printed_page_describes_sub_commands() {
        let captured = CapturedOutput::default();
        pages(commands(), None, &mut Out::to(captured.clone())).unwrap();
        let text = captured.text();
        assert!(
            text.contains(".SH \"TREE GROW\"") && text.contains("min\\-speed") && text.contains("A bush"),
            "{text}"
        );
        assert!(!text.contains("TREE HELP"));
    }

    #[test]
    fn a_folder_gets_a_page_for_every_command() {
        let folder = tempfile::tempdir().unwrap();
        pages(commands(), Some(folder.path()), &mut Out::to(io::sink())).unwrap();
        for name in ["tree", "tree-grow", "bush"] {
            assert!(fs::read_to_string(folder.path().join(format!("{name}.1"))).unwrap().contains(".TH"), "{name}");
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        let refused = pages(commands(), Some(file.path()), &mut Out::to(io::sink()));
        assert!(matches!(refused, Err(Failure::Error(text)) if text.contains("not a folder")));
    }
}
