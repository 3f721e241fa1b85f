//! Plans: lists of tool calls that are checked, previewed, approved, run and undone as one.
//!
//! ```text
//! JSON ──validate──> ValidPlan ──preview, on an overlay──> PlanPreview ──approval::run_plan──> PlanRun
//! ```
//!
//! The preview runs the tools themselves, so loops, references and diffs are known in full. Running the plan applies
//! exactly the actions of the preview. If a file that the plan reads or changes has changed since the preview, the run
//! is refused before it begins.

mod reference;
mod scope;
mod condition;
mod schema;
mod foreach;
mod output;
mod order;
mod validate;
mod preview;
mod dead_links;
mod dry_run;
mod leave_out;
mod history;
mod run;

pub use condition::Condition;
pub use dry_run::{dry_run, dry_run_without};
pub use foreach::LeftOutItem;
pub(crate) use history::has_succeeded;
pub use history::{last_successful, prune as prune_history};
pub use leave_out::SeparableCall;
pub use preview::{CallId, CallPreview, PlanPreview, StepPreview, StepState};
pub use run::{Event, PlanRun, RunStatus};
pub(crate) use run::{refuse, run};
pub use schema::{Defaults, Foreach, OnError, Plan, Retry, RiskLevel, Step, Version, schema as plan_schema};
pub use scope::Parameters;
pub use validate::{InvalidPlan, ValidPlan, validate};
