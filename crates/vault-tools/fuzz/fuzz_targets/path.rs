//! No text is a path that leads out of the vault or to a hidden file, and any text becomes one name that is a path.
//!
//! The vault is real, and lies beside a secret that nothing may read.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use vault_tools::{SafePath, Sandbox, View};

const SECRET: &[u8] = b"what nobody may read";

static VAULT: LazyLock<(tempfile::TempDir, Sandbox)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for file in ["secret", "a", "a.md", "vault/.git/a", "vault/a/b.md"] {
        let file = folder.path().join(file);
        if file.exists() {
            continue;
        }
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        std::fs::write(&file, if file.ends_with("b.md") { b"fine" as &[u8] } else { SECRET }).expect("a file");
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink("..", folder.path().join("vault/up")).expect("a link");
    let sandbox = Sandbox::open(&folder.path().join("vault")).expect("a vault");
    (folder, sandbox)
});

fuzz_target!(|text: &str| {
    let segment = SafePath::segment(text);
    let named = SafePath::new(&format!("a/{segment}.md")).expect("a segment is a name");
    named.check_new().expect("that links can reach");
    assert_eq!(named.as_str().matches('/').count(), 1, "{text:?}");

    let Ok(path) = SafePath::new(text) else { return };
    for name in path.as_str().split('/') {
        assert!(!name.is_empty() && !name.starts_with('.') && !name.contains(['\\', '\0', '\n']), "{text:?}");
    }
    assert_eq!(SafePath::new(path.as_str()).as_ref(), Ok(&path), "{text:?}");
    if let Ok(content) = VAULT.1.read(&path) {
        assert_ne!(content.bytes(), SECRET, "{text:?}");
    }
});
