//! Embedding in a background process after a search, so that people who only search get ranking by meaning.
//!
//! The process is this program under another name (see [`BACKGROUND`]). It is detached from the terminal, inherits no
//! open files, and has the lowest priority.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use vault_index::{Index, Options, SyncOptions};

use crate::settings::UserConfig;

/// The name under which this program only embeds: `NAME VAULT INDEX SECONDS`.
pub(crate) const BACKGROUND: &str = "vault-embed";

/// The maximum run time of a process; the next search starts another one.
const AT_MOST: Duration = Duration::from_secs(15 * 60);

/// Whether a process may run and has anything to do for this index. It may not run if it is turned off, the machine
/// runs on battery or is a build server (`CI` is set), the index cannot be written, its model does not run in this
/// process, or the last process failed within the hour.
pub(crate) fn is_due(index: &Index, config: &UserConfig) -> bool {
    is_allowed(|name| std::env::var(name).ok(), config.background)
        && !is_on_battery()
        && is_writable(index.index_file())
        && index.has_background_work().unwrap_or(false)
}

/// Checks without opening the file, because of POSIX locks: see `open_file` in vault-index.
fn is_writable(file: &Path) -> bool {
    #[cfg(unix)]
    return rustix::fs::access(file, rustix::fs::Access::WRITE_OK).is_ok();
    #[cfg(not(unix))]
    std::fs::metadata(file).is_ok_and(|file| !file.permissions().readonly())
}

/// Whether the environment allows it, else `config.toml`.
fn is_allowed(variable: impl Fn(&str) -> Option<String>, config: Option<bool>) -> bool {
    let is_set = |name| variable(name).filter(|value| !value.is_empty());
    let chosen =
        is_set("VAULT_BACKGROUND").map(|value| !matches!(&*value.to_lowercase(), "0" | "false" | "off" | "no"));
    is_set("CI").is_none() && chosen.or(config).unwrap_or(true)
}

/// Whether the machine has a power supply and is not plugged in. Known only on Linux, from files of the system.
fn is_on_battery() -> bool {
    let supplies = std::fs::read_dir("/sys/class/power_supply").into_iter().flatten().flatten();
    let read = |folder: &Path, name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    let plugs: Vec<bool> = supplies
        .map(|supply| supply.path())
        .filter(|folder| read(folder, "type").trim() == "Mains")
        .map(|folder| read(&folder, "online").trim() == "1")
        .collect();
    !plugs.is_empty() && plugs.iter().all(|is_online| !is_online)
}

/// Starts a process that embeds pending passages. It exits if another one is already embedding.
///
/// # Errors
/// If this program's file no longer exists, or no process can be started.
pub(crate) fn start(index: &Index) -> std::io::Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([crate::program::STARTED_AS, BACKGROUND]).arg(index.vault()).arg(index.index_file());
    command.arg(AT_MOST.as_secs().to_string());
    // The process must not hold on to the output, the folder or the terminal of the search: a program that waits for
    // one of them should wait only for the search.
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
    #[cfg(unix)]
    {
        // If the search leads the session of its terminal, as with `ssh -t host vault-search …`, its end sends SIGHUP to
        // the processes that have not detached yet. This process closes its output when it has.
        let mut detached = command.stdout(Stdio::piped()).spawn()?.stdout.take().expect("it is piped");
        std::io::copy(&mut detached, &mut std::io::sink()).map(drop)
    }
    #[cfg(windows)]
    {
        use std::os::windows::process::CommandExt;
        const DETACHED_PROCESS: u32 = 0x8;
        const CREATE_NEW_PROCESS_GROUP: u32 = 0x200;
        const IDLE_PRIORITY_CLASS: u32 = 0x40;
        command.creation_flags(DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP | IDLE_PRIORITY_CLASS);
        command.spawn().map(drop)
    }
}

/// Starts a process that embeds pending passages, if it may run and has anything to do. Returns whether it was started.
#[doc(hidden)]
pub fn embed_in_background(index: &Index, config: &UserConfig) -> bool {
    is_due(index, config) && start(index).is_ok()
}

/// The main function of the background process.
#[doc(hidden)]
pub fn embed_main() -> ExitCode {
    detach();
    crate::install_handler();
    let listening = crate::listen();
    let [_, vault, index, seconds] = &crate::arguments().map(PathBuf::from).collect::<Vec<_>>()[..] else {
        return ExitCode::from(2);
    };
    let Some(seconds) = seconds.to_str().and_then(|seconds| seconds.parse::<u32>().ok()) else {
        return ExitCode::from(2);
    };
    let limit = Duration::from_secs(seconds.into());
    let options = SyncOptions::new().cancel(listening.flag()).deadline(Instant::now() + limit);
    let done =
        Index::open(vault, Options::new().index_file(index)).and_then(|index| index.embed_in_background(&options));
    // An error is not printed, because there is no output; `vault-index status` reports it.
    if done.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Detaches from the session and the open files of the parent process, and lowers the priority. The parent process waits
/// for the end of the output.
#[cfg(unix)]
fn detach() {
    // Descriptors that a shell left open, for example of a pipe.
    let open: Vec<i32> = ["/proc/self/fd", "/dev/fd"]
        .iter()
        .find_map(|folder| std::fs::read_dir(folder).ok())
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
        // The descriptor of the folder itself is already closed.
        let _ = nix::unistd::close(descriptor);
    }
    // This fails only for the leader of a process group, which a child process is not.
    let _ = rustix::process::setsid();
    // Linux derives the lowest disk priority from it, too.
    let _ = rustix::process::nice(19);
    let null = std::fs::File::options().write(true).open("/dev/null");
    let _ = null.map(rustix::stdio::dup2_stdout);
}

#[cfg(not(unix))]
fn detach() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_turns_it_off() {
        let allowed = |variables: &[(&str, &str)], config| {
            let value = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
            is_allowed(value, config)
        };
        assert!(allowed(&[], None) && allowed(&[("CI", ""), ("VAULT_BACKGROUND", "")], None));
        assert!(!allowed(&[], Some(false)) && !allowed(&[("VAULT_BACKGROUND", "0")], Some(true)));
        assert!(!allowed(&[("VAULT_BACKGROUND", "Off")], None) && allowed(&[("VAULT_BACKGROUND", "1")], Some(false)));
        assert!(!allowed(&[("CI", "true"), ("VAULT_BACKGROUND", "1")], Some(true)));
    }
}
