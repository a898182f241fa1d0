//! The project's checkers behind diagnostics of `"*"`, with the real ones that this
//! machine has and with scripts for what real ones rarely do.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Home, Session, eventually, marked};

fn put(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn script(dir: &Path, name: &str, text: &str) {
    put(dir, name, &format!("#!/bin/sh\n{text}\n"));
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(dir.join(name), mode).unwrap();
}

/// Every file below a folder, to see that a check leaves no trace.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found.sort();
    found
}

/// Opens a session in whose home the toolchain of this machine is still found.
fn session(home: &Home, dir: &Path, more: &[&str]) -> Session {
    let mut command = home.hostler(&["session", "--dir"]);
    command.arg(dir).args(more);
    let real = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    for (name, folder) in [("RUSTUP_HOME", ".rustup"), ("CARGO_HOME", ".cargo")] {
        let set = std::env::var_os(name).map(PathBuf::from).unwrap_or_else(|| real.join(folder));
        command.env(name, set);
    }
    command.env("CARGO_NET_OFFLINE", "true");
    Session::start(command)
}

fn everything() -> Value {
    json!({ "action": "diagnostics", "file": "*" })
}

/// Checks a folder, in full.
fn check(session: &mut Session) -> (String, Value) {
    let result = session.call("lsp", everything());
    assert_eq!(result["is_error"], false, "{result:#}");
    (result["content"][0]["text"].as_str().unwrap().to_owned(), result["details"].clone())
}

#[expect(clippy::print_stdout, reason = "a test that proves nothing says so")]
fn lacks(text: &str, checker: &str) -> bool {
    let line = text.lines().find(|line| line.starts_with(checker) && line.contains("no program"));
    if let Some(line) = line {
        println!("skipped: {line}");
    }
    line.is_some()
}

#[test]
fn every_language_of_a_folder_is_checked_or_named() {
    let home = Home::new();
    let dir = home.folder("project");
    put(&dir, "Cargo.toml", "[package]\nname = 'tiny'\nversion = '0.1.0'\nedition = '2021'\n");
    put(&dir, "src/lib.rs", "pub fn f() -> u32 {\n    \"x\"\n}\n");
    put(&dir, "tsconfig.json", r#"{ "include": ["web"] }"#);
    put(&dir, "web/a.ts", "const n: number = 'x';\n");
    put(&dir, "pyproject.toml", "[tool.ruff]\nline-length = 100\n");
    put(&dir, "a.py", "import nowhere_at_all\nprint(nowhere)\n");
    put(&dir, "go/main.go", "package main\n");
    let mut session = session(&home, &dir, &[]);
    let (text, details) = check(&mut session);
    let all = [
        ("cargo", "src/lib.rs:2:5 error mismatched types"),
        ("tsc", "web/a.ts:1:7 error Type 'string' is not assignable"),
        ("pyright", "a.py:1:8 error Import \"nowhere_at_all\""),
        ("ruff", "a.py:2:7 error Undefined name `nowhere` (F821) [ruff]"),
    ];
    for (checker, found) in all {
        assert!(text.contains(&format!("{checker} in .: ")), "{checker}: {text}");
        if !lacks(&text, checker) {
            assert!(text.contains(found), "{checker}: {text}");
        }
    }
    // Files for which there is a checker, but no place to run it in.
    assert!(text.contains("for 1 file: go/main.go"), "{text}");
    assert_eq!(details["freshness"], "unknown", "{text}");
    assert!(!dir.join("target").exists(), "the build has a target folder of its own");
    assert!(session.end().success());
}

#[test]
fn a_cargo_workspace_is_checked_once() {
    let home = Home::new();
    let dir = home.folder("project");
    put(&dir, "Cargo.toml", "[workspace]\nmembers = ['a', 'b']\nresolver = '2'\n");
    for name in ["a", "b"] {
        let manifest = format!("[package]\nname = '{name}'\nversion = '0.1.0'\nedition = '2021'\n");
        put(&dir, &format!("{name}/Cargo.toml"), &manifest);
        put(&dir, &format!("{name}/src/lib.rs"), "pub fn f() {}\n");
    }
    let alone = "[package]\nname = 'c'\nversion = '0.1.0'\nedition = '2021'\n[workspace]\n";
    put(&dir, "c/Cargo.toml", alone);
    put(&dir, "c/src/lib.rs", "pub fn f() {}\n");
    let mut whole = session(&home, &dir, &[]);
    let (text, details) = check(&mut whole);
    if lacks(&text, "cargo") {
        return;
    }
    assert_eq!(text, "cargo in .: no errors or warnings\ncargo in c: no errors or warnings");
    assert_eq!(details["freshness"], "fresh");
    put(&dir, "b/tests/it.rs", "#[test]\nfn t() {\n    missing();\n}\n");
    let (text, _) = check(&mut whole);
    assert!(text.contains("\nb/tests/it.rs:3:5 error cannot find function `missing`"), "{text}");
    assert!(whole.end().success());
    // From inside a member, whose workspace begins above.
    let mut inner = session(&home, &dir.join("a"), &[]);
    let (text, _) = check(&mut inner);
    let left_out = "cargo in .: no errors or warnings (and 1 outside this folder, left out)";
    assert_eq!(text, left_out);
    put(&dir, "a/Cargo.toml", "[package\n");
    let (text, details) = check(&mut inner);
    assert!(text.contains("cargo in .: not verified: "), "{text}");
    assert_eq!(details["freshness"], "unknown");
    assert!(inner.end().success());
}

/// Every installed tsc, with its version.
fn compilers() -> Vec<(PathBuf, String)> {
    let tools = std::env::var_os("HOSTLER_TOOLS").map(PathBuf::from).unwrap_or_default();
    let below = |folder: PathBuf| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
    };
    let versions = below(tools).flat_map(|tool| below(tool.path()));
    let found = versions.filter(|version| version.file_type().is_ok_and(|kind| kind.is_symlink()));
    let found = found.map(|version| version.path().join("bin/tsc")).filter(|tsc| tsc.exists());
    found
        .map(|tsc| {
            let printed = Command::new(&tsc).arg("--version").output().unwrap();
            (tsc, String::from_utf8(printed.stdout).unwrap().trim().to_owned())
        })
        .collect()
}

#[test]
fn typescript_projects_are_checked_from_their_sources_and_without_a_trace() {
    let compilers = compilers();
    if compilers.is_empty() {
        println!("skipped: no tsc among the tools in HOSTLER_TOOLS");
    }
    for (tsc, version) in compilers {
        println!("with {version}");
        let home = Home::new();
        let bin = tsc.parent().unwrap().display();
        put(
            home.path(),
            ".config/hostler/checkers/tsc.toml",
            &format!("project_folders = ['{bin}']"),
        );
        let dir = home.folder("project");
        put(
            &dir,
            "tsconfig.json",
            "{ // Only refers.\n \"files\": [], \"references\": [{ \"path\": \"a\" }, { \"path\": \"b\" },], }",
        );
        let options = r#""compilerOptions": { "composite": true, "strict": true, "outDir": "out", "rootDir": "." }"#;
        put(&dir, "a/tsconfig.json", &format!("{{ {options} }}"));
        put(
            &dir,
            "b/tsconfig.json",
            &format!(r#"{{ {options}, "references": [{{ "path": "../a" }}] }}"#),
        );
        put(&dir, "a/a.ts", "export const x: number = 1;\n");
        put(&dir, "b/b.ts", "import { x } from '../a/a';\nexport const y: number = x;\n");
        put(&dir, "c/tsconfig.json", r#"{ "compilerOptions": { "incremental": true } }"#);
        put(&dir, "c/c.ts", "export const z = '日😀' + 1;\n");
        let before = files(&dir);
        let mut session = session(&home, &dir, &[]);
        let (text, details) = check(&mut session);
        assert_eq!(
            text,
            "tsc in .: no errors or warnings, 2 files checked\ntsc in c: no errors or warnings",
            "{version}"
        );
        assert_eq!(details["freshness"], "fresh");
        put(&dir, "b/b.ts", "import { x } from '../a/a';\nexport const y: string = x;\n");
        put(&dir, "c/c.ts", "export const z = '日😀' + missing;\n");
        let (text, _) = check(&mut session);
        let found = "b/b.ts:2:14 error Type 'number' is not assignable to type 'string'. (TS2322)";
        assert!(text.contains(found), "{version}: {text}");
        assert!(
            text.contains("c/c.ts:1:25 error Cannot find name 'missing'."),
            "{version}: {text}"
        );
        assert_eq!(files(&dir), before, "{version}");
        put(&dir, "c/tsconfig.json", r#"{ "include": ["nothing"] }"#);
        let (text, _) = check(&mut session);
        assert!(text.contains("c/tsconfig.json:1:1 error No inputs were found"), "{text}");
        assert!(session.end().success());
    }
}

#[test]
fn a_compilation_database_is_checked_and_nothing_is_built() {
    let home = Home::new();
    let dir = home.folder("project");
    put(&dir, "h.h", "int g(int);\nint wrong(void) { return missing; }\n");
    put(&dir, "a.c", "#include \"h.h\"\nint f(void) { return g(A); }\n");
    put(&dir, "b.c", "#include \"h.h\"\nint h(void) { return g(2); }\n");
    let entry = |file: &str, command: &str| json!({ "directory": dir.join("build"), "file": format!("../{file}"), "command": command });
    let entries = json!([
        entry("a.c", "/usr/bin/gcc -DA=1 -o a.o -c ../a.c"),
        entry("a.c", "/usr/bin/gcc -DA=1 -o other.o -c ../a.c"),
        entry("b.c", "/bin/rm -MD -MF b.d -o b.o -c ../b.c"),
    ]);
    put(&dir, "build/compile_commands.json", &entries.to_string());
    let before = files(&dir);
    let mut session = session(&home, &dir, &[]);
    let (text, details) = check(&mut session);
    if lacks(&text, "clang") {
        return;
    }
    let found = "clang in .: 1 error, 2 files checked\nh.h:2:26 error ";
    assert!(text.starts_with(found) && text.contains("missing"), "{text}");
    assert_eq!((&details["total"], &details["freshness"]), (&json!(1), &json!("fresh")));
    assert_eq!(files(&dir), before);
    put(&dir, "c.c", "int c;\n");
    let (text, _) = check(&mut session);
    assert!(text.contains("clang in .: not covered: 1 of 3 files stand in no command"), "{text}");
    assert!(session.end().success());
}

/// Defines a checker of `*.mine` files that is a script, with further keys.
fn mine(home: &Home, text: &str, more: &str) {
    let bin = home.folder("bin");
    script(&bin, "mine", text);
    let keys = format!(
        "files = ['*.mine']\nroot_markers = ['mine.root']\nbinaries = ['mine']\nformat = 'gnu'\n\
         project_folders = ['{}']\n{more}\nexit_codes = {{ clean = [0], findings = [1] }}\n",
        bin.display()
    );
    put(home.path(), ".config/hostler/checkers/mine.toml", &keys);
}

#[test]
fn a_checker_of_ones_own_is_a_file() {
    let home = Home::new();
    let dir = home.folder("project");
    put(&dir, "sub/mine.root", "");
    let text = "echo 'x.mine:3:4: error: it is wrong [-Wmine]' >&2; exit 1";
    mine(&home, text, "deadline = '10s'");
    let mut session = session(&home, &dir, &[]);
    let (text, _) = check(&mut session);
    let found = "mine in sub: 1 error\nsub/x.mine:3:4 error it is wrong (-Wmine) [mine]";
    assert_eq!(text, found);
    // One that fails and says nothing has verified nothing.
    mine(&home, "exit 1", "deadline = '10s'");
    let (text, details) = check(&mut session);
    assert!(text.starts_with("mine in sub: not verified: exited with code 1"), "{text}");
    assert_eq!(details["freshness"], "unknown");
    assert!(session.end().success());
}

#[test]
fn a_checker_that_hangs_is_ended_with_all_that_it_started() {
    let home = Home::new();
    let dir = home.folder("project");
    put(&dir, "mine.root", "");
    let mark = format!("HOSTLER_TEST_MARK={}", home.path().display());
    mine(
        &home,
        "setsid sleep 600 & trap '' TERM; sleep 600 & wait; wait",
        &format!("deadline = '1s'\nenv = {{ HOSTLER_TEST_MARK = '{}' }}", home.path().display()),
    );
    let mut session = session(&home, &dir, &[]);
    let (text, _) = check(&mut session);
    assert!(text.contains("killed, as it was not done within 1s"), "{text}");
    assert_eq!(marked(&mark), [0; 0]);
    assert!(session.end().success());
}

#[test]
fn runs_share_a_check_and_the_last_one_takes_it_along() {
    let home = Home::new();
    let dir = home.folder("project");
    put(&dir, "mine.root", "");
    let runs = home.path().join("runs");
    let mark = format!("HOSTLER_TEST_MARK={}", home.path().display());
    mine(
        &home,
        &format!("echo x >> {}; echo working; exec sleep 600", runs.display()),
        &format!("deadline = '10m'\nenv = {{ HOSTLER_TEST_MARK = '{}' }}", home.path().display()),
    );
    put(home.path(), ".config/hostler/hostler.toml", "[diagnostics]\nproject = '500ms'\n");
    let daemon = home.serve();
    let (mut one, mut other) = (session(&home, &dir, &[]), session(&home, &dir, &[]));
    for run in [&mut one, &mut other] {
        let (text, details) = check(run);
        assert!(text.starts_with("mine in .: still analysing: it runs for"), "{text}");
        assert_eq!(details["freshness"], "still analysing");
    }
    let started = || std::fs::read_to_string(&runs).unwrap().lines().count();
    assert_eq!(started(), 1, "the second run joined the first one's check");
    let report = home.report();
    let rows: Vec<_> = report["nodes"].as_array().unwrap().iter().collect();
    let rows: Vec<_> = rows.iter().filter(|row| row["kind"] == "check").collect();
    assert_eq!(rows.len(), 2, "{rows:#?}");
    assert!(
        rows[0]["doing"].as_str().is_some_and(|it| it.contains("so far") || it.contains("yet"))
    );
    assert!(one.end().success());
    assert_eq!(marked(&mark).len(), 1, "one run still wants it");
    // A change makes the question another one.
    put(&dir, "x.mine", "");
    assert!(check(&mut other).0.starts_with("mine in .: still analysing"));
    assert_eq!((started(), marked(&mark).len()), (2, 1));
    assert!(other.end().success());
    eventually("nobody wants it any more", || marked(&mark).is_empty());
    drop(daemon);
}

#[test]
fn go_modules_are_vetted_and_built_without_a_trace() {
    let home = Home::new();
    let dir = home.folder("project");
    put(&dir, "go.mod", "module example.com/t\n\ngo 1.19\n");
    put(&dir, "main.go", "package main\n\nfunc main() { println(f()) }\n");
    put(&dir, "f.go", "package main\n\nfunc f() int { return 1 }\n");
    let before = files(&dir);
    let mut session = session(&home, &dir, &[]);
    let (text, _) = check(&mut session);
    if lacks(&text, "go-vet") {
        return;
    }
    assert_eq!(text, "go-build in .: no errors or warnings\ngo-vet in .: no errors or warnings");
    assert_eq!(files(&dir), before);
    put(&dir, "f.go", "package main\n\nfunc f() int { return \"日\" + missing }\n");
    let (text, details) = check(&mut session);
    assert!(text.contains("f.go:3:29 error undefined: missing"), "{text}");
    assert_eq!(details["freshness"], "fresh", "{text}");
    assert!(session.end().success());
}

#[test]
fn what_outlasts_its_call_comes_with_the_result_of_another_tool() {
    let home = Home::new();
    let dir = home.folder("project");
    put(&dir, "mine.root", "");
    let go = home.path().join("go");
    let wait = format!("until [ -e {} ]; do sleep 0.02; done", go.display());
    let found = "echo 'x.mine:3:4: error: it is wrong' >&2; exit 1";
    mine(&home, &format!("{wait}; {found}"), "deadline = '1m'");
    put(home.path(), ".config/hostler/hostler.toml", "[diagnostics]\nproject = '200ms'\n");
    let mut session = session(&home, &dir, &[]);
    assert!(check(&mut session).0.contains("still analysing"));
    std::fs::write(&go, "").unwrap();
    let mut late = Value::Null;
    eventually("it comes", || {
        let result = session.call("glob", json!({ "pattern": "*" }));
        late = result["details"]["late"][0].clone();
        !late.is_null()
    });
    assert_eq!(late["diagnostics"][0]["path"], "x.mine", "{late:#}");
    assert_eq!((&late["total"], &late["freshness"]), (&json!(1), &json!("fresh")));
    assert!(session.end().success());
}
