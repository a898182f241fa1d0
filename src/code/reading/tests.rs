//! How natural patterns are read, in twenty languages.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use super::*;
use crate::code::language;

/// Patterns as they come to mind, each with code that it is meant to find.
const NATURAL: &str = include_str!("recall.tsv");

fn found(pattern: &str, language: SupportLang, text: &str) -> (usize, usize) {
    let Ok(readings) = read(pattern, language) else { return (0, 0) };
    let parsed = Arc::new(parse(text, language).unwrap());
    let counts: Vec<_> =
        readings.all().map(|reading| matching::all(&parsed, reading).len()).collect();
    let chosen = readings.chosen(&counts, false);
    let plain = readings.plain.as_ref().map_or(0, |_| counts[0]);
    (chosen.into_iter().map(|index| counts[index]).sum(), plain)
}

#[test]
fn nine_of_ten_natural_patterns_find_what_they_mean() {
    let (mut all, mut hits, mut plainly, mut missed) = (0, 0, 0, Vec::new());
    for row in NATURAL.lines() {
        let [id, pattern, text] = row.split('\t').collect::<Vec<_>>()[..] else {
            panic!("three columns: {row}")
        };
        let language = language::by_name(id).unwrap();
        let text = format!("{}\n", text.replace("\\n", "\n").replace("\\t", "\t"));
        let (found, plain) = found(pattern, language, &text);
        all += 1;
        hits += usize::from(found > 0);
        plainly += usize::from(plain > 0);
        if found == 0 {
            missed.push(format!("{id}: {pattern}"));
        }
    }
    assert!(all >= 150, "{all} patterns");
    assert!(hits * 10 >= all * 9, "{hits} of {all} ({plainly} plainly); missed: {missed:#?}");
    println!("{hits} of {all} ({plainly} plainly); missed: {missed:#?}");
}
