//! A change that a full disk refuses is put back at once, on a real disk of 4 MB.

use std::path::Path;
use std::process::Command;

use super::tests::{path, snapshot};
use super::*;

const FOLDER: &str = "VAULT_TOOLS_FULL_DISK";

/// Runs itself with a small disk of its own, where the system lets a process have one; without it there is nothing to see.
#[test]
fn a_change_without_room_is_put_back_at_once() {
    if let Some(disk) = std::env::var_os(FOLDER) {
        return fill_and_rename(Path::new(&disk));
    }
    let folder = tempfile::tempdir().unwrap();
    let mount = "mount -t tmpfs -o size=4m none \"$0\" && exec \"$@\"";
    let with_disk = |flags: &str, command: &[&std::ffi::OsStr]| {
        let mut alone = Command::new("unshare");
        alone.args([flags, "sh", "-c", mount]).arg(folder.path()).args(command).env(FOLDER, folder.path());
        alone.output()
    };
    let can = |flags: &&&str| with_disk(flags, &["true".as_ref()]).is_ok_and(|output| output.status.success());
    let Some(flags) = ["-m", "-rm"].iter().find(can) else { return };
    let test = std::env::current_exe().unwrap();
    let name = std::thread::current().name().unwrap().to_owned();
    let output = with_disk(flags, &[test.as_os_str(), "--exact".as_ref(), name.as_ref()]).unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Renames a note of 61 links with almost no room left, at 40 sizes of notes and of what is left.
fn fill_and_rename(disk: &Path) {
    let state = tempfile::tempdir().unwrap();
    let mut refused = 0;
    for (number, size) in [900, 3_900, 8_100, 12_200, 20_400].into_iter().enumerate() {
        for left_kb in [0, 12, 24, 28, 32, 36, 44, 60] {
            let root = disk.join("vault");
            std::fs::create_dir(&root).unwrap();
            std::fs::write(root.join("Old.md"), "x".repeat(size)).unwrap();
            for note in 0..61 {
                let text = format!(
                    "{}{}",
                    "[[Old]] ".repeat(1 + note % 7),
                    "y".repeat(if note % 3 == 0 { size } else { 3_900 })
                );
                std::fs::write(root.join(format!("{note}.md")), text).unwrap();
            }
            let before = snapshot(&root);
            let options = VaultOptions::new().state_folder(state.path().join(format!("{number} {left_kb}")));
            let vault = Vault::open(&root, options.use_index(IndexUse::Scan)).unwrap();
            let mut overlay = vault.overlay();
            overlay.rename(&path("Old.md"), &path(&format!("{}.md", "longer ".repeat(30).trim()))).unwrap();
            let change = overlay.change();
            let room = rustix::fs::statvfs(disk).unwrap();
            let taken = (room.f_bavail * room.f_frsize).saturating_sub(left_kb * 1024);
            std::fs::write(disk.join("taken"), vec![b'z'; taken as usize]).unwrap();
            if let Err(error) = vault.apply(&change, ApplyOptions::default()) {
                refused += 1;
                let said = error.message();
                assert!(said.contains("everything was rolled back") || said.contains("nothing was changed"), "{error}");
                assert!(snapshot(&root) == before, "{size} {left_kb}: {error}");
            }
            drop(vault);
            std::fs::remove_file(disk.join("taken")).unwrap();
            std::fs::remove_dir_all(root).unwrap();
        }
    }
    assert!(refused >= 20, "{refused}");
}
