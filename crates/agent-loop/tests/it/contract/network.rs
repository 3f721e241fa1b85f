//! Failures of a network during a reply: on every wire, with the HTTP connection of users.

use std::collections::BTreeSet;
use std::future::Future;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use agent_loop::{
    Agent, EndReason, Event, Http, HttpOptions, HttpProxy, Limits, Pause, Retries, Run, RunId, RunOptions, RunOutcome,
    StopReason, Tool,
};
use futures_util::FutureExt;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::served::{http, provider_at};
use super::server::{Exchange, ScriptedReply, Server};
use super::wires::{parallel_calls, text_only, whole_body};
use super::*;

cases! {
    "connection refused" nobody_listens,
    "split at any byte, including head and framing" split_at_any_byte,
    "truncated at any byte, including head and framing; each kind of framing" cut_at_any_byte,
    "a head that is not HTTP" not_http,
    "a late head, a slow body: each piece is shown as soon as it arrives" late_and_slow,
    "a silent connection times out" silence_times_out_and_closes_the_connection,
    "retries: 429 with a delay, then 500, then the answer" tried_again,
    "a reply ends at its last event, even if the connection stays open" a_reply_ends_at_its_terminal_event,
    "redirects are not followed" redirects_are_not_followed,
    "the configured proxy, and that of the environment" requests_go_through_the_named_proxy_or_that_of_the_environment,
    "headers of the caller; the key in one header, never in the URL" headers_of_the_caller_are_sent_and_the_key_in_one_header_only,
    "a key or a URL that cannot be sent" what_cannot_be_sent,
    "dropping a reply closes its connection" dropping_a_reply_closes_its_connection,
    "cancelling a run closes its connection" cancelling_a_run_closes_its_connection,
    "connections are reused" connections_are_reused,
    "a reply of 10 MB" ten_megabytes,
    "TLS: HTTP/2 is offered; only trusted certificates are accepted" tls_replies_come_from_trusted_certificates_only,
}

/// Only against hanging: nothing is measured by it.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("it hangs")
}

fn hosted_at(server: &Server, wire: Wire) -> HostedModel<Http> {
    HostedModel::new(provider_at(server, wire), "m", http())
}

fn head(framing: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{framing}\r\n").into_bytes()
}

fn chunked(pieces: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in pieces {
        out.extend([format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat());
    }
    [out, b"0\r\n\r\n".to_vec()].concat()
}

/// A short reply in full: chunked, or with its length.
fn whole_response(wire: Wire, is_chunked: bool) -> (Vec<u8>, usize) {
    let body = text_only(wire, EndReason::Complete).into_bytes();
    let (head, body) = if is_chunked {
        let (first, second) = body.split_at(body.len() / 2);
        (head("transfer-encoding: chunked\r\n"), chunked(&[first, second]))
    } else {
        (head(&format!("content-length: {}\r\n", body.len())), body)
    };
    let begin = head.len();
    ([head, body].concat(), begin)
}

fn response(status: u16, headers: &str, body: &str) -> Vec<ScriptedReply> {
    let length = body.len();
    vec![ScriptedReply::Send(
        format!("HTTP/1.1 {status} So\r\ncontent-length: {length}\r\n{headers}\r\n{body}").into_bytes(),
    )]
}

fn answered(wire: Wire) -> Exchange {
    vec![ScriptedReply::Send(whole_response(wire, true).0)]
}

async fn shown(model: &HostedModel<Http>) -> Result<String> {
    soon(deltas(model, request())).await.1.map(|reply| show(&reply))
}

/// Drives a run without tools, which may be cancelled by its first text.
async fn run(model: HostedModel<Http>, limits: Limits, is_cancelled: bool) -> (RunOutcome, Vec<Event>) {
    let agent = Agent::new(model, Vec::<Tool>::new()).unwrap().limits(limits);
    let mut run = Run::new(RunId::random(), RunOptions::default(), "hi");
    let (mut events, cancel) = (Vec::new(), CancellationToken::new());
    let mut watch = |event: Event| {
        if is_cancelled && matches!(event, Event::Text(_)) {
            cancel.cancel();
        }
        events.push(event);
    };
    match soon(agent.drive(&mut run, &mut watch, &cancel)).await.unwrap() {
        Pause::Done(outcome) => (outcome, events),
        Pause::Waiting(questions) => panic!("{questions:?}"),
    }
}

fn hasty() -> Limits {
    Limits::default().retries(Retries::default().first(Duration::from_millis(1)))
}

#[tokio::test]
async fn nobody_listens() {
    for wire in WIRES {
        let server = Server::start([]);
        let mut provider = provider_at(&server, wire);
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        provider.base_url = format!("http://user:{KEY}@{free}/v1?key={KEY}");
        let error = shown(&HostedModel::new(provider, "m", http())).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let text = format!("{error} {error:?}");
        assert!(text.contains(&free.to_string()) && !text.contains(KEY), "{text}");
    }
}

#[tokio::test]
async fn split_at_any_byte() {
    for wire in WIRES {
        let (bytes, _) = whole_response(wire, true);
        let split =
            |at: usize| vec![ScriptedReply::Send(bytes[..at].to_vec()), ScriptedReply::Send(bytes[at..].to_vec())];
        let server = Server::start(cuts(bytes.len()).skip(1).map(split));
        let model = hosted_at(&server, wire);
        for at in cuts(bytes.len()).skip(1) {
            assert_eq!(shown(&model).await.unwrap(), "abc|Complete", "{wire:?} split at {at}");
        }
    }
}

#[tokio::test]
async fn cut_at_any_byte() {
    for wire in WIRES {
        for is_chunked in [true, false] {
            let (bytes, begin) = whole_response(wire, is_chunked);
            // Behind its own end a reply is complete, whatever becomes of the connection.
            let text = String::from_utf8_lossy(&bytes);
            let end = match wire {
                Wire::OpenAiChat | Wire::Chat => text.find("[DONE]\n\n").unwrap() + 8,
                Wire::OpenAiResponses | Wire::Anthropic => text.rfind("}\n\n").unwrap() + 3,
                Wire::Ollama => text.rfind("}\n").unwrap() + 2,
                Wire::Gemini => bytes.len(),
            };
            let cut = |at: usize| vec![ScriptedReply::Send(bytes[..at].to_vec()), ScriptedReply::Close];
            let server = Server::start(cuts(bytes.len()).map(cut));
            let model = hosted_at(&server, wire);
            for at in cuts(bytes.len()) {
                let found = shown(&model).await;
                let kind = found.as_ref().map_err(Error::kind);
                let expected = match at {
                    at if at < begin => Err(ErrorKind::Unavailable),
                    at if at < end => Err(ErrorKind::CutStream),
                    _ => Ok(&"abc|Complete".to_string()),
                };
                assert_eq!(kind, expected, "{wire:?} cut at {at} of {}: {found:?}", bytes.len());
            }
        }
    }
}

#[tokio::test]
async fn not_http() {
    for wire in WIRES {
        for bytes in ["SSH-2.0-OpenSSH_9.2\r\n", "HTTP/1.1 twohundred\r\n\r\n"] {
            let server = Server::start([vec![ScriptedReply::Send(bytes.into()), ScriptedReply::Close]]);
            let error = shown(&hosted_at(&server, wire)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        }
        let garbled = [head("transfer-encoding: chunked\r\n"), b"zz\r\n".to_vec()].concat();
        let server = Server::start([vec![ScriptedReply::Send(garbled), ScriptedReply::Gone]]);
        assert_eq!(shown(&hosted_at(&server, wire)).await.unwrap_err().kind(), ErrorKind::CutStream);
    }
}

#[tokio::test]
async fn late_and_slow() {
    for wire in WIRES {
        let words: [Arc<Notify>; 3] = Default::default();
        let [asked, answer, go_on] = &words;
        let text = parallel_calls(wire);
        // Behind the first text, inside the next event.
        let at = text.find("Ich").unwrap();
        let next = text[at..].find("data: ").or_else(|| text[at..].find('\n'));
        let at = at + next.unwrap() + 9;
        let (first, second) = text.as_bytes().split_at(at);
        let server = Server::start([vec![
            ScriptedReply::Tell(asked.clone()),
            ScriptedReply::Wait(answer.clone()),
            ScriptedReply::Send([head(""), first.to_vec()].concat()),
            ScriptedReply::Wait(go_on.clone()),
            ScriptedReply::Send(second.to_vec()),
            ScriptedReply::Close,
        ]]);
        let model = hosted_at(&server, wire);
        let mut opened = model.reply(request());
        tokio::select! {
            biased;
            _ = &mut opened => panic!("nothing was answered yet"),
            () = soon(asked.notified()) => {}
        }
        assert!((&mut opened).now_or_never().is_none(), "nothing was answered yet");
        answer.notify_one();
        let mut stream = soon(opened).await.unwrap();
        let first = loop {
            match soon(stream.next()).await {
                Some(Ok(Delta::Text { text })) => break text,
                Some(Ok(_)) => {}
                other => panic!("{other:?}"),
            }
        };
        assert!("Ich schaue nach: ü".starts_with(&first));
        go_on.notify_one();
        let rest: Vec<Delta> = soon(stream.map(Result::unwrap).collect()).await;
        assert_eq!(rest.last(), Some(&Delta::End(EndReason::Complete)), "{wire:?}");
    }
}

#[tokio::test]
async fn silence_times_out_and_closes_the_connection() {
    let each = WIRES.map(|wire| async move {
        let gone = Arc::new(Notify::new());
        let begins = [vec![], vec![ScriptedReply::Send(head(""))]];
        let rest = || [ScriptedReply::Gone, ScriptedReply::Tell(gone.clone()), ScriptedReply::Close];
        let server = Server::start(begins.map(|begin| begin.into_iter().chain(rest()).collect()));
        let limits = Limits::default().silence(Duration::from_secs(1)).retries(hasty().retries.attempts(2));
        let (outcome, _) = run(hosted_at(&server, wire), limits, false).await;
        let StopReason::Failed { failure } = outcome.stop else { panic!("{}", outcome.stop) };
        assert_eq!(failure.kind, ErrorKind::TimedOut, "{wire:?}");
        soon(gone.notified()).await;
    });
    futures_util::future::join_all(each).await;
}

#[tokio::test]
async fn tried_again() {
    for wire in WIRES {
        let busy =
            response(429, "retry-after: 0\r\ncontent-type: application/json\r\n", "{\"error\":{\"message\":\"m\"}}");
        let server = Server::start([busy, response(500, "", "<html>"), answered(wire)]);
        let (outcome, events) = run(hosted_at(&server, wire), hasty(), false).await;
        assert_eq!((outcome.text.as_str(), &outcome.stop), ("abc", &StopReason::Answered), "{wire:?}");
        let retries: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                Event::Retry { delay, failure, .. } => Some((failure.kind, *delay == Duration::ZERO)),
                _ => None,
            })
            .collect();
        assert_eq!(retries, [(ErrorKind::RateLimit, true), (ErrorKind::Unavailable, false)]);
        let bodies: BTreeSet<Vec<u8>> = server.received().into_iter().map(|received| received.body).collect();
        assert_eq!((server.received().len(), bodies.len()), (3, 1), "three times the same request");
    }
}

#[tokio::test]
async fn a_reply_ends_at_its_terminal_event() {
    // Gemini has no end but that of the body.
    for wire in WIRES.into_iter().filter(|wire| *wire != Wire::Gemini) {
        let text = text_only(wire, EndReason::Complete).into_bytes();
        let server = Server::start([vec![ScriptedReply::Send([head(""), text].concat()), ScriptedReply::Gone]]);
        assert_eq!(shown(&hosted_at(&server, wire)).await.unwrap(), "abc|Complete");
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    for wire in WIRES {
        for status in [301, 302, 307, 308] {
            let other = Server::start([]);
            let location = format!("location: http://{}/v1?{KEY}\r\n", other.address);
            let server = Server::start([response(status, &location, "")]);
            let error = shown(&hosted_at(&server, wire)).await.unwrap_err();
            assert_eq!((error.kind(), error.status()), (ErrorKind::BadRequest, Some(status)));
            assert!(
                error.to_string().contains(&other.address.to_string()) && !error.to_string().contains(KEY),
                "{error}"
            );
            assert_eq!((server.received().len(), other.received().len()), (1, 0));
        }
    }
}

const CHILD: &str = "AGENT_LOOP_TEST_OF_THE_ENVIRONMENT";
const ELSEWHERE: &str = "http://models.invalid/v1";

#[tokio::test]
async fn requests_go_through_the_named_proxy_or_that_of_the_environment() {
    if std::env::var_os(CHILD).is_some() {
        // The process below: what is elsewhere is asked through the proxy, what is here is not.
        let http = Http::new().unwrap();
        for wire in WIRES {
            let here = Server::start([answered(wire)]);
            let mut provider = provider_at(&here, wire);
            assert_eq!(shown(&HostedModel::new(provider.clone(), "m", http.clone())).await.unwrap(), "abc|Complete");
            provider.base_url = ELSEWHERE.into();
            assert_eq!(shown(&HostedModel::new(provider, "m", http.clone())).await.unwrap(), "abc|Complete");
        }
        return;
    }
    let targets = |server: &Server| -> Vec<String> {
        server.received().into_iter().map(|received| format!("{} {}", received.method, received.target)).collect()
    };
    let mut expected = Vec::new();
    for wire in WIRES {
        let proxy = Server::start([answered(wire), response(403, "", "")]);
        let address = HttpProxy::Through(format!("http://me:{KEY}@{}", proxy.address));
        assert!(!format!("{address:?}").contains(KEY));
        let http = Http::with(HttpOptions::default().proxy(address)).unwrap();
        let mut provider = provider_at(&proxy, wire);
        provider.base_url = ELSEWHERE.into();
        assert_eq!(shown(&HostedModel::new(provider.clone(), "m", http.clone())).await.unwrap(), "abc|Complete");
        expected.extend(targets(&proxy));
        // What goes by TLS is for the proxy's eyes no more than its place.
        provider.base_url = ELSEWHERE.replace("http:", "https:");
        let error = shown(&HostedModel::new(provider, "m", http)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let received = proxy.received();
        assert_eq!(targets(&proxy)[1], "CONNECT models.invalid:443");
        assert_eq!(received[0].header("proxy-authorization").len(), 1);
        assert!(received[1].header("authorization").is_empty());
        assert!(!format!("{error} {:?}", received[1]).contains(KEY));
    }
    assert_eq!(expected[0], "POST http://models.invalid/v1/chat/completions");

    // A variable of this process would be that of all tests: a process of its own has it.
    let proxy = Server::start(WIRES.map(answered));
    let mut child = Command::new(std::env::current_exe().unwrap());
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "REQUEST_METHOD"] {
        child.env_remove(name).env_remove(name.to_lowercase());
    }
    child.env(CHILD, "yes").env("HTTP_PROXY", format!("http://{}", proxy.address));
    let test = "contract::network::requests_go_through_the_named_proxy_or_that_of_the_environment";
    child.args(["--exact", test, "--nocapture"]);
    let output = tokio::task::spawn_blocking(move || child.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(targets(&proxy), expected);
}

#[tokio::test]
async fn headers_of_the_caller_are_sent_and_the_key_in_one_header_only() {
    for wire in WIRES {
        let server = Server::start([answered(wire), answered(wire)]);
        let mut provider = provider_at(&server, wire);
        provider.headers = vec![("X-Title".into(), "Grüße".into()), ("User-Agent".into(), "mine".into())];
        shown(&HostedModel::new(provider.clone(), "m", http())).await.unwrap();
        let name = match wire {
            Wire::Anthropic => "x-api-key",
            Wire::Gemini => "x-goog-api-key",
            _ => "authorization",
        };
        provider.headers = vec![(name.into(), "another".into())];
        shown(&HostedModel::new(provider, "m", http())).await.unwrap();

        let received = server.received();
        let key = received[0].header(name);
        assert!(matches!(key[..], [value] if value.trim_start_matches("Bearer ") == KEY), "{key:?}");
        assert_eq!((received[0].header("x-title"), received[0].header("user-agent")), (vec!["Grüße"], vec!["mine"]));
        assert_eq!(received[0].header("content-type"), ["application/json"]);
        assert!(!received[0].target.contains(KEY));
        let others = received[0].headers.iter().filter(|(other, value)| other != name && value.contains(KEY));
        assert_eq!(others.count(), 0);
        assert_eq!(received[1].header(name), ["another"], "the caller's header is the one that is sent");
        assert!(received[1].header("user-agent")[0].starts_with("agent-loop/"));
    }
}

#[tokio::test]
async fn what_cannot_be_sent() {
    for wire in WIRES {
        let server = Server::start([]);
        let provider = provider_at(&server, wire);
        let key = Some(format!("{KEY}\n"));
        for provider in [
            provider.clone().key(key),
            provider.clone().headers(vec![("x y".into(), KEY.into())]),
            provider.clone().base_url(format!("{KEY}.example/v1")),
            provider.clone().base_url(format!("file:///{KEY}")),
        ] {
            let error = shown(&HostedModel::new(provider, "m", http())).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::BadRequest, "{error}");
            assert!(!format!("{error} {error:?}").contains(KEY), "{error}");
        }
        assert!(server.received().is_empty());
    }
    let proxy = HttpProxy::Through(format!("::{KEY}::"));
    let error = Http::with(HttpOptions::default().proxy(proxy)).unwrap_err();
    assert!(!format!("{error} {error:?}").contains(KEY), "{error}");
    let roots = vec![b"no certificate".to_vec()];
    Http::with(HttpOptions::default().roots(roots)).unwrap_err();
}

/// The beginning of a reply; then the server waits for the client to go, and says so.
fn endless(wire: Wire, gone: &Arc<Notify>) -> Exchange {
    let text = text_only(wire, EndReason::Complete);
    let first = text.find("\"abc\"").or_else(|| text.find("\"a\"")).unwrap();
    let (begin, _) = text.split_at(first + text[first..].find("\n").unwrap());
    vec![
        ScriptedReply::Send([&head(""), begin.as_bytes(), b"\n\n"].concat()),
        ScriptedReply::Gone,
        ScriptedReply::Tell(gone.clone()),
        ScriptedReply::Close,
    ]
}

#[tokio::test]
async fn dropping_a_reply_closes_its_connection() {
    for wire in WIRES {
        let gone = Arc::new(Notify::new());
        let server = Server::start([endless(wire, &gone)]);
        let model = hosted_at(&server, wire);
        let mut stream = soon(model.reply(request())).await.unwrap();
        assert!(soon(stream.next()).await.unwrap().is_ok());
        drop(stream);
        soon(gone.notified()).await;
    }
}

#[tokio::test]
async fn cancelling_a_run_closes_its_connection() {
    for wire in WIRES {
        let gone = Arc::new(Notify::new());
        let server = Server::start([endless(wire, &gone)]);
        let (outcome, _) = run(hosted_at(&server, wire), hasty(), true).await;
        assert_eq!(outcome.stop, StopReason::Cancelled, "{wire:?}");
        soon(gone.notified()).await;
    }
}

#[tokio::test]
async fn connections_are_reused() {
    for wire in WIRES {
        let server = Server::start((0..10).map(|_| answered(wire)));
        let model = hosted_at(&server, wire);
        for _ in 0..10 {
            shown(&model).await.unwrap();
        }
        let connections: BTreeSet<usize> = server.received().iter().map(|received| received.connection).collect();
        // Not one: the next request may come before the client has put the connection back.
        assert!(connections.len() < 10, "{connections:?}");
    }
}

#[tokio::test]
async fn ten_megabytes() {
    for wire in WIRES {
        let mut body = whole_body(wire).to_string();
        let text = "x".repeat(10 << 20);
        body = body.replace("{\\\"x\\\":1}", &format!("{{\\\"x\\\":\\\"{text}\\\"}}"));
        body = body.replace("{\"x\":1}", &format!("{{\"x\":\"{text}\"}}"));
        let server = Server::start([response(200, "content-type: application/json\r\n", &body)]);
        let (_, reply) = soon(deltas(&hosted_at(&server, wire), request())).await;
        let reply = reply.unwrap();
        let Part::Call(call) = &reply.parts[0] else { panic!("{wire:?}") };
        assert_eq!(call.arguments["x"].as_str().map(str::len), Some(text.len()));
    }
}

/// For localhost and 127.0.0.1, from 2020 to 2120, signed by itself and by no authority; made with openssl.
const CERTIFICATE: &[u8] = include_bytes!("../../../testdata/tls/certificate.der");
const CERTIFICATE_KEY: &[u8] = include_bytes!("../../../testdata/tls/key.der");

/// Answers one request over TLS, in a thread, and gives the protocols that the client offered.
fn tls_server(answer: Vec<u8>) -> (std::net::SocketAddr, std::thread::JoinHandle<Vec<String>>) {
    use std::io::{Read, Write};
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(CERTIFICATE_KEY).into();
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![CERTIFICATE.into()], key).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut acceptor = rustls::server::Acceptor::default();
        let accepted = loop {
            acceptor.read_tls(&mut stream).unwrap();
            if let Some(accepted) = acceptor.accept().unwrap() {
                break accepted;
            }
        };
        let offered = accepted.client_hello().alpn().into_iter().flatten();
        let offered = offered.map(|protocol| String::from_utf8_lossy(protocol).into_owned()).collect();
        let connection = accepted.into_connection(Arc::new(config)).unwrap();
        let mut stream = rustls::StreamOwned::new(connection, stream);
        let (mut read, mut bytes) = (Vec::new(), [0; 4096]);
        // A client that does not trust the certificate leaves.
        while let Ok(count @ 1..) = stream.read(&mut bytes) {
            read.extend_from_slice(&bytes[..count]);
            if read.ends_with(b"}") {
                let _ = stream.write_all(&answer).and_then(|()| stream.flush());
                break;
            }
        }
        offered
    });
    (address, thread)
}

#[tokio::test]
async fn tls_replies_come_from_trusted_certificates_only() {
    for wire in WIRES {
        for is_trusted in [true, false] {
            let (address, thread) = tls_server(whole_response(wire, false).0);
            let roots = if is_trusted { vec![CERTIFICATE.to_vec()] } else { Vec::new() };
            let http = Http::with(HttpOptions::default().roots(roots)).unwrap();
            let mut provider = provider_at(&Server::start([]), wire);
            provider.base_url = format!("https://{address}/v1");
            let found = shown(&HostedModel::new(provider, "m", http)).await;
            match (is_trusted, found) {
                (true, found) => assert_eq!(found.unwrap(), "abc|Complete"),
                (false, found) => {
                    let error = found.unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Unavailable);
                    let cause = std::error::Error::source(&error).unwrap().to_string();
                    assert!(cause.contains("certificate"), "{error}: {cause}");
                }
            }
            assert_eq!(thread.join().unwrap(), ["h2", "http/1.1"]);
        }
    }
}
