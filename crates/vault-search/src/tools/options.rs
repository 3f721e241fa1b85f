//! Adds options of the command line to errors of the library, which does not know the command line.

/// Parts of errors of the library, each with the text that is inserted after it on the command line.
const OPTIONS: [(&str, &str); 9] = [
    ("deleting is not allowed (set allow_delete = true in tools.toml", ", or add --allow-delete"),
    (
        "the parameter `selection` has no value",
        "; give it with --selection TEXT, --selection - or --selection-from FILE:FROM-TO",
    ),
    ("the parameter `activeFile` has no value", "; give it with --active-file NOTE"),
    ("the selection is not from a file, so it cannot be replaced", " (give it with --selection-from FILE:FROM-TO)"),
    (
        "nothing is selected, and there is no cursor",
        " (give --selection-from FILE:FROM-TO, or --active-file and --cursor)",
    ),
    ("the editor has no cursor", " (give --active-file NOTE and --cursor LINE:CH)"),
    ("no file is active", " (give --active-file NOTE)"),
    ("nothing was done, so that these later changes are not lost", "; --force undoes it anyway"),
    ("there is no transaction that could be undone", " (`undo --list` shows all)"),
];

/// Adds the options that help to an error of the library.
pub(super) fn named(text: &str) -> String {
    let mut text = text.to_owned();
    for (said, option) in OPTIONS {
        if let Some(at) = text.find(said) {
            text.insert_str(at + said.len(), option);
        }
    }
    with_set(&text)
}

/// Adds `--set` to the errors about other parameters without a value.
fn with_set(text: &str) -> String {
    const END: &str = "` has no value";
    let mut parts = text.split(END).collect::<Vec<_>>().into_iter().peekable();
    let mut named = String::new();
    while let Some(part) = parts.next() {
        named.push_str(part);
        let Some(next) = parts.peek() else { break };
        named.push_str(END);
        if let (Some((_, name)), false) = (part.rsplit_once("the parameter `"), next.starts_with("; give it")) {
            named.push_str(&format!("; give it with --set {name}=VALUE"));
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_has_its_option() {
        let error =
            "the parameter `a` has no value\nthe parameter `selection` has no value\nthe parameter `b` has no value";
        let expected = "the parameter `a` has no value; give it with --set a=VALUE\n\
                        the parameter `selection` has no value; give it with --selection TEXT, --selection - or \
                        --selection-from FILE:FROM-TO\nthe parameter `b` has no value; give it with --set b=VALUE";
        assert_eq!(named(error), expected);
        assert_eq!(named("x ${item.status} has no value"), "x ${item.status} has no value");
    }
}
