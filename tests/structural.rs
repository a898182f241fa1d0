//! Rewrites, patches and renames through the whole door: several runs in one folder,
//! real language servers, and a process that is killed in the middle.

use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::{Home, Session, eventually};

fn write(dir: &Path, name: &str, text: impl AsRef<[u8]>) {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn read(dir: &Path, name: &str) -> String {
    std::fs::read_to_string(dir.join(name)).unwrap()
}

/// Opens a session on a folder with a project, if its server can be had.
#[expect(clippy::print_stdout, reason = "a test that proves nothing says so")]
fn served(home: &Home, dir: &Path, server: &str) -> Option<Session> {
    let mut session = home.session(dir, &[]);
    let status = session.text("lsp", json!({ "action": "status" }));
    let line = status.lines().find(|line| line.starts_with(&format!("{server}: ")));
    if line.is_none_or(|line| line.contains("no program")) {
        println!("skipped: {server} cannot be had: {status}");
        return None;
    }
    Some(session)
}

fn texts(result: &Value) -> String {
    let blocks = result["content"].as_array().unwrap();
    blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}

fn python(home: &Home) -> PathBuf {
    let dir = home.folder("py");
    write(&dir, "pyproject.toml", "[project]\nname = \"x\"\n");
    write(&dir, "shapes.py", "class Circle:\n    def area(self) -> int:\n        return 1\n");
    write(
        &dir,
        "use.py",
        "from shapes import Circle\n\ntotal = Circle().area() + Circle().area()\n",
    );
    dir
}

#[test]
fn a_rename_changes_every_file_and_tells_what_it_broke() {
    let home = Home::new();
    let dir = python(&home);
    let Some(mut session) = served(&home, &dir, "pyright") else { return };
    let asked = json!({"file": "shapes.py", "line": 2, "symbol": "area", "new_name": "size"});
    let result = session.call("lsp_rename", asked);
    let text = texts(&result);
    assert!(text.starts_with("`area` is now `size`: 3 edits in 2 files"), "{text}");
    assert!(text.contains("diagnostics: fresh, nothing new"), "{text}");
    assert!(read(&dir, "use.py").contains("Circle().size() + Circle().size()"));
    let bad = json!({"file": "shapes.py", "line": 2, "symbol": "size", "new_name": "not a name"});
    assert!(session.failure("lsp_rename", bad).contains("give one word"));
    assert!(session.end().success());
}

#[test]
fn a_rename_in_typescript_is_one_change() {
    let home = Home::new();
    let dir = home.folder("ts");
    write(&dir, "package.json", "{\"name\": \"x\"}\n");
    write(
        &dir,
        "tsconfig.json",
        "{\"compilerOptions\": {\"strict\": true}, \"include\": [\"*.ts\"]}\n",
    );
    write(&dir, "shapes.ts", "export function area(r: number): number {\n  return r * r;\n}\n");
    write(&dir, "use.ts", "import { area } from './shapes';\nconsole.log(area(1), area(2));\n");
    let Some(mut session) = served(&home, &dir, "typescript-language-server") else { return };
    let asked = json!({"file": "shapes.ts", "line": 1, "symbol": "area", "new_name": "size"});
    let text = texts(&session.call("lsp_rename", asked));
    assert!(text.contains("edits in 2 files"), "{text}");
    assert_eq!(
        read(&dir, "use.ts"),
        "import { size } from './shapes';\nconsole.log(size(1), size(2));\n"
    );
    assert!(session.end().success());
}

#[test]
fn a_code_action_is_staged_and_applied() {
    let home = Home::new();
    let dir = home.folder("ts");
    write(&dir, "package.json", "{\"name\": \"x\"}\n");
    write(
        &dir,
        "tsconfig.json",
        "{\"compilerOptions\": {\"strict\": true}, \"include\": [\"*.ts\"]}\n",
    );
    write(&dir, "shapes.ts", "export function area(r: number): number {\n  return r * r;\n}\n");
    write(&dir, "use.ts", "console.log(area(1));\n");
    let Some(mut session) = served(&home, &dir, "typescript-language-server") else { return };
    let place = json!({"action": "code_actions", "file": "use.ts", "line": 1, "symbol": "area"});
    // A server that has only just started has no verdict yet to offer a fix for.
    let mut title = None;
    eventually("an import is offered", || {
        let offered = session.call("lsp", place.clone());
        let actions = offered["details"]["actions"].as_array().cloned().unwrap_or_default();
        let mut titles = actions.iter().filter_map(|action| action["title"].as_str());
        title = titles.find(|title| title.starts_with("Add import")).map(str::to_owned);
        title.is_some()
    });
    let asked = json!({"file": "use.ts", "line": 1, "symbol": "area", "title": title});
    let staged = session.call("lsp_apply", asked);
    assert!(texts(&staged).starts_with("(proposed) 1 edit in 1 file"), "{staged:#}");
    assert!(!read(&dir, "use.ts").contains("import"));
    let accept = json!({"edit_id": staged["details"]["edit_id"], "action": "accept"});
    let text = texts(&session.call("resolve", accept));
    assert!(text.starts_with("applied edit_1"), "{text}");
    assert!(read(&dir, "use.ts").contains("import { area } from"));
    assert!(session.end().success());
}

#[test]
fn a_rename_in_c_is_one_change() {
    let home = Home::new();
    let dir = home.folder("c");
    let entry =
        |file: &str| json!({"directory": dir, "file": file, "command": format!("cc -c {file}")});
    let all = json!([entry("area.c"), entry("use.c")]);
    write(&dir, "compile_commands.json", all.to_string());
    write(&dir, "area.h", "int area(int r);\n");
    write(&dir, "area.c", "#include \"area.h\"\nint area(int r) { return r * r; }\n");
    write(&dir, "use.c", "#include \"area.h\"\nint main(void) { return area(1) + area(2); }\n");
    let Some(mut session) = served(&home, &dir, "clangd") else { return };
    let asked = json!({"file": "area.c", "line": 2, "symbol": "area", "new_name": "size"});
    let text = texts(&session.call("lsp_rename", asked));
    assert!(text.starts_with("`area` is now `size`: 4 edits in 3 files"), "{text}");
    assert_eq!(
        read(&dir, "use.c"),
        "#include \"area.h\"\nint main(void) { return size(1) + size(2); }\n"
    );
    assert!(session.end().success());
}

#[test]
fn a_staged_rewrite_is_refused_whole_after_another_run_wrote() {
    let home = Home::new();
    let dir = python(&home);
    let _daemon = home.serve();
    let (mut one, mut other) = (home.session(&dir, &[]), home.session(&dir, &[]));
    let rewrite = json!({"pattern": "$X.area()", "rewrite": "$X.size()", "language": "python"});
    let staged = one.text("ast_edit", rewrite.clone());
    assert!(staged.starts_with("(proposed) 2 replacements in 1 file"), "{staged}");
    let nodes = home.report()["nodes"].clone();
    let row = nodes.as_array().unwrap().iter().find(|node| node["kind"] == "staged_edit");
    assert_eq!(row.expect("a row in status")["name"], "edit_1");
    let edit = json!({"path": "use.py", "old_text": "total", "new_text": "sum_of_all"});
    other.text("edit", edit);
    let accept = json!({"edit_id": "edit_1", "action": "accept"});
    let refused = one.failure("resolve", accept);
    assert!(
        refused.contains("refused and dropped") && refused.contains("use.py has changed"),
        "{refused}"
    );
    assert!(
        read(&dir, "use.py")
            .starts_with("from shapes import Circle\n\nsum_of_all = Circle().area()")
    );
    one.text("ast_edit", rewrite);
    let applied = texts(&one.call("resolve", json!({"edit_id": "edit_2", "action": "accept"})));
    assert!(applied.starts_with("applied edit_2"), "{applied}");
    assert_eq!(read(&dir, "use.py").matches(".size()").count(), 2);
    assert!(one.end().success() && other.end().success());
    assert!(home.run(&["stop"]).status.success());
}

#[test]
fn parallel_edits_of_one_file_are_all_there() {
    let home = Home::new();
    let dir = home.folder("plain");
    write(&dir, "a.txt", (0..6).map(|at| format!("line {at}\n")).collect::<String>());
    let mut session = home.session(&dir, &[]);
    let ids: Vec<_> = (0..6)
        .map(|at| {
            let body = format!("*** Update File: a.txt\n@@\n-line {at}\n+LINE {at}");
            session.begin(
                "apply_patch",
                json!({"patch": format!("*** Begin Patch\n{body}\n*** End Patch")}),
            )
        })
        .collect();
    for id in ids {
        assert_eq!(session.answer(id)["result"]["is_error"], false);
    }
    let expected: String = (0..6).map(|at| format!("LINE {at}\n")).collect();
    assert_eq!(read(&dir, "a.txt"), expected);
    assert!(session.end().success());
}

/// Kills a session while it commits 50 files, at different moments.
#[test]
fn a_kill_in_the_middle_leaves_all_old_or_all_new() {
    const FILES: usize = 50;
    let home = Home::new();
    let dir = home.folder("many");
    let (mut old, mut new) = (0, 0);
    for round in 0..12_u32 {
        for file in 0..FILES {
            write(&dir, &format!("{file}.js"), "foo(1);\n");
        }
        let mut session = home.session(&dir, &[]);
        let rewrite = json!({"pattern": "foo($A)", "rewrite": "bar($A)", "language": "js"});
        session.text("ast_edit", rewrite);
        session.begin("resolve", json!({"edit_id": "edit_1", "action": "accept"}));
        std::thread::sleep(std::time::Duration::from_micros(u64::from(round) * 1_500));
        session.process.signal(Signal::SIGKILL);
        session.process.wait();
        // Whoever comes next puts it in order.
        let mut next = home.session(&dir, &[]);
        next.text("glob", json!({"pattern": "*"}));
        let changed = (0..FILES).filter(|file| read(&dir, &format!("{file}.js")) == "bar(1);\n");
        match changed.count() {
            0 => old += 1,
            FILES => new += 1,
            some => panic!("{some} of {FILES} files are new after round {round}"),
        }
        let names = std::fs::read_dir(&dir).unwrap().count();
        assert_eq!(names, FILES, "something is left beside the files");
        assert!(next.end().success());
    }
    assert_eq!(old + new, 12);
}

/// A session whose folder is a file system of two megabytes.
#[test]
fn a_full_disk_in_the_middle_leaves_all_old() {
    const FILES: usize = 40;
    let home = Home::new();
    let dir = home.folder("small");
    let mount = "mount -t tmpfs -o size=2m none \"$1\" && cd \"$1\" && \
        for i in $(seq 40); do (echo 'foo(1);'; head -c 30000 /dev/zero | tr '\\0' '/') > $i.js; done";
    let alone = ["--map-root-user", "--mount", "sh", "-c"];
    let tried =
        std::process::Command::new("unshare").args(alone).arg(mount).arg("sh").arg(&dir).status();
    if !tried.is_ok_and(|status| status.success()) {
        println!("skipped: no small file system can be mounted here");
        return;
    }
    let mut command = std::process::Command::new("unshare");
    let run = format!("{mount}; exec \"$2\" session --dir \"$1\"");
    command.args(alone).arg(run).arg("sh").arg(&dir).arg(env!("CARGO_BIN_EXE_hostler"));
    command.env("HOME", home.path()).env_remove("XDG_DATA_HOME").env_remove("XDG_RUNTIME_DIR");
    let mut session = Session::start(command);
    let rewrite = json!({"pattern": "foo($A)", "rewrite": "bar($A)", "language": "js"});
    let staged = session.text("ast_edit", rewrite);
    assert!(staged.starts_with("(proposed) 40 replacements in 40 files"), "{staged}");
    let refused = session.failure("resolve", json!({"edit_id": "edit_1", "action": "accept"}));
    assert!(
        refused.contains("nothing was written") && refused.contains("no space left"),
        "{refused}"
    );
    let still = session.call("ast_grep", json!({"pattern": "foo($A)", "language": "js"}));
    assert_eq!(still["details"]["total"], FILES);
    let names = session.text("bash", json!({"command": "ls -A | wc -l"}));
    assert!(names.starts_with("40"), "{names}");
    assert!(session.end().success());
}
