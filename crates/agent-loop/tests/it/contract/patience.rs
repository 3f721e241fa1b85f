//! What needs a clock that stands still, which sockets do not wait for: in memory only.

use super::wires::parallel_calls;
use super::*;

cases! {
    "bytes that say nothing yet are no silence" bytes_that_say_nothing_yet_are_no_silence,
}

#[tokio::test(start_paused = true)]
async fn bytes_that_say_nothing_yet_are_no_silence() {
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
