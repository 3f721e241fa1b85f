//! `--rerank`: the results of a search in the order of another model.

use crate::commands::{run, stderr, stdout};
use crate::vault::Vault;

fn herons() -> Vault {
    let vault = Vault::new("//- Other.md\nmark 99 of something else\n");
    for note in 0..20 {
        let tag = if note % 4 == 0 { "#even" } else { "#odd" };
        let (herons, mark) = ("heron ".repeat(1 + note % 5), (note * 37) % 101);
        vault.write(&format!("n{note:02}.md"), format!("# Note {note}\n\n{herons} mark {mark} {tag}\n"));
    }
    vault.sync();
    vault
}

#[test]
fn what_makes_no_sense_or_is_not_there_is_said_before_any_work() {
    let vault = herons();
    assert!(run(&vault, "vault-index", &["rebuild", "--model", "hashed"]).status.success());
    let absent = if cfg!(feature = "fastembed") { "no model.onnx here" } else { "--features fastembed" };
    let queries = vault.root().join("n00.md");
    for (arguments, says) in [
        (&["--rerank", "best", "heron"][..], "onnx:DIR"),
        (&["--rerank", "onnx:/no/such/folder", "--like", "n01"], "leave out one of them"),
        (&["--rerank", "onnx:/no/such/folder", "--tag", "even"], "leave out --rerank"),
        (&["--rerank-depth", "9", "heron"], "--rerank <MODEL>"),
        (&["--rerank", "onnx:/no/such/folder", "heron"], absent),
        (&["--rerank", "onnx:/no/such/folder", "--queries", queries.to_str().unwrap()], absent),
    ] {
        let output = run(&vault, "vault-search", arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{arguments:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    assert!(
        !stdout(&run(&vault, "vault-search", &["--json", "heron"])).contains("rerank"),
        "the default says nothing of it"
    );
}

#[cfg(feature = "fastembed")]
#[test]
fn a_cross_encoder_orders_what_the_command_prints() {
    use serde_json::Value;

    use crate::commands::command;

    let runtime = std::env::var_os("ORT_DYLIB_PATH").expect("ORT_DYLIB_PATH names an ONNX Runtime, or nothing");
    if runtime.is_empty() {
        return;
    }
    // For words alone, the note that says `prune` most is best; the tiny model counts words of the subject.
    let vault = Vault::new(
        "//- a.md
        prune prune prune
        //- b.md
        prune apple trees in winter
        //- c.md
        prune the loan
        //- d.md
        boil pasta",
    );
    assert!(run(&vault, "vault-index", &["sync", "--model", "hashed"]).status.success());
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../vault-models/testdata/tiny-cross-encoder");
    let model = format!("onnx:{model}");
    let search = |arguments: &[&str]| {
        let arguments = [&["--mode", "lexical", "--rerank", &model], arguments].concat();
        command(&vault, "vault-search", &arguments).env("ORT_DYLIB_PATH", &runtime).output().unwrap()
    };
    let logistic = |logit: f64| 1.0 / (1.0 + (-logit).exp());

    let output = search(&["--json", "prune"]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", stderr(&output)));
    assert_eq!((&answer["reranker"], &answer["mode"]), (&Value::from(model.as_str()), &"lexical".into()));
    let results = answer["results"].as_array().unwrap();
    let scores: Vec<_> =
        results.iter().map(|hit| (hit["path"].as_str().unwrap(), hit["score"].as_f64().unwrap())).collect();
    // Of one word of the query with 4, 3 and 1 of the passage.
    for ((path, score), (expected, logit)) in scores.iter().zip([("b.md", 1.0), ("a.md", 0.0), ("c.md", -2.0)]) {
        assert!(*path == expected && (score - logistic(logit)).abs() < 1e-6, "{scores:?}");
    }
    assert_eq!((results.len(), &results[1]["why"]["rerank"]["rank"]), (3, &1.into()));

    let explained = stdout(&search(&["--explain", "-n", "1", "prune"]));
    assert!(explained.contains("b.md:1  0.73") && explained.contains("reranked 0.731 by onnx:"), "{explained}");
    assert_eq!(stdout(&search(&["--files", "--rerank-depth", "1", "-n", "1", "prune"])), "a.md\n");
    assert_eq!(search(&["--min-score", "0.9", "prune"]).status.code(), Some(1));

    let queries = vault.root().with_file_name("queries.txt");
    std::fs::write(&queries, "prune\n\npasta\n").unwrap();
    let output = search(&["--queries", queries.to_str().unwrap()]);
    let answers: Vec<Value> = stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let paths: Vec<_> = answers.iter().map(|answer| &answer["results"][0]["path"]).collect();
    assert_eq!(paths, [&Value::from("b.md"), &Value::Null, &Value::from("d.md")], "{}", stderr(&output));
    assert!(answers.iter().all(|answer| answer["reranker"] == model.as_str() && answer["error"].is_null()));
}
