//! Unique names of the tools of several servers: `server__tool`, which every provider accepts.

use std::collections::HashSet;

use crate::schema::{LONGEST_NAME, clean_name};

/// The most bytes of a server's name in a tool's name. It is short, because the tool's own name is more informative to
/// the model.
const LONGEST_SERVER: usize = 24;

/// Returns the names of these tools, each given by its server and its own name, in their order. A name that is already
/// used gets a number at its end.
pub(super) fn unique_names<'a>(tools: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let mut taken = HashSet::new();
    let mut name = |(server, tool): (&str, &str)| {
        let mut server = clean_name(server);
        server.truncate(LONGEST_SERVER);
        let wanted = clean_name(&format!("{server}__{tool}"));
        let numbered = |number: usize| match number {
            1 => wanted.clone(),
            _ => {
                let end = format!("_{number}");
                format!("{}{end}", &wanted[..wanted.len().min(LONGEST_NAME - end.len())])
            }
        };
        let free = (1..).map(numbered).find(|name| taken.insert(name.clone()));
        free.expect("there are more numbers than tools")
    };
    tools.into_iter().map(&mut name).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn servers_are_kept_apart() {
        let long = "x".repeat(70);
        let tools = [
            ("a", "read"),
            ("b", "read"),
            ("a", "read"),
            ("a__b", "c"),
            ("a", "b__c"),
            ("é ", "\u{1b}[0m"),
            (&long, &long),
        ];
        let names = unique_names(tools);
        assert_eq!(names[..6], ["a__read", "b__read", "a__read_2", "a__b__c", "a__b__c_2", "______0m"]);
        assert_eq!(names[6], format!("{}__{}", &long[..24], &long[..38]));
    }

    proptest! {
        #[test]
        fn names_are_unique_and_valid(tools in prop::collection::vec(("\\PC{0,3}|a{20,70}", "\\PC{0,3}|a{60,70}"), 1..20)) {
            let names = unique_names(tools.iter().map(|(server, tool)| (server.as_str(), tool.as_str())));
            let different: HashSet<&String> = names.iter().collect();
            prop_assert_eq!(different.len(), tools.len());
            prop_assert!(names.iter().all(|name| *name == clean_name(name)), "{:?}", names);
        }
    }
}
