//! Converts the output of a parser to the deltas of a reply.

use crate::model::{Delta, EndReason, Parallel};

use super::Piece;

pub(super) fn keep_text(said: &mut String, deltas: &[Delta]) {
    said.extend(
        deltas.iter().filter_map(|delta| if let Delta::Text { text } = delta { Some(text.as_str()) } else { None }),
    );
}

/// Converts the pieces to deltas. `calls` is the number of earlier calls in the reply, and is increased. If only one
/// call is allowed, the reply ends after it.
pub fn deltas_of<'p>(pieces: impl Iterator<Item = Piece<'p>>, calls: &mut usize, parallel: Parallel) -> Vec<Delta> {
    let mut deltas = Vec::new();
    for piece in pieces {
        let index = *calls;
        match piece {
            Piece::Text(text) => {
                deltas.push(Delta::Text { text: text.into() });
                continue;
            }
            Piece::Reasoning(text) => {
                deltas.push(Delta::Reasoning { text, opaque: None });
                continue;
            }
            Piece::Call { name, arguments } => deltas.extend([
                Delta::CallStart { index, id: String::new(), name },
                Delta::CallArguments { index, text: arguments },
                Delta::CallEnd { index, opaque: None },
            ]),
            Piece::Fault { fault, raw } => deltas.push(Delta::CallFault { index, fault, raw }),
        }
        *calls += 1;
        if parallel == Parallel::One {
            // Text after the call would be written without knowing its result.
            deltas.push(Delta::End(EndReason::Complete));
            break;
        }
    }
    deltas
}
