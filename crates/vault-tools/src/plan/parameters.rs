//! What a plan is given from outside: the selection, the active file, dates, and whatever the caller names.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Zoned;
use serde_json::Value;

use super::reference::missing_parameter;
use crate::error::{Error, ErrorKind, Result};
use crate::host::Editor;

/// Names and values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parameters(pub(super) BTreeMap<String, Value>);

impl Parameters {
    /// What editor and clock give: `selection` and `activeFile` where there are any, `date` and `today` (the local
    /// day, 2026-01-31), `now` (RFC 3339 with the local offset).
    pub fn of(editor: &Editor, now: &Zoned) -> Self {
        let mut parameters = Self::default();
        let day = now.date().to_string();
        parameters.set("date", day.clone());
        parameters.set("today", day);
        parameters.set("now", now.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string());
        if let Some(selection) = editor.selection.as_ref().filter(|selection| !selection.text.is_empty()) {
            parameters.set("selection", selection.text.clone());
        }
        if let Some(active) = &editor.active_file {
            parameters.set("activeFile", active.to_string());
        }
        parameters
    }

    /// Sets a value; one that is set already is replaced.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        self.0.insert(name.into(), value.into());
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Those of `names` that have no value.
    pub fn missing<'n>(&self, names: &'n BTreeSet<String>) -> Vec<&'n str> {
        names.iter().map(String::as_str).filter(|name| !self.0.contains_key(*name)).collect()
    }

    /// That all of `names` have a value.
    ///
    /// # Errors
    /// Each one that has none, and how it is given.
    pub(super) fn require(&self, names: &BTreeSet<String>) -> Result<()> {
        let missing: Vec<String> = self.missing(names).into_iter().map(missing_parameter).collect();
        match missing.is_empty() {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Plan, missing.join("\n"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Selection;

    #[test]
    fn what_editor_and_clock_give() {
        let now: Zoned = "2026-03-02T15:04:09.5+01:00[Europe/Zurich]".parse().unwrap();
        let selection = Some(Selection { text: "- a".into(), span: None });
        let parameters = Parameters::of(&Editor { selection, ..Editor::default() }, &now);
        let text = |name: &str| parameters.get(name).and_then(Value::as_str).unwrap_or("-").to_string();
        assert_eq!(
            ["date", "today", "now", "selection", "activeFile"].map(text),
            ["2026-03-02", "2026-03-02", "2026-03-02T15:04:09+01:00", "- a", "-"]
        );
        let names = BTreeSet::from(["date".to_string(), "activeFile".to_string(), "folderName".to_string()]);
        assert_eq!(parameters.missing(&names), ["activeFile", "folderName"]);
        let error = parameters.require(&names).unwrap_err().to_string();
        assert!(error.contains("--active-file") && error.contains("--set folderName=VALUE"), "{error}");
    }
}
