//! Plans: lists of tool calls that are checked, previewed, approved and run as one, and taken back as one.
//!
//! ```text
//! JSON ──validate──> Checked ──preview, on an overlay──> PlanPreview ──(a person says yes)──> run ──> PlanRun
//! ```
//!
//! The preview runs the tools themselves, so that loops, references and diffs are known in full; what runs then is
//! what it found out, action by action, and nothing else. A file that the plan changes or reads and that is not as
//! the preview saw it stops the run before it begins.

mod event;
mod order;
mod parameters;
mod preview;
mod reference;
mod run;
mod schema;
mod tried;
mod validate;

pub use event::{Event, RunStatus};
pub use parameters::Parameters;
pub use preview::{CallPreview, PlanPreview, StepPreview, StepState, preview};
pub use run::{PlanRun, refuse, run};
pub use schema::{Defaults, Foreach, OnError, Plan, Retry, RiskLevel, Step, Version, schema as plan_schema};
pub(crate) use tried::has_succeeded;
pub use tried::{prune as prune_tried, that_succeeded};
pub use validate::{Checked, PlanFaults, validate};
