//! What a cell becomes, and that it does in a real Node what it should.

use std::io::Write as _;
use std::process::Stdio;

use super::*;

mod rows;

use rows::{JAVASCRIPT, Row, TYPESCRIPT};

/// Runs every row in one Node; without Node there is nothing to compare with.
#[allow(clippy::disallowed_methods, reason = "a test's own Node, not a hosted process")]
fn in_node(rows: &[Row], dialect: Dialect) -> Option<Vec<String>> {
    let row = |row: &Row| {
        let cells = row.cells.iter().map(|cell| {
            let made = script(cell, dialect).unwrap_or_else(|why| panic!("{cell:?}: {why}"));
            serde_json::json!({ "code": made.code, "shift": made.shift })
        });
        serde_json::Value::from_iter(cells)
    };
    let rows = serde_json::Value::from_iter(rows.iter().map(row));
    let child = std::process::Command::new("node")
        .args(["--no-warnings", "-e", include_str!("tests/drive.js")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        println!("skipped: no node in the path");
        return None;
    };
    child.stdin.take().unwrap().write_all(rows.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn hold(rows: &[Row], dialect: Dialect) {
    let Some(answers) = in_node(rows, dialect) else { return };
    assert_eq!(answers.len(), rows.len());
    let wrong = rows.iter().zip(&answers).filter(|(row, answer)| row.expected != answer.as_str());
    let told: Vec<_> = wrong
        .map(|(row, answer)| {
            let made = row.cells.iter().map(|cell| script(cell, dialect).unwrap().code);
            let made: Vec<_> = made.collect();
            format!("{:?}\n  made {made:?}\n  gave {answer}\n  not  {}", row.cells, row.expected)
        })
        .collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
}

#[test]
fn javascript_does_in_node_what_it_should() {
    hold(JAVASCRIPT, Dialect::JavaScript);
}

#[test]
fn typescript_does_in_node_what_it_should() {
    hold(TYPESCRIPT, Dialect::TypeScript);
}

#[test]
fn javascript_is_typescript_too() {
    hold(JAVASCRIPT, Dialect::TypeScript);
}

#[test]
fn no_cell_grows_by_a_line_before_its_end() {
    for (rows, dialect) in [(JAVASCRIPT, Dialect::JavaScript), (TYPESCRIPT, Dialect::TypeScript)] {
        for cell in rows.iter().flat_map(|row| row.cells) {
            let made = script(cell, dialect).unwrap();
            let lines = cell.matches('\n').count() + usize::from(made.awaits);
            assert_eq!(made.code.matches('\n').count(), lines, "{cell:?} {:?}", made.code);
        }
    }
}

#[test]
fn what_is_no_cell_is_refused_with_its_place() {
    for (cell, expected) in [
        ("let a = 1\nlet b = = 2", "SyntaxError: does not parse from line 2,"),
        ("enum E { A }", "line 1: enums"),
        ("1\nnamespace N { export const a = 1 }", "line 2: namespaces"),
        ("class A { constructor(private a: number) {} }", "line 1: parameter properties"),
        ("@sealed class A {}", "line 1: decorators"),
        ("export * from 'm'", "line 1: a cell has nobody"),
    ] {
        let told = script(cell, Dialect::TypeScript).unwrap_err().to_string();
        assert!(told.starts_with(expected), "{cell:?} {told}");
    }
}

#[test]
fn a_caret_stands_where_what_does_not_parse_begins() {
    let told = script("x = 'é'\n  y = 'é' + )", Dialect::JavaScript).unwrap_err().to_string();
    let lines: Vec<_> = told.lines().collect();
    assert_eq!(lines[0], "SyntaxError: does not parse from line 2, column 3 on", "{told}");
    assert_eq!(lines[1..], ["  y = 'é' + )", "  ^"]);
}
