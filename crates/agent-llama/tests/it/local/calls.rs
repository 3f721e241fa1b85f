//! Calls and answers: whatever the weights are, they fit their schemas.

use agent_loop::{EndReason, Parallel, Reply, ToolChoice, ToolSet};
use serde_json::json;

use super::*;

/// Every call of a reply that was not cut can run.
fn fits(reply: &Reply) -> usize {
    let set = ToolSet::new(tools()).unwrap();
    let calls = calls_of(reply);
    for call in &calls {
        match reply.end {
            EndReason::Complete => {
                assert_eq!(call.fault, None, "{reply:?}");
                assert!(set.check(call).is_ok(), "{call:?}: {:?}", set.check(call));
            }
            _ => assert!(call.fault.is_some(), "a call of a reply that was cut never runs: {reply:?}"),
        }
    }
    if reply.end == EndReason::Complete { calls.len() } else { 0 }
}

#[tokio::test]
async fn any_weights_give_valid_calls() {
    let (mut complete, mut names) = (0, std::collections::BTreeSet::new());
    for seed in 0..12 {
        let model = load(&TinyModel::new(seed), |options| options.seed(Some(seed as u32)).temperature(1.5)).await;
        for (text, choice) in [("a", ToolChoice::Required), ("b", ToolChoice::Tool("write_note".into()))] {
            let reply = reply(&model, request(text).tool_choice(choice.clone())).await;
            assert!(!calls_of(&reply).is_empty(), "a call is forced: {reply:?}");
            complete += fits(&reply);
            for call in calls_of(&reply).iter().filter(|call| call.fault.is_none()) {
                names.insert(call.name.clone());
                assert!(choice == ToolChoice::Required || call.name == "write_note", "{call:?}");
            }
        }
    }
    assert!(complete >= 12 && names.len() == 3, "{complete} calls of {names:?}");
}

/// A schema that leaves everything open still means an object.
#[tokio::test]
async fn arguments_are_an_object_whatever_the_schema_says() {
    let model = load(&TinyModel::new(2), |options| options.seed(Some(2)).temperature(1.5)).await;
    for parameters in
        [json!({}), json!({"properties": {"at": {"type": "string"}}}), json!({"type": ["object", "null"]})]
    {
        let tool = agent_loop::ToolSpec { parameters: parameters.clone(), ..tools().remove(0) };
        let asked = request("a").tools([tool].into()).tool_choice(ToolChoice::Required).max_output_tokens(Some(400));
        let reply = reply(&model, asked).await;
        let calls = calls_of(&reply);
        assert!(!calls.is_empty(), "{parameters}: {reply:?}");
        let whole = calls.iter().filter(|call| call.fault.is_none());
        assert!(whole.into_iter().all(|call| call.arguments.is_object()), "{parameters}: {calls:?}");
    }
}

#[tokio::test]
async fn text_is_free_until_a_call_begins() {
    // The mark is a token of its own, or the middle of one that holds text before it and JSON behind it.
    for (mark, text) in [("<tool_call>", ""), ("well, <tool_call>\n{\"na", "well,")] {
        let tiny = TinyModel::new(3).bias(&[(mark, 60.0)]);
        let model = load(&tiny, |options| options.temperature(0.5)).await;
        let reply = reply(&model, request("go").parallel(Parallel::One)).await;
        assert_eq!(reply.end, EndReason::Complete, "{reply:?}");
        assert_eq!(reply.visible_text(), text);
        assert_eq!((calls_of(&reply).len(), fits(&reply)), (1, 1), "{reply:?}");
    }
}

#[tokio::test]
async fn after_a_call_there_is_another_one_or_the_end() {
    let tiny = TinyModel::new(5).bias(&[("<0x0A>", 30.0)]);
    let many = load(&tiny, |options| options).await;
    let now = tools().into_iter().filter(|tool| tool.name == "now").collect::<Vec<_>>();
    let request = request("go").tools(now.into()).tool_choice(ToolChoice::Required).max_output_tokens(Some(300));
    let several = reply(&many, request.clone()).await;
    assert!(calls_of(&several).len() > 1, "a line break leads to the next call: {several:?}");
    assert_eq!(several.visible_text(), "");
    let one = reply(&many, request.clone().parallel(Parallel::One)).await;
    assert_eq!((calls_of(&one).len(), one.end), (1, EndReason::Complete), "{one:?}");

    let only_one = TEMPLATE.replace(
        "{%- for call in m.tool_calls %}",
        "{% if m.tool_calls | length > 1 %}\
        {{ raise_exception('one call at a time') }}{% endif %}{%- for call in m.tool_calls %}",
    );
    let model = load(&tiny.template(Some(&only_one)), |options| options).await;
    let one = reply(&model, request).await;
    assert_eq!((calls_of(&one).len(), one.end), (1, EndReason::Complete), "the template knows no more: {one:?}");
}

#[tokio::test]
async fn where_no_call_may_be_made_the_reply_ends_before_it() {
    let tiny = TinyModel::new(3).bias(&[("well, <tool_call>\n{\"na", 60.0)]);
    let model = load(&tiny, |options| options).await;
    let reply = reply(&model, request("go").tool_choice(ToolChoice::None)).await;
    assert_eq!((reply.visible_text().as_str(), reply.end), ("well,", EndReason::Complete), "{reply:?}");
    assert!(calls_of(&reply).is_empty());
}

#[tokio::test]
async fn thoughts_come_before_a_forced_call_and_hold_none() {
    let template = TEMPLATE.replace(
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
        "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}",
    );
    assert_ne!(template, TEMPLATE);
    let tiny = TinyModel::new(7).template(Some(&template)).bias(&[
        ("</think>", 26.0),
        ("<|im_end|>", 40.0),
        ("<tool_call>", 26.0),
    ]);
    let model = load(&tiny, |options| options).await;
    let (all, reply) = deltas(&model, request("go").tool_choice(ToolChoice::Required)).await;
    let reply = reply.unwrap();
    assert!(fits(&reply) >= 1, "the end is likelier than anything, but a call is forced: {reply:?}");
    assert!(all.iter().all(|delta| !matches!(delta, Delta::Text { .. })), "{all:?}");
}

#[tokio::test]
async fn answers_fit_their_schema() {
    let schema = json!({"type": "object", "required": ["title", "stars"], "properties": {
        "title": {"type": "string", "maxLength": 6}, "stars": {"type": "integer", "minimum": 1, "maximum": 5}}});
    let schema = std::sync::Arc::new(schema);
    for seed in 0..4 {
        let model = load(&TinyModel::new(seed), |options| options.temperature(1.5)).await;
        let plain = request("go").tools([].into()).answer_schema(Some(schema.clone()));
        let answer = reply(&model, plain.clone()).await;
        let value: Value = serde_json::from_str(&answer.visible_text()).unwrap();
        assert!(value["title"].is_string() && (1..=5).contains(&value["stars"].as_i64().unwrap()), "{value}");
        assert_eq!(answer.end, EndReason::Complete);
        // With tools it is a call or the answer, and never anything else.
        let reply = reply(&model, plain.tools(tools().into())).await;
        match calls_of(&reply).len() {
            0 => assert!(serde_json::from_str::<Value>(&reply.visible_text()).is_ok(), "{reply:?}"),
            _ => assert_eq!((fits(&reply) > 0, reply.visible_text().as_str()), (true, ""), "{reply:?}"),
        }
    }
}

#[tokio::test]
async fn a_call_that_is_cut_never_runs() {
    let model = load(&TinyModel::new(1), |options| options).await;
    for most in [1, 5, 12, 20] {
        let request = request("go").tool_choice(ToolChoice::Tool("search".into())).max_output_tokens(Some(most));
        let reply = reply(&model, request).await;
        assert_eq!(reply.end, EndReason::Length);
        assert_eq!(usage(&reply).output, u64::from(most));
        assert!(calls_of(&reply).iter().all(|call| call.fault.is_some()), "{reply:?}");
    }
}

#[tokio::test]
async fn the_forms_of_other_families_hold_too() {
    let qwen = TEMPLATE.replace(
        "{\"name\": \"{{ call.function.name }}\", \"arguments\": {{ call.function.arguments | tojson }}}\n</tool_call>",
        "<function={{ call.function.name }}>\n{% for key, value in call.function.arguments.items() %}<parameter={{ key }}>\n\
        {{ value }}\n</parameter>\n{% endfor %}</function>\n</tool_call>",
    );
    let llama = TEMPLATE.replace(
        "<tool_call>\n{\"name\": \"{{ call.function.name }}\", \"arguments\": {{ call.function.arguments | tojson }}}\n</tool_call>",
        "{# <|python_tag|> #}{\"name\": \"{{ call.function.name }}\", \"parameters\": {{ call.function.arguments | tojson }}}",
    );
    let mistral = TEMPLATE.replace(
        "<tool_call>\n{\"name\": \"{{ call.function.name }}\", \"arguments\": {{ call.function.arguments | tojson }}}\n</tool_call>",
        "[TOOL_CALLS][{\"name\": \"{{ call.function.name }}\", \"arguments\": {{ call.function.arguments | tojson }}, \
        \"id\": \"{{ call.id }}\"}]",
    );
    for template in [qwen, llama, mistral] {
        assert_ne!(template, TEMPLATE);
        let mut complete = 0;
        for seed in 0..6 {
            // A text between tags ends where its closing tag comes, which needs help from random weights.
            let tiny = TinyModel::new(seed).template(Some(&template));
            let model = load(&tiny, |options| options.temperature(1.5)).await;
            assert_eq!(
                model.warnings().iter().filter(|text| text.contains("template")).count(),
                0,
                "{:?}",
                model.warnings()
            );
            let reply = reply(&model, request("go").tool_choice(ToolChoice::Required)).await;
            complete += fits(&reply);
        }
        assert!(complete > 0);
    }
}
