//! The tools of several vaults as one set: paths begin with the vault's name, and a call changes one vault.
//!
//! Each vault keeps its own [`Toolbox`], with its index, journal and policy. This module only selects the vault for a
//! call, and translates paths.

use serde_json::{Value, json};
use vault_index::VaultPath;

use crate::change::SYSTEM_TRASH;
use crate::error::{Error, ErrorKind, Result};
use crate::policy::{Risk, Toolset};
use crate::tool::{PATH_MARK, ToolSpec, map_paths};
use crate::toolbox::Toolbox;

/// The argument that names a vault, for tools that need no path.
const VAULT: &str = "vault";

/// Toolboxes, each under the name of its vault's folder.
///
/// ```
/// use std::sync::Arc;
///
/// use serde_json::json;
/// use vault_tools::approval::HeadlessApprover;
/// use vault_tools::{Headless, Policy, Toolbox, Vault, VaultOptions, Vaults};
///
/// # let folder = tempfile::tempdir()?;
/// # for name in ["Home", "Work"] {
/// #     std::fs::create_dir(folder.path().join(name))?;
/// #     std::fs::write(folder.path().join(name).join("Log.md"), "- begun\n")?;
/// # }
/// let open = |name: &str| -> vault_tools::Result<Toolbox> {
///     # let state = folder.path().join("state").join(name);
///     # let options = VaultOptions::new().state_folder(state).use_index(vault_tools::IndexUse::Scan);
///     let vault = Vault::open(folder.path().join(name), options)?;
///     Ok(Toolbox::new(Arc::new(vault), Box::new(Headless::default()), Policy::default()))
/// };
/// let mut vaults = Vaults::new(vec![open("Home")?, open("Work")?])?;
/// let route = vaults.route("read_note", json!({ "path": "Work/Log.md" }))?;
/// let at = route.vaults[0];
/// let output = vaults.toolbox(at).call("read_note", route.args, &mut HeadlessApprover)?;
/// let shown = vaults.shown(at, "read_note", output.value)?;
/// assert_eq!((&shown["path"], &shown["content"]), (&json!("Work/Log.md"), &json!("- begun\n")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Vaults {
    named: Vec<(String, Toolbox)>,
}

/// The vaults for which a call is meant.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Route {
    /// Their numbers, from 0: one, or all for a search that does not name a vault.
    pub vaults: Vec<usize>,
    /// The arguments in the form for the tool: paths without the vault's name.
    pub args: Value,
    /// A notice that only the first vault is read, because the call does not name a vault.
    pub notice: Option<String>,
}

impl Vaults {
    /// Creates a set of one or several vaults. With one, nothing is translated.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if two folders have the same name, if one is inside another, or if the list is empty.
    pub fn new(toolboxes: Vec<Toolbox>) -> Result<Self> {
        let name = |toolbox: &Toolbox| {
            toolbox.vault().sandbox().vault().file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned())
        };
        let named: Vec<(String, Toolbox)> = toolboxes.into_iter().map(|toolbox| (name(&toolbox), toolbox)).collect();
        if named.is_empty() {
            return Err(Error::new(ErrorKind::Config, "there is no vault").with_remedy("name at least one"));
        }
        for (at, (name, _)) in named.iter().enumerate() {
            if named[..at].iter().any(|(other, _)| folded(other) == folded(name)) {
                let message = format!("two vaults are called `{name}`, so a path could lead into either");
                return Err(
                    Error::new(ErrorKind::Config, message).with_remedy("rename one of the folders, or name one vault")
                );
            }
            let folder = |of: &Toolbox| of.vault().sandbox().vault().to_owned();
            let outer =
                named.iter().find(|(other, outer)| other != name && folder(&named[at].1).starts_with(folder(outer)));
            if let Some((outer, _)) = outer {
                let message = format!("the vault {name} is inside the vault {outer}, so a note would be in both");
                return Err(Error::new(ErrorKind::Config, message).with_remedy("name one of them"));
            }
        }
        Ok(Self { named })
    }

    /// Returns the vaults' names, in the order in which they were given.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.named.iter().map(|(name, _)| name.as_str())
    }

    /// Returns the tools of one vault.
    ///
    /// # Panics
    /// If there is no vault with this number.
    pub fn toolbox(&mut self, vault: usize) -> &mut Toolbox {
        &mut self.named[vault].1
    }

    /// Returns instructions for a model about paths, in one or two sentences; empty for one vault.
    pub fn instructions(&self) -> String {
        if self.named.len() == 1 {
            return String::new();
        }
        format!(
            "There are several vaults: {}. Every path begins with the name of its vault, as in `{}/Note.md`, and a call \
             works in one vault.",
            self.list(),
            self.named[0].0
        )
    }

    /// Returns the tools of a toolset, or all. With several vaults, tools that need no path accept the name of a vault.
    pub fn specs(&self, toolset: Option<Toolset>) -> Vec<ToolSpec> {
        let mut specs: Vec<ToolSpec> = self.named[0].1.specs(toolset).into_iter().cloned().collect();
        if self.named.len() > 1 {
            for spec in &mut specs {
                self.add_vault(spec);
            }
        }
        specs
    }

    /// Returns why the settings deny every call of a tool, by those of the first vault; `None` if one vault permits one.
    pub fn denial(&self, spec: &ToolSpec) -> Option<String> {
        let denials = self.named.iter().map(|(_, toolbox)| toolbox.denial(spec));
        denials.collect::<Option<Vec<_>>>()?.into_iter().next()
    }

    fn add_vault(&self, spec: &mut ToolSpec) {
        let Ok(tool) = self.named[0].1.tool(&spec.name) else { return };
        if requires_path(tool.marked_schema()) {
            return;
        }
        let without = match spec.risk {
            Risk::Read if is_list(spec) => "; without it, all of them",
            Risk::Read => "; without it, the first",
            _ => "",
        };
        let names: Vec<&str> = self.names().collect();
        let description = format!("The vault, unless a path names it{without}.");
        if let Some(schema) = spec.input_schema.as_object_mut()
            && let Value::Object(properties) = schema.entry("properties").or_insert_with(|| json!({}))
        {
            properties.insert(VAULT.into(), json!({ "type": "string", "enum": names, "description": description }));
        }
    }

    /// Selects the vaults for a call: the vault that its paths or its argument `vault` name. A search that names none
    /// is for all of them.
    ///
    /// # Errors
    /// An unknown tool; a path that does not begin with a vault's name; paths of several vaults; a write that does not
    /// name a vault.
    pub fn route(&self, name: &str, mut args: Value) -> Result<Route> {
        if self.named.len() == 1 {
            return Ok(Route { vaults: vec![0], args, notice: None });
        }
        let tool = self.named[0].1.tool(name)?;
        let given = args.as_object_mut().and_then(|args| args.remove(VAULT));
        let mut named = match given.as_ref().filter(|given| !given.is_null()) {
            None => None,
            Some(Value::String(vault)) => Some(self.number(vault).ok_or_else(|| self.unknown(vault))?),
            Some(other) => return Err(self.unknown(&other.to_string())),
        };
        map_paths(tool.marked_schema(), &mut args, &mut |path| {
            let (vault, below) = path.split_once('/').unwrap_or((path, ""));
            let number = self.number(vault).ok_or_else(|| {
                let message = format!("`{path}` begins with no vault's name");
                Error::new(ErrorKind::InvalidPath, message).with_remedy(format!(
                    "write the path as VAULT/{}; the vaults are {}",
                    path.trim_start_matches('/'),
                    self.list()
                ))
            })?;
            match named.replace(number).filter(|before| *before != number) {
                None => Ok(below.to_owned()),
                Some(before) => Err(Error::new(
                    ErrorKind::Refused,
                    format!("a call works in one vault, and this one names {} and {vault}", self.named[before].0),
                )
                .with_remedy("make a call for each vault")),
            }
        })?;
        let spec = tool.spec();
        let mut notice = None;
        let vaults = match named {
            Some(vault) => vec![vault],
            None if is_list(spec) && spec.risk == Risk::Read => (0..self.named.len()).collect(),
            None if spec.risk == Risk::Read => {
                let first = &self.named[0].0;
                notice = tool
                    .marked_output()
                    .to_string()
                    .contains(PATH_MARK)
                    .then(|| format!("this is of {first} alone; `{VAULT}` names another: {}", self.list()));
                vec![0]
            }
            None => {
                let message = format!("{name} needs the name of a vault");
                let remedy = format!("give `{VAULT}`: one of {}", self.list());
                return Err(Error::new(ErrorKind::InvalidArguments, message).with_remedy(remedy));
            }
        };
        Ok(Route { vaults, args, notice })
    }

    /// Converts an output for the caller of several vaults: each path gets the vault's name before it.
    ///
    /// # Errors
    /// An unknown tool.
    pub fn shown(&self, vault: usize, name: &str, mut output: Value) -> Result<Value> {
        let tool = self.named[0].1.tool(name)?;
        if self.named.len() > 1 {
            let vault = &self.named[vault].0;
            map_paths(tool.marked_output(), &mut output, &mut |path| {
                Ok(if path == SYSTEM_TRASH { path.to_owned() } else { format!("{vault}/{path}") })
            })?;
        }
        Ok(output)
    }

    /// Converts an error of a vault's toolbox, which names paths without the vault, for the caller of several vaults.
    #[must_use]
    pub fn shown_error(&self, vault: usize, error: Error) -> Error {
        match &self.named[..] {
            [_] => error,
            several => error.within(format!("in the vault {}", several[vault].0)),
        }
    }

    /// Merges the outputs of a search of all vaults, converted by [`Self::shown`], to one list: best first if they have
    /// scores, otherwise evenly from all vaults, and at most as many as the call requested.
    pub fn merged(&self, name: &str, args: &Value, outputs: Vec<Value>) -> Value {
        let items = |output: Value| output.as_array().cloned().unwrap_or_default().into_iter().enumerate();
        let mut all: Vec<(usize, Value)> = outputs.into_iter().flat_map(items).collect();
        let schema = self.named[0].1.spec(name).map_or(&Value::Null, |spec| &spec.input_schema);
        let most = ["top_k", "limit"].into_iter().find_map(|limit| {
            args.get(limit).or_else(|| schema["properties"][limit].get("default")).and_then(Value::as_u64)
        });
        let most = most.map_or(usize::MAX, |most| most as usize);
        let score = |item: &Value| item.get("score").and_then(Value::as_f64);
        if all.iter().all(|(_, item)| score(item).is_some()) {
            all.sort_by(|(_, a), (_, b)| score(b).partial_cmp(&score(a)).unwrap_or(std::cmp::Ordering::Equal));
        } else if all.len() > most {
            all.sort_by_key(|(place, _)| *place);
        }
        Value::Array(all.into_iter().take(most).map(|(_, item)| item).collect())
    }

    /// Returns the number of a vault by its name; case matters only if the names differ in nothing else.
    fn number(&self, name: &str) -> Option<usize> {
        let wanted = folded(name);
        self.names().position(|known| folded(known) == wanted)
    }

    fn unknown(&self, name: &str) -> Error {
        Error::new(ErrorKind::InvalidArguments, format!("there is no vault `{name}`"))
            .with_remedy(format!("the vaults are {}", self.list()))
    }

    fn list(&self) -> String {
        self.names().collect::<Vec<_>>().join(", ")
    }
}

/// Returns the form in which names are compared: in one case, and composed, because folders can have decomposed names
/// that look the same.
fn folded(name: &str) -> String {
    VaultPath::new(name).map_or_else(|| name.to_owned(), |path| path.as_str().to_owned()).to_lowercase()
}

/// Returns whether a path argument is required.
fn requires_path(marked_schema: &Value) -> bool {
    let required = marked_schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    required
        .map(|name| &marked_schema["properties"][name])
        .any(|schema| [schema, &schema["items"]].into_iter().any(|schema| schema.get(PATH_MARK).is_some()))
}

fn is_list(spec: &ToolSpec) -> bool {
    spec.output_schema["type"] == "array"
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::approval::AutoApprover;
    use crate::host::Headless;
    use crate::policy::Policy;
    use crate::store::IndexUse;
    use crate::vault::{Vault, VaultOptions};

    /// Vaults `Home` and `Work` with a note `Log.md` each; `Work` has one more.
    fn vaults() -> (tempfile::TempDir, Vaults) {
        vaults_of("Home", "Work")
    }

    fn vaults_of(first: &str, second: &str) -> (tempfile::TempDir, Vaults) {
        let folder = tempfile::tempdir().unwrap();
        let open = |name: &str| {
            let dir = folder.path().join(name);
            std::fs::create_dir(&dir).unwrap();
            std::fs::write(dir.join("Log.md"), format!("---\ntags: [log]\n---\n{name}\n")).unwrap();
            let state = folder.path().join("state").join(name);
            let options = VaultOptions::new().state_folder(state).use_index(IndexUse::Scan);
            let vault = Arc::new(Vault::open(&dir, options).unwrap());
            Toolbox::new(vault, Box::new(Headless::default()), Policy::default())
        };
        let vaults = Vaults::new(vec![open(first), open(second)]).unwrap();
        std::fs::write(folder.path().join(second).join("Plan.md"), "[[Log]]\n").unwrap();
        (folder, vaults)
    }

    /// Calls a tool as an agent does.
    fn call(vaults: &mut Vaults, name: &str, args: Value) -> Result<Value> {
        let route = vaults.route(name, args.clone())?;
        let mut outputs = Vec::new();
        for at in &route.vaults {
            let output = vaults.toolbox(*at).call(name, route.args.clone(), &mut AutoApprover)?;
            outputs.push(vaults.shown(*at, name, output.value)?);
        }
        Ok(if outputs.len() == 1 { outputs.remove(0) } else { vaults.merged(name, &args, outputs) })
    }

    #[test]
    fn paths_begin_with_the_name_of_the_vault() {
        let (folder, mut vaults) = vaults();
        let read = call(&mut vaults, "read_note", json!({ "path": "work/Log.md" })).unwrap();
        assert_eq!(
            (&read["path"], read["content"].as_str().unwrap().ends_with("Work\n")),
            (&json!("Work/Log.md"), true)
        );
        let renamed =
            call(&mut vaults, "rename_note", json!({ "path": "Work/Log.md", "new_path": "Work/a/Diary.md" })).unwrap();
        assert_eq!(renamed["new_path"], "Work/a/Diary.md");
        assert_eq!(renamed["notes_updated"], json!(["Work/Plan.md"]));
        assert!(folder.path().join("Home/Log.md").exists() && folder.path().join("Work/a/Diary.md").exists());
        // It is undone where it was done.
        assert!(vaults.toolbox(0).vault().transactions().unwrap().is_empty());
        assert_eq!(vaults.toolbox(1).vault().transactions().unwrap().len(), 1);
    }

    #[test]
    fn a_decomposed_name_is_the_composed_one() {
        let (_folder, mut vaults) = vaults_of("Home", "My Bu\u{308}ro");
        let read = call(&mut vaults, "read_note", json!({ "path": "my b\u{fc}ro/Log.md" })).unwrap();
        assert!(read["content"].as_str().unwrap().contains("ro\n"), "{read}");
    }

    #[test]
    fn searches_that_name_no_vault_are_of_all() {
        let (_folder, mut vaults) = vaults();
        let paths = |found: Value| -> Vec<String> {
            found.as_array().unwrap().iter().map(|note| note["path"].as_str().unwrap().to_owned()).collect()
        };
        let all = call(&mut vaults, "search_by_tag", json!({ "tags": ["log"] })).unwrap();
        assert_eq!(paths(all), ["Home/Log.md", "Work/Log.md"]);
        let one = call(&mut vaults, "search_by_tag", json!({ "tags": ["log"], "vault": "Work" })).unwrap();
        assert_eq!(paths(one), ["Work/Log.md"]);
        let scored = |score: f64| json!([{ "path": "a", "score": score }]);
        let best = vaults.merged("search_notes", &json!({ "top_k": 1 }), vec![scored(0.2), scored(0.7)]);
        assert_eq!(best, scored(0.7));
        // Without scores, each vault has its share.
        let lists = vec![json!(["a", "b"]), json!(["c", "d"])];
        assert_eq!(vaults.merged("vault_search", &json!({ "limit": 3 }), lists.clone()), json!(["a", "c", "b"]));
        assert_eq!(vaults.merged("vault_search", &json!({ "limit": 4 }), lists), json!(["a", "b", "c", "d"]));
    }

    #[test]
    fn an_answer_of_the_first_vault_alone_says_so() {
        let (_folder, vaults) = vaults();
        let notice = |name: &str, args| vaults.route(name, args).unwrap().notice;
        let said = notice("vault.searchText", json!({ "query": "a" })).unwrap();
        assert_eq!(said, "this is of Home alone; `vault` names another: Home, Work");
        assert_eq!(notice("vault.searchText", json!({ "query": "a", "vault": "Home" })), None);
        assert_eq!(notice("util.slugifyTitle", json!({ "title": "a" })), None);
        // What is no path of a vault stays.
        let trashed = json!({ "path": "a.md", "trashed_to": SYSTEM_TRASH, "dangling_links": [] });
        let shown = vaults.shown(1, "delete_note", trashed).unwrap();
        assert_eq!((&shown["path"], &shown["trashed_to"]), (&json!("Work/a.md"), &json!(SYSTEM_TRASH)));
    }

    #[test]
    fn what_no_vault_is_named_for_is_an_error_that_says_so() {
        let (_folder, vaults) = vaults();
        for (name, args, expected) in [
            ("read_note", json!({ "path": "Log.md" }), "`Log.md` begins with no vault's name"),
            ("read_note", json!({ "path": "/Log.md" }), "write the path as VAULT/Log.md"),
            ("rename_note", json!({ "path": "Home/Log.md", "new_path": "Work/L.md" }), "names Home and Work"),
            ("create_daily_note", json!({}), "needs the name of a vault"),
            ("search_by_tag", json!({ "tags": ["a"], "vault": "Play" }), "there is no vault `Play`"),
            ("nope", json!({}), "Unknown tool"),
        ] {
            let error = vaults.route(name, args).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn tools_that_need_no_path_take_a_vault() {
        let (_folder, vaults) = vaults();
        for spec in vaults.specs(None) {
            let takes_vault = spec.input_schema["properties"].get(VAULT).is_some();
            let tool = vaults.named[0].1.tool(&spec.name).unwrap();
            assert_eq!(takes_vault, !requires_path(tool.marked_schema()), "{}", spec.name);
        }
    }

    /// The properties of a schema and of what is in it.
    fn each_property(schema: &Value, visit: &mut dyn FnMut(&str, &Value)) {
        for (name, below) in schema["properties"].as_object().into_iter().flatten() {
            visit(name, below);
            each_property(below, visit);
        }
        if schema.get("items").is_some() {
            each_property(&schema["items"], visit);
        }
        for way in ["anyOf", "oneOf"].iter().filter_map(|ways| schema.get(ways)?.as_array()).flatten() {
            each_property(way, visit);
        }
    }

    #[test]
    fn outputs_say_which_of_their_texts_are_paths() {
        let (_folder, vaults) = vaults();
        for spec in vaults.specs(None) {
            let tool = vaults.named[0].1.tool(&spec.name).unwrap();
            each_property(tool.marked_output(), &mut |name, schema| {
                let is_marked = schema.get(PATH_MARK).is_some();
                assert!(is_marked || !name.to_lowercase().ends_with("path"), "{}: {name}", spec.name);
            });
            each_property(&spec.output_schema, &mut |_, schema| assert_eq!(schema.get(PATH_MARK), None));
        }
    }
}
