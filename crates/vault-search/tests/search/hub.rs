//! A hub on this machine that serves a small model, and does to a download what networks and servers do.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use sha2::Digest;

/// The large file.
pub const WEIGHTS: &str = "model.safetensors";

pub struct Hub {
    state: Arc<State>,
    address: String,
    /// Told each time a file was held.
    pub held: Receiver<()>,
}

struct State {
    repository: String,
    files: BTreeMap<String, Vec<u8>>,
    mood: Mutex<Mood>,
    requests: Mutex<Vec<String>>,
    held: Mutex<Sender<()>>,
    holding: Mutex<Vec<TcpStream>>,
}

/// How the hub behaves; the default is well.
#[derive(Clone, Default)]
pub struct Mood {
    /// The weights come by a redirection, as on the real hub.
    pub redirects: bool,
    /// Answers with these codes first, one a request; 429 with `Retry-After: 0`.
    pub codes: Vec<u16>,
    /// Cuts the connection after this many bytes of the weights, each time.
    pub cut_after: Option<usize>,
    /// At this byte of the weights, says so and sends nothing more.
    pub hold_at: Option<usize>,
    /// Sends all, whatever part is asked for.
    pub ignores_ranges: bool,
    /// Changes one byte of this file, or adds one.
    pub falsifies: Option<&'static str>,
    pub lengthens: Option<&'static str>,
    /// Another commit, in which the configuration has a blank more.
    pub is_newer: bool,
    /// The commit, in this letter.
    pub commit: Option<char>,
    /// Answers 416 to a request for a part.
    pub refuses_ranges: bool,
    /// What the listing says beside the truth: the licence, the size of the weights, layers after the encoder, each
    /// file twice.
    pub licence: Option<String>,
    pub size: Option<u64>,
    pub dense_layers: usize,
    pub lists_twice: bool,
}

/// A proxy that leads every request to one hub, whatever host it names: by a tunnel, or by an address in the request.
pub struct Proxy {
    address: String,
    uses: Arc<AtomicUsize>,
}

impl Proxy {
    pub fn to(hub: &Hub) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (uses, to) = (Arc::new(AtomicUsize::new(0)), hub.address.trim_start_matches("http://").to_owned());
        let counted = uses.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (counted, to) = (counted.clone(), to.clone());
                std::thread::spawn(move || drop(forward(stream, &to, &counted)));
            }
        });
        Proxy { address, uses }
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// The requests since the last call.
    pub fn uses(&self) -> usize {
        self.uses.swap(0, Ordering::SeqCst)
    }
}

fn forward(client: TcpStream, to: &str, uses: &AtomicUsize) -> std::io::Result<()> {
    let mut from_client = BufReader::new(client.try_clone()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && from_client.read_line(&mut head)? > 0 {}
    uses.fetch_add(1, Ordering::SeqCst);
    let mut hub = TcpStream::connect(to)?;
    let mut to_client = client;
    match head.strip_prefix("CONNECT ") {
        Some(_) => to_client.write_all(b"HTTP/1.1 200 Connected\r\n\r\n")?,
        None => hub.write_all(head.replacen("http://hub.test", "", 1).as_bytes())?,
    }
    let mut to_hub = hub.try_clone()?;
    std::thread::spawn(move || std::io::copy(&mut from_client, &mut to_hub));
    std::io::copy(&mut hub, &mut to_client)?;
    to_client.shutdown(Shutdown::Both)
}

impl Hub {
    pub fn serve(repository: &str, files: BTreeMap<String, Vec<u8>>) -> Hub {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (sender, held) = channel();
        let state = Arc::new(State {
            repository: repository.to_owned(),
            files,
            mood: Mutex::default(),
            requests: Mutex::default(),
            held: Mutex::new(sender),
            holding: Mutex::default(),
        });
        let shared = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = shared.clone();
                // A client that goes away is what is tested.
                std::thread::spawn(move || drop(state.answer(stream)));
            }
        });
        Hub { state, address, held }
    }

    /// Cuts the connections that it holds.
    pub fn cut_held(&self) {
        for stream in self.state.holding.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn is_in(&self, mood: Mood) {
        *self.state.mood.lock().unwrap() = mood;
    }

    /// The requests since the last call: path and range.
    pub fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.state.requests.lock().unwrap())
    }

    pub fn bytes(&self, file: &str) -> usize {
        self.state.files[file].len()
    }
}

impl State {
    fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut lines = BufReader::new(stream.try_clone()?).lines();
        let first = lines.next().unwrap_or(Ok(String::new()))?;
        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut from = 0;
        for line in lines {
            let line = line?.to_ascii_lowercase();
            if let Some(range) = line.strip_prefix("range: bytes=") {
                from = range.trim_end_matches('-').parse().unwrap();
            }
            assert!(!line.starts_with("authorization") && !line.starts_with("cookie"), "{line}");
            if line.is_empty() {
                break;
            }
        }
        self.requests.lock().unwrap().push(if from > 0 { format!("{path} from {from}") } else { path.clone() });
        let mood = {
            let mut mood = self.mood.lock().unwrap();
            if !mood.codes.is_empty() {
                let code = mood.codes.remove(0);
                return write!(
                    stream,
                    "HTTP/1.1 {code} No\r\nRetry-After: 0\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                );
            }
            mood.clone()
        };
        let (commit, files) = self.at(&mood);
        let listing = format!("/api/models/{}/revision/main?blobs=true", self.repository);
        if path == listing {
            let json = self.listing(&mood, &commit, &files).to_string();
            return write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{json}",
                json.len()
            );
        }
        let in_repository = path.strip_prefix(&format!("/{}/resolve/{commit}/", self.repository));
        let name = in_repository.or(path.strip_prefix("/elsewhere/"));
        let Some((name, bytes)) = name.and_then(|name| files.get_key_value(name)) else {
            return write!(stream, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        };
        if mood.redirects && name == WEIGHTS && in_repository.is_some() {
            let to = format!("Location: /elsewhere/{name}\r\n");
            return write!(stream, "HTTP/1.1 302 Found\r\n{to}Content-Length: 0\r\nConnection: close\r\n\r\n");
        }
        let mut bytes = bytes.clone();
        if mood.falsifies == Some(name) {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        }
        if mood.lengthens == Some(name) {
            bytes.push(b' ');
        }
        if mood.refuses_ranges && from > 0 {
            return write!(stream, "HTTP/1.1 416 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
        let (all, from) = (bytes.len(), if mood.ignores_ranges { 0 } else { from });
        let part = &bytes[from..];
        let (code, range) = match from {
            0 => ("200 OK", String::new()),
            _ => ("206 Partial Content", format!("Content-Range: bytes {from}-{}/{all}\r\n", all - 1)),
        };
        write!(stream, "HTTP/1.1 {code}\r\n{range}Content-Length: {}\r\nConnection: close\r\n\r\n", part.len())?;
        if name != WEIGHTS {
            return stream.write_all(part);
        }
        if let Some(after) = mood.cut_after {
            return stream.write_all(&part[..after.min(part.len())]);
        }
        let Some(at) = mood.hold_at.filter(|at| *at >= from) else { return stream.write_all(part) };
        stream.write_all(&part[..at - from])?;
        self.holding.lock().unwrap().push(stream.try_clone()?);
        self.held.lock().unwrap().send(()).unwrap();
        // Until the client is gone.
        let mut rest = String::new();
        BufReader::new(stream).read_line(&mut rest).map(|_| ())
    }

    fn at(&self, mood: &Mood) -> (String, BTreeMap<String, Vec<u8>>) {
        let mut files = self.files.clone();
        if mood.is_newer {
            files.get_mut("config.json").unwrap().push(b' ');
        }
        let letter = mood.commit.unwrap_or(if mood.is_newer { 'b' } else { 'a' });
        (letter.to_string().repeat(40), files)
    }

    fn listing(&self, mood: &Mood, commit: &str, files: &BTreeMap<String, Vec<u8>>) -> Value {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let sibling = |(name, bytes): (&String, &Vec<u8>)| {
            let mut blob = sha1::Sha1::new();
            blob.update(format!("blob {}\0", bytes.len()));
            blob.update(bytes);
            let mut json = json!({"rfilename": name, "size": bytes.len(), "blobId": hex(&blob.finalize())});
            if name == WEIGHTS {
                let size = mood.size.unwrap_or(bytes.len() as u64);
                json["lfs"] = json!({"sha256": hex(&sha2::Sha256::digest(bytes)), "size": size, "pointerSize": 134});
            }
            json
        };
        let mut siblings: Vec<Value> = files.iter().map(sibling).collect();
        if mood.lists_twice {
            siblings.extend(siblings.clone());
        }
        for layer in 0..mood.dense_layers {
            siblings.extend(["config.json", "model.safetensors"].map(
                |file| json!({"rfilename": format!("{layer}_Dense/{file}"), "size": 2, "blobId": "0".repeat(40)}),
            ));
        }
        let licence = mood.licence.as_deref().unwrap_or("mit");
        json!({"id": self.repository, "sha": commit, "cardData": {"license": licence}, "siblings": siblings})
    }
}
