//! Downloads a repository's files to a folder that survives a break: the next try goes on at the last byte.
//!
//! The folder is `NAME.part` in the folder of models. A file is `FILE.part` until its length and its digest were checked.
//! `listing.json` says which files they are, by their digests; others are deleted, not mixed.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sha1::Sha1;
use sha2::{Digest, Sha256};
use ureq::http::header;

use super::hub::{FailedRequest, Hub, Listing};
use super::installed::part_folder;
use super::{AddingLock, ModelSource, SourceFile};
use crate::error::{Error, ErrorKind, Result};
use crate::private_file::{private_file, private_folder};

const LISTING: &str = "listing.json";

/// Downloads the files of a listing to a folder, as far as they are not there yet, and checks each. `progress` gets the bytes that are
/// there, and those of all files.
///
/// # Errors
/// [`ErrorKind::Model`] when the hub fails, or a file is another than the listing says, which then is deleted;
/// [`ErrorKind::Cancelled`] when `cancel` is set.
pub fn download(
    hub: &Hub,
    lock: &AddingLock,
    listing: &Listing,
    cancel: &AtomicBool,
    progress: &dyn Fn(u64, u64),
) -> Result<PathBuf> {
    let folder = part_folder(lock)?;
    prepare(&folder, &listing.source)?;
    let all = listing.bytes();
    let mut before = 0;
    for file in &listing.source.files {
        let to = folder.join(&file.path);
        if !is_same(&to, file) {
            if let Some(parent) = to.parent() {
                private_folder(parent)?;
            }
            let part = PathBuf::from(format!("{}.part", to.display()));
            let transfer = Transfer { hub, listing, file, part: &part, cancel };
            transfer.run(&|bytes| progress(before + bytes, all))?;
            fs::rename(&part, &to).map_err(|error| Error::io(&to, error))?;
        }
        before += file.bytes;
        progress(before, all);
    }
    Ok(folder)
}

/// Whether a file that an earlier try has completed is still the one of the listing.
fn is_same(path: &Path, file: &SourceFile) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.len() == file.bytes)
        && File::open(path).and_then(|mut open| digest(&mut open, &file.digest)).is_ok_and(|found| found == file.digest)
}

/// Empties the folder unless it has files of this source.
fn prepare(folder: &Path, source: &ModelSource) -> Result<()> {
    let record = folder.join(LISTING);
    let has = fs::read(&record).ok().and_then(|json| serde_json::from_slice::<ModelSource>(&json).ok());
    // The address may be another: a mirror has the same files. So does a commit that changed others.
    if has.is_some_and(|has| has.files == source.files) {
        return Ok(());
    }
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Error::io(folder, error)),
        _ => {}
    }
    private_folder(folder)?;
    let json = serde_json::to_vec(source).unwrap_or_default();
    let new = folder.join("listing.new");
    private_file(&new)?.write_all(&json).map_err(|error| Error::io(&new, error))?;
    fs::rename(&new, &record).map_err(|error| Error::io(record, error))
}

/// One file on its way.
struct Transfer<'a> {
    hub: &'a Hub,
    listing: &'a Listing,
    file: &'a SourceFile,
    part: &'a Path,
    cancel: &'a AtomicBool,
}

impl Transfer<'_> {
    fn run(&self, progress: &dyn Fn(u64)) -> Result<()> {
        let io = |error| Error::io(self.part, error);
        let mut file = private_file(self.part)?;
        let mut length = file.seek(SeekFrom::End(0)).map_err(io)?;
        // More than there should be cannot be continued.
        if length > self.file.bytes {
            file.set_len(0).map_err(io)?;
            length = 0;
        }
        let mut tries = 0;
        // A hub that knows no ranges starts at the beginning: only bytes that were never there count as progress.
        let mut most = length;
        while length < self.file.bytes {
            progress(length);
            match self.stretch(&mut file, &mut length, progress) {
                Ok(()) => {}
                Err(Stop::Error(error)) => return Err(error),
                Err(Stop::Failed(failed)) => {
                    tries = if length > most { 1 } else { tries + 1 };
                    most = most.max(length);
                    let pause = self.hub.pause(&failed, tries).ok_or(failed.error)?;
                    self.wait(pause)?;
                }
            }
        }
        file.sync_all().map_err(io)?;
        self.check(&mut file)
    }

    /// One answer of the hub, up to its end.
    fn stretch(&self, file: &mut File, length: &mut u64, progress: &dyn Fn(u64)) -> Result<(), Stop> {
        let io = |error| Stop::Error(Error::io(self.part, error));
        let mut response = match self.hub.file(self.listing, &self.file.path, *length) {
            Ok(response) => response,
            Err(failed) => {
                // The file that the server has ends before this byte: it is another, or was.
                if failed.is_outside {
                    file.set_len(0).map_err(io)?;
                    *length = 0;
                }
                return Err(Stop::Failed(failed));
            }
        };
        // A server may send all of it, whatever was asked for.
        let starts_at = match response.status().as_u16() {
            206 => {
                let range = response.headers().get(header::CONTENT_RANGE).and_then(|range| range.to_str().ok());
                range.and_then(|range| range.strip_prefix("bytes ")?.split('-').next()?.parse().ok())
            }
            _ => Some(0),
        };
        let starts_at = starts_at.filter(|at| [0, *length].contains(at));
        let starts_at =
            starts_at.ok_or_else(|| Stop::Error(self.hub.error("it sends another part than was asked for")))?;
        if starts_at != *length {
            file.set_len(starts_at).map_err(io)?;
            *length = starts_at;
        }
        file.seek(SeekFrom::Start(*length)).map_err(io)?;
        let mut body = response.body_mut().as_reader();
        let mut buffer = vec![0; 1 << 16];
        loop {
            if self.cancel.load(Ordering::SeqCst) {
                return Err(Stop::Error(cancelled()));
            }
            let read = match body.read(&mut buffer) {
                Ok(0) if *length < self.file.bytes => return Err(self.cut()),
                Ok(0) => return Ok(()),
                Ok(read) => read,
                Err(_) => return Err(self.cut()),
            };
            if *length + read as u64 > self.file.bytes {
                return Err(Stop::Error(
                    self.other(format!("is longer than the {} bytes of the listing", self.file.bytes)),
                ));
            }
            file.write_all(&buffer[..read]).map_err(io)?;
            *length += read as u64;
            progress(*length);
        }
    }

    fn cut(&self) -> Stop {
        let error = self
            .hub
            .error(&format!("{} was cut off", self.file.path))
            .with_remedy("run the command again: it goes on where it stopped");
        Stop::Failed(FailedRequest { error, again: Some(None), is_outside: false })
    }

    /// Waits in steps, so that a signal ends it.
    fn wait(&self, pause: Duration) -> Result<()> {
        let mut left = pause;
        while !left.is_zero() {
            if self.cancel.load(Ordering::SeqCst) {
                return Err(cancelled());
            }
            let step = left.min(Duration::from_millis(100));
            std::thread::sleep(step);
            left -= step;
        }
        Ok(())
    }

    fn check(&self, file: &mut File) -> Result<()> {
        let found = digest(file, &self.file.digest).map_err(|error| Error::io(self.part, error))?;
        if found == self.file.digest {
            return Ok(());
        }
        Err(self.other(format!("has the digest {found}, and the hub lists {}", self.file.digest)))
    }

    /// A file that is not the one of the listing is worth nothing: it is deleted.
    fn other(&self, what: String) -> Error {
        let _ = fs::remove_file(self.part);
        Error::new(ErrorKind::Model, format!("{} {what}", self.file.path))
            .with_remedy("run the command again; if it happens again, the server or what is in between changes files")
    }
}

enum Stop {
    Error(Error),
    Failed(FailedRequest),
}

fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "interrupted").with_remedy("run the command again: it goes on where it stopped")
}

/// The digest of a file, of the same kind as the one that is expected.
fn digest(file: &mut File, expected: &str) -> io::Result<String> {
    file.seek(SeekFrom::Start(0))?;
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    if expected.starts_with("git:") {
        // The id of a blob is that of its length and content.
        let mut hash = Sha1::new();
        hash.update(format!("blob {}\0", file.metadata()?.len()));
        io::copy(file, &mut hash)?;
        return Ok(format!("git:{}", hex(&hash.finalize())));
    }
    let mut hash = Sha256::new();
    io::copy(file, &mut hash)?;
    Ok(format!("sha256:{}", hex(&hash.finalize())))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::net::{TcpListener, TcpStream};
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    const CONTENT: &[u8; 40] = b"forty bytes of weights, that come slowly";

    /// How the hub of a test sends a file from some byte on.
    type Send = fn(&mut TcpStream, &[u8]) -> io::Result<()>;

    /// Downloads [`CONTENT`] from a hub that sends it so, and returns it with the bytes that the requests began at.
    fn downloaded(send: Send) -> (Result<Vec<u8>>, Vec<usize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let hub = Hub::for_test(&format!("http://{}", listener.local_addr().unwrap()), READ);
        let (told, asked) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let told = told.clone();
                std::thread::spawn(move || answer(stream, send, &|from| told.send(from).unwrap()));
            }
        });
        let dir = tempfile::tempdir().unwrap();
        let part = dir.path().join("weights.part");
        let mut hash = Sha256::new();
        hash.update(CONTENT);
        let digest = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let file = SourceFile { path: "weights".into(), bytes: 40, digest: format!("sha256:{digest}") };
        let source = ModelSource { from: String::new(), revision: None, licence: None, files: vec![file.clone()] };
        let listing = Listing { repository: "a/b".into(), revision: "c".into(), source };
        let cancel = AtomicBool::new(false);
        let transfer = Transfer { hub: &hub, listing: &listing, file: &file, part: &part, cancel: &cancel };
        let done = transfer.run(&|_| ()).map(|()| fs::read(&part).unwrap());
        (done, all(&asked))
    }

    fn all(asked: &Receiver<usize>) -> Vec<usize> {
        asked.try_iter().collect()
    }

    fn answer(mut stream: TcpStream, send: Send, asked: &dyn Fn(usize)) -> io::Result<()> {
        let mut from = 0;
        for line in BufReader::new(stream.try_clone()?).lines() {
            let line = line?.to_ascii_lowercase();
            if let Some(range) = line.strip_prefix("range: bytes=") {
                from = range.trim_end_matches('-').parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        asked(from);
        let range = match from {
            0 => "200 OK\r\n".to_owned(),
            _ => format!("206 Partial Content\r\nContent-Range: bytes {from}-39/40\r\n"),
        };
        write!(stream, "HTTP/1.1 {range}Content-Length: {}\r\nConnection: close\r\n\r\n", 40 - from)?;
        send(&mut stream, &CONTENT[from..])
    }

    /// The limit for one read.
    const READ: Duration = Duration::from_millis(500);

    /// A server that sends something within each limit may take many times the limit for all.
    #[test]
    fn a_slow_server_is_read_to_the_end() {
        let started = std::time::Instant::now();
        let (done, asked) = downloaded(|stream, part| {
            part.iter().try_for_each(|byte| {
                std::thread::sleep(READ / 10);
                stream.write_all(&[*byte])
            })
        });
        assert_eq!(done.unwrap(), CONTENT);
        assert!(started.elapsed() > 3 * READ);
        assert_eq!(asked, [0], "one request");
    }

    #[test]
    fn a_stalled_server_is_asked_for_the_rest() {
        let (done, asked) = downloaded(|stream, part| {
            stream.write_all(&part[..part.len().min(15)])?;
            // Nothing more, until the client has given up.
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).map(drop)
        });
        assert_eq!(done.unwrap(), CONTENT);
        assert_eq!(asked, [0, 15, 30]);
    }

    #[test]
    fn a_server_that_sends_nothing_is_given_up() {
        let (done, asked) = downloaded(|stream, _| stream.read_to_end(&mut Vec::new()).map(drop));
        assert!(done.unwrap_err().to_string().contains("cut off"));
        assert_eq!(asked, [0; 5]);
    }
}
