//! Cases that need a paused clock, for which sockets do not wait: only over the connection in memory.

use agent_loop::{Agent, Pause, Run, RunId, RunOptions, Streaming, Tool};

use super::whole::whole_text;
use super::wires::parallel_calls;
use super::*;

cases! {
    "bytes without a delta count as activity" bytes_without_a_delta_count_as_activity,
    "a slow JSON object counts as activity" a_slow_json_object_counts_as_activity,
}

#[tokio::test(start_paused = true)]
async fn bytes_without_a_delta_count_as_activity() {
    for wire in WIRES {
        let bytes = parallel_calls(wire);
        let (model, _) = hosted(wire, [Answer::events(&bytes, 7).slowly(Duration::from_secs(60))]);
        let mut stream = model.reply(request()).await.unwrap();
        let within = Duration::from_secs(120);
        while let Some(delta) = tokio::time::timeout(within, stream.next()).await.expect("bytes keep coming") {
            delta.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_json_object_counts_as_activity() {
    for (wire, streaming) in WIRES.into_iter().flat_map(|wire| [(wire, Streaming::Yes), (wire, Streaming::No)]) {
        let answer = Answer::json(200, &whole_text(wire)).slowly(Duration::from_secs(60));
        let model = provided(wire, [answer], |provider| provider.streaming = streaming).0;
        let agent = Agent::new(model, Vec::<Tool>::new()).unwrap();
        let mut run = Run::new(RunId::random(), RunOptions::default(), "go");
        let pause = agent.drive(&mut run, &mut (), &Default::default()).await.unwrap();
        assert!(matches!(pause, Pause::Done(outcome) if outcome.text == "abc"), "{wire:?}");
    }
}
