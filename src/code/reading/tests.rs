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

#[test]
fn every_language_that_is_shipped_finds_code() {
    let samples = [
        (SupportLang::Bash, "echo $A", "echo hi\n"),
        (SupportLang::C, "free($P)", "void f() { free(p); }\n"),
        (SupportLang::Cpp, "delete $P;", "void f() { delete p; }\n"),
        (SupportLang::CSharp, "F($A)", "class C { void G() { F(1); } }\n"),
        (SupportLang::Css, "color: $A", "a { color: red; }\n"),
        (SupportLang::Dart, "f($A)", "void g() { f(1); }\n"),
        (SupportLang::Elixir, "IO.puts($A)", "IO.puts(1)\n"),
        (SupportLang::Go, "f($A)", "package p\n\nfunc g() {\n\tf(1)\n}\n"),
        (SupportLang::Haskell, "f $A", "g = f 1\n"),
        (SupportLang::Hcl, "a = $B", "a = 1\n"),
        (SupportLang::Html, "<p>$A</p>", "<p>text</p>\n"),
        (SupportLang::Java, "f($A)", "class C { void g() { f(1); } }\n"),
        (SupportLang::JavaScript, "f($A)", "f(1);\n"),
        (SupportLang::Json, "[\"$A\", 2]", "[\"x\", 2]\n"),
        (SupportLang::Kotlin, "f($A)", "fun g() { f(1) }\n"),
        (SupportLang::Lua, "f($A)", "f(1)\n"),
        (SupportLang::Markdown, "# $A", "# Title\n"),
        (SupportLang::Nix, "f $A", "f 1\n"),
        (SupportLang::Php, "f($A)", "<?php f(1);\n"),
        (SupportLang::Python, "f($A)", "f(1)\n"),
        (SupportLang::Ruby, "f($A)", "f(1)\n"),
        (SupportLang::Rust, "f($A)", "fn g() { f(1); }\n"),
        (SupportLang::Scala, "f($A)", "object O { f(1) }\n"),
        (SupportLang::Solidity, "f($A)", "contract C { function g() public { f(1); } }\n"),
        (SupportLang::Swift, "f($A)", "func g() { f(1) }\n"),
        (SupportLang::Tsx, "<A b={$C} />", "x = <A b={1} />;\n"),
        (SupportLang::TypeScript, "f($A)", "f(1);\n"),
        (SupportLang::Yaml, "a: $B", "a: 1\n"),
        (SupportLang::Zig, "f($A)", "fn g() void { f(1); }\n"),
    ];
    assert_eq!(samples.len(), SupportLang::all_langs().len());
    let misses: Vec<_> = samples
        .into_iter()
        .filter(|(language, pattern, text)| found(pattern, *language, text).0 == 0)
        .map(|(language, ..)| language::id(language))
        .collect();
    assert!(misses.is_empty(), "nothing found in {misses:?}");
}
