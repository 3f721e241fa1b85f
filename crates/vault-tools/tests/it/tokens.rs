//! What the tools cost in tokens when they are offered to a model: what the command prints and the README says is counted
//! again here, with the tokenizer o200k_base.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use vault_tools::{ToolSpec, Toolset};

use crate::vault::TestVault;

/// The most that the toolset for models may cost, without the schemas of outputs, which few APIs take.
const MOST_FOR_NOTES: usize = 3_390;

/// Per tool: without and with the schema of its output.
fn count(spec: &ToolSpec) -> [usize; 2] {
    let tokenizer = tiktoken_rs::o200k_base_singleton();
    let name = spec.alias.as_ref().unwrap_or(&spec.name);
    let mut tool = json!({ "name": name, "description": spec.description, "input_schema": spec.input_schema });
    let tokens = |tool: &Value| tokenizer.encode_ordinary(&tool.to_string()).len();
    let without = tokens(&tool);
    tool["output_schema"] = spec.output_schema.clone();
    [without, tokens(&tool)]
}

#[test]
fn stored_counts_are_true() {
    let vault = TestVault::new("//- a.md\n");
    let toolbox = vault.toolbox();
    let counts: BTreeMap<String, [usize; 2]> =
        toolbox.specs(None).into_iter().map(|spec| (spec.name.clone(), count(spec))).collect();
    let rows: Vec<String> = counts.iter().map(|(name, count)| format!("  {}: {count:?}", json!(name))).collect();
    let counted = format!("{{\n{}\n}}\n", rows.join(",\n"));

    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (file, readme) =
        (crate_folder.join("../vault-search/src/tools/tool_tokens.json"), crate_folder.join("README.md"));
    let mut described = std::fs::read_to_string(&readme).unwrap();
    for toolset in Toolset::ALL {
        let counts = toolbox.specs(Some(toolset)).into_iter().map(|spec| counts[&spec.name]);
        let [without, with] = counts.fold([0, 0], |sum, count| [sum[0] + count[0], sum[1] + count[1]]);
        assert!(toolset != Toolset::Notes || without <= MOST_FOR_NOTES, "{without} tokens are more than agreed upon");
        let row = format!("| `{}` | {} | {} |", toolset.name(), in_thousands(without), in_thousands(with));
        let begins = format!("| `{}` | ", toolset.name());
        let is_its = |line: &&str| line.strip_prefix(&begins).is_some_and(|rest| rest.starts_with(char::is_numeric));
        let old = described.lines().find(is_its).expect("a row of the README").to_owned();
        described = described.replace(&old, &row);
    }
    if std::env::var_os("COUNT_TOKENS").is_some() {
        std::fs::write(&file, &counted).unwrap();
        std::fs::write(&readme, &described).unwrap();
    }
    for (file, counted) in [(file, counted), (readme, described)] {
        let is_true = std::fs::read_to_string(&file).unwrap() == counted;
        let remedy = "if the change is meant: COUNT_TOKENS=1 cargo test -p vault-tools --test it tokens";
        assert!(is_true, "{}: {remedy}", file.display());
    }
}

fn in_thousands(number: usize) -> String {
    if number < 1000 { number.to_string() } else { format!("{},{:03}", number / 1000, number % 1000) }
}
