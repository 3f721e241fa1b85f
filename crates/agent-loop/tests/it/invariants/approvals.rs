//! Invariant 3: a decision is bound to run, call and arguments, is accepted once, and never outlives its policy.

use agent_loop::{
    AllowAll, AskBeforeWriting, CallPermission, CallPolicy, Decision, Digest, QuestionSubject, RejectionReason, Review,
    Run, RunId, Status, ToolCall, ToolOutput, ToolSpec,
};
use serde_json::json;

use crate::test_tools::*;

#[test]
fn invariant_03_a_decision_is_bound_to_run_call_and_digest() {
    let tools = set();
    let context = run_context(&tools, &AskBeforeWriting);
    let mut run = called(context, &[("put", json!({"at": "a"})), ("put", json!({"at": "b"}))]);
    let asked = questions(run.next(context));
    let why = |run: &mut Run, decision| run.decide(context, [decision]).unwrap_err().0[0].why.clone();
    let of_other_run = decision(&asked[0], |decision| decision.run = RunId("run_2".into()));
    assert_eq!(why(&mut run, of_other_run), RejectionReason::OtherRun);
    let of_other_call = decision(&asked[0], |decision| decision.call = "c2".into());
    assert_eq!(why(&mut run, of_other_call), RejectionReason::OtherDigest);
    let of_no_call = decision(&asked[0], |decision| decision.call = "c9".into());
    assert_eq!(why(&mut run, of_no_call), RejectionReason::UnknownCall);
    let of_other_arguments = decision(&asked[0], |decision| {
        let call = ToolCall::new("c1", "put", json!({"at": "c"}));
        decision.digest = Digest::of(&RunId("run_1".into()), &call, None);
    });
    assert_eq!(why(&mut run, of_other_arguments), RejectionReason::OtherDigest);
    let share = decision(&asked[0], |decision| decision.decision = Decision::Share { withheld: vec![] });
    assert_eq!(why(&mut run, share), RejectionReason::OtherQuestion);
    assert_eq!(questions(run.next(context)), asked, "a rejected decision changes nothing");
}

#[test]
fn invariant_03_partial_decisions_are_kept_over_a_reload_and_each_is_taken_once() {
    let tools = set();
    let context = run_context(&tools, &AskBeforeWriting);
    let mut run = called(context, &[("put", json!({"at": "a"})), ("put", json!({"at": "b"}))]);
    let asked = questions(run.next(context));
    decide(&mut run, context, &asked[1], Decision::Deny { reason: Some("not b".into()) });
    let (mut run, _) = Run::from_json(&run.to_json()).unwrap();
    assert_eq!(questions(run.next(context)), asked[..1], "only what is open is asked again");
    let again = run.decide(context, [asked[1].decide(Decision::Allow)]).unwrap_err().0;
    assert_eq!(again[0].why, RejectionReason::AlreadyDecided);
    decide(&mut run, context, &asked[0], Decision::Allow);
    let again = run.decide(context, [asked[0].decide(Decision::Allow)]).unwrap_err().0;
    assert_eq!(again[0].why, RejectionReason::AlreadyDecided);
    assert_eq!(ready(&run.next(context)), ["c1"]);
    finish(&mut run, context, "c1", "done");
    request(run.next(context));
    assert_eq!(
        results(&run),
        [("c1".into(), Status::Ok, "done".into()), ("c2".into(), Status::Denied, "Tool call denied: not b".into())]
    );
    let late = run.decide(context, [asked[0].decide(Decision::Allow)]).unwrap_err().0;
    assert_eq!(late[0].why, RejectionReason::AlreadyDecided);
}

#[test]
fn invariant_03_the_policy_runs_again_when_the_run_goes_on() {
    let tools = set();
    let asking = run_context(&tools, &AskBeforeWriting);
    let mut run = called(asking, &[("put", json!({"at": "a"}))]);
    let asked = questions(run.next(asking));
    decide(&mut run, asking, &asked[0], Decision::AllowForSession);
    let saved = run.to_json();

    let denies = |_: &ToolCall, _: &ToolSpec| CallPermission::Deny { reason: "the vault is locked".into() };
    let denying = run_context(&tools, &denies);
    let (mut run, _) = Run::from_json(&saved).unwrap();
    request(run.next(denying));
    assert_eq!(results(&run)[0].1, Status::Denied, "a decision does not overrule the policy of now");

    let (mut run, _) = Run::from_json(&saved).unwrap();
    assert_eq!(ready(&run.next(asking)), ["c1"]);
    finish(&mut run, asking, "c1", "done");
    request(run.next(asking));
    run.replied(calls(&[("put", json!({})), ("delete", json!({}))])).unwrap();
    assert_eq!(ready(&run.next(asking)), ["c1_2"], "the grant of the session is for this tool");
    finish(&mut run, asking, "c1_2", "done");
    assert_eq!(questions(run.next(asking))[0].call.name, "delete", "and for no other");
    run.revoke_grants();
    assert_eq!(run.grants().count(), 0);

    let open = run_context(&tools, &AllowAll);
    assert_eq!(ready(&run.next(open)).len(), 1, "what the policy of now allows needs no decision");
}

#[test]
fn invariant_03_what_a_person_decided_counts_where_the_policy_of_now_would_not_have_asked() {
    let tools = set();
    let asking = run_context(&tools, &AskBeforeWriting);
    let allowing = run_context(&tools, &AllowAll);
    let mut paused = called(asking, &[("put", json!({"at": "a"}))]);
    let asked = questions(paused.next(asking));

    let (mut run, _) = Run::from_json(&paused.to_json()).unwrap();
    decide(&mut run, allowing, &asked[0], Decision::Deny { reason: Some("not this one".into()) });
    request(run.next(allowing));
    assert_eq!(results(&run)[0].1, Status::Denied, "a no is always safe to take");

    let (mut run, _) = Run::from_json(&paused.to_json()).unwrap();
    decide(&mut run, allowing, &asked[0], Decision::AllowEdited { arguments: json!({"at": "b"}) });
    let next = run.next(allowing);
    let agent_loop::NextStep::RunTools(batch) = &next else { panic!("{next:?}") };
    assert_eq!(batch[0].call.arguments, json!({"at": "b"}), "it runs as the person wants it");
    let late = run.decide(allowing, [asked[0].decide(Decision::Deny { reason: None })]).unwrap_err().0;
    assert_eq!(late[0].why, RejectionReason::AlreadyDecided, "what runs cannot be denied");

    let (mut run, _) = Run::from_json(&paused.to_json()).unwrap();
    let of_other_arguments = decision(&asked[0], |decision| {
        decision.digest = Digest::of(&RunId("run_1".into()), &ToolCall::new("c1", "put", json!({"at": "c"})), None);
        decision.decision = Decision::Deny { reason: None };
    });
    let rejected = run.decide(allowing, [of_other_arguments]).unwrap_err().0;
    assert_eq!(rejected[0].why, RejectionReason::OtherDigest);
}

#[test]
fn invariant_03_what_the_session_grants_is_not_asked_about_again() {
    let tools = set();
    let context = run_context(&tools, &AskBeforeWriting);
    let mut run = called(context, &[("put", json!({}))]);
    let asked = questions(run.next(context));
    decide(&mut run, context, &asked[0], Decision::AllowForSession);
    assert_eq!(ready(&run.next(context)), ["c1"]);
    finish(&mut run, context, "c1", "");
    request(run.next(context));
    run.replied(calls(&[("delete", json!({})), ("put", json!({}))])).unwrap();
    let asked = questions(run.next(context));
    let names: Vec<&str> = asked.iter().map(|question| question.call.name.as_str()).collect();
    assert_eq!(names, ["delete"], "the write behind it waits, but for nobody's decision");
    decide(&mut run, context, &asked[0], Decision::Deny { reason: None });
    assert_eq!(ready(&run.next(context)), ["c2"]);
}

#[test]
fn invariant_03_a_decision_that_does_not_fit_costs_no_other() {
    let tools = set();
    let context = run_context(&tools, &AskBeforeWriting);
    let mut run = called(context, &[("put", json!({"at": "a"})), ("put", json!({"at": "b"}))]);
    let asked = questions(run.next(context));
    let wrong = decision(&asked[0], |decision| decision.run = RunId("another".into()));
    let rejections = run.decide(context, [wrong, asked[1].decide(Decision::Allow)]).unwrap_err();
    let error: Box<dyn std::error::Error> = Box::new(rejections);
    assert_eq!(error.to_string(), "c1: the decision belongs to another run");
    let asked = run.questions(context);
    let open: Vec<&str> = asked.iter().map(|question| question.call.id.0.as_str()).collect();
    assert_eq!(open, ["c1"], "the one behind it is taken");
}

#[test]
fn invariant_03_allowing_once_allows_one_call() {
    let tools = set();
    let context = run_context(&tools, &AskBeforeWriting);
    let mut run = called(context, &[("put", json!({"at": "a"})), ("put", json!({"at": "b"}))]);
    let asked = questions(run.next(context));
    decide(&mut run, context, &asked[0], Decision::Allow);
    assert_eq!(ready(&run.next(context)), ["c1"]);
    finish(&mut run, context, "c1", "");
    let asked = questions(run.next(context));
    assert_eq!(asked[0].call.id.0, "c2", "another call of the same tool is asked about");
    decide(&mut run, context, &asked[0], Decision::AllowEdited { arguments: json!({"at": "c"}) });
    assert_eq!(ready(&run.next(context)), ["c2"]);
    finish(&mut run, context, "c2", "");
    request(run.next(context));
    run.replied(calls(&[("put", json!({"at": "a"}))])).unwrap();
    assert_eq!(questions(run.next(context)).len(), 1, "and so is the same call of a later turn");
    assert_eq!(run.grants().count(), 0);
}

#[test]
fn invariant_03_a_grant_and_a_no_in_one_batch_are_both_taken() {
    let tools = set();
    let context = run_context(&tools, &AskBeforeWriting);
    let mut run = called(context, &[("put", json!({"at": "a"})), ("put", json!({"at": "b"}))]);
    let asked = questions(run.next(context));
    let decisions = [asked[0].decide(Decision::AllowForSession), asked[1].decide(Decision::Deny { reason: None })];
    run.decide(context, decisions).unwrap();
    assert_eq!(ready(&run.next(context)), ["c1"]);
    finish(&mut run, context, "c1", "done");
    request(run.next(context));
    assert_eq!(results(&run)[1].1, Status::Denied);
}

#[test]
fn invariant_03_edited_arguments_are_checked_again_and_the_model_is_told() {
    let tools = set();
    let context = run_context(&tools, &AskBeforeWriting);
    let mut run = called(context, &[("put", json!({"at": "a"}))]);
    let asked = questions(run.next(context));
    let wrong = asked[0].decide(Decision::AllowEdited { arguments: json!({"at": 7}) });
    let rejections = run.decide(context, [wrong]).unwrap_err().0;
    assert!(rejections[0].to_string().contains("/at"), "{}", rejections[0]);
    decide(&mut run, context, &asked[0], Decision::AllowEdited { arguments: json!({"at": "b"}) });
    let next = run.next(context);
    let agent_loop::NextStep::RunTools(batch) = &next else { panic!("{next:?}") };
    assert_eq!(batch[0].call.arguments, json!({"at": "b"}));
    finish(&mut run, context, "c1", "done");
    let messages = request(run.next(context)).messages;
    let call = messages.iter().flat_map(|message| message.calls()).next().unwrap().clone();
    assert_eq!(call.arguments, json!({"at": "a"}), "the history holds what the model said");
    let told = &results(&run)[0].2;
    assert!(told.contains("changed the arguments to {\"at\":\"b\"}") && told.ends_with("done"), "{told}");
}

/// Runs everything and shows a person what `look` gives.
struct ReviewPolicy;

impl CallPolicy for ReviewPolicy {
    fn permission(&self, _: &ToolCall, _: &ToolSpec) -> CallPermission {
        CallPermission::Allow
    }

    fn review(&self, call: &ToolCall, _: &ToolSpec) -> Review {
        if call.name == "look" { Review::Ask } else { Review::Pass }
    }
}

#[test]
fn invariant_03_items_of_a_result_can_be_withheld() {
    let tools = set();
    let context = run_context(&tools, &ReviewPolicy);
    let mut run = called(context, &[("look", json!({})), ("look", json!({"at": "b"})), ("list", json!({}))]);
    assert_eq!(ready(&run.next(context)), ["c1", "c2", "c3"]);
    let items = ToolOutput::items(["public", "private", "also public"]);
    for id in ["c1", "c2", "c3"] {
        run.finished(context, &id.into(), Ok(items.clone())).unwrap();
    }
    let (mut run, _) = Run::from_json(&run.to_json()).unwrap();
    let asked = questions(run.next(context));
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0].about, QuestionSubject::Sharing { output: items });
    let beyond = run.decide(context, [asked[0].decide(Decision::Share { withheld: vec![3] })]).unwrap_err().0;
    assert_eq!(beyond[0].why, RejectionReason::NoSuchItem(3));
    decide(&mut run, context, &asked[0], Decision::Share { withheld: vec![1] });
    decide(&mut run, context, &asked[1], Decision::Deny { reason: None });
    request(run.next(context));
    let texts: Vec<String> = results(&run).into_iter().map(|(_, _, text)| text).collect();
    // Nothing tells the model that there was more.
    assert_eq!(texts[0], "public\nalso public");
    assert!(!texts[1].contains("public"));
    assert_eq!(texts[2], "public\nprivate\nalso public");
}
