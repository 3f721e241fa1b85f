//! Who may ask.

use agent_proxy::ProxyOptions;
use serde_json::json;

use super::{RESPONSES, RunningProxy, backend::Backend, question};

async fn status(server: &RunningProxy, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
    let mut client = server.client().await;
    client.send("GET", path, headers, "").await;
    let (status, body) = client.json().await;
    (status, body["error"]["code"].as_str().unwrap_or_default().to_string())
}

#[tokio::test]
async fn only_names_of_this_machine_reach_it() {
    let (backend, _hand) = Backend::new();
    let server = RunningProxy::with(ProxyOptions::default(), backend).await;
    for host in ["localhost", "LOCALHOST:80", "127.0.0.1:9", "[::1]", "[::1]:9"] {
        assert_eq!(status(&server, "/health", &[("Host", host)]).await.0, 200, "{host}");
    }
    for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "192.168.0.9", "", "a b"] {
        assert_eq!(status(&server, "/v1/models", &[("Host", host)]).await, (403, "host_not_allowed".into()), "{host}");
        assert_eq!(status(&server, "/health", &[("Host", host)]).await.0, 403, "{host}");
    }
    let two = [("Host", "localhost"), ("Host", "evil.example")];
    assert_eq!(status(&server, "/v1/models", &two).await.0, 403);
    assert_eq!(status(&server, "http://evil.example/v1/models", &[("Host", "localhost")]).await.0, 403);
    let mut client = server.client().await;
    client.write("GET /v1/models HTTP/1.1\r\n\r\n").await;
    assert_eq!(client.json().await.0, 403, "a request without a name");
    for origin in ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:3000"] {
        assert_eq!(status(&server, "/v1/models", &[("Origin", origin)]).await.0, 200, "{origin}");
    }
    for origin in ["https://evil.example", "null", "file://", "http://localhost.evil.example"] {
        let refused = (403, "origin_not_allowed".into());
        assert_eq!(status(&server, "/v1/models", &[("Origin", origin)]).await, refused, "{origin}");
    }
}

#[tokio::test]
async fn names_can_be_given() {
    let options = ProxyOptions::default().hosts(vec!["models.lan".into(), "[fd00::1]".into()]);
    let (backend, _hand) = Backend::new();
    let server = RunningProxy::with(options, backend).await;
    assert_eq!(status(&server, "/health", &[("Host", "models.lan:8080")]).await.0, 200);
    assert_eq!(status(&server, "/health", &[("Host", "[fd00::1]:8080")]).await.0, 200);
    assert_eq!(status(&server, "/health", &[("Host", "localhost")]).await.0, 403);
}

#[tokio::test]
async fn a_key_is_asked_for_where_one_is_set() {
    let options = ProxyOptions::default().key(Some("s3cret".into()));
    assert!(!format!("{options:?}").contains("s3cret"));
    let (backend, mut hand) = Backend::new();
    let server = RunningProxy::with(options, backend).await;
    for key in ["Bearer s3cret", "bearer s3cret", "Bearer  s3cret "] {
        assert_eq!(status(&server, "/v1/models", &[("Authorization", key)]).await.0, 200, "{key}");
    }
    for key in ["Bearer s3cre", "Bearer s3crett", "Bearer ", "Bearer", "s3cret", "Basic s3cret"] {
        let refused = (401, "invalid_api_key".into());
        assert_eq!(status(&server, "/v1/models", &[("Authorization", key)]).await, refused, "{key}");
    }
    assert_eq!(status(&server, "/health", &[]).await.0, 200, "whether it is alive is no secret");

    let mut client = server.client().await;
    let body = question(RESPONSES, "hi", false).to_string();
    client.send("POST", RESPONSES, &[], &body).await;
    let head = client.head().await;
    assert_eq!((head.status, head.header("www-authenticate")), (401, Some("Bearer")));
    hand.live(0).await;

    let mut client = server.client().await;
    client.send("POST", RESPONSES, &[("Authorization", "Bearer s3cret")], &body).await;
    let speaking = hand.asked().await.accept();
    speaking.say("in");
    speaking.end();
    let (status, whole) = client.json().await;
    assert_eq!((status, &whole["output"][0]["content"][0]["text"]), (200, &json!("in")));
}
