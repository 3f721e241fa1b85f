//! The settings of a request on each wire: sent, left out, or rejected.

use agent_loop::{
    Agent, ErrorKind, Image, Message, ModelSettings, Part, PromptCache, ReasoningEffort, ReasoningField, RunOptions,
    Status, StopReason, Tool, ToolCall, ToolResult, UserMessage, Wire,
};
use serde_json::{Value, json};

use super::*;

cases! {
    "sampling: top_p, seed, stop" sampling_settings_are_sent_as_each_wire_writes_them,
    "reasoning effort and budget" reasoning_effort_and_budget_are_sent_as_each_wire_writes_them,
    "service tier, cache key and cache lifetime" tier_and_cache,
    "cache breakpoints in the prompt" breakpoints_of_anthropic,
    "cached tokens and the cost are reported" cached_tokens_and_costs,
    "provider-specific fields of the body; headers of the caller" extra_fields,
    "structured answers together with tools" the_shape_of_an_answer_beside_tools,
    "images: inline and by URL" images_are_sent_inline_and_by_url_as_each_wire_writes_them,
    "a key in another header, and a query in the URL" azure_providers_send_their_url_query_and_key_header,
    "options of Ollama" options_of_ollama,
    "settings of a run are sent with each of its requests" settings_of_a_run,
}

/// What a request with these settings sends, or why it is refused.
async fn body(wire: Wire, settings: ModelSettings) -> Result<Value> {
    body_of(wire, request().settings(settings), |_| {}).await
}

async fn body_of(wire: Wire, request: Request, change: impl FnOnce(&mut Provider)) -> Result<Value> {
    let (model, canned) = provided(wire, [Answer::json(418, &json!({"error": {"message": "sent"}}))], change);
    let error = deltas(&model, request).await.1.unwrap_err();
    match error.status() {
        Some(418) => Ok(sent(&canned).1),
        _ => Err(error),
    }
}

/// The fields at these pointers; null where there is none.
pub fn at(body: &Value, pointers: &[&str]) -> Value {
    pointers.iter().map(|pointer| body.pointer(pointer).cloned().unwrap_or_default()).collect()
}

fn settings() -> ModelSettings {
    ModelSettings::default()
}

#[tokio::test]
async fn sampling_settings_are_sent_as_each_wire_writes_them() {
    let stop = || settings().stop(vec!["END".into(), "\n\n".into()]);
    for wire in WIRES {
        let (top_p, seed, stops) = match wire {
            Wire::OpenAiChat | Wire::Chat => ("/top_p", Some("/seed"), Some("/stop")),
            Wire::OpenAiResponses => ("/top_p", None, None),
            Wire::Anthropic => ("/top_p", None, Some("/stop_sequences")),
            Wire::Gemini => {
                ("/generationConfig/topP", Some("/generationConfig/seed"), Some("/generationConfig/stopSequences"))
            }
            Wire::Ollama => ("/options/top_p", Some("/options/seed"), Some("/options/stop")),
        };
        assert_eq!(
            body(wire, settings().top_p(Some(0.5))).await.unwrap().pointer(top_p),
            Some(&json!(0.5)),
            "{wire:?}"
        );
        for (what, pointer, settings, expected) in [
            ("a seed", seed, settings().seed(Some(7)), json!(7)),
            ("stop sequences", stops, stop(), json!(["END", "\n\n"])),
        ] {
            match (body(wire, settings).await, pointer) {
                (Ok(body), Some(pointer)) => assert_eq!(body.pointer(pointer), Some(&expected), "{wire:?}"),
                (Err(error), None) => {
                    assert_eq!(error.kind(), ErrorKind::BadRequest);
                    assert!(error.message().contains(what) && error.remedy().is_some(), "{error}");
                }
                (body, _) => panic!("{wire:?}, {what}: {body:?}"),
            }
        }
        let bare = body(wire, settings()).await.unwrap();
        let sent: Vec<&String> = bare.as_object().unwrap().keys().collect();
        for field in ["top_p", "seed", "stop", "thinking", "reasoning", "service_tier", "generationConfig", "options"] {
            assert!(!sent.iter().any(|name| *name == field), "{wire:?} sends {field} though nothing is set");
        }
    }
}

#[tokio::test]
async fn reasoning_effort_and_budget_are_sent_as_each_wire_writes_them() {
    use ReasoningEffort::{Low, Max, Minimal, None as Off, XHigh};
    let effort = |effort| settings().reasoning_effort(Some(effort));
    for (wire, set, pointers, expected) in [
        (Wire::OpenAiChat, effort(XHigh), &["/reasoning_effort"][..], json!(["xhigh"])),
        (Wire::OpenAiChat, effort(Off), &["/reasoning_effort"], json!(["none"])),
        (Wire::Chat, effort(Low), &["/reasoning_effort"], json!(["low"])),
        (Wire::OpenAiResponses, effort(Minimal), &["/reasoning"], json!([{"effort": "minimal"}])),
        (
            Wire::Anthropic,
            effort(Max),
            &["/thinking", "/output_config", "/max_tokens"],
            json!([{"type": "adaptive"}, {"effort": "max"}, 32_768]),
        ),
        (Wire::Anthropic, effort(Minimal), &["/output_config/effort"], json!(["low"])),
        (
            Wire::Anthropic,
            effort(Off),
            &["/thinking", "/output_config", "/max_tokens"],
            json!([{"type": "disabled"}, null, 8_192]),
        ),
        (
            Wire::Anthropic,
            settings().thinking_budget(Some(2_000)),
            &["/thinking", "/output_config", "/max_tokens"],
            json!([{"type": "enabled", "budget_tokens": 2_000}, null, 10_192]),
        ),
        (
            Wire::Gemini,
            effort(Low),
            &["/generationConfig/thinkingConfig"],
            json!([{"thinkingLevel": "low", "includeThoughts": true}]),
        ),
        (Wire::Gemini, effort(Max), &["/generationConfig/thinkingConfig/thinkingLevel"], json!(["high"])),
        (Wire::Gemini, effort(Off), &["/generationConfig/thinkingConfig"], json!([{"thinkingBudget": 0}])),
        (
            Wire::Gemini,
            settings().thinking_budget(Some(512)),
            &["/generationConfig/thinkingConfig"],
            json!([{"thinkingBudget": 512, "includeThoughts": true}]),
        ),
        (Wire::Ollama, effort(Off), &["/think"], json!([false])),
        (Wire::Ollama, effort(Low), &["/think"], json!(["low"])),
        (Wire::Ollama, effort(Max), &["/think"], json!(["high"])),
    ] {
        assert_eq!(at(&body(wire, set).await.unwrap(), pointers), expected, "{wire:?}");
    }
    for wire in [Wire::OpenAiChat, Wire::Chat, Wire::OpenAiResponses, Wire::Ollama] {
        let error = body(wire, settings().thinking_budget(Some(512))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadRequest, "{wire:?}");
        assert!(error.remedy().unwrap().contains("effort"), "{error}");
    }
    let fields = ["/reasoning_effort", "/reasoning", "/thinking"];
    for (field, set, expected) in [
        (ReasoningField::Reasoning, effort(Low), json!([null, {"effort": "low"}, null])),
        (ReasoningField::Reasoning, settings().thinking_budget(Some(512)), json!([null, {"max_tokens": 512}, null])),
        (ReasoningField::Thinking, effort(Low), json!(["low", null, {"type": "enabled"}])),
        (ReasoningField::Thinking, effort(Off), json!([null, null, {"type": "disabled"}])),
        (ReasoningField::Thinking, settings(), json!([null, null, null])),
    ] {
        let body =
            body_of(Wire::Chat, request().settings(set), |provider| provider.reasoning_field = field).await.unwrap();
        assert_eq!(at(&body, &fields), expected, "{field:?}");
    }
    let named = [
        Provider::openrouter("k"),
        Provider::deepseek("k"),
        Provider::moonshot("k"),
        Provider::z_ai("k"),
        Provider::lm_studio(),
    ];
    let expected = [
        ReasoningField::Reasoning,
        ReasoningField::Thinking,
        ReasoningField::Thinking,
        ReasoningField::Thinking,
        ReasoningField::Effort,
    ];
    assert_eq!(named.map(|provider| provider.reasoning_field), expected);
}

#[tokio::test]
async fn tier_and_cache() {
    let set = || {
        let set = settings().service_tier(Some("flex".into())).prompt_cache_key(Some("k".into()));
        set.prompt_cache(PromptCache::Long)
    };
    let fields = ["/service_tier", "/prompt_cache_key", "/prompt_cache_retention"];
    for wire in WIRES {
        let expected = match wire {
            Wire::OpenAiChat | Wire::OpenAiResponses => json!(["flex", "k", "24h"]),
            Wire::Chat => json!(["flex", "k", null]),
            Wire::Anthropic | Wire::Gemini => json!(["flex", null, null]),
            // It only changes what a reply costs, and there it costs nothing.
            Wire::Ollama => json!([null, null, null]),
        };
        assert_eq!(at(&body(wire, set()).await.unwrap(), &fields), expected, "{wire:?}");
    }
}

/// Where the marks of a body are, as pointers.
fn marks(value: &Value, path: &str, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if name == "cache_control" {
                    found.push((path.into(), value.clone()));
                }
                marks(value, &format!("{path}/{name}"), found);
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| marks(item, &format!("{path}/{at}"), found));
        }
        _ => {}
    }
}

#[tokio::test]
async fn breakpoints_of_anthropic() {
    let turn = |id: &str| {
        let call = ToolCall::new(id, "now", json!({}));
        let result = ToolResult::new(&call, Status::Ok, "12:00");
        [Message::Assistant { parts: vec![Part::Call(call)] }, Message::Results { results: vec![result] }]
    };
    let long: Vec<Message> = [Message::user("hi")].into_iter().chain(turn("a")).chain(turn("b")).collect();
    let short = vec![Message::user("hi")];
    let of = async |messages: &[Message], change: fn(Request) -> Request| {
        let asked = change(request().messages(messages.iter().cloned().collect()));
        let body = body_of(Wire::Anthropic, asked, |_| {}).await.unwrap();
        let mut found = Vec::new();
        marks(&body, "", &mut found);
        found.sort_by_key(|(path, _)| path.clone());
        found
    };
    let paths = |found: &[(String, Value)]| found.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
    let found = of(&long, |asked| asked).await;
    assert_eq!(paths(&found), ["/messages/2/content/0", "/messages/4/content/0", "/system/0"]);
    assert!(found.iter().all(|(_, mark)| *mark == json!({"type": "ephemeral"})));
    let found = of(&long, |asked| asked.system(None).settings(settings().prompt_cache(PromptCache::Long))).await;
    assert_eq!(paths(&found), ["/messages/2/content/0", "/messages/4/content/0", "/tools/2"]);
    assert!(found.iter().all(|(_, mark)| *mark == json!({"type": "ephemeral", "ttl": "1h"})));
    assert_eq!(paths(&of(&short, |asked| asked).await), ["/messages/0/content/0", "/system/0"]);
    assert_eq!(paths(&of(&short, |asked| asked.tools([].into())).await), [""; 0], "nothing follows a single question");
    assert_eq!(paths(&of(&long, |asked| asked.settings(settings().prompt_cache(PromptCache::Off))).await), [""; 0]);
}

#[tokio::test]
async fn cached_tokens_and_costs() {
    let text =
        |usage: Value| json!({"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}], "usage": usage});
    let chat = |more: Value| {
        let mut usage = json!({"prompt_tokens": 80, "completion_tokens": 17});
        usage.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        text(usage)
    };
    let responses = json!({"status": "completed", "output": [], "usage": {"input_tokens": 80, "output_tokens": 17,
        "input_tokens_details": {"cached_tokens": 64}}});
    let anthropic = json!({"content": [], "stop_reason": "end_turn", "usage": {"input_tokens": 6, "output_tokens": 17,
        "cache_creation_input_tokens": 10, "cache_read_input_tokens": 64}});
    let gemini = json!({"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 80, "candidatesTokenCount": 17, "cachedContentTokenCount": 64}});
    for (wire, body) in [
        (Wire::OpenAiChat, chat(json!({"prompt_tokens_details": {"cached_tokens": 64}}))),
        (Wire::Chat, chat(json!({"prompt_tokens_details": {"cached_tokens": 64}}))),
        (Wire::Chat, chat(json!({"cached_tokens": 64}))),
        (Wire::Chat, chat(json!({"prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 16}))),
        (Wire::OpenAiResponses, responses),
        (Wire::Anthropic, anthropic),
        (Wire::Gemini, gemini),
    ] {
        let reply = reply(wire, Answer::json(200, &body)).await.unwrap();
        assert_eq!(reply.usage, usage(80, 17).map(|usage| usage.cached(64)), "{wire:?} {body}");
    }
    for (said, millionths) in [(json!(0.0021), Some(2_100)), (json!(0), Some(0)), (json!(-1), None), (json!("1"), None)]
    {
        let reply = reply(Wire::Chat, Answer::json(200, &chat(json!({"cost": said})))).await.unwrap();
        assert_eq!(reply.usage.and_then(|usage| usage.cost), millionths, "{said}");
    }
}

#[tokio::test]
async fn extra_fields() {
    let routing = json!({"order": ["together"], "allow_fallbacks": false});
    let patch = json!({"provider": routing, "model": "n", "stream": null, "metadata": {"a": {"b": 1}}});
    for wire in WIRES {
        let canned = {
            let (model, canned) = provided(wire, [Answer::json(500, &json!({}))], |provider| {
                provider.headers = vec![("x-title".into(), "mine".into())];
            });
            deltas(&model, request().settings(settings().extra_body(patch.clone()))).await.1.unwrap_err();
            canned
        };
        let (request, body) = sent(&canned);
        assert_eq!(at(&body, &["/provider", "/model", "/metadata/a/b"]), json!([routing, "n", 1]), "{wire:?}");
        assert!(body.get("stream").is_none(), "null takes a field out");
        assert!(request.headers.contains(&("x-title".into(), "mine".into())));
        let error = self::body(wire, settings().extra_body(json!(["a"]))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadRequest);
    }
    let nested = settings().top_p(Some(0.5)).extra_body(json!({"options": {"num_gpu": 1, "top_p": 0.25}}));
    assert_eq!(body(Wire::Ollama, nested).await.unwrap()["options"], json!({"top_p": 0.25, "num_gpu": 1}));
}

#[tokio::test]
async fn the_shape_of_an_answer_beside_tools() {
    let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer", "minimum": 1}}});
    let closed = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}, "additionalProperties": false});
    let ask = || request().answer_schema(Some(Arc::new(schema.clone())));
    let anthropic = body_of(Wire::Anthropic, ask(), |_| {}).await.unwrap();
    assert_eq!(anthropic["output_config"], json!({"format": {"type": "json_schema", "schema": closed}}));
    assert!(anthropic["tools"].is_array());
    let open = request().answer_schema(Some(Arc::new(json!({"type": "object", "additionalProperties": true}))));
    let anthropic = body_of(Wire::Anthropic, open, |_| {}).await.unwrap();
    assert!(anthropic.get("output_config").is_none(), "the format cannot say it, and the run checks it");

    let format = ["/generationConfig/responseMimeType", "/generationConfig/responseJsonSchema"];
    let gemini = body_of(Wire::Gemini, ask(), |_| {}).await.unwrap();
    assert_eq!(at(&gemini, &format), json!(["application/json", schema]));
    assert!(gemini["tools"].is_array());

    // Its tokens would all have to fit, those of calls too.
    let with_tools = body_of(Wire::Ollama, ask(), |_| {}).await.unwrap();
    let without = body_of(Wire::Ollama, ask().tools([].into()), |_| {}).await.unwrap();
    assert_eq!((with_tools.get("format"), without.get("format")), (None, Some(&schema)));
}

#[tokio::test]
async fn images_are_sent_inline_and_by_url_as_each_wire_writes_them() {
    let inline = Image::new("image/png", [0x89, b'P', b'N', b'G']);
    let (data, address) = ("data:image/png;base64,iVBORw==", "https://example.org/cat.png");
    let text = |kind: &str| json!({"type": kind, "text": "What is this?"});
    for wire in WIRES {
        let messages = |image: Image| -> agent_loop::Messages {
            [Message::user(UserMessage::from("What is this?").image(image))].into_iter().collect()
        };
        let of = async |image: Image| body_of(wire, request().messages(messages(image)), |_| {}).await;
        let (given, by_url) = (of(inline.clone()).await.unwrap(), of(Image::url(address)).await);
        let (pointer, expected, expected_url) = match wire {
            Wire::OpenAiChat | Wire::Chat => {
                let image = |url: &str| json!([{"type": "image_url", "image_url": {"url": url}}, text("text")]);
                ("/messages/1/content", image(data), image(address))
            }
            Wire::OpenAiResponses => {
                let image = |url: &str| json!([{"type": "input_image", "image_url": url}, text("input_text")]);
                ("/input/0/content", image(data), image(address))
            }
            Wire::Anthropic => {
                let mut last = text("text");
                last["cache_control"] = json!({"type": "ephemeral"});
                let image = |source: Value| json!([{"type": "image", "source": source}, last]);
                let given = json!({"type": "base64", "media_type": "image/png", "data": "iVBORw=="});
                ("/messages/0/content", image(given), image(json!({"type": "url", "url": address})))
            }
            Wire::Gemini => {
                let image = |part: Value| json!([part, {"text": "What is this?"}]);
                let given = json!({"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}});
                (
                    "/contents/0/parts",
                    image(given),
                    image(json!({"fileData": {"fileUri": address, "mimeType": "image/png"}})),
                )
            }
            Wire::Ollama => ("/messages/1/images", json!(["iVBORw=="]), Value::Null),
        };
        assert_eq!(given.pointer(pointer), Some(&expected), "{wire:?}");
        match by_url {
            Ok(body) => assert_eq!(body.pointer(pointer), Some(&expected_url), "{wire:?}"),
            Err(error) => assert!(wire == Wire::Ollama && error.kind() == ErrorKind::BadRequest, "{error}"),
        }
        let alone = Message::User { text: String::new(), images: vec![inline.clone()] };
        let body = body_of(wire, request().messages([alone].into_iter().collect()), |_| {}).await.unwrap();
        let count = body.pointer(pointer).and_then(Value::as_array).map(Vec::len);
        assert_eq!(count, Some(1), "{wire:?}: an image needs no words, and empty ones are refused");
    }
}

#[tokio::test]
async fn azure_providers_send_their_url_query_and_key_header() {
    let resource = "https://mine.openai.azure.com/";
    for (provider, wire, url) in [
        (
            Provider::azure_openai(resource, KEY),
            Wire::OpenAiResponses,
            "https://mine.openai.azure.com/openai/v1/responses",
        ),
        (
            Provider::azure_openai(resource, KEY).query(Some("api-version=preview".into())),
            Wire::OpenAiResponses,
            "https://mine.openai.azure.com/openai/v1/responses?api-version=preview",
        ),
        (
            Provider::azure_openai_deployment(resource, "mini", "2024-10-21", KEY),
            Wire::OpenAiChat,
            "https://mine.openai.azure.com/openai/deployments/mini/chat/completions?api-version=2024-10-21",
        ),
    ] {
        assert_eq!(provider.wire, wire);
        let (request, _) = {
            let (model, canned) = provided(wire, [Answer::json(401, &json!({"error": {"message": KEY}}))], |here| {
                let base_url = here.base_url.clone();
                *here = provider.clone();
                here.base_url =
                    provider.base_url.replace("https://mine.openai.azure.com", base_url.trim_end_matches("/v1"));
            });
            let error = deltas(&model, request()).await.1.unwrap_err();
            assert!(!format!("{error} {error:?} {provider:?}").contains(KEY));
            sent(&canned)
        };
        let path = |url: &str| url.split_once("/openai/").map(|(_, path)| path.to_string());
        assert_eq!(path(&request.url), path(url));
        let has_key = |(_, value): &&(String, String)| value.contains(KEY);
        let keys: Vec<_> = request.headers.iter().filter(has_key).collect();
        assert_eq!(keys, [&("api-key".to_string(), KEY.to_string())], "the key is in this header alone");
    }
    // Behind a query of the wire's own.
    let (model, canned) =
        provided(Wire::Gemini, [Answer::json(500, &json!({}))], |here| here.query = Some("a=b".into()));
    deltas(&model, request()).await.1.unwrap_err();
    assert!(sent(&canned).0.url.ends_with(":streamGenerateContent?alt=sse&a=b"));
}

#[tokio::test]
async fn options_of_ollama() {
    let set = settings().context_length(Some(16_384)).keep_alive(Some(-1));
    let asked = request().settings(set.clone()).max_output_tokens(Some(50)).temperature(Some(0.5));
    let body = body_of(Wire::Ollama, asked, |_| {}).await.unwrap();
    assert_eq!(body["options"], json!({"num_ctx": 16_384, "num_predict": 50, "temperature": 0.5}));
    assert_eq!(body["keep_alive"], -1);
    for wire in WIRES.into_iter().filter(|wire| *wire != Wire::Ollama) {
        let text = self::body(wire, set.clone()).await.unwrap().to_string();
        assert!(!text.contains("16384"), "{wire:?}: other servers give what they have");
    }
    let provider = Provider::ollama();
    assert_eq!((provider.wire, provider.base_url.as_str()), (Wire::Ollama, "http://127.0.0.1:11434"));
}

#[tokio::test]
async fn settings_of_a_run() {
    for wire in WIRES {
        let answers =
            [Answer::json(200, &super::wires::whole_body(wire)), Answer::json(200, &super::whole::whole_text(wire))];
        let (model, canned) = provided(wire, answers, |_| {});
        let tool = Tool::dynamic(tools().swap_remove(0), |_, _| async { Ok(agent_loop::ToolOutput::text("12:00")) });
        let set = settings().top_p(Some(0.5)).extra_body(json!({"metadata": {"run": "7"}}));
        let agent = Agent::new(model, vec![tool]).unwrap().options(RunOptions::default().settings(set));
        let outcome = agent.ask("hi").await.unwrap();
        assert_eq!((outcome.text.as_str(), &outcome.stop), ("abc", &StopReason::Answered), "{wire:?}");
        let body = sent(&canned).1;
        assert_eq!(body["metadata"], json!({"run": "7"}));
        assert!(body.to_string().contains("0.5"), "{wire:?}");
    }
}
