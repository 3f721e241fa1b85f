//! The parser's output for each form. It never depends on how the text was split.

use proptest::prelude::*;

use super::*;

/// One line for each piece: `"text"`, `~ "thoughts"`, `name {arguments}`, `! message of the fault | raw`. Adjacent
/// texts are joined, and so are adjacent thoughts.
#[derive(Default)]
struct PieceLines {
    lines: Vec<String>,
    text: String,
    thoughts: String,
}

impl PieceLines {
    fn take<'p>(&mut self, pieces: impl Iterator<Item = Piece<'p>>) {
        for piece in pieces {
            let line = match piece {
                Piece::Text("") => panic!("a text is never empty"),
                Piece::Text(text) => {
                    self.end_thoughts();
                    self.text.push_str(text);
                    continue;
                }
                Piece::Reasoning(thoughts) => {
                    assert!(!thoughts.is_empty());
                    self.end_text();
                    self.thoughts.push_str(&thoughts);
                    continue;
                }
                Piece::Call { name, arguments } => format!("{name} {arguments}"),
                Piece::Fault { fault, raw } => format!("! {fault} | {raw}"),
            };
            self.end();
            self.lines.push(line);
        }
    }

    fn end(&mut self) {
        self.end_text();
        self.end_thoughts();
    }

    fn end_thoughts(&mut self) {
        let thoughts = std::mem::take(&mut self.thoughts);
        self.lines.extend((!thoughts.is_empty()).then(|| format!("~ {thoughts:?}")));
    }

    fn end_text(&mut self) {
        let text = std::mem::take(&mut self.text);
        self.lines.extend((!text.is_empty()).then(|| format!("{text:?}")));
    }
}

fn show<'p>(pieces: impl Iterator<Item = Piece<'p>>) -> Vec<String> {
    let mut shown = PieceLines::default();
    shown.take(pieces);
    shown.end();
    shown.lines
}

fn parse(pieces: &[&[u8]]) -> Vec<String> {
    parse_with(Parser::new(), pieces)
}

pub(super) fn parse_with(mut parser: Parser, pieces: &[&[u8]]) -> Vec<String> {
    let mut shown = PieceLines::default();
    // Earlier input does not matter either.
    parser.push(b"before <tool_call>{\"x\xe2").count();
    parser.finish().count();
    for piece in pieces {
        shown.take(parser.push(piece));
    }
    shown.take(parser.finish());
    shown.end();
    shown.lines
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    check_with(Parser::new, text, expected);
}

#[track_caller]
pub(super) fn check_with(parser: impl Fn() -> Parser, text: &str, expected: &[&str]) {
    let bytes = text.as_bytes();
    let parse = |pieces: &[&[u8]]| parse_with(parser(), pieces);
    let whole = parse(&[bytes]);
    assert_eq!(whole.len(), expected.len(), "{text}\n{whole:#?}");
    for (shown, expected) in whole.iter().zip(expected) {
        match expected.strip_prefix("! ") {
            Some(part) => assert!(shown.starts_with("! ") && shown.contains(part), "{text}\n{shown}"),
            None => assert_eq!(shown, expected, "{text}"),
        }
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(parse(&single), whole, "byte by byte: {text}");
    for at in 0..bytes.len() {
        assert_eq!(parse(&[&bytes[..at], &bytes[at..]]), whole, "split at {at}: {text}");
    }
}

#[test]
fn the_deltas_of_the_specification() {
    let deltas = ["a<", "b <tool_", "call>{\"na", "me\":\"s\",\"arguments\":\"{}\"}</to", "ol_call", ">c<too"];
    let deltas: Vec<&[u8]> = deltas.iter().map(|delta| delta.as_bytes()).collect();
    assert_eq!(parse(&deltas), ["\"a<b \"", "s {}", "\"c<too\""]);
}

#[test]
fn text_passes_at_once_but_for_what_may_be_a_tag() {
    let mut parser = Parser::new();
    for (input, expected) in [("a<", "a"), ("b", "<b"), (" <tool", " "), ("_x", "<tool_x"), ("<", ""), ("<", "<")] {
        assert_eq!(show(parser.push(input.as_bytes())).concat().trim_matches('"'), expected, "{input}");
    }
}

#[test]
fn a_call_is_out_as_soon_as_its_value_is_complete() {
    let mut parser = Parser::new();
    assert_eq!(parser.push(b"<tool_call>{\"name\":\"s\"").count(), 0);
    assert_eq!(show(parser.push(b"}")), ["s {}"]);
    assert_eq!(parser.finish().count(), 0);
}

#[test]
fn forms_of_arguments() {
    for (arguments, expected) in [
        ("\"arguments\":{\"a\":1, \"b\" :[2]}", "s {\"a\":1, \"b\" :[2]}"),
        ("\"arguments\":\"{\\\"a\\\":1}\"", "s {\"a\":1}"),
        ("\"parameters\":{\"a\":1}", "s {\"a\":1}"),
        ("\"arguments\":null", "s {}"),
        ("\"arguments\":\"\"", "s {}"),
        ("\"arguments\":{ }", "s {}"),
        ("\"type\":\"function\",\"id\":\"x\",\"call_id\":7,\"arguments\":{\"a\":1}", "s {\"a\":1}"),
        ("\"arguments\":{\"t\":\"</tool_call>\"}", "s {\"t\":\"</tool_call>\"}"),
        ("\"arguments\":{\"t\":\"a,}b \\\" } ü\"}", "s {\"t\":\"a,}b \\\" } ü\"}"),
        ("\"arguments\":[1]", "! must be a JSON object"),
        ("\"arguments\":\"{\"", "! not valid JSON"),
    ] {
        check(&format!("<tool_call>{{\"name\":\"s\",{arguments}}}</tool_call>"), &[expected]);
    }
}

#[test]
fn what_is_tolerated_around_a_value() {
    for text in [
        "<tool_call>{\"name\":\"s\"}</tool_call>",
        "<tool_call>\n{\"name\":\"s\"}\n</tool_call>",
        "<tool_call>\n```json\n{\"name\":\"s\"}\n```\n</tool_call>",
        "<tool_call>{\"name\":\"s\"}}</tool_call>",
        "<tool_call>{\"name\":\"s\"}>\n</tool_call>",
        "<tool_call>{\"name\":\"s\"}</toolcall>",
        "<tool_call>{\"name\":\"s\"}</tool_response>",
        "<tool_call>{\"name\":\"s\"}",
        "<tool_call>{\"name\":\"s\"}\n",
        "<tool_call>{\"name\":\"s\"}</tool_c",
        "<tool_call>[{\"name\":\"s\"}]</tool_call>",
    ] {
        check(text, &["s {}"]);
    }
    check("<tool_call>{\"name\":\"s\"}<tool_call>{\"name\":\"t\"}</tool_call>", &["s {}", "t {}"]);
    check("<tool_call>[{\"name\":\"s\"},{\"name\":\"t\"}]</tool_call>x", &["s {}", "t {}", "\"x\""]);
    check("<tool_call>{\"name\":\"s\"}\n{\"name\":\"t\"}</tool_call>", &["s {}", "t {}"]);
}

#[test]
fn text_around_calls_stays_byte_for_byte() {
    check(" a\n<tool_call>{\"name\":\"s\"}</tool_call>\n b <b>\n", &["\" a\\n\"", "s {}", "\"\\n b <b>\\n\""]);
    check("<tool_call>{\"name\":\"s\"} and then", &["s {}", "\" and then\""]);
    check("<tool_call>{\"name\":\"s\"} </b x", &["s {}"]);
    check("<tool_call>{\"name\":\"s\"} <b>", &["s {}", "\" <b>\""]);
    check("<tool_call>{\"name\":\"s\"} </b\nx", &["s {}", "\" </b\\nx\""]);
    check("ü<tool_cäll>", &["\"ü<tool_cäll>\""]);
}

#[test]
fn what_is_no_call_is_text() {
    for text in [
        "{\"name\":\"s\",\"arguments\":{}}",
        "I would use the <tool_call> tag, or <tool_call>\nsomething",
        "<tool_call>",
        "<tool_call> ``x",
        "<tool_call>\n```json\nx",
        "<Tool_call>{\"name\":\"s\"}</Tool_call>",
        "before\n```xml\n<tool_call>{\"name\":\"s\"}</tool_call>\n```\nafter",
        "~~~\n<tool_call>{\"name\":\"s\"}</tool_call>\n~~~\nafter",
        "```\n<tool_call>{\"name\":\"s\"}</tool_call>\n```\nand text",
        "```\ntext\n<tool_call>{\"name\":\"s\"}</tool_call>\n```",
        "```\n<tool_call>{\"name\":\"s\"}</tool_call>\n```\n```\nx\n```",
        "`` `",
        "```",
        " ",
    ] {
        check(text, &[&format!("{text:?}")]);
    }
}

#[test]
fn a_reply_that_is_one_fenced_call_is_a_call() {
    check("```json\n<tool_call>{\"name\":\"s\"}</tool_call>\n```", &["s {}"]);
    check("\n ~~~~\n\n<tool_call>\n{\"name\":\"s\"}\n</tool_call>\n~~~~\n\n", &["s {}"]);
    check(
        "```\n<tool_call>{\"name\":\"s\"}</tool_call>\n<tool_call>{\"name\":\"t\"}</tool_call>\n```",
        &["s {}", "t {}"],
    );
    check("```\n<tool_call>{\"name\":\"s\"}</tool_call>", &["s {}"]);
}

#[test]
fn a_tag_directly_behind_the_marks_is_in_the_block() {
    let call = "<tool_call>{\"name\":\"s\"}</tool_call>";
    for marks in ["```", "~~~~"] {
        check(
            &format!("Look:\n{marks}{call}\n{marks}\n{call}"),
            &[&format!("{:?}", format!("Look:\n{marks}{call}\n{marks}\n")), "s {}"],
        );
        check(&format!("{marks}{call}\n{marks}"), &["s {}"]);
        check(&format!("{marks}<tool_call>\n{{\"name\":\"s\"}}\n</tool_call>\n{marks}\n"), &["s {}"]);
        check(&format!("{marks}{call}\n{marks}\nx"), &[&format!("{:?}", format!("{marks}{call}\n{marks}\nx"))]);
    }
    check(&format!("a\n``{call}"), &["\"a\\n``\"", "s {}"]);
}

#[test]
fn behind_a_fence_calls_are_calls_again() {
    check("```\ncode\n```\n<tool_call>{\"name\":\"s\"}</tool_call>", &["\"```\\ncode\\n```\\n\"", "s {}"]);
    check("`a` <tool_call>{\"name\":\"s\"}</tool_call>", &["\"`a` \"", "s {}"]);
}

#[test]
fn blocks_that_are_broken_are_faults() {
    check("<tool_call>{\"name\":\"s\",\"arguments\":{\"a\":", &["! cut off"]);
    check("a<tool_call>{\"name\":\"s\",}</tool_call>b", &["\"a\"", "! not valid JSON", "\"b\""]);
    check("<tool_call>{\"name\":\"s\"]</tool_call>b", &["! brackets", "\"b\""]);
    check("<tool_call>{\"arguments\":{}}</tool_call>", &["! no \"name\""]);
    check("<tool_call>{'name':'s'}<tool_call>{\"name\":\"t\"}</tool_call>", &["! not valid JSON", "t {}"]);
    check("<tool_call>[1]</tool_call>", &["! not the right form"]);
    let deep = format!("<tool_call>{{\"name\":\"s\",\"arguments\":{}", "[".repeat(200));
    assert!(parse(&[deep.as_bytes()])[0].contains("too deep"));
}

#[test]
fn a_key_that_would_be_lost_is_a_fault() {
    for (call, key) in [
        ("{\"name\":\"s\",\"input\":{\"path\":\"a\"}}", "! `input`"),
        ("{\"name\":\"s\",\"path\":\"a\"}", "! `path`"),
        ("[{\"name\":\"s\",\"arguments\":{},\"x\":1}]", "! `x`"),
    ] {
        check(&format!("<tool_call>{call}</tool_call>"), &[key]);
    }
    check("<tool_call>{\"index\":0,\"type\":\"function\",\"name\":\"s\"}</tool_call>", &["s {}"]);
}

#[test]
fn thoughts_are_reasoning_and_nothing_in_them_is_a_call() {
    let call = "<tool_call>{\"name\":\"s\"}</tool_call>";
    check(
        &format!("<think>\nNot {call} </thin>\n</think>\n\n{call}"),
        &[&format!("~ {:?}", format!("\nNot {call} </thin>\n")), "s {}"],
    );
    check("\n <thinking>a</thinking> b", &["~ \"a\"", "\"b\""]);
    check("<think></think>x", &["\"x\""]);
    for spaces in [200, 254, 255, 256, 257, 300] {
        let text = format!("{}<think>a</think>b", "\n".repeat(spaces));
        for format in [Format::Hermes, Format::Glm] {
            let parse = |pieces: &[&[u8]]| parse_with(Parser::of(format, [].into()), pieces);
            let single: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            let whole = parse(&[text.as_bytes()]);
            assert_eq!(parse(&single), whole);
            assert!(whole.ends_with(&["~ \"a\"".into(), "\"b\"".into()]), "{whole:?}");
        }
    }
    check("a\n<think>b</think>\nc", &["\"a\\n\"", "~ \"b\"", "\"c\""]);
    check(&format!("<think>a {call}"), &[&format!("~ {:?}", format!("a {call}"))]);
    check(&format!("<think>a</think>```\n{call}\n```"), &["~ \"a\"", "s {}"]);
    check(
        &format!("a\n<think>b</think>\n```\n{call}\n```"),
        &["\"a\\n\"", "~ \"b\"", &format!("{:?}", format!("```\n{call}\n```"))],
    );
    for text in ["The tag <think> opens them.", "```\n<think>\n```", "`<think>`", "x </think> y", "<thinks>"] {
        check(text, &[&format!("{text:?}")]);
    }
    check_with(
        || Parser::of(Format::Hermes, [].into()),
        &format!("<think>a</think>{call}"),
        &["~ \"a\"", &format!("{call:?}")],
    );
}

#[test]
fn bytes_that_are_no_text_are_replaced() {
    let pieces = parse(&[b"a\xff", b"b\xe2", b"\x82", b"\xac\xe2\x82"]);
    assert_eq!(pieces, ["\"a\u{fffd}b€\u{fffd}\""]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// The output depends only on the bytes, not on their deltas.
    #[test]
    fn every_split_gives_the_same(
        parts in prop::collection::vec(prop::sample::select(vec![
            "<tool_call>", "</tool_call>", "{\"name\":\"s\",\"arguments\":{\"a\":\"b\"}}", "{\"name\":\"s\"}", "<tool_", "call>",
            "```", "```json\n", "~~~", "\n", " ", "text ü", "<", "</", ">", "}", "{", "[", "\"", "\\", "€", "`", "a",
            "<think>", "</think>", "<thinking>", "</th",
        ]), 0..24),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let text = parts.concat();
        let bytes = text.as_bytes();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
        let whole = parse(&[bytes]);
        prop_assert_eq!(parse(&pieces), whole.clone());
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(parse(&single), whole.clone());
        if !text.contains("<tool_call>") && !text.contains("<think") {
            prop_assert_eq!(whole.join(""), if text.is_empty() { String::new() } else { format!("{text:?}") });
        }
    }

    #[test]
    fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(parse(&single), parse(&[&bytes]));
    }
}
