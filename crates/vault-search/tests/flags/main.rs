//! Each flag of each subcommand has an effect, and each help fits.

// Signals and terminals.
#![cfg(unix)]

mod harness;
mod index;
mod search;
mod tools;

use harness::{Place, check_help};

const NOTES: &[(&str, &str)] = &[
    (
        "Garden/Roses.md",
        "---\ntags: [garden/pruning]\nrating: 5\ncreated: 2023-01-02\n---\n# Roses\n\nPrune the roses in late winter.\nSee [[Apple]], [[Missing]] and [soil](../Soil.md#pH).\n\n## Second\n\nRoses, roses and more about pruning.\n",
    ),
    ("Garden/Apple.md", "# The apple tree\n\nPruning the apple tree, see [[Roses]].\n"),
    ("Soil.md", "# Soil\n\nLime makes it sweet. Roses like it.\n\n## pH\n\nSeven is neutral.\n"),
    ("Lost.md", "An orphan about pruning.\n"),
];

/// A vault in the folder `vault` below the place, and another one beside it.
fn write_vaults(place: &Place) {
    place.write("vault/.obsidian/app.json", "{}");
    NOTES.iter().for_each(|(path, text)| place.write(&format!("vault/{path}"), text));
    // More than a passage.
    let long = |heading: &str| format!("## {heading}\n\n{}\n\n", "All about pruning on soil in winter. ".repeat(60));
    place.write("vault/Long.md", &format!("# Long\n\n{}{}", long("First"), long("Second")));
    place.write("other/Other.md", "---\ntags: [other]\n---\n# Other\n\nSomething else about pruning: [[Nowhere]].\n");
}

#[test]
fn every_help_fits() {
    for program in [search::PROGRAM, index::PROGRAM, tools::PROGRAM] {
        check_help(&program);
    }
}
