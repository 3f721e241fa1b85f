//! What the proxy keeps, where it is told to: responses, conversations and items that later requests refer to.

use agent_loop::{Delta, EndReason, Error, ErrorKind, ScriptedModel, ScriptedReply};
use agent_proxy::{ProxyOptions, StoreLimits};
use serde_json::{Value, json};

use super::backend::Backend;
use super::{CHAT, RESPONSES, RunningProxy, question, within};

/// A proxy with a store over a model that answers with the texts it was told, oldest first.
async fn echoing(limits: StoreLimits, turns: usize) -> RunningProxy {
    let (backend, mut hand) = Backend::new();
    tokio::spawn(async move {
        for _ in 0..turns {
            let asked = hand.asked().await;
            let texts: Vec<String> = asked.request.messages.iter().map(|message| message.text()).collect();
            let speaking = asked.accept();
            speaking.say(&texts.join("|"));
            speaking.end();
        }
        std::future::pending::<()>().await;
    });
    RunningProxy::with(ProxyOptions::default().store(Some(limits)), backend).await
}

async fn ask(server: &RunningProxy, more: Value) -> (u16, Value) {
    let mut body = json!({"model": "m"});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    server.post(RESPONSES, &body).await
}

async fn delete(server: &RunningProxy, path: &str) -> (u16, Value) {
    let mut client = server.client().await;
    client.send("DELETE", path, &[], "").await;
    client.json().await
}

fn text(response: &Value) -> &str {
    response["output"][0]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{response}"))
}

fn id(value: &Value) -> &str {
    value["id"].as_str().unwrap_or_else(|| panic!("{value}"))
}

/// What a refusal names.
fn refused((status, body): (u16, Value)) -> (u16, String, String) {
    let error = &body["error"];
    assert_eq!(error["type"], "invalid_request_error", "{body}");
    (status, error["param"].as_str().unwrap_or_default().into(), error["code"].as_str().unwrap_or_default().into())
}

fn refusal(status: u16, param: &str, code: &str) -> (u16, String, String) {
    (status, param.into(), code.into())
}

#[tokio::test]
async fn a_response_is_gone_on_from_by_its_id() {
    let server = echoing(StoreLimits::default(), 5).await;
    let (_, first) = ask(&server, json!({"input": "a", "instructions": "Be brief."})).await;
    assert_eq!((&first["store"], &first["previous_response_id"]), (&json!(true), &Value::Null));
    let previous = json!({"input": [{"role": "user", "content": "b"}], "previous_response_id": first["id"]});
    let (_, second) = ask(&server, previous.clone()).await;
    assert_eq!((text(&second), &second["previous_response_id"]), ("a|a|b", &first["id"]));
    // From the same one again, streamed; and from what a stream gave, at once.
    let mut client = server.client().await;
    let mut streamed = previous.clone();
    (streamed["model"], streamed["stream"]) = (json!("m"), json!(true));
    client.send("POST", RESPONSES, &[], &streamed.to_string()).await;
    assert_eq!(client.head().await.status, 200);
    let events = client.events().await;
    let fork = &events.last().unwrap()["response"];
    assert_eq!((text(fork), &fork["previous_response_id"]), ("a|a|b", &first["id"]));
    assert_eq!(events[0]["response"]["previous_response_id"], first["id"]);
    let (_, third) = ask(&server, json!({"input": "c", "previous_response_id": fork["id"]})).await;
    assert_eq!(text(&third), "a|a|b|a|a|b|c");

    // It can be read and deleted, which takes nothing from those that went on from it.
    let path = format!("{RESPONSES}/{}", id(&first));
    assert_eq!(server.get(&path).await, (200, first.clone()));
    assert_eq!(refused(server.get(&format!("{path}?stream=true")).await).1, "stream");
    let deleted = json!({"id": first["id"], "object": "response", "deleted": true});
    assert_eq!(delete(&server, &path).await, (200, deleted));
    assert_eq!(refused(server.get(&path).await), refusal(404, "response_id", "not_found"));
    assert_eq!(refused(delete(&server, &path).await), refusal(404, "response_id", "not_found"));
    let gone = refusal(400, "previous_response_id", "previous_response_not_found");
    assert_eq!(refused(ask(&server, previous).await), gone);
    let (_, fourth) = ask(&server, json!({"input": "d", "previous_response_id": second["id"]})).await;
    assert_eq!(text(&fourth), "a|a|b|a|a|b|d");
    server.ended().await;
}

#[tokio::test]
async fn calls_and_their_results_are_kept() {
    let call = ScriptedReply::calls([("look", json!({"at": "ä"}))]);
    let after = ScriptedReply::text("Seen.").expecting(|request| {
        let result = request.messages.last().unwrap();
        let is_there = request.messages.len() == 3 && format!("{result:?}").contains("crimson");
        is_there.then_some(()).ok_or(format!("{:?}", request.messages))
    });
    let options = ProxyOptions::default().store(Some(StoreLimits::default()));
    let server = RunningProxy::with(options, ScriptedModel::new([call, after])).await;
    let tools = json!([{"type": "function", "name": "look"}]);
    let (_, first) = ask(&server, json!({"input": "go", "tools": tools})).await;
    let result = json!({"type": "function_call_output", "call_id": first["output"][0]["call_id"], "output": "crimson"});
    let more = json!({"input": [result], "tools": tools, "previous_response_id": first["id"]});
    let (status, second) = ask(&server, more).await;
    assert_eq!((status, text(&second)), (200, "Seen."));
}

#[tokio::test]
async fn items_are_referred_to() {
    let server = echoing(StoreLimits::default(), 2).await;
    let (_, first) = ask(&server, json!({"input": "a"})).await;
    let item = |id: &Value| json!({"type": "item_reference", "id": id});
    let asked = |text: &str| json!({"role": "user", "content": text});
    let input = json!([asked("x"), item(&first["output"][0]["id"]), asked("b")]);
    let (_, second) = ask(&server, json!({"input": input})).await;
    assert_eq!(text(&second), "x|a|b");
    let wrong = ask(&server, json!({"input": [asked("b"), item(&json!("msg_gone"))]})).await;
    assert!(wrong.1["error"]["message"].as_str().unwrap().contains("'msg_gone' not found"), "{}", wrong.1);
    assert_eq!(refused(wrong), refusal(400, "input[1].id", "item_not_found"));
    assert_eq!(refused(ask(&server, json!({"input": [{"type": "item_reference"}]})).await).1, "input[0].id");
}

#[tokio::test]
async fn a_conversation_grows_with_each_response() {
    let server = echoing(StoreLimits::default(), 4).await;
    let begin = json!({"metadata": {"topic": "x"}, "items": [{"role": "user", "content": "zero"}]});
    let (status, conversation) = server.post("/v1/conversations", &begin).await;
    assert_eq!((status, &conversation["object"]), (200, &json!("conversation")));
    assert!(id(&conversation).starts_with("conv_") && conversation["created_at"].is_u64());
    let path = format!("/v1/conversations/{}", id(&conversation));
    assert_eq!(server.get(&path).await, (200, conversation.clone()));

    let (_, first) = ask(&server, json!({"input": "a", "conversation": conversation["id"]})).await;
    assert_eq!((text(&first), &first["conversation"]), ("zero|a", &json!({"id": conversation["id"]})));
    let stored = json!({"input": "b", "conversation": {"id": conversation["id"]}, "store": false});
    let (_, second) = ask(&server, stored).await;
    assert_eq!((text(&second), &second["store"]), ("zero|a|zero|a|b", &json!(false)));

    let (_, all) = server.get(&format!("{path}/items?order=asc")).await;
    let said: Vec<&Value> = all["data"].as_array().unwrap().iter().map(|item| &item["content"][0]["text"]).collect();
    assert_eq!(json!(said), json!(["zero", "a", "zero|a", "b", "zero|a|zero|a|b"]));
    assert_eq!((&all["object"], &all["has_more"]), (&json!("list"), &json!(false)));
    assert_eq!(all["data"][0]["content"][0]["type"], "input_text");
    assert_eq!(all["data"][2], first["output"][0]);
    // The newest first, page by page.
    let (_, page) = server.get(&format!("{path}/items?limit=2")).await;
    assert_eq!((&page["data"][0], &page["has_more"]), (&second["output"][0], &json!(true)));
    let (_, rest) = server.get(&format!("{path}/items?after={}", page["last_id"].as_str().unwrap())).await;
    assert_eq!((rest["data"].as_array().unwrap().len(), &rest["has_more"]), (3, &json!(false)));
    for (query, param) in [("limit=0", "limit"), ("limit=x", "limit"), ("order=up", "order"), ("after=gone", "after")] {
        assert_eq!(refused(server.get(&format!("{path}/items?{query}")).await).1, param);
    }

    // Items can be added, read and deleted.
    let more = json!({"items": [{"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}]});
    let (_, added) = server.post(&format!("{path}/items"), &more).await;
    let (c, d) = (added["first_id"].as_str().unwrap(), added["last_id"].as_str().unwrap());
    assert_eq!(server.get(&format!("{path}/items/{d}")).await.1["content"][0]["text"], "d");
    assert_eq!(delete(&server, &format!("{path}/items/{c}")).await, (200, conversation.clone()));
    assert_eq!(refused(server.get(&format!("{path}/items/{c}")).await), refusal(404, "item_id", "not_found"));
    let (_, third) = ask(&server, json!({"input": "e", "conversation": conversation["id"]})).await;
    assert_eq!(text(&third), "zero|a|zero|a|b|zero|a|zero|a|bd|e");

    let deleted = json!({"id": conversation["id"], "object": "conversation.deleted", "deleted": true});
    assert_eq!(delete(&server, &path).await, (200, deleted));
    for path in [path.clone(), format!("{path}/items")] {
        assert_eq!(refused(server.get(&path).await), refusal(404, "conversation_id", "not_found"));
    }
    let gone = ask(&server, json!({"input": "f", "conversation": conversation["id"]})).await;
    assert_eq!(refused(gone), refusal(400, "conversation", "conversation_not_found"));
    server.ended().await;
}

#[tokio::test]
async fn what_is_wrong_is_refused_with_its_field() {
    let server = echoing(StoreLimits::default().bytes(2000), 1).await;
    let (_, conversation) = server.post("/v1/conversations", &json!({})).await;
    let both = json!({"input": "a", "conversation": conversation["id"], "previous_response_id": "resp_1"});
    for (asked, param) in [
        (both, "conversation"),
        (json!({"input": "a", "conversation": 7}), "conversation"),
        (json!({"input": "a", "previous_response_id": 7}), "previous_response_id"),
        // An id of something else.
        (json!({"input": "a", "previous_response_id": conversation["id"]}), "previous_response_id"),
        (json!({"input": "a", "store": "yes"}), "store"),
        (json!({"conversation": conversation["id"]}), "input"),
        (json!({"input": "a", "background": true}), "background"),
    ] {
        assert_eq!(refused(ask(&server, asked.clone()).await).1, param, "{asked}");
    }
    let picture = json!([{"role": "user", "content": [{"type": "input_image", "image_url": "https://example.org"}]}]);
    let items = format!("/v1/conversations/{}/items", id(&conversation));
    for (path, asked, param) in [
        ("/v1/conversations", json!({"items": 7}), "items"),
        ("/v1/conversations", json!({"items": picture}), "items[0].content[0].type"),
        ("/v1/conversations", json!({"items": [{"type": "item_reference", "id": "msg_1"}]}), "items[0].id"),
        ("/v1/conversations", json!({"metadata": 7}), "metadata"),
        ("/v1/conversations", json!({"items": [{"role": "user", "content": "x".repeat(2000)}]}), "items"),
        (&items, json!({}), "items"),
        (&items, json!({"items": picture}), "items[0].content[0].type"),
        ("/v1/conversations/conv_gone/items", json!({"items": []}), "conversation_id"),
    ] {
        assert_eq!(refused(server.post(path, &asked).await).1, param, "{path} {asked}");
    }
}

#[tokio::test]
async fn what_failed_was_cut_off_or_should_not_be_is_not_kept() {
    let model = ScriptedModel::new([
        ScriptedReply::text("a"),
        ScriptedReply::deltas([Delta::Text { text: "b".into() }]),
        ScriptedReply::fails(Error::new(ErrorKind::RateLimit, "slow down")),
        ScriptedReply::deltas([Delta::Text { text: "c".into() }, Delta::End(EndReason::Length)]),
        ScriptedReply::text("d"),
    ]);
    let server = RunningProxy::with(ProxyOptions::default().store(Some(StoreLimits::default())), model).await;
    let (_, conversation) = server.post("/v1/conversations", &json!({})).await;
    let (_, unstored) = ask(&server, json!({"input": "1", "store": false})).await;
    let gone = refused(server.get(&format!("{RESPONSES}/{}", id(&unstored))).await);
    assert_eq!(gone, refusal(404, "response_id", "not_found"));
    // Of the conversation, too, only what is complete, or ends at a limit.
    for (input, status) in [("2", 502), ("3", 429), ("4", 200), ("5", 200)] {
        assert_eq!(ask(&server, json!({"input": input, "conversation": conversation["id"]})).await.0, status);
    }
    let (_, all) = server.get(&format!("/v1/conversations/{}/items?order=asc", id(&conversation))).await;
    let said: Vec<&Value> = all["data"].as_array().unwrap().iter().map(|item| &item["content"][0]["text"]).collect();
    assert_eq!(json!(said), json!(["4", "c", "5", "d"]));
}

#[tokio::test]
async fn the_least_recently_used_response_is_forgotten() {
    let server = echoing(StoreLimits::default().entries(2), 4).await;
    let (_, a) = ask(&server, json!({"input": "a"})).await;
    let (_, b) = ask(&server, json!({"input": "b"})).await;
    assert_eq!(server.get(&format!("{RESPONSES}/{}", id(&a))).await.0, 200);
    ask(&server, json!({"input": "c"})).await;
    let of = |response: &Value| json!({"input": "d", "previous_response_id": response["id"]});
    assert_eq!(refused(ask(&server, of(&b)).await).1, "previous_response_id");
    assert_eq!(text(&ask(&server, of(&a)).await.1), "a|a|d");
}

#[tokio::test]
async fn without_a_store_there_are_no_such_paths() {
    let server = RunningProxy::with(ProxyOptions::default(), ScriptedModel::new([ScriptedReply::text("a")])).await;
    let (_, first) = ask(&server, json!({"input": "a", "store": true})).await;
    assert_eq!(first["store"], false);
    for path in [format!("{RESPONSES}/{}", id(&first)), "/v1/conversations/conv_1".into()] {
        assert_eq!(server.get(&path).await.0, 404);
    }
    assert_eq!(server.post("/v1/conversations", &json!({})).await.0, 404);
    let previous = json!({"input": "b", "previous_response_id": first["id"]});
    assert_eq!(refused(ask(&server, previous).await).1, "previous_response_id");
}

/// The store belongs to the one API: the other has nothing to refer with.
#[tokio::test]
async fn chat_completions_keep_nothing() {
    let server = echoing(StoreLimits::default(), 1).await;
    let (status, whole) = server.post(CHAT, &question(CHAT, "hi", false)).await;
    assert_eq!((status, &whole["choices"][0]["message"]["content"]), (200, &json!("hi")));
    within(server.ended()).await;
}
