//! The metadata of a file, which is read without opening it: the only part here that depends on the operating system.

use std::fs::Metadata;

/// The metadata of a file. If it differs, the content may differ. If it is the same, and the file was some seconds old
/// when it was last checked, the content is the same.
///
/// On Unix `ctime_ns` is the inode's change time. Programs cannot set it back, so that an edit which keeps size and
/// modification time still shows. On other systems safe code can read neither that time nor an inode number: both are 0
/// there, and the modification time decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FileStat {
    /// The length in bytes.
    pub size: u64,
    /// When the content was last written, in nanoseconds since 1970.
    pub mtime_ns: i64,
    /// When the file or its metadata last changed, in nanoseconds since 1970; 0 where unknown.
    pub ctime_ns: i64,
    /// The number of the file in its file system, kept by a rename; 0 where unknown.
    pub inode: u64,
}

impl FileStat {
    /// The latest time at which the file is known to have been changed.
    pub(super) fn latest_ns(&self) -> i64 {
        if self.ctime_ns != 0 { self.ctime_ns } else { self.mtime_ns }
    }

    /// Converts the metadata of the operating system.
    #[cfg(unix)]
    pub(super) fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        let ns = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        Self {
            size: metadata.size(),
            mtime_ns: ns(metadata.mtime(), metadata.mtime_nsec()),
            ctime_ns: ns(metadata.ctime(), metadata.ctime_nsec()),
            inode: metadata.ino(),
        }
    }

    /// Converts the metadata of the operating system.
    #[cfg(not(unix))]
    pub(super) fn of(metadata: &Metadata) -> Self {
        use std::time::UNIX_EPOCH;
        let mtime_ns = metadata.modified().map_or(0, |time| match time.duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |ns| -ns),
        });
        Self { size: metadata.len(), mtime_ns, ctime_ns: 0, inode: 0 }
    }
}

/// The device and inode, which identify a file or folder whatever its name. `None` where unknown.
#[cfg(unix)]
pub(crate) fn identity(metadata: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.dev(), metadata.ino()))
}

/// The device and inode, which identify a file or folder whatever its name. `None` where unknown.
#[cfg(not(unix))]
pub(crate) fn identity(_metadata: &Metadata) -> Option<(u64, u64)> {
    None
}
