//! The settings of a run: a required call, settings that are saved, images that reach only models that accept images.

use agent_loop::{
    Agent, Error, ErrorKind, Image, Model, ModelSettings, NextStep, PromptCache, ReasoningEffort, ReplyStream, Request,
    Run, RunId, RunOptions, ScriptedModel, ScriptedReply, StopReason, TextCalls, Tool, ToolChoice, UserMessage,
    error::Result, to_markdown,
};
use serde_json::json;

use crate::test_tools::*;

/// Every setting, none of them its default.
pub fn all_settings() -> ModelSettings {
    let settings = ModelSettings::default().reasoning_effort(Some(ReasoningEffort::XHigh)).thinking_budget(Some(2_000));
    let settings = settings.top_p(Some(0.5)).stop(vec!["END".into()]).seed(Some(-7)).prompt_cache(PromptCache::Long);
    let settings = settings.prompt_cache_key(Some("k".into())).service_tier(Some("flex".into()));
    settings.context_length(Some(16_384)).keep_alive(Some(-1)).extra_body(json!({"provider": {"order": ["a"]}}))
}

#[test]
fn a_call_is_required_once_for_each_message_of_the_person() {
    let tools = set();
    let context = run_context(&tools, &agent_loop::AllowAll);
    for (asked, later) in [
        (ToolChoice::Required, ToolChoice::Auto),
        (ToolChoice::Tool("look".into()), ToolChoice::Auto),
        (ToolChoice::None, ToolChoice::None),
        (ToolChoice::Auto, ToolChoice::Auto),
    ] {
        let mut run = run_with(RunOptions::default().tool_choice(asked.clone()));
        for turn in 0..2 {
            assert_eq!(request(run.next(context)).tool_choice, asked, "turn {turn}");
            run.replied(calls(&[("look", json!({"at": turn.to_string()}))])).unwrap();
            let ids: Vec<String> = ready(&run.next(context)).into_iter().map(str::to_owned).collect();
            ids.iter().for_each(|id| finish(&mut run, context, id, "seen"));
            assert_eq!(request(run.next(context)).tool_choice, later, "turn {turn}: or no reply could be the answer");
            run.replied(agent_loop::Reply::text("done")).unwrap();
            outcome(run.next(context));
            run.say("again").unwrap();
        }
    }
}

#[test]
fn settings_and_images_are_saved_with_a_run() {
    let options = RunOptions::default().settings(all_settings()).tool_choice(ToolChoice::Tool("look".into()));
    let shown = UserMessage::from("What is this?").image(Image::new("image/png", [1, 2, 3]));
    let shown = shown.image(Image::url("https://example.org/cat.png"));
    let run = Run::new(RunId("run_1".into()), options.clone(), shown.clone());
    let (mut loaded, repairs) = Run::from_json(&run.to_json()).unwrap();
    assert!(repairs.is_empty());
    assert_eq!(loaded.options(), &options);
    let tools = set();
    let asked = request(loaded.next(run_context(&tools, &agent_loop::AllowAll)));
    assert_eq!((&asked.settings, asked.messages[0].images()), (&options.settings, &shown.images[..]));
    assert_eq!(serde_json::to_value(&asked).unwrap()["settings"]["reasoning_effort"], "xhigh");
    // What is not set is not written.
    let plain = run_with(RunOptions::default()).to_json();
    assert!(!["settings", "tool_choice", "images"].iter().any(|field| plain.contains(field)), "{plain}");
}

/// A model that only reads text.
struct TextOnlyModel(ScriptedModel);

impl Model for TextOnlyModel {
    fn name(&self) -> &str {
        "blind"
    }

    fn reply(&self, request: Request) -> agent_loop::BoxFuture<'_, Result<ReplyStream<'_>>> {
        self.0.reply(request)
    }
}

fn scripted() -> ScriptedModel {
    ScriptedModel::new([ScriptedReply::text("A cat.").expecting(|request| {
        let images = request.messages.iter().flat_map(|message| message.images()).count();
        if images == 1 { Ok(()) } else { Err(format!("{images} images")) }
    })])
}

#[tokio::test]
async fn images_reach_models_that_see_and_others_refuse_them() {
    let shown = || UserMessage::from("What is this?").image(Image::new("image/png", [1, 2, 3]));
    let sees = Agent::new(scripted(), Vec::<Tool>::new()).unwrap();
    assert_eq!(sees.ask(shown()).await.unwrap().text, "A cat.");
    let in_text = Agent::new(TextCalls::new(scripted()), Vec::<Tool>::new()).unwrap();
    assert_eq!(in_text.ask(shown()).await.unwrap().text, "A cat.", "who writes calls in text may see all the same");
    for blind in [
        Agent::new(TextOnlyModel(ScriptedModel::new([])), Vec::<Tool>::new()),
        Agent::new(TextCalls::new(TextOnlyModel(ScriptedModel::new([]))), Vec::<Tool>::new()),
    ] {
        let error = blind.unwrap().ask(shown()).await.unwrap_err();
        let StopReason::Failed { failure } = &error.outcome().stop else { panic!() };
        assert_eq!(failure.kind, ErrorKind::BadRequest);
        let expected = "blind: the model only reads text, and a message contains an image (remove the image, or use a model that accepts images)";
        assert_eq!(failure.message, expected);
    }
}

#[tokio::test]
async fn an_image_that_the_provider_rejected_is_left_out_of_later_requests() {
    for (kind, images_kept) in [(ErrorKind::BadRequest, 0), (ErrorKind::Authentication, 1)] {
        let replies = [
            ScriptedReply::fails(Error::new(kind, "no")),
            ScriptedReply::text("Hello.").expecting(move |request| {
                let [first, second] = &request.messages[..] else { return Err("not two messages".into()) };
                assert_eq!((first.images().len(), second.images().len()), (images_kept, 0));
                let text = first.text();
                assert!(text.starts_with("What is this?"), "{text}");
                assert_eq!(text.contains("Images left out"), images_kept == 0, "{text}");
                Ok(())
            }),
        ];
        let agent = Agent::new(ScriptedModel::new(replies), Vec::<Tool>::new()).unwrap();
        let shown = UserMessage::from("What is this?").image(Image::new("image/png", [1, 2, 3]));
        let mut run = Run::new(RunId::random(), RunOptions::default(), shown);
        assert!(matches!(done(drive(&agent, &mut run).await.0).stop, StopReason::Failed { .. }));
        run.say("Hello?").unwrap();
        assert_eq!(done(drive(&agent, &mut run).await.0).text, "Hello.");
    }
}

#[test]
fn an_image_costs_as_much_context_whatever_its_bytes_and_is_named_in_markdown() {
    let message = |bytes: usize| {
        agent_loop::Message::user(UserMessage::from("hi").image(Image::new("image/png", vec![0; bytes])))
    };
    assert_eq!(message(10).size(), message(1 << 20).size());
    assert!(message(10).size() > agent_loop::Message::user("hi").size());
    let page = to_markdown([&message(10)]);
    assert_eq!(page, "## User\n\nhi\n\n(an image, `image/png`)\n\n");
    let mut run = run();
    let NextStep::CallModel(request) = run.next(run_context(&set(), &agent_loop::AllowAll)) else { panic!() };
    assert!(request.messages[0].images().is_empty());
}
