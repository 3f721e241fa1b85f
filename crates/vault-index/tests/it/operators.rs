//! What each operator of a query finds, alone, negated and together.

use vault_index::{Grouping, Index, Mode, Query};

use crate::vault::Vault;

fn vault() -> Vault {
    let vault = Vault::new("");
    for (path, text) in [
        (
            "Cooking/Bread.md",
            "---\nstatus: In Progress\nauthor: \"[[René Dupont]]\"\nrating: 4\n---\n# Bread\n\nMix flour and water.\nBake it slowly.\n\n\
             ## Rye\n\nRye flour is dark.\n\n- [ ] call the mill\n- [x] buy flour\n",
        ),
        (
            "Cooking/Soup plan.md",
            "---\nstatus: draft\ntags: [food/soup]\n---\nWater the soup. Mix it.\n\n- [ ] buy carrots\n",
        ),
        ("Daily/2023-12-24.md", "Called Ann. The HappyCat slept; see a => b.\n\n1. [-] happycat dropped\n"),
        ("Daily/2024-01-02.md", "---\ndate: 2022-05-06\n---\nFlour arrived on 2024-01-02 at the universe.\n"),
        ("Trip.md", "---\ncreated: 2023-12\nstatus:\n---\nA university trip. We were informing the boats. #food\n"),
    ] {
        vault.write(path, text);
    }
    vault.sync();
    vault
}

/// The notes that a query finds, by the first letters of their names.
fn found(index: &Index, query: &str) -> String {
    let query = Query::parse(query).unwrap().mode(Mode::Lexical).min_score(0.0);
    let mut names: Vec<String> =
        index.search(&query).unwrap().results.iter().map(|hit| hit.path.stem().to_string()).collect();
    names.sort();
    names.iter().map(|name| name.split([' ', '-']).next().unwrap()).collect::<Vec<_>>().join(" ")
}

#[test]
fn each_operator() {
    let vault = vault();
    let index = vault.index();
    let check = |query: &str, expected: &str| assert_eq!(found(&index, query), expected, "{query}");
    // Phrases and words that are left out, exactly.
    check("\"university\"", "Trip");
    check("-\"university\"", "2023 2024 Bread Soup");
    check("-universities", "2023 2024 Bread Soup Trip");
    check("-\"mix flour\"", "2023 2024 Soup Trip");
    check("-flour", "2023 Soup Trip");
    check("-(flour water)", "2023 2024 Soup Trip");
    check("-inform", "2023 2024 Bread Soup Trip");
    check("-inf*", "2023 2024 Bread Soup");
    check("uni* trip", "2024 Trip");
    check("\"=>\"", "2023");
    check("\"flour\" \"mill\"", "Bread");
    check("\"flour\" \"carrots\"", "");
    // Names, tags and folders.
    check("file:plan", "Soup");
    check("file:2023-12", "2023");
    check("-file:.md", "");
    check("file:/^[a-c]/", "Bread");
    check("path:Cooking file:(bread OR trip)", "Bread");
    check("path:/^daily.*01-02/", "2024");
    check("tag:food", "Soup Trip");
    check("tag:(food/soup OR other)", "Soup");
    check("-tag:food path:Cooking", "Bread");
    // Together in a line, a block, a section, a passage.
    check("line:(mix water)", "Bread Soup");
    check("line:(mix bake)", "");
    check("block:(mix bake)", "Bread");
    check("block:(call buy)", "");
    check("section:(mix bake)", "Bread");
    check("section:(mix rye)", "");
    check("section:(rye mill)", "Bread");
    check("section:(mix -rye)", "Bread Soup");
    check("content:\"mix flour\"", "Bread");
    check("content:draft", "");
    check("line:(\"soup\" OR /d.rk/)", "Bread Soup");
    check("line:(flour -rye -mix) path:Cooking", "Bread");
    // Tasks.
    check("task:buy", "Bread Soup");
    check("task-todo:buy", "Soup");
    check("task-done:buy", "Bread");
    check("task-todo:(call OR carrots)", "Bread Soup");
    check("task-todo:\"\"", "Bread Soup");
    check("task:\"\"", "2023 Bread Soup");
    check("task-done:happycat", "2023");
    check("-task:\"\"", "2024 Trip");
    // Properties.
    check("[status]", "Bread Soup Trip");
    check("[status:progress]", "Bread");
    check("[status:\"progress\"]", "");
    check("[status:\"in progress\" OR draft]", "Bread Soup");
    check("[author:rene]", "Bread");
    check("[author:/^\\[\\[r/]", "Bread");
    check("[rating:>3] -[status:draft]", "Bread");
    check("-[status]", "2023 2024");
    // Case and regular expressions.
    check("ignore-case:happycat", "2023");
    check("match-case:HappyCat", "2023");
    check("match-case:HAPPYCAT", "");
    check("line:(match-case:HappyCat ann)", "2023");
    check("/\\d{4}-\\d\\d-\\d\\d/", "2024");
    check("/^rye FLOUR/", "Bread");
    check("-/flour/", "2023 Soup Trip");
}

/// The day of a note: its property `date`, else the day in its name, else its property `created`.
#[test]
fn dates_of_notes() {
    let vault = vault();
    let index = vault.index();
    let check = |query: &str, expected: &str| assert_eq!(found(&index, query), expected, "{query}");
    check("date:2023-12", "2023 Trip");
    check("date:24.12.2023", "2023");
    check("date:2023-12-24", "2023");
    check("date:\"dec 2023\"", "2023 Trip");
    check("date:2022", "2024");
    check("date:2024", "");
    check("date:>=2023", "2023 Trip");
    check("date:<2023", "2024");
    check("date:2022-01..2022-12", "2024");
    check("-date:2023", "2024 Bread Soup");
}

#[test]
fn conditions_together() {
    let vault = vault();
    let index = vault.index();
    let check = |query: &str, expected: &str| assert_eq!(found(&index, query), expected, "{query}");
    // Plain words rank; beside a condition they are alternatives to it.
    check("flour OR boats", "2024 Bread Trip");
    check("flour OR tag:food", "2024 Bread Soup Trip");
    check("flour mill OR tag:food", "Bread Soup Trip");
    check("(flour OR tag:food) -path:Cooking", "2024 Trip");
    check("-(tag:food OR path:Daily)", "Bread");
    check("-(tag:food -path:Cooking)", "2023 2024 Bread Soup");
    check("[status:draft] OR date:2022 OR line:(rye dark)", "2024 Bread Soup");
    check("(\"mill\" (task-done:buy OR tag:x) -soup)", "Bread");
    check("path:Cooking path:Trip -file:plan", "Bread Trip");
    check("water -- -tag:food", "Bread Soup Trip");
}

/// A note is tested as a whole, and shown by a passage that holds what was asked for.
#[test]
fn passages_that_hold_it() {
    let vault = Vault::new("");
    let filler = "lorem ipsum dolor sit amet ".repeat(60);
    vault.write(
        "long.md",
        format!("# Long\n\nalpha {filler}\n\n## Two\n\n{filler}\n\n## Three\n\n{filler} omega\n\n{filler} end\n"),
    );
    vault.sync();
    let index = vault.index();
    let lines = |query: &str, grouping| {
        let query = Query::parse(query).unwrap().grouping(grouping).limit(100).mode(Mode::Lexical);
        index.search(&query).unwrap().results.iter().map(|hit| hit.text.clone()).collect::<Vec<_>>()
    };
    let all = lines("path:long.md", Grouping::Passages).len();
    assert!(all > 4, "{all}");
    let one = lines("/omega/", Grouping::BestPassage);
    assert!(one.len() == 1 && one[0].contains("omega"), "{one:?}");
    let both = lines("\"alpha\" \"omega\"", Grouping::Passages);
    assert!(both.len() == 2 && both.iter().all(|text| text.contains("alpha") || text.contains("omega")), "{both:?}");
    // A section reaches over passages, and has no words of another.
    assert!(!lines("section:(omega end)", Grouping::Passages).is_empty());
    assert!(lines("section:(alpha omega)", Grouping::Passages).is_empty());
    assert!(lines("line:(omega end)", Grouping::Passages).is_empty());
    assert_eq!(lines("-(\"alpha\" \"omega\")", Grouping::Passages).len(), 0);
    assert_eq!(lines("-/nothing/", Grouping::Passages).len(), all);
}

/// However common a word is, no text is read for it.
#[test]
fn quoted_words_are_looked_up() {
    let vault = vault();
    let index = rusqlite::Connection::open(vault.index_file()).unwrap();
    index.execute("DELETE FROM passage_text", []).unwrap();
    let searcher = vault.index().searcher().unwrap();
    let count = |query: &str| searcher.matches(&Query::parse(query).unwrap().min_score(0.0)).map(|notes| notes.len());
    assert_eq!(count("\"flour\"").unwrap(), 2);
    assert_eq!(count("\"is dark\" flo* -\"universe\"").unwrap(), 1);
}

#[test]
fn code_that_looks_like_a_task_is_none() {
    let vault = Vault::new("");
    vault.write("a.md", "- [ ] write it\n\n```md\n- [ ] example\n- [x] example\n```\n\nand\n\n- [ ] after\n");
    vault.write("b.md", "> ~~~\n> - [ ] example\n> ~~~\n\n- list\n\n    - [ ] nested\n");
    // Longer than a passage: most of the code stands in passages without a fence.
    vault
        .write("c.md", format!("# C\n\n```\n{}```\n\n- [x] last\n", "- [ ] example that goes on and on\n".repeat(200)));
    vault.sync();
    let index = vault.index();
    let check = |query: &str, expected: &str| assert_eq!(found(&index, query), expected, "{query}");
    check("task:example", "");
    check("task-todo:\"\"", "a b");
    check("task-todo:write", "a");
    check("task-todo:after", "a");
    check("task-todo:nested", "b");
    check("task:\"\"", "a b c");
    check("task-done:\"\"", "c");
    let query = Query::parse("task:last").unwrap().grouping(Grouping::Passages);
    let hits = index.search(&query).unwrap().results;
    assert!(hits.len() == 1 && hits[0].text.contains("last"), "{hits:?}");
}

#[test]
fn what_no_note_meets() {
    let vault = vault();
    let searcher = vault.index().searcher().unwrap();
    let unmatched = |query: &str| searcher.unmatched(&Query::parse(query).unwrap()).unwrap();
    let wanted = |query: &str, says: &str| {
        let lines = unmatched(query).wanted;
        assert!(lines.len() == 1 && lines[0].contains(says), "{query}: {lines:?}");
    };
    wanted("file:plan file:nothing", "file name holds \"nothing\"");
    wanted("[sttus:draft] tag:food", "has the property `sttus`; near: status");
    wanted("tag:fod", "has the tag `fod`; near: food");
    wanted("tag:souup", "has the tag `souup`; near: food/soup");
    wanted("tag:xyz", "has the tag `xyz`; `vault-index tags`");
    wanted("[status:done]", "meets `status~done`");
    wanted("date:1999", "is of `1999`");
    wanted("line:(mix bake)", "meets `line:(\"mix\" \"bake\")`");
    wanted("tag:food OR tag:fod", "the tag `fod`");
    assert!(unmatched("-nothing -task:x -file:Trip").excluded.is_empty());
    let excluded = unmatched("-file:nothing -(tag:x OR tag:y)").excluded;
    assert!(excluded.len() == 2 && excluded[1].contains("`-(tag:x OR tag:y)` leaves nothing out"), "{excluded:?}");
}

#[test]
fn a_frontmatter_that_is_no_yaml_is_found_as_text_and_by_its_entries() {
    let vault = Vault::new("");
    vault.write(
        "Colon.md",
        "---\ntitle: Ostrowski: a life\ntags: [family, dotty]\nstatus: done\n---\n# Notes\n\nA colon.\n",
    );
    vault.write("Letter.md", "---\n5 Harbour Street\nNewtown\n---\nDear Ann, it rains.\n");
    vault.write("Valid.md", "---\ntags: [family]\n---\nA street at the harbour.\n");
    vault.sync();
    let index = vault.index();
    let check = |query: &str, expected: &str| assert_eq!(found(&index, query), expected, "{query}");
    check("OSTROWSKI", "Colon");
    check("tag:family", "Colon Valid");
    check("tag:dotty", "Colon");
    check("[status:done]", "Colon");
    check("\"Harbour Street\"", "Letter");
    check("/^newtown$/", "Letter");
    let hits = index.search(&Query::parse("newtown").unwrap().mode(Mode::Lexical)).unwrap();
    assert_eq!(hits.results[0].line, 3);
}

#[test]
fn files_that_end_in_markdown_are_notes() {
    let vault = Vault::new("");
    vault.write("a/Heron.markdown", "---\ntags: [bird]\n---\nA grey bird, see [[Pond]].\n");
    vault.write("Pond.md", "The [[Heron]], [[a/heron]] and ![x](a/Heron.markdown).\n");
    for other in ["Other.mdx", "Other.txt", "Other.org"] {
        vault.write(other, "A grey bird.\n");
    }
    vault.sync();
    let index = vault.index();
    assert_eq!((found(&index, "grey tag:bird").as_str(), found(&index, "grey").as_str()), ("Heron", "Heron"));
    assert_eq!(found(&index, "path:a/Heron"), "Heron");
    assert_eq!(found(&index, "Heron.markdown"), "Heron Pond");
    assert_eq!(index.backlinks("Heron", 1).unwrap().len(), 3);
    assert_eq!(index.links("heron", 1).unwrap()[0].target.as_ref().unwrap().as_str(), "Pond.md");
    // A note `.md` comes first as soon as it is there, and no longer when it is gone.
    vault.write("Heron.md", "x\n");
    vault.sync();
    assert_eq!(vault.index().backlinks("Heron.md", 1).unwrap().len(), 1);
    std::fs::remove_file(vault.root().join("Heron.md")).unwrap();
    vault.sync();
    assert_eq!(vault.index().backlinks("Heron.markdown", 1).unwrap().len(), 3);
}

#[test]
fn inline_fields_are_properties() {
    let vault = Vault::new("");
    vault.write("Both.md", "---\nrating: 2\n---\n- rating:: 5\n- [[Pond]] (mood:: happy)\n");
    vault.write("Code.md", "`rating:: 5`\n\n```\nmood:: happy\n```\n");
    vault.write("Text.md", "**Rating**:: 3\ntag:: no\n");
    vault.sync();
    let index = vault.index();
    let check = |query: &str, expected: &str| assert_eq!(found(&index, query), expected, "{query}");
    check("[rating:5]", "Both");
    check("[rating:2]", "Both");
    check("[rating]", "Both Text");
    check("-[rating]", "Code");
    check("[mood:happy]", "Both");
    check("[Mood]", "Both");
    check("[rating:>2]", "Both Text");
}

#[test]
fn words_are_found_with_and_without_their_hyphens() {
    let vault = Vault::new("");
    vault.write("One.md", "The plug-in slept.\n");
    vault.write("Two.md", "A plugin woke. Two plugins sang.\n");
    vault.write("Three.md", "Plug the lamp in.\n");
    vault.write("E-Mail rules.md", "Be short.\n");
    vault.sync();
    let index = vault.index();
    let check = |query: &str, expected: &str| assert_eq!(found(&index, query), expected, "{query}");
    check("plugin", "One Two");
    check("plugins", "One Two");
    check("plug-in", "One Three Two");
    check("email rules", "E");
    check("\"plugin\"", "Two");
    check("-plugin", "E One Three");
    let best = |query: &str| {
        let query = Query::parse(query).unwrap().mode(Mode::Lexical);
        let hit = index.search(&query).unwrap().results.remove(0);
        (hit.path.to_string(), hit.why.terms, hit.score > 0.8)
    };
    assert_eq!(best("plug-in"), ("One.md".into(), vec!["plug".into(), "plugin".into()], false));
    assert_eq!(best("email rules"), ("E-Mail rules.md".into(), vec!["email".into(), "rules".into()], true));
}

#[test]
fn links_can_be_asked_for() {
    let vault = Vault::new(
        "//- Home.md
        [[Garden/Rose bed|roses]], [soil](Garden/Soil.md), [[Nowhere]] and ![[plan.png]]. A list of things.
        //- Garden/Rose bed.md
        Roses need [[Soil]].
        //- Garden/Soil.md
        Clay and sand. [[Home#Top]]
        //- Alone.md
        Nothing leads to roses here; see [[Soil]].
        //- plan.png",
    );
    vault.sync();
    let index = vault.index();
    let check = |query: &str, expected: &str| assert_eq!(found(&index, query), expected, "{query}");
    check("link:soil", "Alone Home Rose");
    check("link:Garden/Soil.md", "Alone Home Rose");
    check("link:\"Rose bed\"", "Home");
    check("link:[[Rose bed|x]] things", "Home");
    check("link:plan.png", "Home");
    check("-link:soil", "Soil");
    check("link:(soil \"rose bed\")", "Home");
    check("link:Home OR link:\"Rose bed\"", "Home Soil");
    check("linked-from:Home", "Rose Soil");
    check("-linked-from:home", "Alone Home");
    check("linked-from:[[Soil]]", "Home");
    check("is:orphan", "Alone");
    check("-is:Orphan roses", "Home Rose");
    let orphans: Vec<String> = index.orphans().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(orphans, ["Alone.md"]);

    // The condition comes before the ranking: the limit is of those that meet it.
    let query = Query::parse("roses linked-from:\"Rose bed\"").unwrap().mode(Mode::Semantic).min_score(0.0).limit(1);
    assert_eq!(index.search(&query).unwrap().results[0].path.as_str(), "Garden/Soil.md");

    let error = index.search(&Query::parse("link:Soyl").unwrap()).unwrap_err();
    assert_eq!(error.kind(), vault_index::ErrorKind::NotFound);
    assert!(error.one_line().contains("no note `Soyl`") && error.one_line().contains("Garden/Soil.md"), "{error}");

    let unmatched = |query: &str| index.searcher().unwrap().unmatched(&Query::parse(query).unwrap()).unwrap();
    assert_eq!(unmatched("link:Alone").wanted, ["no note links to `Alone`"]);
    assert!(unmatched("-link:Alone").excluded[0].contains("no note links to `Alone`"));

    // What is no operator, and the words of a sentence.
    for words in ["is:new", "the question is: orphan"] {
        assert!(Query::parse(words).unwrap().condition.is_none(), "{words}");
    }
    assert_eq!(Query::parse("is:new link: Soil").unwrap().unknown_operators, ["is:new", "link:"]);
}
