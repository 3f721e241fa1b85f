//! What can go wrong: each time a clear error, and the process lives.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use agent_loop::{EndReason, ErrorKind, ToolChoice};
use tokio_util::sync::CancellationToken;

use super::*;

async fn refused(path: &Path, change: impl FnOnce(LocalOptions) -> LocalOptions) -> agent_loop::Error {
    let options = change(LocalOptions::new(path).context(Some(512)));
    LocalModel::load(options, |_| {}, &Default::default()).await.expect_err("it cannot be loaded")
}

#[tokio::test]
async fn files_that_cannot_be_loaded_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let whole = TinyModel::new(1).bytes();
    let mut newer = TinyModel::new(1);
    newer.version = 4;
    let mut unknown = TinyModel::new(1);
    unknown.architecture = "from-the-future";
    let mut encoder = TinyModel::new(1);
    encoder.architecture = "bert";
    for (bytes, kind, says) in [
        (b"this is no model".to_vec(), ErrorKind::Damaged, "not in the GGUF format"),
        (whole[..whole.len() - 1].to_vec(), ErrorKind::Damaged, "not complete"),
        (whole[..2_000].to_vec(), ErrorKind::Damaged, "not complete"),
        (newer.bytes(), ErrorKind::Newer, "version 4"),
        (unknown.bytes(), ErrorKind::BadRequest, "from-the-future"),
        (encoder.bytes(), ErrorKind::BadRequest, "does not generate text"),
        (whole.clone(), ErrorKind::Memory, "needs about"),
    ] {
        std::fs::write(&path, &bytes).unwrap();
        let memory = (kind == ErrorKind::Memory).then_some(1_000);
        let error = refused(&path, |options| options.memory(memory)).await;
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(says) && error.path().unwrap().ends_with("model.gguf"), "{error}");
    }
    assert_eq!(refused(&folder.path().join("none.gguf"), |options| options).await.kind(), ErrorKind::Io);
    std::fs::write(&path, whole).unwrap();
    assert_eq!(load_file(&path, |options| options).await.name(), "Tiny", "and after all this one can be loaded");
}

#[tokio::test]
async fn loading_tells_its_progress_and_can_be_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let path = TinyModel::new(1).write(folder.path());
    let parts = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&parts);
    let options = LocalOptions::new(&path).context(Some(512));
    let model = LocalModel::load(options.clone(), move |part| told.lock().unwrap().push(part), &Default::default())
        .await
        .unwrap();
    assert_eq!((model.context(), model.provider()), (512, Some("llama.cpp")));
    let parts = parts.lock().unwrap().clone();
    assert!(parts.is_sorted() && parts.last() == Some(&1.0), "{parts:?}");

    let cancel = CancellationToken::new();
    cancel.cancel();
    let error = LocalModel::load(options, |_| {}, &cancel).await.unwrap_err();
    assert!(error.kind() == ErrorKind::State && error.message().contains("cancelled"), "{error}");
}

#[tokio::test]
async fn a_conversation_that_does_not_fit_is_told_before_the_first_token() {
    let model = load(&TinyModel::new(1), |options| options.context(Some(1_024))).await;
    let error = model.reply(request(&"long ".repeat(400))).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::ContextTooLong);
    assert!(error.message().contains("1024"), "{error}");
    assert_eq!(model.cache_use().evaluated, 0);
    // One that fits, whose reply then fills the context, ends as one that hits a limit of length.
    let fits = request("go").tools([].into()).max_output_tokens(None);
    let reply = reply(&load(&TinyModel::new(1).endless(), |options| options.context(Some(256))).await, fits).await;
    assert_eq!(reply.end, EndReason::Length);
    assert_eq!(usage(&reply).input + usage(&reply).output, 256);
}

#[tokio::test]
async fn a_reply_that_nobody_wants_ends_within_the_prompt_and_within_the_text() {
    let model = load(&TinyModel::new(1).endless(), |options| options.context(Some(16_384))).await;
    let long = request(&"word ".repeat(2_500)).max_output_tokens(Some(2));
    let mut stream = model.reply(long.clone()).await.unwrap();
    assert!(matches!(stream.next().await, Some(Ok(Delta::Progress))), "there is a sign of life within the prompt");
    drop(stream);
    let begun = Instant::now();
    let after = reply(&model, request("go").max_output_tokens(Some(1))).await;
    let waited = begun.elapsed();
    let begun = Instant::now();
    let whole = usage(&reply(&model, long).await);
    assert!(waited < begun.elapsed(), "the rest of the prompt was not evaluated: {waited:?}");
    assert!(whole.cached < whole.input / 2, "{whole:?}");
    assert_eq!(after.end, EndReason::Length);

    let endless = request("go").tools([].into()).max_output_tokens(None);
    let mut stream = model.reply(endless).await.unwrap();
    while !matches!(stream.next().await.unwrap().unwrap(), Delta::Text { .. }) {}
    drop(stream);
    let begun = Instant::now();
    reply(&model, request("go").max_output_tokens(Some(1))).await;
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn two_requests_are_answered_one_after_the_other() {
    let model = load(&TinyModel::new(1), |options| options).await;
    let ask = |text| reply(&model, request(text).tools([].into()).max_output_tokens(Some(20)));
    let (one, two) = tokio::join!(ask("one"), ask("two"));
    assert_eq!((one.end, two.end), (EndReason::Length, EndReason::Length));
}

#[tokio::test]
async fn templates_that_do_not_work_leave_the_tools_in_the_text() {
    let endless = "{{ tools }}{% for a in range(99999) %}{% for b in range(99999) %}{{ b }}{% endfor %}{% endfor %}";
    for (template, says) in [
        (None, "no chat template"),
        (Some("{% for %}"), "syntax error"),
        (Some(endless), "does not end"),
        (
            Some("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"),
            "no place for tools",
        ),
    ] {
        let tiny = TinyModel::new(3).template(template).bias(&[("<tool_call>", 60.0)]);
        let model = load(&tiny, |options| options.temperature(0.5)).await;
        let warning = model.warnings().iter().find(|text| text.contains("in the text")).expect("it is told");
        assert!(warning.contains(says), "{warning}");
        let (all, said) = deltas(&model, request("go").parallel(agent_loop::Parallel::One)).await;
        assert!(all.iter().any(|delta| matches!(delta, Delta::Warning { text } if text == warning)), "{all:?}");
        let said = said.unwrap();
        assert!(calls_of(&said).iter().all(|call| call.fault.is_none()) && calls_of(&said).len() == 1, "{said:?}");
        let (again, _) = deltas(&model, request("go").max_output_tokens(Some(1))).await;
        assert!(again.iter().all(|delta| !matches!(delta, Delta::Warning { .. })), "it is told once: {again:?}");
    }
}

#[tokio::test]
async fn what_the_template_refuses_and_schemas_without_a_grammar_are_errors() {
    let strict =
        format!("{{% if messages | length > 3 %}}{{{{ raise_exception('too many turns') }}}}{{% endif %}}{TEMPLATE}");
    let model = load(&TinyModel::new(1).template(Some(&strict)), |options| options).await;
    let turns = ["a", "b", "c", "d"].map(|text| [Message::user(text), Message::assistant(text)]).concat();
    let error = model.reply(request("").messages(turns.into_iter().collect())).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::BadRequest);
    // A prompt of nothing, which llama.cpp would end the process for.
    let empty = format!("{{% if (messages | last).content != 'hush' %}}{TEMPLATE}{{% endif %}}");
    let hushed = load(&TinyModel::new(1).template(Some(&empty)).without_bos(), |options| options).await;
    let error = hushed.reply(request("hush")).await.err().unwrap();
    assert!(error.kind() == ErrorKind::BadRequest, "{error}");
    assert_eq!(reply(&hushed, request("go").max_output_tokens(Some(1))).await.end, EndReason::Length);
    let mut tools = tools();
    tools[0].parameters = json!({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/$defs/none"}}});
    let broken = request("go").tools(tools.into()).tool_choice(ToolChoice::Required);
    let error = model.reply(broken).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Tools, "{error}");
    assert_eq!(reply(&model, request("go").max_output_tokens(Some(1))).await.end, EndReason::Length);
}

/// Expressions are rendered recursively.
#[tokio::test]
async fn a_template_of_a_deep_expression_is_rendered() {
    let deep = format!("{{% set x = {}1 %}}{TEMPLATE}", "1 + ".repeat(20_000));
    let model = load(&TinyModel::new(1).template(Some(&deep)), |options| options).await;
    assert_eq!(reply(&model, request("go").max_output_tokens(Some(1))).await.end, EndReason::Length);
    let long = format!("{TEMPLATE}{{# {} #}}", "x".repeat(300_000));
    let model = load(&TinyModel::new(1).template(Some(&long)), |options| options).await;
    assert!(model.warnings().iter().any(|warning| warning.contains("are the most")), "{:?}", model.warnings());
}

#[tokio::test]
async fn a_load_that_nobody_waits_for_is_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let path = TinyModel::new(1).write(folder.path());
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let cancel = CancellationToken::new();
    let loading = LocalModel::load(
        LocalOptions::new(path),
        move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
        },
        &cancel,
    );
    drop(loading);
    assert_eq!(calls.load(Ordering::Relaxed), 0, "nothing begins before it is awaited");
}
