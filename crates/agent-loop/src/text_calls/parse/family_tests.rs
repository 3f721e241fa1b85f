//! Samples of the output of each family's models. Their pieces never depend on how they are split.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::tool::Effect;

use super::tests::{check_with, parse_with};
use super::*;

fn tools() -> Arc<[ToolSpec]> {
    let parameters = json!({"type": "object", "properties": {
        "city": {"type": "string"}, "days": {"type": "integer"}, "tags": {"type": "array"}, "x": {"type": ["string", "null"]}}});
    let one = json!({"type": "object", "properties": {"q": {"type": "string"}}});
    [("weather", parameters), ("find", one)]
        .map(|(name, parameters)| ToolSpec {
            name: name.into(),
            description: String::new(),
            parameters,
            effect: Effect::Read,
            time_limit: None,
        })
        .into()
}

fn parser(format: Format) -> impl Fn() -> Parser {
    move || Parser::of(format, tools())
}

#[track_caller]
fn samples(format: Format, samples: &[(&str, &[&str])]) {
    for (text, expected) in samples {
        check_with(parser(format), text, expected);
    }
}

#[test]
fn qwen3_coder() {
    let call = "<tool_call>\n<function=weather>\n<parameter=city>\n12\n</parameter>\n<parameter=days>\n3\n</parameter>\n\
        <parameter=tags>\n[\"a\"]\n</parameter>\n</function>\n</tool_call>";
    let read = "weather {\"city\":\"12\",\"days\":3,\"tags\":[\"a\"]}";
    samples(
        Format::Qwen3Coder,
        &[
            (call, &[read]),
            (
                &format!("<think>Not {call}</think>I look.\n{call}"),
                &[&format!("~ {:?}", format!("Not {call}")), "\"I look.\\n\"", read],
            ),
            (
                "<function=find>\n<parameter=q>\na\nb\n</parameter>\n</function>\n</tool_call>",
                &["find {\"q\":\"a\\nb\"}", "\"\\n\""],
            ),
            ("<tool_call>{\"name\":\"find\",\"arguments\":{\"q\":\"a\"}}</tool_call>", &["find {\"q\":\"a\"}"]),
            (
                "<tool_call><function=find></function><function=weather></function></tool_call>",
                &["find {}", "weather {}"],
            ),
            ("the <tool_call> tag", &["\"the <tool_call> tag\""]),
            (
                "```\n<tool_call><function=find></function></tool_call>\n```",
                &["\"```\\n<tool_call><function=find></function></tool_call>\\n```\""],
            ),
            ("<tool_call>\n<function=find>\n<parameter=q>\na", &["! cut off"]),
            ("<tool_call><function=find>\nq=1</function></tool_call>", &["! no argument: q=1"]),
        ],
    );
}

#[test]
fn glm() {
    samples(
        Format::Glm,
        &[
            (
                "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n<arg_key>days</arg_key>\n\
            <arg_value>2</arg_value>\n</tool_call>",
                &["weather {\"city\":\"Rome\",\"days\":2}"],
            ),
            (
                "a<tool_call>find</tool_call><tool_call>find<arg_key>q</arg_key><arg_value> b</arg_value></tool_call>",
                &["\"a\"", "find {}", "find {\"q\":\" b\"}"],
            ),
            ("<tool_call>find<arg_key>q</arg_key>", &["! cut off"]),
            ("<tool_call>find<arg_key>q</arg_key></tool_call>", &["! no value"]),
        ],
    );
}

#[test]
fn llama3() {
    samples(
        Format::Llama3,
        &[
            (
                "<|python_tag|>{\"name\":\"find\",\"parameters\":{\"q\":\"<|eom_id|>\"}}<|eom_id|>",
                &["find {\"q\":\"<|eom_id|>\"}"],
            ),
            ("<|python_tag|>{\"name\":\"find\",\"parameters\":{}}; {\"name\":\"weather\"}", &["find {}", "weather {}"]),
            ("{\"name\": \"find\", \"parameters\": {\"q\":\"a\"}}", &["find {\"q\":\"a\"}"]),
            (" {\"type\": \"function\", \"name\": \"find\", \"parameters\": {}}<|eot_id|>", &["\" \"", "find {}"]),
            ("{\"answer\": 42}", &["\"{\\\"answer\\\": 42}\""]),
            ("I say {\"name\":\"find\"}", &["\"I say {\\\"name\\\":\\\"find\\\"}\""]),
            ("<|python_tag|>{\"name\":\"find\"", &["! not valid JSON"]),
        ],
    );
}

#[test]
fn pythonic() {
    samples(
        Format::Pythonic,
        &[
            (
                "[weather(city='Rome', days=2, tags=[\"a\", {'b': None}]), find()]",
                &["weather {\"city\":\"Rome\",\"days\":2,\"tags\":[\"a\",{\"b\":null}]}", "find {}"],
            ),
            ("a<|python_start|>[find(q='it\\'s \\u00fc')]<|python_end|><|eot|>", &["\"a\"", "find {\"q\":\"it's ü\"}"]),
            ("[1] is a source.", &["\"[1] is a source.\""]),
            ("[link](x) [find()]", &["\"[link](x) [find()]\""]),
            ("<|python_start|>[find(q=)]<|python_end|>", &["! a value was expected"]),
        ],
    );
}

#[test]
fn mistral() {
    samples(
        Format::Mistral,
        &[
            (
                "[TOOL_CALLS][{\"name\":\"find\",\"arguments\":{\"q\":\"a\"}},{\"name\":\"weather\",\"arguments\":{}}]</s>",
                &["find {\"q\":\"a\"}", "weather {}"],
            ),
            (
                "a[TOOL_CALLS]find{\"q\":\"[TOOL_CALLS]\"}[TOOL_CALLS]weather{}",
                &["\"a\"", "find {\"q\":\"[TOOL_CALLS]\"}", "weather {}"],
            ),
            ("[TOOL_CALLS]find[CALL_ID]Ab1[ARGS]{\"q\":1}", &["find {\"q\":1}"]),
            ("[THINK]hm [TOOL_CALLS][/THINK]Yes [1].", &["~ \"hm [TOOL_CALLS]\"", "\"Yes [1].\""]),
            ("[TOOL_CALLS]find{\"q\":", &["! not valid JSON"]),
        ],
    );
}

#[test]
fn deepseek() {
    samples(
        Format::DeepSeek,
        &[
            (
                "a<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>find\n```json\n{\"q\":\"a\"}\n```\
            <｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{}\n```<｜tool▁call▁end｜>\
            <｜tool▁calls▁end｜><｜end▁of▁sentence｜>",
                &["\"a\"", "find {\"q\":\"a\"}", "weather {}"],
            ),
            (
                "<think>b</think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>find<｜tool▁sep｜>{\"q\":\"a\"}<｜tool▁call▁end｜>\
            <｜tool▁calls▁end｜>",
                &["~ \"b\"", "find {\"q\":\"a\"}"],
            ),
            ("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>find<｜tool▁sep｜>{\"q\":", &["! not valid JSON"]),
        ],
    );
    samples(
        Format::Dsml,
        &[
            (
                "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"weather\">\n<｜DSML｜parameter name=\"city\" string=\"true\">1\
            </｜DSML｜parameter>\n<｜DSML｜parameter name=\"days\" string=\"false\">2</｜DSML｜parameter>\n\
            </｜DSML｜invoke>\n</｜DSML｜function_calls>",
                &["weather {\"city\":\"1\",\"days\":2}"],
            ),
            ("<｜DSML｜tool_calls><｜DSML｜invoke name=\"find\"></｜DSML｜invoke></｜DSML｜tool_calls>", &["find {}"]),
            ("<｜DSML｜tool_calls><｜DSML｜invoke name=\"find\">", &["! cut off"]),
        ],
    );
}

#[test]
fn kimi_k2() {
    samples(
        Format::KimiK2,
        &[(
            "a<|tool_calls_section_begin|><|tool_call_begin|>functions.find:0<|tool_call_argument_begin|>{\"q\":\"a\"}\
        <|tool_call_end|><|tool_call_begin|>functions.weather:1<|tool_call_argument_begin|>{}<|tool_call_end|>\
        <|tool_calls_section_end|>b",
            &["\"a\"", "find {\"q\":\"a\"}", "weather {}", "\"b\""],
        )],
    );
}

#[test]
fn harmony() {
    samples(
        Format::Harmony,
        &[
            (
                "<|channel|>analysis<|message|>Think <|call|>.<|end|><|start|>assistant<|channel|>commentary to=functions.find \
            <|constrain|>json<|message|>{\"q\":\"a\"}<|call|>",
                &["~ \"Think <|call|>.\"", "find {\"q\":\"a\"}"],
            ),
            ("<|start|>assistant to=functions.find<|channel|>commentary json<|message|>{}<|call|>", &["find {}"]),
            (
                "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary<|message|>I look.<|end|>\
            <|start|>assistant<|channel|>final<|message|>It is.<|return|>",
                &["~ \"a\"", "\"I look.It is.\""],
            ),
            ("<|channel|>commentary to=functions.find<|message|>{\"q\"", &["! not valid JSON"]),
        ],
    );
}

#[test]
fn granite_and_phi() {
    samples(
        Format::Granite,
        &[
            ("<|tool_call|>[{\"name\":\"find\",\"arguments\":{\"q\":\"a\"}}]", &["find {\"q\":\"a\"}"]),
            ("<|tool_call|> is a token", &["\"<|tool_call|> is a token\""]),
            ("<tool_call>[{\"name\":\"find\",\"arguments\":{}}]</tool_call>", &["find {}"]),
        ],
    );
    samples(
        Format::Phi,
        &[
            (
                "<|tool_call|>[{\"name\":\"find\",\"arguments\":{\"q\":\"<|/tool_call|>\"}}]<|/tool_call|>",
                &["find {\"q\":\"<|/tool_call|>\"}"],
            ),
            ("functools[{\"name\":\"find\",\"arguments\":{}}]", &["find {}"]),
            ("functools is a module", &["\"functools is a module\""]),
        ],
    );
}

#[test]
fn gemma() {
    samples(
        Format::Gemma,
        &[
            ("Look:\n```tool_code\nprint(find(q=\"a\"))\n```\n", &["\"Look:\\n\"", "find {\"q\":\"a\"}", "\"\\n\""]),
            ("```tool_code\n[find(), weather(days=1.5)]\n```", &["find {}", "weather {\"days\":1.5}"]),
            ("```python\nfind()\n```", &["\"```python\\nfind()\\n```\""]),
            (
                "<start_function_call>call:weather{city:<escape>R, {o}<escape>,tags:[1,true]}<end_function_call>",
                &["weather {\"city\":\"R, {o}\",\"tags\":[1,true]}"],
            ),
            (
                "<|channel>thought\na<channel|><|tool_call>call:find{q:<|\"|>b<|\"|>}<tool_call|>",
                &["~ \"\\na\"", "find {\"q\":\"b\"}"],
            ),
            ("```tool_code\nimport os\n```", &["! was expected"]),
        ],
    );
}

#[test]
fn functionary() {
    samples(
        Format::Functionary,
        &[
            (
                "a <function=find>{\"q\":\"</function>\"}</function>b",
                &["\"a \"", "find {\"q\":\"</function>\"}", "\"b\""],
            ),
            (
                ">>>all\nHello.\n>>>find\n{\"q\":\"a\"}>>>weather\n{}",
                &["\"Hello.\\n\"", "find {\"q\":\"a\"}", "weather {}"],
            ),
            ("all\nHello.", &["\"Hello.\""]),
            ("a >>> b", &["\"a >>> b\""]),
        ],
    );
}

#[test]
fn react() {
    samples(
        Format::React,
        &[
            (
                "Thought: I look.\nAction: find\nAction Input: {\"q\": \"a\"}\nObservation: invented\nFinal Answer: no",
                &["~ \" I look.\"", "find {\"q\": \"a\"}"],
            ),
            ("Action: `find`\nAction Input: a word", &["find {\"q\":\"a word\"}"]),
            ("Action: find\nAction Input:\n```json\n{}\n```", &["find {}"]),
            ("Thought: I know.\nFinal Answer: It is.", &["~ \" I know.\"", "\" It is.\""]),
            ("Action: weather\nAction Input: Rome", &["! JSON object"]),
            ("Call to Action: now", &["\"Call to Action: now\""]),
        ],
    );
}

fn pieces() -> Vec<&'static str> {
    let marks = Format::all().flat_map(|format| {
        format.marks().iter().flat_map(|mark| {
            let closes = match mark.kind {
                MarkKind::Block(block) => block.closes,
                _ => &[],
            };
            [mark.text].into_iter().chain(closes.iter().copied())
        })
    });
    let texts = [
        "<",
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        "\"",
        "'",
        "\\",
        "`",
        "```",
        "\n",
        " ",
        ">",
        ":",
        "=",
        "ü",
        "find",
        "{\"q\":1}",
        "find(q='a')",
        "{\"name\":\"find\"}",
        "<parameter=q>",
        "</parameter>",
        "<arg_key>",
        "</think>",
        "<｜tool▁sep｜>",
        "<｜tool▁call▁begin｜>",
        "Action Input:",
        "<|tool_call_begin|>",
        "<|message|>",
        "<escape>",
        "call:",
    ];
    marks.chain(texts).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn every_split_gives_the_same_in_every_format(
        format in prop::sample::select(Format::all().collect::<Vec<_>>()),
        parts in prop::collection::vec(prop::sample::select(pieces()), 0..16),
        own in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..4),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let mut parts = parts;
        for (place, mark) in own {
            parts.insert(place.index(parts.len() + 1), mark.get(format.marks()).text);
        }
        let text = parts.concat();
        let bytes = text.as_bytes();
        let parse = |pieces: &[&[u8]]| parse_with(Parser::of(format, tools()), pieces);
        let whole = parse(&[bytes]);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&parse(&single), &whole);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
        prop_assert_eq!(&parse(&pieces), &whole);
    }

    /// The calls in a prompt and in its history are parsed back to the same calls.
    #[test]
    fn calls_written_in_any_format_parse_to_the_same_calls(
        format in prop::sample::select(Format::all().collect::<Vec<_>>()),
        city in "[a-zA-Zü\"'\\\\{}\\[\\]:,=();. \n]{0,12}",
        days in any::<i64>(),
        tags in prop::collection::vec(prop_oneof![any::<bool>().prop_map(Value::from), "[a-z'\"`<>]{0,4}".prop_map(Value::from)], 0..3),
    ) {
        let mut arguments = Map::new();
        arguments.insert("city".into(), city.trim().into());
        arguments.insert("days".into(), days.into());
        // Between tags, a text that looks like a tag cannot be distinguished from one.
        let tags = tags.into_iter().filter(|tag| !tag.to_string().contains('<')).collect::<Vec<_>>();
        arguments.insert("tags".into(), tags.into());
        let text = format.write("weather", &arguments);
        let mut parser = Parser::of(format, tools());
        let mut pieces: Vec<Piece<'static>> = Vec::new();
        let mut rest = String::new();
        for piece in parser.push(text.as_bytes()) {
            match piece {
                Piece::Call { name, arguments } => pieces.push(Piece::Call { name, arguments }),
                other => rest.push_str(&format!("{other:?}")),
            }
        }
        for piece in parser.finish() {
            match piece {
                Piece::Call { name, arguments } => pieces.push(Piece::Call { name, arguments }),
                other => rest.push_str(&format!("{other:?}")),
            }
        }
        prop_assert_eq!(rest, "", "{:?}: {}", format, text);
        let [Piece::Call { name, arguments: read }] = pieces.as_slice() else { panic!("{format:?}: {text}: {pieces:?}") };
        prop_assert_eq!(name, "weather");
        prop_assert_eq!(serde_json::from_str::<Value>(read).unwrap(), Value::Object(arguments), "{:?}: {}", format, text);
    }
}
