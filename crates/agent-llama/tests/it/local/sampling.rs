//! Sampling: the same seed gives the same text; every end ends.

use agent_loop::EndReason;

use super::*;

fn plain() -> Request {
    request("go").tools([].into()).max_output_tokens(Some(40))
}

#[tokio::test]
async fn the_same_seed_gives_the_same_text() {
    let tiny = TinyModel::new(4);
    let text = async |seed: Option<u32>, temperature: f64| {
        let model = load(&tiny, |options| options.seed(seed)).await;
        reply(&model, plain().temperature(Some(temperature))).await.visible_text()
    };
    let one = text(Some(1), 1.0).await;
    assert!(one.len() > 10);
    assert_eq!(one, text(Some(1), 1.0).await);
    assert_ne!(one, text(Some(2), 1.0).await);
    assert_ne!(text(None, 1.0).await, text(None, 1.0).await);
    assert_eq!(text(None, 0.0).await, text(Some(9), 0.0).await, "without chance there is one text");
}

#[tokio::test]
async fn top_p_and_penalties_count() {
    let tiny = TinyModel::new(4).bias(&[("x", 1.6)]);
    let text = async |change: fn(LocalOptions) -> LocalOptions| {
        reply(&load(&tiny, change).await, plain()).await.visible_text()
    };
    let count = |text: &str| text.matches('x').count();
    let usual = text(|options| options).await;
    let narrow = text(|options| options.top_p(0.01)).await;
    assert_eq!(count(&narrow), narrow.len(), "only the likeliest token is left: {narrow}");
    assert!(count(&usual) > 20, "{usual}");
    for penalized in [
        text(|options| options.presence_penalty(40.0)).await,
        text(|options| options.frequency_penalty(20.0)).await,
        text(|options| options.repeat_penalty(100.0)).await,
    ] {
        assert!(count(&penalized) < count(&usual) / 2, "{penalized} for {usual}");
    }
}

#[tokio::test]
async fn every_token_that_ends_a_reply_ends_it() {
    for end in ["</s>", "<|im_end|>"] {
        let model = load(&TinyModel::new(4).bias(&[(end, 60.0)]), |options| options).await;
        let reply = reply(&model, plain()).await;
        assert_eq!(
            (reply.end, reply.visible_text().as_str(), usage(&reply).output),
            (EndReason::Complete, "", 0),
            "{end}"
        );
    }
    let tiny = TinyModel::new(4).bias(&[("<|im_start|>", 60.0)]);
    let reply = reply(&load(&tiny, |options| options).await, plain()).await;
    assert_eq!((reply.end, reply.visible_text().as_str()), (EndReason::Length, ""), "a mark of a turn is no text");
}

#[tokio::test]
async fn limits_and_stops_end_a_reply() {
    let model = load(&TinyModel::new(4).endless(), |options| options).await;
    let whole = reply(&model, plain()).await;
    assert_eq!((whole.end, usage(&whole).output), (EndReason::Length, 40));
    let text = whole.visible_text();
    let at = text.char_indices().nth(6).unwrap().0;
    let stop = text[at..].chars().take(2).collect::<String>();
    let model = load(&TinyModel::new(4).endless(), |options| options.stop(vec![stop.clone()])).await;
    let stopped = reply(&model, plain()).await;
    assert_eq!(stopped.end, EndReason::Complete);
    assert_eq!(stopped.visible_text(), text[..text.find(&stop).unwrap()].trim_end());
}
