//! Every way in which a rewrite is known to lose code, and what becomes of it here.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use ast_grep_language::SupportLang as L;

use super::*;
use crate::code::parse::parse;
use crate::code::reading;

/// Rewrites a text as `ast_edit` would: `Err` for what is refused before it begins.
fn run(
    language: L,
    pattern: &str,
    template: &str,
    text: &str,
) -> Result<(String, Rewritten), String> {
    let readings = reading::read(pattern, language).map_err(|error| error.to_string())?;
    let template_text = template;
    let template = Template::read(template_text);
    template.check(pattern).map_err(|error| error.to_string())?;
    let parsed = Arc::new(parse(text, language).unwrap());
    let counts: Vec<_> =
        readings.all().map(|reading| matching::all(&parsed, reading).len()).collect();
    let chosen = readings.chosen(&counts, true);
    let all: Vec<_> = readings.all().collect();
    let chosen: Vec<_> = chosen.into_iter().map(|index| all[index]).collect();
    if chosen.is_empty() {
        return Err("no match that may be rewritten".to_owned());
    }
    let done = rewrite(&parsed, &chosen, &template).map_err(|error| error.to_string())?;
    let new = applied(text, &done.replacements);
    let after = parse(&new, language).unwrap();
    if after.faults() > parsed.faults() {
        return Err(format!("no longer parses: {new}"));
    }
    Ok((new, done))
}

fn becomes(language: L, pattern: &str, template: &str, text: &str, expected: &str) {
    let (new, done) = run(language, pattern, template, text).unwrap();
    assert_eq!(new, expected, "{pattern} -> {template}");
    assert!(done.left.is_empty(), "{pattern}: {:?}", done.left);
}

fn leaves(language: L, pattern: &str, template: &str, text: &str, why: Left) {
    let (new, done) = run(language, pattern, template, text).unwrap();
    assert_eq!(new, text, "{pattern} -> {template}");
    assert_eq!(done.left.iter().map(|(_, why)| *why).collect::<Vec<_>>(), [why], "{pattern}");
}

fn refused(language: L, pattern: &str, template: &str, text: &str) -> String {
    run(language, pattern, template, text).unwrap_err()
}

#[test]
fn row_1_an_unknown_metavariable_is_refused() {
    assert!(refused(L::JavaScript, "foo($A)", "bar($B)", "foo(1)").contains("uses $B"));
}

#[test]
fn row_2_a_literal_dollar_is_asked_for_or_escaped() {
    let error = refused(L::Bash, "echo $A", "printf \"%s\" $A $HOME", "echo hi\n");
    assert!(error.contains("write \\$HOME"), "{error}");
    becomes(
        L::Bash,
        "echo $A",
        "printf \"%s\" $A \\$HOME",
        "echo hi\n",
        "printf \"%s\" hi $HOME\n",
    );
}

#[test]
fn row_3_statements_behind_the_pattern_are_not_lost() {
    leaves(
        L::Python,
        "if $A:\n    yield\nelse:\n    yield",
        "yield",
        "def f():\n    if a:\n        yield\n        b()\n    else:\n        yield\n        c()\n",
        Left::Code,
    );
    becomes(
        L::Python,
        "if $A:\n    yield\nelse:\n    yield",
        "yield",
        "def f():\n    if a:\n        yield\n    else:\n        yield\n    c()\n",
        "def f():\n    yield\n    c()\n",
    );
}

#[test]
fn row_4_a_second_declarator_is_not_lost() {
    leaves(L::JavaScript, "let $A = 1", "const $A = 1", "let a = 1, b = 2;\n", Left::Code);
    becomes(L::JavaScript, "let $A = 1", "const $A = 1", "let a = 1;\n", "const a = 1;\n");
}

#[test]
fn row_5_a_semicolon_behind_the_pattern_stays() {
    becomes(L::JavaScript, "var $A = $B", "let $A = $B", "var a = 1;\n", "let a = 1;\n");
}

#[test]
fn row_6_a_keyword_is_not_replaced_in_what_holds_more() {
    leaves(L::Python, "return", "return None", "def f():\n    return 1\n", Left::Code);
    becomes(
        L::Python,
        "return",
        "return None",
        "def f():\n    return\n",
        "def f():\n    return None\n",
    );
}

#[test]
fn row_7_a_head_is_read_as_a_head() {
    becomes(
        L::Dart,
        "class $A",
        "class $A extends B",
        "class Foo {\n  int x = 1;\n}\n",
        "class Foo extends B {\n  int x = 1;\n}\n",
    );
}

#[test]
fn row_8_separators_of_lists_are_neither_doubled_nor_left() {
    let row = |text: &str, expected: &str| {
        becomes(L::JavaScript, "foo({ $$$P })", "bar({ $$$P, x: 1 })", text, expected);
    };
    row("foo({ a, b, });\n", "bar({ a, b, x: 1 });\n");
    row("foo({ a, b });\n", "bar({ a, b, x: 1 });\n");
    row("foo({});\n", "bar({ x: 1 });\n");
    becomes(L::Python, "f($$$A, k)", "g(k, $$$A)", "f(k)\nf(a, b, k)\n", "g(k)\ng(k, a, b)\n");
}

#[test]
fn row_9_a_comment_is_not_lost() {
    leaves(L::JavaScript, "foo($A, $B)", "bar($B, $A)", "foo(1, /* keep */ 2);\n", Left::Comment);
    becomes(L::JavaScript, "foo($A, $B)", "bar($B, $A)", "foo(1, 2); // c\n", "bar(2, 1); // c\n");
    becomes(
        L::JavaScript,
        "foo($$$A)",
        "bar($$$A)",
        "foo(1, /* keep */ 2);\n",
        "bar(1, /* keep */ 2);\n",
    );
}

#[test]
fn row_10_line_ends_are_the_files() {
    becomes(
        L::JavaScript,
        "foo($A)",
        "bar(\n  $A,\n)",
        "if (x) {\r\n  foo(1);\r\n}\r\n",
        "if (x) {\r\n  bar(\r\n    1,\r\n  );\r\n}\r\n",
    );
}

#[test]
fn row_11_indentation_is_the_files() {
    becomes(
        L::Python,
        "b($X)",
        "with a:\n    b($X)",
        "def f():\n\tif x:\n\t\tb(1)\n",
        "def f():\n\tif x:\n\t\twith a:\n\t\t\tb(1)\n",
    );
    becomes(
        L::Go,
        "a($X)",
        "if err := a($X); err != nil {\n    return err\n}",
        "package p\n\nfunc f() error {\n\ta(1)\n\treturn nil\n}\n",
        "package p\n\nfunc f() error {\n\tif err := a(1); err != nil {\n\t\treturn err\n\t}\n\treturn nil\n}\n",
    );
    // A template with tabs in a file with spaces.
    becomes(
        L::Python,
        "b($X)",
        "with a:\n\tb($X)",
        "def f():\n  b(1)\n",
        "def f():\n  with a:\n    b(1)\n",
    );
}

#[test]
fn row_12_a_misread_pattern_binds_all_or_is_refused() {
    let text = "class C { int F(int a, int b) { return a + b; } }\n";
    match run(L::CSharp, "$A + $B", "add($A, $B)", text) {
        Ok((new, _)) => assert!(new.contains("return add(a, b);"), "{new}"),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn row_13_a_deleted_statement_takes_its_line_along() {
    becomes(
        L::JavaScript,
        "console.log($$$A)",
        "",
        "function f() {\n  a();\n  console.log(1, 2);\n  b();\n}\n",
        "function f() {\n  a();\n  b();\n}\n",
    );
    becomes(L::Python, "print($$$A)", "", "a()\nprint(1)\nb()\n", "a()\nb()\n");
    leaves(L::Python, "print($$$A)", "", "def f():\n    print(1)\n", Left::LastStatement);
    assert!(refused(L::JavaScript, "g($$$A)", "", "x = g(1);\n").contains("no longer parses"));
}

#[test]
fn lists_that_are_empty_leave_no_comma() {
    for (text, expected) in [
        ("foo(k)\n", "foo()\n"),
        ("foo(a, k)\n", "foo(a)\n"),
        ("foo(k, b)\n", "foo(b)\n"),
        ("foo(a, k, b)\n", "foo(a, b)\n"),
    ] {
        becomes(L::Python, "foo($$$A, k, $$$B)", "foo($$$A, $$$B)", text, expected);
    }
}

#[test]
fn matches_inside_matches_are_rewritten_as_well() {
    becomes(
        L::Rust,
        "Some($A)",
        "Ok($A)",
        "fn f() { let x = Some(Some(1)); }\n",
        "fn f() { let x = Ok(Ok(1)); }\n",
    );
    let (new, done) =
        run(L::JavaScript, "$A.then($B)", "chain($A, $B)", "p.then(a).then(b);\n").unwrap();
    assert_eq!((new.as_str(), done.matches), ("chain(chain(p, a), b);\n", 2));
}

#[test]
fn what_grows_beyond_measure_is_refused() {
    let text = format!("x = {}1{};\n", "f(".repeat(60), ")".repeat(60));
    let error = refused(L::JavaScript, "f($A)", "g($A, $A)", &text);
    assert!(error.contains("puts a metavariable into itself"), "{error}");
}

#[test]
fn strings_keep_their_white_space_when_lines_move() {
    becomes(
        L::Python,
        "run($$$X)",
        "with a:\n    run($$$X)",
        "run(\"\"\"\n  sql\n\"\"\", [\n    1,\n])\n",
        "with a:\n    run(\"\"\"\n  sql\n\"\"\", [\n        1,\n    ])\n",
    );
}

#[test]
fn tokens_that_the_matcher_passes_over_are_not_lost() {
    leaves(
        L::JavaScript,
        "function $F() { $$$B }",
        "const $F = () => { $$$B }",
        "async function f() { g(); }\n",
        Left::Code,
    );
}
