//! Restores calls as they arrive: the tools' own names, and without the nulls that strict mode forces.

use std::collections::HashMap;

use serde_json::Value;

use crate::model::{Delta, Request, read_arguments};
use crate::schema::{Strict, WireNames, without_added_nulls};

use super::Wire;

/// Maps wire names in deltas back to tool names, and removes forced nulls from arguments.
pub(super) struct ToolNameRestorer {
    names: WireNames,
    /// Schemas of the tools that were sent as strict.
    strict: HashMap<String, Value>,
    /// Arguments of calls of such tools, held until they are complete.
    held: HashMap<usize, (String, String)>,
}

impl ToolNameRestorer {
    pub(super) fn new(request: &Request, names: WireNames, wire: Wire) -> Self {
        let is_strict = |schema: &Value| wire.is_strict() && matches!(Strict::of(schema), Strict::Yes(_));
        let strict = request.tools.iter().filter(|tool| is_strict(&tool.parameters));
        let strict = strict.map(|tool| (tool.name.clone(), tool.parameters.clone())).collect();
        Self { names, strict, held: HashMap::new() }
    }

    pub(super) fn apply(&mut self, deltas: Vec<Delta>) -> Vec<Delta> {
        let mut out = Vec::with_capacity(deltas.len());
        for delta in deltas {
            match delta {
                Delta::CallStart { index, id, name } => {
                    let name = self.names.original(&name);
                    if self.strict.contains_key(&name) {
                        self.held.insert(index, (name.clone(), String::new()));
                    }
                    out.push(Delta::CallStart { index, id, name });
                }
                Delta::CallArguments { index, text } => match self.held.get_mut(&index) {
                    Some((_, arguments)) => arguments.push_str(&text),
                    None => out.push(Delta::CallArguments { index, text }),
                },
                Delta::CallEnd { index, opaque } => {
                    out.extend(self.release(index));
                    out.push(Delta::CallEnd { index, opaque });
                }
                Delta::End(reason) => {
                    // Calls that never ended keep what there was of them, for whoever looks at the fault.
                    let mut open: Vec<usize> = self.held.keys().copied().collect();
                    open.sort_unstable();
                    out.extend(open.into_iter().filter_map(|index| self.release(index)));
                    out.push(Delta::End(reason));
                }
                other => out.push(other),
            }
        }
        out
    }

    /// The arguments of a call that was held, without the nulls that were forced.
    fn release(&mut self, index: usize) -> Option<Delta> {
        let (name, text) = self.held.remove(&index)?;
        let text = match (read_arguments(&text), self.strict.get(&name)) {
            (Ok(mut arguments), Some(schema)) => {
                without_added_nulls(schema, &mut arguments);
                arguments.to_string()
            }
            // Invalid JSON stays as it came.
            _ => text,
        };
        Some(Delta::CallArguments { index, text })
    }
}
