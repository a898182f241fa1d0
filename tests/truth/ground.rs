//! A copy of a fixture, with git, and a home in which one server is chosen.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Home, Session};
use crate::truth::dialects::Dialect;
use serde_json::{Value, json};

/// Copies a project of the fixtures into a home.
pub(crate) fn project(home: &Home, name: &str) -> PathBuf {
    let dir = home.folder("project").canonicalize().unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/projects");
    copy(&fixtures.join(name), &dir);
    if name == "c" {
        compile_commands(&dir);
    }
    dir
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Writes how each C file is compiled, those that runs will write too.
fn compile_commands(dir: &Path) {
    let files = ["main", "money", "stock", "run_0", "run_1", "run_2", "run_3"];
    let commands = files.map(|name| {
        let file = format!("src/{name}.c");
        json!({ "directory": dir, "file": file, "arguments": ["cc", "-std=c17", "-c", file] })
    });
    std::fs::write(dir.join("compile_commands.json"), json!(commands).to_string()).unwrap();
}

/// Puts a project under git: `main` as it is, and `other` with a broken dependency.
pub(crate) fn branches(dir: &Path, dialect: &Dialect) {
    git(dir, &["init", "-q", "-b", "main"]);
    git(dir, &["add", "."]);
    git(dir, &["commit", "-q", "-m", "as it is"]);
    let Some(dependency) = dialect.dependency else { return };
    let file = dir.join(dependency.file);
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text.matches(dependency.sound).count(), 1, "{}", dependency.file);
    git(dir, &["checkout", "-q", "-b", "other"]);
    std::fs::write(&file, text.replace(dependency.sound, dependency.broken)).unwrap();
    git(dir, &["commit", "-q", "-a", "-m", "another"]);
    git(dir, &["checkout", "-q", "main"]);
}

fn git(dir: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=user", "-c", "user.email=user@example.com"]).args(args);
    let output = command.env("GIT_CONFIG_GLOBAL", "/dev/null").current_dir(dir).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {output:?}");
}

/// Leaves one server, whatever others the machine has.
pub(crate) fn only(home: &Home, server: &str) {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/servers");
    let folder = home.folder(".config/hostler/servers");
    for entry in std::fs::read_dir(shipped).unwrap().map(Result::unwrap) {
        let name = entry.file_name();
        if Path::new(&name).file_stem().is_some_and(|stem| stem != server) {
            std::fs::write(folder.join(name), "enabled = false\n").unwrap();
        }
    }
}

/// Opens a session, or says why that proves nothing of a server here.
#[expect(clippy::print_stdout, reason = "a test that proves nothing says so")]
pub(crate) fn session(home: &Home, dir: &Path, server: &str) -> Option<Session> {
    let mut session = home.session(dir, &[]);
    let status = session.call("lsp", json!({ "action": "status" }));
    let servers = status["details"]["servers"].as_array().expect("a list of servers").clone();
    if server == "bash-language-server" && Command::new("shellcheck").arg("-V").output().is_err() {
        println!("skipped: {server}: without shellcheck in PATH it finds nothing");
        return None;
    }
    let lacks = |row: &Value| row["name"] == server && row["no_program"].is_string();
    if let Some(row) = servers.iter().find(|row| lacks(row)) {
        println!("skipped: {server}: {}", row["no_program"]);
        return None;
    }
    Some(session)
}
