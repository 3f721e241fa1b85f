//! Formats reports as tables for people, which are the same in a terminal and in a record.

use std::fmt;

use super::{KnownItemReport, NamesReport, PassageReport, PhrasesReport, RetrievalReport, SharesReport};

impl fmt::Display for RetrievalReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { collection, model, documents, passages, queries, unjudged, .. } = self;
        write!(out, "{collection}: {documents} documents, {passages} passages, {queries} queries")?;
        if *unjudged > 0 {
            write!(out, " ({unjudged} unjudged left out)")?;
        }
        write!(out, ", model {model}")?;
        match self.documents_a_second {
            Some(speed) => writeln!(out, ", {speed:.1} documents a second")?,
            None => writeln!(out, ", indexed before")?,
        }
        writeln!(out, "\n| mode | nDCG@10 | recall@100 | MRR@10 | ms a query |\n| --- | --- | --- | --- | --- |")?;
        for mode in &self.modes {
            let (ndcg10, recall100, mrr10) = (share(mode.ndcg10), share(mode.recall100), share(mode.mrr10));
            let ms = mode.ms.map(|ms| format!("{ms:.1}")).unwrap_or_default();
            writeln!(out, "| {} | {ndcg10} | {recall100} | {mrr10} | {ms} |", mode.mode)?;
        }
        for above in &self.above_hybrid {
            writeln!(out, "\nBELOW: hybrid is {} below {}", share(above.by), above.mode)?;
        }
        Ok(())
    }
}

impl fmt::Display for KnownItemReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { vault, model, notes, queries, .. } = self;
        writeln!(out, "{vault}: {notes} notes, the words of links as {queries} queries, model {model}")?;
        writeln!(out, "\n| mode | MRR@10 | hit@1 | hit@10 | ms a query |\n| --- | --- | --- | --- | --- |")?;
        for mode in &self.modes {
            let (mrr10, hit1, hit10) = (share(mode.mrr10), share(mode.hit1), share(mode.hit10));
            writeln!(out, "| {} | {mrr10} | {hit1} | {hit10} | {:.1} |", mode.mode, mode.ms)?;
        }
        Ok(())
    }
}

impl fmt::Display for PassageReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { collection, model, documents, notes, passages, queries, .. } = self;
        write!(out, "{collection}: {documents} documents as sections of {notes} notes, {passages} passages, ")?;
        writeln!(out, "{queries} queries, model {model}")?;
        writeln!(out, "\n| mode | nDCG@10 of passages | recall@10 | nDCG@10 of notes | recall@10 | ms a query |")?;
        writeln!(out, "| --- | --- | --- | --- | --- | --- |")?;
        for mode in &self.modes {
            let (ndcg10, recall10) = (share(mode.ndcg10), share(mode.recall10));
            let (note_ndcg10, note_recall10) = (share(mode.note_ndcg10), share(mode.note_recall10));
            writeln!(
                out,
                "| {} | {ndcg10} | {recall10} | {note_ndcg10} | {note_recall10} | {:.1} |",
                mode.mode, mode.ms
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for NamesReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { vault, model, notes, names, prefixes, short_lists, possible10, slips, .. } = self;
        write!(
            out,
            "{vault}: {notes} notes, {names} names, {prefixes} prefixes of names ({short_lists} of them begin "
        )?;
        let possible = share(*possible10);
        writeln!(out, "at most ten notes' names; {possible} possible), {slips} names with a slip, model {model}\n")?;
        writeln!(
            out,
            "| mode | name first | prefix in 10 | the same of at most ten names | slip in 3 | without it | ms a prefix, most |"
        )?;
        writeln!(out, "| --- | --- | --- | --- | --- | --- | --- |")?;
        for mode in &self.modes {
            let (first, prefix10, short10) = (share(mode.first), share(mode.prefix10), share(mode.short_list10));
            let (slip3, no_slip3, (ms, most)) = (share(mode.slip3), share(mode.no_slip3), mode.prefix_ms);
            let mode = &mode.mode;
            writeln!(out, "| {mode} | {first} | {prefix10} | {short10} | {slip3} | {no_slip3} | {ms:.1}, {most:.1} |")?;
        }
        Ok(())
    }
}

impl fmt::Display for PhrasesReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { vault, model, notes, phrases, identifiers, .. } = self;
        writeln!(out, "{vault}: {notes} notes, {phrases} phrases, {identifiers} identifiers, model {model}\n")?;
        writeln!(out, "| mode | phrase first | identifier first |\n| --- | --- | --- |")?;
        for mode in &self.modes {
            let (phrase, identifier) = (share(mode.phrase_first), share(mode.identifier_first));
            writeln!(out, "| {} | {phrase} | {identifier} |", mode.mode)?;
        }
        Ok(())
    }
}

impl fmt::Display for SharesReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { collection, model, documents, texts, queries, words, .. } = self;
        write!(
            out,
            "{collection}: {documents} documents, {texts} texts with a vector in the end, {queries} queries, "
        )?;
        writeln!(out, "model {model}; nDCG@10 by words alone {}\n", share(*words))?;
        writeln!(out, "| share of vectors | nDCG@10 | least | most |\n| --- | --- | --- | --- |")?;
        for of in &self.shares {
            let (mean, least, most) = of.ndcg10;
            writeln!(out, "| {:.0} % | {} | {} | {} |", 100.0 * of.share, share(mean), share(least), share(most))?;
        }
        Ok(())
    }
}

/// Formats a share with four digits and no zero before the point, as is usual for such measures.
fn share(number: f64) -> String {
    let text = format!("{number:.4}");
    text.strip_prefix('0').map_or(text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::super::{Above, RetrievalMode};
    use super::*;

    #[test]
    fn a_report_is_a_table() {
        let mode = |mode: &str, ndcg10, ms| RetrievalMode { mode: mode.into(), ndcg10, recall100: 1.0, mrr10: 0.0, ms };
        let report = RetrievalReport {
            collection: "c".into(),
            model: "minilm".into(),
            documents: 3,
            passages: 4,
            queries: 2,
            unjudged: 1,
            documents_a_second: None,
            modes: vec![mode("hybrid", 0.73306, Some(5.24)), mode("rrf", 0.74, None)],
            above_hybrid: vec![Above { mode: "rrf".into(), by: 0.00694 }],
        };
        let expected = "\
c: 3 documents, 4 passages, 2 queries (1 unjudged left out), model minilm, indexed before

| mode | nDCG@10 | recall@100 | MRR@10 | ms a query |
| --- | --- | --- | --- | --- |
| hybrid | .7331 | 1.0000 | .0000 | 5.2 |
| rrf | .7400 | 1.0000 | .0000 |  |

BELOW: hybrid is .0069 below rrf
";
        assert_eq!(report.to_string(), expected);
    }
}
