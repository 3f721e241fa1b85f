//! Computes how much memory a model needs, and how much is free.

use std::path::Path;

use crate::gguf::Gguf;
use agent_loop::{Error, ErrorKind, error::Result};

/// The bytes beside weights and cache: intermediate results, and the vocabulary.
const WORKSPACE: u64 = 200 << 20;

/// Rejects a model that does not fit, before it is loaded.
///
/// # Errors
/// `Memory`, with the figures.
pub(super) fn check(header: &Gguf, weight_bytes: u64, context: u32, limit: Option<u64>) -> Result<()> {
    let cache = header.cache_bytes_per_token.saturating_mul(context.into());
    let needed = weight_bytes.saturating_add(cache).saturating_add(WORKSPACE.min(weight_bytes));
    let (free, whose) = match limit {
        Some(limit) => (limit, "are allowed"),
        None => match free_bytes() {
            Some(free) => (free, "are free"),
            None => return Ok(()),
        },
    };
    if needed <= free {
        return Ok(());
    }
    let message = format!(
        "the model needs about {} of memory ({} for its weights, {} for a context of {context} tokens), and {} {whose}",
        gigabytes(needed),
        gigabytes(weight_bytes),
        gigabytes(cache),
        gigabytes(free),
    );
    let remedy = "choose a smaller model or quantization, a smaller context, or close other programs";
    Err(Error::new(ErrorKind::Memory, message).with_remedy(remedy))
}

fn gigabytes(bytes: u64) -> String {
    match bytes {
        0..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// Returns how much memory programs can still allocate without swapping, and this one within the limits of its
/// container; `None` if the system does not report it.
fn free_bytes() -> Option<u64> {
    let memory = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let free = line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)?;
    Some(free_in_container().map_or(free, |limit| limit.min(free)))
}

/// Returns the smallest amount left by the limits of the control groups around this process (Linux, versions 2 and 1).
fn free_in_container() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let groups = groups.lines().filter_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let path = path.trim_start_matches('/');
        match controllers {
            "" => Some((Path::new("/sys/fs/cgroup"), path, ["memory.max", "memory.current"], "")),
            "memory" => {
                let files = ["memory.limit_in_bytes", "memory.usage_in_bytes"];
                Some((Path::new("/sys/fs/cgroup/memory"), path, files, "total_"))
            }
            _ => None,
        }
    });
    // Within a container the path may be that of the host, and the container's own group the root.
    let all = groups.flat_map(|(root, path, names, prefix)| {
        Path::new(path).ancestors().filter_map(move |group| free_in_group(&root.join(group), names, prefix))
    });
    all.min()
}

/// Returns how much a group can still allocate. Cached files count as free, because the system can drop them.
fn free_in_group(group: &Path, [most, used]: [&str; 2], prefix: &str) -> Option<u64> {
    let text = |name: &str| std::fs::read_to_string(group.join(name)).ok();
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let (most, used) = (number(&text(most)?)?, number(&text(used)?)?);
    let statistics = text("memory.stat").unwrap_or_default();
    let of = |name: &str| {
        let lines = statistics.lines().filter_map(|line| line.strip_prefix(prefix)?.strip_prefix(name));
        lines.filter_map(number).next().unwrap_or(0)
    };
    let droppable = of("inactive_file ").saturating_add(of("active_file "));
    Some(most.saturating_sub(used.saturating_sub(droppable)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_is_too_large_is_refused_with_the_figures() {
        let header = Gguf { cache_bytes_per_token: 100_000, ..Gguf::default() };
        assert!(check(&header, 1_000_000_000, 8_192, Some(3_000_000_000)).is_ok());
        let error = check(&header, 4_000_000_000, 8_192, Some(3_000_000_000)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Memory);
        for figure in ["5.0 GB", "4.0 GB", "819.2 MB", "8192 tokens", "3.0 GB are allowed"] {
            assert!(error.message().contains(figure), "{error}");
        }
        assert!(check(&header, u64::MAX, u32::MAX, Some(1)).is_err(), "nothing overflows");
        assert!(check(&header, 1 << 60, 1, None).is_err() || free_bytes().is_none());
    }

    #[test]
    fn the_limit_of_a_container_counts() {
        let group = tempfile::tempdir().unwrap();
        let free = || free_in_group(group.path(), ["memory.max", "memory.current"], "");
        let write = |name: &str, text: &str| std::fs::write(group.path().join(name), text).unwrap();
        assert_eq!(free(), None);
        write("memory.max", "1000\n");
        write("memory.current", "800\n");
        assert_eq!(free(), Some(200));
        write("memory.stat", "anon 500\ninactive_file 200\nactive_file 100\n");
        assert_eq!(free(), Some(500));
        write("memory.max", "max\n");
        assert_eq!(free(), None);
    }
}
