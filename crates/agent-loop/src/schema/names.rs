//! Tool names that every provider accepts, and the mapping back.

use std::collections::HashMap;

/// The longest name that all providers accept.
pub(crate) const LONGEST_NAME: usize = 64;

/// Tool names on the wire: letters, digits, `_` and `-`, at most 64, starting with a letter or `_`.
///
/// A valid name stays unchanged. In others, each character that is not allowed becomes `_`; if two names collide, the
/// later one gets a number at its end. The same list always gives the same names.
#[derive(Debug, Clone, Default)]
pub struct WireNames {
    to_wire: HashMap<String, String>,
    from_wire: HashMap<String, String>,
}

impl WireNames {
    /// Creates the names for these tools, in their order.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str> + Clone) -> Self {
        let mut this = Self::default();
        // Valid names come first, so that no changed name takes one of them.
        let is_fine = |name: &&str| clean_name(name) == **name;
        for name in names.clone().into_iter().filter(is_fine).chain(names.into_iter().filter(|name| !is_fine(name))) {
            if this.to_wire.contains_key(name) {
                continue;
            }
            let wire = this.free(&clean_name(name));
            this.from_wire.insert(wire.clone(), name.to_string());
            this.to_wire.insert(name.to_string(), wire);
        }
        this
    }

    /// Creates the names for these tools without changing them.
    pub fn unchanged<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let to_wire = names.into_iter().map(|name| (name.to_string(), name.to_string())).collect();
        Self { to_wire, from_wire: HashMap::new() }
    }

    /// Returns the name on the wire. A name that is not in the list is cleaned too, because histories contain names of
    /// former tools.
    pub fn wire(&self, name: &str) -> String {
        self.to_wire.get(name).cloned().unwrap_or_else(|| clean_name(name))
    }

    /// Returns the tool's own name. An unknown name stays as the model wrote it.
    pub fn original(&self, wire: &str) -> String {
        self.from_wire.get(wire).cloned().unwrap_or_else(|| wire.to_string())
    }

    fn free(&self, wanted: &str) -> String {
        if !self.from_wire.contains_key(wanted) {
            return wanted.to_string();
        }
        let numbered = |number: usize| {
            let end = format!("_{number}");
            format!("{}{end}", &wanted[..wanted.len().min(LONGEST_NAME - end.len())])
        };
        (2..).map(numbered).find(|name| !self.from_wire.contains_key(name)).expect("there are more numbers than tools")
    }
}

/// Returns the nearest valid name.
pub(crate) fn clean_name(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    let mut clean: String = name.chars().map(allowed).collect();
    if !clean.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        clean.insert(0, '_');
    }
    clean.truncate(LONGEST_NAME);
    clean
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_made_valid_for_the_wire() {
        let long = "x".repeat(80);
        let list = ["notes.read", "notes_read", "notes read", "7up", "ünder", "fine-1", &long];
        let names = WireNames::new(list);
        let wire: Vec<String> = list.iter().map(|name| names.wire(name)).collect();
        assert_eq!(wire[..6], ["notes_read_2", "notes_read", "notes_read_3", "_7up", "_nder", "fine-1"]);
        assert_eq!(wire[6].len(), 64);
        assert_eq!(names.original("hallucinated"), "hallucinated");
        assert_eq!(names.wire("gone.tool"), "gone_tool");
    }

    proptest! {
        #[test]
        fn wire_names_map_back_to_tool_names(list in prop::collection::vec("[a.ü_ 7-]{1,5}|a{62,70}", 1..12)) {
            let names = WireNames::new(list.iter().map(String::as_str));
            for name in &list {
                let wire = names.wire(name);
                prop_assert_eq!(&names.original(&wire), name);
                prop_assert!(wire.len() <= 64 && clean_name(&wire) == wire);
            }
        }
    }
}
