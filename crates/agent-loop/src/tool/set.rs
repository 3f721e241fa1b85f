//! Compiled tool specifications: finds the tool of a call, and checks whether its arguments fit.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::message::ToolCall;

use super::ToolSpec;
use super::mend::mended;
use super::schema_check::{SchemaCheck, list_issues};

/// All tools of an agent. It is created once and used for every call.
#[derive(Debug, Default)]
pub struct ToolSet {
    specs: Arc<[ToolSpec]>,
    checks: Vec<SchemaCheck>,
    by_name: HashMap<String, usize>,
}

impl ToolSet {
    /// Compiles all schemas, in some ten microseconds per tool.
    ///
    /// # Errors
    /// `Tools` if a name is empty or a duplicate, or a schema is invalid, not of an object, or has remote references.
    pub fn new(specs: Vec<ToolSpec>) -> Result<Self> {
        let mut set = Self { checks: Vec::with_capacity(specs.len()), ..Self::default() };
        for (index, spec) in specs.iter().enumerate() {
            let refuse =
                |what: String| Err(Error::new(ErrorKind::Tools, what).with_path(format!("tool {:?}", spec.name)));
            if spec.name.is_empty() || set.by_name.insert(spec.name.clone(), index).is_some() {
                return refuse("a tool needs a name, and one that no other has".into());
            }
            if spec.parameters["type"] != "object" {
                return refuse("the schema of its parameters must say \"type\": \"object\"".into());
            }
            match SchemaCheck::new(&spec.parameters) {
                Ok(check) => set.checks.push(check),
                Err(what) => return refuse(format!("the schema of its parameters cannot be used: {what}")),
            }
        }
        set.specs = specs.into();
        Ok(set)
    }

    /// Returns all specs, in their order; a clone shares them.
    pub fn specs(&self) -> &Arc<[ToolSpec]> {
        &self.specs
    }

    /// Returns the tool of this name.
    pub fn get(&self, name: &str) -> Option<&ToolSpec> {
        self.by_name.get(name).map(|index| &self.specs[*index])
    }

    /// Repairs a call that is nearly right, as small models write them. A name may have blanks around it, `functions.`
    /// before it or letters of another case, if exactly one tool matches. Arguments may have the right value in the
    /// wrong JSON type, for example `"5"` for 5, an object as text, or one text for a list of texts. A call that
    /// [`check`](Self::check) accepts is never changed, nor is one that would still be rejected.
    pub fn mend(&self, call: &mut ToolCall) {
        if !self.by_name.contains_key(&call.name) {
            let written = call.name.trim();
            let written = written.strip_prefix("functions.").unwrap_or(written);
            let mut alike = self.specs.iter().filter(|spec| spec.name.eq_ignore_ascii_case(written));
            if let (Some(spec), None) = (alike.next(), alike.next()) {
                call.name.clone_from(&spec.name);
            }
        }
        let Some(&index) = self.by_name.get(&call.name).filter(|_| call.fault.is_none()) else { return };
        let check = &self.checks[index];
        if call.arguments.is_object()
            && !check.fits(&call.arguments)
            && let Some(mended) = mended(check, &call.arguments)
        {
            call.arguments = mended;
        }
    }

    /// Checks that a call can run.
    ///
    /// # Errors
    /// The issues, in words for the model: the valid names, or the pointer of each argument that does not fit.
    pub fn check(&self, call: &ToolCall) -> Result<&ToolSpec, String> {
        if let Some(fault) = &call.fault {
            return Err(fault.clone());
        }
        let Some(&index) = self.by_name.get(&call.name) else {
            let names: Vec<_> = self.specs.iter().map(|spec| spec.name.as_str()).collect();
            let names = if names.is_empty() { "there are no tools".into() } else { names.join(", ") };
            return Err(format!("There is no tool {:?}. The tools are: {names}.", call.name));
        };
        let check = &self.checks[index];
        let issues = match &call.arguments {
            // Most calls fit, and this check allocates nothing.
            arguments if arguments.is_object() && check.fits(arguments) => return Ok(&self.specs[index]),
            arguments if arguments.is_object() => check.issues(arguments),
            _ => vec!["the arguments must be a JSON object".into()],
        };
        Err(format!("The arguments do not fit the schema of {}:\n{}", call.name, list_issues(&issues)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::tool::Effect;

    fn spec(name: &str, parameters: Value) -> ToolSpec {
        ToolSpec { name: name.into(), description: String::new(), parameters, effect: Effect::Read, time_limit: None }
    }

    #[test]
    fn invalid_tool_lists_are_rejected() {
        let object = json!({"type": "object"});
        for (specs, expected) in [
            (vec![spec("a", object.clone()), spec("a", object.clone())], "no other has"),
            (vec![spec("", object.clone())], "needs a name"),
            (vec![spec("a", json!({"type": "string"}))], "\"object\""),
            (vec![spec("a", json!({"type": "object", "properties": {"x": {"type": 7}}}))], "cannot be used"),
            (vec![spec("a", json!({"type": "object", "$ref": "https://example.org/x.json"}))], "cannot be used"),
        ] {
            let error = ToolSet::new(specs).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Tools);
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn a_name_in_other_letters_is_the_one_tool_that_it_fits() {
        let object = || json!({"type": "object"});
        let set = ToolSet::new(vec![spec("look", object()), spec("Look", object()), spec("find", object())]).unwrap();
        for (written, expected) in [
            (" find", "find"),
            ("functions.find", "find"),
            ("FIND", "find"),
            ("look", "look"),
            ("Look", "Look"),
            ("LOOK", "LOOK"),
            ("seek", "seek"),
        ] {
            let mut call = ToolCall::new("1", written, json!({}));
            set.mend(&mut call);
            assert_eq!(call.name, expected);
        }
    }

    #[test]
    fn an_issue_has_its_json_pointer() {
        let schema = json!({"type": "object", "properties": {"filter": {"type": "object", "properties":
            {"tags": {"type": "array", "items": {"type": "string"}}}}}, "required": ["query"]});
        let set = ToolSet::new(vec![spec("search", schema)]).unwrap();
        let check = |arguments| set.check(&ToolCall::new("1", "search", arguments)).map(|_| ());
        assert_eq!(check(json!({"query": "x"})), Ok(()));
        let fault = check(json!({"query": "x", "filter": {"tags": ["a", 7]}})).unwrap_err();
        assert!(fault.contains("/filter/tags/1"), "{fault}");
        assert!(check(json!({})).unwrap_err().contains("query"));
        assert!(check(json!("{")).unwrap_err().contains("JSON object"));
    }
}
