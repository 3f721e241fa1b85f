//! The loop's contract over random weights: what a reply does is forced by its request, what it says is up to the weights.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use agent_loop::{
    Agent, BoxFuture, EndReason, ModelSettings, Parallel, Pause, ReplyStream, Run, RunId, RunOptions, StopReason, Tool,
    ToolChoice,
};
use futures_util::{FutureExt, stream};
use tokio_util::sync::CancellationToken;

use crate::loop_contract::{Step, loop_contract};

use super::*;

loop_contract!(forced, tokio::test);

/// Takes these steps, one with each reply.
struct ForcedModel {
    model: LocalModel,
    steps: Mutex<VecDeque<Step>>,
}

async fn forced(steps: &[Step]) -> Arc<dyn Model> {
    // Where no call may be made, a reply ends before its mark: this one says "well,".
    let tiny = TinyModel::new(9).bias(&[("well, <tool_call>\n{\"na", 60.0)]);
    let model = load(&tiny, |options| options.context(Some(16_384))).await;
    Arc::new(ForcedModel { model, steps: Mutex::new(steps.iter().copied().collect()) })
}

impl ForcedModel {
    /// A reply that calls a tool this often. After a call the weights end the reply or make another one: another seed is
    /// tried until they agree.
    async fn calls(&self, request: Request, count: usize) -> ReplyStream<'_> {
        for seed in 0..100 {
            let settings = ModelSettings::default().seed(Some(seed));
            let (deltas, reply) = deltas(&self.model, request.clone().settings(settings)).await;
            let reply = reply.unwrap();
            if reply.end == EndReason::Complete && calls_of(&reply).len() == count {
                return Box::pin(stream::iter(deltas.into_iter().map(Ok)));
            }
        }
        panic!("no seed makes {count} calls")
    }
}

impl Model for ForcedModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn reply(&self, request: Request) -> BoxFuture<'_, Result<ReplyStream<'_>>> {
        let step = self.steps.lock().unwrap().pop_front().expect("there is a step for each request");
        match step {
            Step::Call(name, 1) => {
                self.model.reply(request.tool_choice(ToolChoice::Tool(name.into())).parallel(Parallel::One))
            }
            Step::Call(name, count) => {
                let request = request.tool_choice(ToolChoice::Tool(name.into()));
                self.calls(request, count).map(Ok).boxed()
            }
            Step::Answer | Step::Found => self.model.reply(request.tool_choice(ToolChoice::None)),
            Step::Endless => {
                let endless = json!({"type": "array", "items": {"type": "boolean"}, "minItems": 10_000});
                self.model.reply(request.tools([].into()).answer_schema(Some(Arc::new(endless))))
            }
        }
    }
}

/// Cancels at the first sign of life, which comes before the first part of the prompt is evaluated.
struct PromptCanceller(Arc<LocalModel>, CancellationToken);

impl Model for PromptCanceller {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn reply(&self, request: Request) -> BoxFuture<'_, Result<ReplyStream<'_>>> {
        Box::pin(async move {
            let stream = self.0.reply(request).await?;
            Ok(Box::pin(stream.inspect(|_| self.1.cancel())) as ReplyStream<'_>)
        })
    }
}

#[tokio::test]
async fn cancelling_ends_a_prompt() {
    let model = Arc::new(load(&TinyModel::new(1), |options| options.context(Some(16_384))).await);
    let (cancel, long) = (CancellationToken::new(), "word ".repeat(2_500));
    let agent = Agent::new(PromptCanceller(Arc::clone(&model), cancel.clone()), Vec::<Tool>::new()).unwrap();
    let mut run = Run::new(RunId("run_1".into()), RunOptions::default(), long.clone());
    let pause = agent.drive(&mut run, &mut (), &cancel).await.unwrap();
    assert!(matches!(pause, Pause::Done(outcome) if outcome.stop == StopReason::Cancelled));
    let request = Request::default().messages([Message::user(long)].into_iter().collect());
    let usage = usage(&reply(&model, request.max_output_tokens(Some(1))).await);
    assert!(usage.cached < usage.input / 2, "most of the prompt was not evaluated: {usage:?}");
}
