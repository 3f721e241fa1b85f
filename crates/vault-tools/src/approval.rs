//! Approval: the only way from a change that a policy has judged to a change that is applied.
//!
//! ```text
//! ChangeRequest ──prepare──> PreparedChange ──settle──┬─ policy or grant allows ──> ApprovedChange ──carry_out──> AppliedChange
//!                            (made once)              ├─ an Approver approves ──────────┘
//!                                                     └─ denied, refused, answered later ──> UnapprovedChange
//! ```
//!
//! A change is prepared once, on an overlay, and the front end that shows it (a prompt, a form, a page, a code) owns
//! it. The front end implements [`Approver`]: it shows the whole change and reports the answer. [`settle`] decides, or
//! [`settle_shown`] where a person has approved the digest of a change that another process showed. Nothing else creates
//! an [`ApprovedChange`]. Carrying it out checks that the notes have not changed since, so nothing
//! has to be prepared again.
//!
//! [`Vault::apply`](crate::Vault::apply) and [`Vault::undo`](crate::Vault::undo) are below this layer: they do what
//! your program tells them to do, without approval. A change that a tool or a plan has proposed cannot be passed to
//! them.
//!
//! ```
//! use std::sync::Arc;
//!
//! use serde_json::json;
//! use vault_tools::approval::{Answer, ChangeRequest, PreparedChange, now, settle};
//! use vault_tools::{Cancel, Grants, Headless, Policy, Toolbox, Vault, VaultOptions};
//!
//! # let folder = tempfile::tempdir()?;
//! # let dir = folder.path().join("notes");
//! # std::fs::create_dir(&dir)?;
//! # std::fs::write(dir.join("Log.md"), "- begun\n")?;
//! # let options = VaultOptions::new().state_folder(folder.path().join("state")).use_index(vault_tools::IndexUse::Scan);
//! # let vault = Arc::new(Vault::open(&dir, options)?);
//! let mut toolbox = Toolbox::new(vault, Box::new(Headless::default()), Policy::default());
//! let args = json!({ "path": "Log.md", "content": "- done" });
//! let request = ChangeRequest::Call { tool: "append_to_note".to_owned(), args };
//! let prepared = request.prepare(&mut toolbox, &now(), Cancel::default())?;
//! let mut ask = |change: &PreparedChange| {
//!     print!("{}", change.preview()); // nothing has changed yet
//!     Answer::Yes
//! };
//! let approved = settle(prepared, &Grants::default(), &mut ask).map_err(|refused| refused.log(&mut toolbox))?;
//! approved.carry_out(&mut toolbox, Cancel::default(), &mut |_| {})?;
//! # assert_eq!(std::fs::read_to_string(dir.join("Log.md"))?, "- begun\n- done\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod prepared;
mod request;
mod approver;
mod approved;
mod settle;

pub use approved::{AppliedChange, ApprovedChange, ChangeOutput};
pub use approver::{Answer, Approver, AutoApprover, GivenAnswer, HeadlessApprover};
pub use prepared::{PreparedChange, UNDO};
pub use request::{ChangeRequest, now};
pub use settle::{UnapprovedChange, run_plan, settle, settle_shown};
