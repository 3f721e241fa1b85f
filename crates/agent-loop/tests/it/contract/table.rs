//! The tables in docs/wires.md of wires by cases, created from the wires that the cases actually use.

use super::*;

const COLUMNS: [(Wire, &str); 6] = [
    (Wire::OpenAiChat, "OpenAI Chat"),
    (Wire::Chat, "Chat of others"),
    (Wire::OpenAiResponses, "OpenAI Responses"),
    (Wire::Anthropic, "Anthropic"),
    (Wire::Gemini, "Gemini"),
    (Wire::Ollama, "Ollama"),
];

/// Runs the cases and says which wires each of them asked. Cases of one title share a row.
fn table(cases: &[Case]) -> String {
    FOR_TABLE.set(true);
    let mut rows: Vec<(&str, Vec<Wire>)> = Vec::new();
    for case in cases {
        ran();
        (case.run)();
        let wires = ran();
        match rows.iter_mut().find(|(title, _)| *title == case.title) {
            Some((_, all)) => all.extend(wires),
            None => rows.push((case.title, wires)),
        }
    }
    let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
    let head = ["case"].into_iter().chain(COLUMNS.map(|(_, name)| name)).collect();
    let mut table = line(head) + &line(vec!["---"; COLUMNS.len() + 1]);
    for (title, wires) in rows {
        let cells = COLUMNS.map(|(wire, _)| if wires.contains(&wire) { "✓" } else { "–" });
        table += &line([title].into_iter().chain(cells).collect());
    }
    table
}

/// The table of docs/wires.md behind a marker is this one.
fn is_in_the_document(marker: &str, expected: &str) {
    let readme = include_str!("../../../docs/wires.md");
    let begin = format!("<!-- {marker} -->\n");
    let (_, rest) = readme.split_once(&begin).unwrap_or_else(|| panic!("docs/wires.md has no {begin}"));
    let found: String = rest.lines().take_while(|line| line.starts_with('|')).map(|line| format!("{line}\n")).collect();
    assert!(found == expected, "README.md, behind {begin}{expected}");
}

/// A test that is in no list is in no table.
fn are_listed(source: &str, cases: &[Case]) {
    let tests =
        source.split("#[tokio::test").skip(1).filter_map(|test| test.split_once("async fn ")?.1.split_once('('));
    let names: Vec<&str> = tests.map(|(name, _)| name).collect();
    let listed: Vec<&str> = cases.iter().map(|case| case.name).collect();
    assert_eq!(names.iter().filter(|name| !listed.contains(name)).collect::<Vec<_>>(), [&""; 0]);
    assert_eq!(names.len(), listed.len());
}

#[test]
fn the_document_shows_what_the_suite_runs() {
    are_listed(include_str!("wires.rs"), wires::CASES);
    are_listed(include_str!("whole.rs"), whole::CASES);
    are_listed(include_str!("cumulative_text.rs"), cumulative_text::CASES);
    are_listed(include_str!("requests.rs"), requests::CASES);
    are_listed(include_str!("failures.rs"), failures::CASES);
    are_listed(include_str!("timeouts.rs"), timeouts::CASES);
    are_listed(include_str!("settings.rs"), settings::CASES);
    are_listed(include_str!("ollama.rs"), ollama::CASES);
    are_listed(include_str!("answer_tool.rs"), answer_tool::CASES);
    are_listed(include_str!("unrequested.rs"), unrequested::CASES);
    let all = [
        wires::CASES,
        whole::CASES,
        cumulative_text::CASES,
        requests::CASES,
        settings::CASES,
        answer_tool::CASES,
        unrequested::CASES,
        ollama::CASES,
        failures::CASES,
        timeouts::CASES,
    ];
    let all = all.concat();
    is_in_the_document("contract: in memory and over sockets", &table(&all));
}

#[cfg(feature = "hosted")]
#[test]
fn the_document_shows_what_runs_over_sockets_only() {
    are_listed(include_str!("network.rs"), network::CASES);
    is_in_the_document("contract: over sockets only", &table(network::CASES));
}
