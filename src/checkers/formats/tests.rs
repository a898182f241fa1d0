//! Every form, on outputs that were recorded by running the checkers. That of dart was
//! put together from its documentation: there was none to run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use expect_test::{Expect, expect};

use super::*;
use crate::diagnostics::findings::line;

macro_rules! recorded {
    ($name:literal) => {
        include_str!(concat!("../../../tests/fixtures/checkers/", $name))
    };
}

fn lines_of(format: Format, output: &str) -> String {
    let report = read(format, "x", output, Path::new("/w")).unwrap();
    let lines: Vec<_> = report.findings.iter().map(|it| line(Path::new("/w"), it)).collect();
    lines.join("\n") + "\n" + &report.gaps.join("\n")
}

fn check(format: Format, output: &str, expected: &Expect) {
    expected.assert_eq(&lines_of(format, output));
}

#[test]
fn cargo() {
    check(
        Format::CargoJson,
        recorded!("cargo.json"),
        &expect![[r#"
        src/lib.rs:3:14 error cannot find value `missing` in this scope: not found in this scope (E0425) [x]
        src/lib.rs:3:14 error cannot find value `missing` in this scope: not found in this scope (E0425) [x]
        src/lib.rs:1:18 warning unused variable: `unused` (unused_variables) [x]
        src/lib.rs:1:18 warning unused variable: `unused` (unused_variables) [x]
        tests/t.rs:3:9 warning unused variable: `unused` (unused_variables) [x]
    "#]],
    );
}

#[test]
fn both_generations_of_tsc() {
    let expected = expect![[r#"
        src/a.ts:1:7 error Type 'string' is not assignable to type 'number'. (TS2322) [x]
        src/a.ts:2:7 error Type '{ a: { b: string; }; }' is not assignable to type '{ a: { b: number; }; }'.; The types of 'a.b' are incompatible between these types.; Type 'string' is not assignable to type 'number'. (TS2322) [x]
        src/a.ts:3:25 error Cannot find name 'missing'. (TS2304) [x]
    "#]];
    check(Format::Tsc, recorded!("tsc-5.9.txt"), &expected);
    check(Format::Tsc, recorded!("tsc-7.0.txt"), &expected);
}

#[test]
fn what_tsc_says_of_the_project_itself() {
    let output = "error TS18003: No inputs were found in config file '/w/tsconfig.json'.\n\
        b/b.ts(1,17): error TS6305: Output file '/w/a/out/a.d.ts' has not been built.\n";
    check(
        Format::Tsc,
        output,
        &expect![[r#"
        tsconfig.json:1:1 error No inputs were found in config file '/w/tsconfig.json'. (TS18003) [x]
        1 uses of a project that it refers to were not checked: it is not built (`tsc -b` builds it)"#]],
    );
}

#[test]
fn pyright_and_basedpyright() {
    check(
        Format::PyrightJson,
        recorded!("pyright.json"),
        &expect![[r#"
        pkg/a.py:2:8 error Import "nowhere" could not be resolved (reportMissingImports) [x]
        pkg/a.py:3:10 error Type "Literal['é']" is not assignable to declared type "int"; "Literal['é']" is not assignable to "int" (reportAssignmentType) [x]
        pkg/a.py:4:6 error "(" was not closed [x]
        pkg/a.py:4:7 error Expected parameter name [x]
        pkg/a.py:4:7 error Position-only parameter separator not allowed as first parameter [x]
        pkg/a.py:5:1 error Expected expression [x]
        pkg/a.py:5:1 error Expected ":" [x]
        pkg/a.py:5:1 error Statements must be separated by newlines or semicolons [x]
        pkg/b.py:3:12 error "undefined_name" is not defined (reportUndefinedVariable) [x]
    "#]],
    );
    check(
        Format::PyrightJson,
        recorded!("basedpyright.json"),
        &expect![[r#"
        pkg/a.py:1:8 warning Import "os" is not accessed (reportUnusedImport) [x]
        pkg/a.py:2:8 error Import "nowhere" could not be resolved (reportMissingImports) [x]
        pkg/a.py:2:8 warning Import "nowhere" is not accessed (reportUnusedImport) [x]
        pkg/a.py:3:10 error Type "Literal['é']" is not assignable to declared type "int"; "Literal['é']" is not assignable to "int" (reportAssignmentType) [x]
        pkg/a.py:4:6 error "(" was not closed [x]
        pkg/a.py:4:7 error Expected parameter name [x]
        pkg/a.py:4:7 error Position-only parameter separator not allowed as first parameter [x]
        pkg/a.py:5:1 error Expected expression [x]
        pkg/a.py:5:1 error Expected ":" [x]
        pkg/a.py:5:1 error Statements must be separated by newlines or semicolons [x]
        pkg/b.py:1:8 warning Import "os" is not accessed (reportUnusedImport) [x]
        pkg/b.py:2:5 warning Return type is unknown (reportUnknownParameterType) [x]
        pkg/b.py:3:12 error "undefined_name" is not defined (reportUndefinedVariable) [x]
        pkg/b.py:3:12 warning Return type is unknown (reportUnknownVariableType) [x]
    "#]],
    );
}

#[test]
fn ruff() {
    check(
        Format::RuffJson,
        recorded!("ruff.json"),
        &expect![[r#"
        pkg/a.py:4:7 error Expected a parameter or the end of the parameter list (invalid-syntax) [x]
        pkg/a.py:5:1 error unexpected EOF while parsing (invalid-syntax) [x]
        pkg/b.py:1:1 warning Import block is un-sorted or un-formatted (I001) [x]
        pkg/b.py:1:8 warning `os` imported but unused (F401) [x]
        pkg/b.py:3:12 error Undefined name `undefined_name` (F821) [x]
    "#]],
    );
}

#[test]
fn gcc() {
    check(
        Format::Gnu,
        recorded!("gcc.txt"),
        &expect![[r#"
        a.c:2:22 warning returning ‘char *’ from a function with return type ‘int’ makes integer from pointer without a cast (-Wint-conversion) [x]
        a.c:3:27 error ‘missing’ undeclared (first use in this function) [x]
    "#]],
    );
}

#[test]
fn go_vet_and_go_build() {
    check(
        Format::Go,
        recorded!("go-vet.txt"),
        &expect![[r#"
        sub/b.go:6:14 error fmt.Printf format %d has arg "x" of wrong type string [x]
        a.go:7:9 error cannot use "s" (untyped string constant) as int value in return statement [x]
    "#]],
    );
    check(
        Format::Go,
        recorded!("go-build.txt"),
        &expect![[r#"
        a.go:7:9 error cannot use "s" (untyped string constant) as int value in return statement [x]
        a.go:7:9 error cannot use "s" (untyped string constant) as int value in return statement [x]
        sub/b.go:11:11 error cannot use T{} (value of struct type T) as I value in variable declaration: T does not implement I (missing method M) [x]
        sub/b.go:12:12 error undefined: undefinedThing [x]
        sub/b.go:12:36 error declared and not used: x [x]
        sub/b.go:12:44 error cannot use "a" (untyped string constant) as int value in variable declaration [x]
    "#]],
    );
}

#[test]
fn dart() {
    let output = r"ERROR|COMPILE_TIME_ERROR|UNDEFINED_METHOD|/w/lib/a.dart|3|5|4|No method 'a\|b'.
WARNING|STATIC_WARNING|UNUSED_IMPORT|/w/lib/a.dart|1|8|11|Unused import: 'dart:io'.
INFO|LINT|PREFER_CONST|/w/lib/a.dart|2|1|3|Use 'const'.
";
    check(
        Format::DartMachine,
        output,
        &expect![[r#"
        lib/a.dart:3:5 error No method 'a|b'. (undefined_method) [x]
        lib/a.dart:1:8 warning Unused import: 'dart:io'. (unused_import) [x]
    "#]],
    );
}

#[test]
fn an_output_that_is_not_whole_is_not_read() {
    let cut = recorded!("cargo.json").lines().take(3).collect::<Vec<_>>().join("\n");
    for (format, output) in [
        (Format::CargoJson, cut.as_str()),
        (Format::CargoJson, ""),
        (Format::PyrightJson, r#"{"generalDiagnostics":["#),
        (Format::RuffJson, ""),
    ] {
        assert!(read(format, "x", output, Path::new("/w")).is_err(), "{format:?}");
    }
}
