//! A server for the tests: HTTP/1.1 by hand, so that the test controls every byte and its time.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// What the server does once it has read a request.
pub enum ScriptedReply {
    /// Sends these bytes as they are, and lets the client read them before it goes on.
    Send(Vec<u8>),
    /// Waits for the test.
    Wait(Arc<Notify>),
    /// Tells the test.
    Tell(Arc<Notify>),
    /// Waits until the client has closed the connection.
    Gone,
    /// Closes the connection in order.
    Close,
    /// Breaks it off.
    Reset,
}

/// The steps for one request. Without [`ScriptedReply::Close`] or [`ScriptedReply::Reset`] the connection takes another one.
pub type Exchange = Vec<ScriptedReply>;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    /// Which connection, from 0 in the order of their first bytes.
    pub connection: usize,
    pub method: String,
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl ReceivedRequest {
    pub fn header(&self, wanted: &str) -> Vec<&str> {
        self.headers.iter().filter(|(name, _)| name == wanted).map(|(_, value)| value.as_str()).collect()
    }
}

/// A server that works off its exchanges, whatever connections their requests come on.
#[derive(Clone)]
pub struct Server {
    pub address: SocketAddr,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    exchanges: VecDeque<Exchange>,
    received: Vec<ReceivedRequest>,
    connections: usize,
}

impl Server {
    /// Listens on a port of its own, until the runtime of the test ends.
    pub fn start(exchanges: impl IntoIterator<Item = Exchange>) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        let inner = Inner { exchanges: exchanges.into_iter().collect(), ..Inner::default() };
        let server = Self { address: listener.local_addr().unwrap(), inner: Arc::new(Mutex::new(inner)) };
        let accepting = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                tokio::spawn(accepting.clone().serve(stream));
            }
        });
        server
    }

    pub fn received(&self) -> Vec<ReceivedRequest> {
        self.inner.lock().unwrap().received.clone()
    }

    /// One connection. An error here is the client gone, which the client's side of the test is about.
    async fn serve(self, mut stream: TcpStream) {
        let mut read = Vec::new();
        let mut connection = None;
        while let Some(mut request) = request(&mut stream, &mut read).await {
            let exchange = {
                let mut inner = self.inner.lock().unwrap();
                let connections = &mut inner.connections;
                request.connection = *connection.get_or_insert_with(|| {
                    *connections += 1;
                    *connections - 1
                });
                inner.received.push(request);
                inner.exchanges.pop_front()
            };
            // A request that nobody expected is closed, and is among the received.
            for step in exchange.unwrap_or_else(|| vec![ScriptedReply::Close]) {
                match step {
                    ScriptedReply::Send(bytes) => {
                        if stream.write_all(&bytes).await.is_err() {
                            return;
                        }
                        tokio::task::yield_now().await;
                    }
                    ScriptedReply::Wait(word) => word.notified().await,
                    ScriptedReply::Tell(word) => word.notify_one(),
                    ScriptedReply::Gone => while stream.read(&mut [0; 64]).await.is_ok_and(|bytes| bytes > 0) {},
                    ScriptedReply::Close => return,
                    ScriptedReply::Reset => return stream.set_zero_linger().unwrap(),
                }
            }
        }
    }
}

/// The next request; `None` when the client has closed.
async fn request(stream: &mut TcpStream, read: &mut Vec<u8>) -> Option<ReceivedRequest> {
    let end = loop {
        if let Some(at) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        more(stream, read).await?;
    };
    let head = String::from_utf8(read[..end].to_vec()).unwrap();
    let mut lines = head.lines();
    let mut words = lines.next()?.split(' ').map(str::to_owned);
    let (method, target) = (words.next()?, words.next()?);
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.into()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.map_or(0, |(_, length)| length.parse().unwrap());
    while read.len() < end + length {
        more(stream, read).await?;
    }
    let body = read[end..end + length].to_vec();
    read.drain(..end + length);
    Some(ReceivedRequest { connection: 0, method, target, headers, body })
}

async fn more(stream: &mut TcpStream, read: &mut Vec<u8>) -> Option<()> {
    stream.read_buf(read).await.ok().filter(|bytes| *bytes > 0).map(|_| ())
}
