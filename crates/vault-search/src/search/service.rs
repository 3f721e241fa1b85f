//! Service definitions of `vault-index watch` for systemd and launchd, which are printed but never installed.

use std::path::Path;

use vault_index::{Error, ErrorKind};

use crate::{CliResult, Out, Outcome};

use super::settings::IndexedVaultArgs;

/// Prints the definition for the current system.
pub(super) fn print(vault: &Path, vault_args: &IndexedVaultArgs, out: &mut Out) -> CliResult {
    let command = command(crate::command_line(), vault, vault_args);
    let text = if cfg!(target_os = "macos") {
        launchd(&command)
    } else if cfg!(unix) {
        systemd(&command, vault)
    } else {
        let error = Error::new(ErrorKind::Io, "there is no service definition for this system");
        return Err(error.with_remedy(format!("let the task scheduler run at logon: {}", command.join(" "))).into());
    };
    out.text(&text)?;
    Ok(Outcome::Done)
}

/// Returns the command line of the service, which does not depend on the environment of this process.
fn command(mut words: Vec<String>, vault: &Path, vault_args: &IndexedVaultArgs) -> Vec<String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    words.extend(["watch".into(), "--vault".into(), text(vault)]);
    let mut option =
        |name: &str, value: Option<String>| words.extend(value.into_iter().flat_map(|v| [name.to_string(), v]));
    option(
        "--index",
        vault_args
            .vault_args
            .index
            .as_deref()
            .map(|p| text(&std::path::absolute(p).unwrap_or_else(|_| p.to_path_buf()))),
    );
    option("--model", vault_args.model.clone());
    option("--base-url", vault_args.base_url.clone());
    vault_args.exclude.iter().for_each(|glob| option("--exclude", Some(glob.clone())));
    words
}

fn systemd(command: &[String], vault: &Path) -> String {
    let words: Vec<String> = command.iter().map(|word| quoted_for_systemd(word)).collect();
    format!(
        "# Save as ~/.config/systemd/user/vault-index.service, then: systemctl --user enable --now vault-index\n\
         [Unit]\n\
         Description=Keep the search index of {} up to date\n\n\
         [Service]\n\
         ExecStart={}\n\
         Restart=on-failure\n\
         RestartSec=30\n\
         Nice=10\n\n\
         [Install]\n\
         WantedBy=default.target\n",
        one_line(&vault.to_string_lossy()).replace('%', "%%"),
        words.join(" ")
    )
}

/// Quotes a word for systemd, which treats `%` as a specifier, `$` as a variable and backslashes as escapes.
fn quoted_for_systemd(word: &str) -> String {
    let mut text = String::from("\"");
    for c in word.chars() {
        match c {
            '%' => text.push_str("%%"),
            '$' => text.push_str("$$"),
            '"' | '\\' => text.extend(['\\', c]),
            c if c.is_ascii_control() => text.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

fn launchd(command: &[String]) -> String {
    let words: String =
        command.iter().map(|word| format!("    <string>{}</string>\n", escaped_for_xml(word))).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!-- Save as ~/Library/LaunchAgents/vault-index.watch.plist, then: launchctl load -w that file -->\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <plist version=\"1.0\">\n<dict>\n  <key>Label</key>\n  <string>vault-index.watch</string>\n\
         \x20 <key>ProgramArguments</key>\n  <array>\n{words}  </array>\n\
         \x20 <key>RunAtLoad</key>\n  <true/>\n  <key>KeepAlive</key>\n  <dict>\n    <key>SuccessfulExit</key>\n    <false/>\n  </dict>\n\
         \x20 <key>ProcessType</key>\n  <string>Background</string>\n</dict>\n</plist>\n"
    )
}

fn escaped_for_xml(text: &str) -> String {
    one_line(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn one_line(text: &str) -> String {
    text.replace(|c: char| c.is_control(), " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_path_ends_a_line_or_a_word() {
        let command = ["/bin/vault-index".to_string(), "--vault".into(), "/v/100% \"sure\" $HOME\nExecStop=x".into()];
        let unit = systemd(&command, Path::new("/v/100%\nx"));
        assert!(unit.contains("Description=Keep the search index of /v/100%% x up"), "{unit}");
        assert!(
            unit.contains(r#"ExecStart="/bin/vault-index" "--vault" "/v/100%% \"sure\" $$HOME\x0aExecStop=x""#),
            "{unit}"
        );
        let plist = launchd(&["<a & b>".to_string()]);
        assert!(plist.contains("    <string>&lt;a &amp; b&gt;</string>\n"), "{plist}");
    }

    #[test]
    fn the_command_says_everything() {
        let vault_args = IndexedVaultArgs {
            model: Some("minilm".into()),
            exclude: vec!["a".into(), "b".into()],
            ..IndexedVaultArgs::default()
        };
        let words = command(vec!["p".into()], Path::new("/v"), &vault_args);
        assert_eq!(words, ["p", "watch", "--vault", "/v", "--model", "minilm", "--exclude", "a", "--exclude", "b"]);
    }
}
