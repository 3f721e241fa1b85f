//! `vault-tools completions` and `man`: what a package installs beside the command.

use clap::{Command, CommandFactory};
use clap_complete::{Shell, generate};
use clap_mangen::Man;

use super::args::ToolsArgs;
use super::output::Out;
use super::{Ended, Outcome};

/// The completions of a shell.
pub(super) fn completions(shell: Shell, out: &mut Out) -> Ended {
    // The generator panics when it cannot write, so it writes to memory.
    let mut script = Vec::new();
    generate(shell, &mut ToolsArgs::command(), "vault-tools", &mut script);
    out.text(&String::from_utf8_lossy(&script))?;
    Ok(Outcome::Done)
}

/// The manual page: that of the command, then each sub-command with its options.
pub(super) fn page(out: &mut Out) -> Ended {
    let mut command = ToolsArgs::command();
    command.build();
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    let mut text = String::from_utf8_lossy(&page).into_owned();
    sections(&command, &mut text)?;
    out.text(&text)?;
    Ok(Outcome::Done)
}

fn sections(command: &Command, text: &mut String) -> std::io::Result<()> {
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        if below.has_subcommands() {
            sections(below, text)?;
            continue;
        }
        let name = below.get_bin_name().unwrap_or(below.get_name()).to_uppercase();
        let man = Man::new(below.clone());
        let mut section = Vec::new();
        man.render_description_section(&mut section)?;
        man.render_synopsis_section(&mut section)?;
        man.render_options_section(&mut section)?;
        man.render_extra_section(&mut section)?;
        text.push_str(&format!(".SH \"{name}\"\n"));
        for line in String::from_utf8_lossy(&section).lines() {
            // What each section says about quotes, the page has said.
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
