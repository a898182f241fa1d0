//! What is given to hostler and cannot be used: each time an error that names the
//! thing and the way out, nothing lost, and a session that goes on.
//!
//! Full disks are small file systems of their own in the memory, which only root
//! can mount; elsewhere those tests say that they were skipped.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use serde_json::{Value, json};

use crate::support::{Home, Session, eventually, scripted, text};

/// Far above what a refusal takes, and far below what would be called a hang.
const PROMPT: Duration = Duration::from_secs(10);

fn project(home: &Home, files: &[(&str, &[u8])]) -> PathBuf {
    let dir = home.folder("project");
    for (name, content) in files {
        std::fs::write(dir.join(name), content).unwrap();
    }
    dir
}

/// Makes calls that must fail soon, and checks what each of them says.
fn refused(session: &mut Session, calls: &[(&str, Value, &[&str])]) {
    for (tool, arguments, says) in calls {
        let began = Instant::now();
        let failure = session.failure(tool, arguments.clone());
        assert!(began.elapsed() < PROMPT, "{tool} {arguments}: {:?}", began.elapsed());
        for word in *says {
            assert!(failure.contains(word), "{tool} {arguments}: `{word}` is not in: {failure}");
        }
    }
    goes_on(session);
}

fn goes_on(session: &mut Session) {
    assert!(session.text("bash", json!({"command": "echo $((6 * 7))"})).starts_with("42\n"));
}

fn hover(file: &str, line: usize, symbol: &str) -> Value {
    json!({"action": "hover", "file": file, "line": line, "symbol": symbol})
}

fn program(path: &Path, script: &str, mode: u32) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

#[test]
fn a_folder_without_a_root_says_what_it_looked_for() {
    let home = Home::new();
    scripted(&home, &[], "");
    let dir = project(&home, &[("a.txt", b"word\n"), ("a.py", b"word\n")]);
    let mut session = home.session(&dir, &[]);
    let at = dir.canonicalize().unwrap().display().to_string();
    refused(
        &mut session,
        &[
            ("lsp", hover("a.txt", 1, "word"), &["scripted: no root", "scripted.root", &at]),
            ("lsp", hover("a.py", 1, "word"), &["no root", "pyproject.toml", "setup.py"]),
            ("lsp", json!({"action": "reload"}), &["nothing to restart", "scripted.root"]),
        ],
    );
    let status = session.text("lsp", json!({"action": "status"}));
    assert!(status.contains("scripted (none of scripted.root)"), "{status}");
    let edited = json!({"path": "a.txt", "old_text": "word", "new_text": "other"});
    assert!(session.text("edit", edited).contains("replaced 1 occurrence"));
    assert!(session.end().success());
}

#[test]
fn a_program_that_is_missing_names_the_command_that_gets_it() {
    let home = Home::new();
    let dir = project(&home, &[("pyproject.toml", b""), ("a.py", b"word = 1\n")]);
    let mut command = home.hostler(&["session", "--dir"]);
    command.arg(&dir).env("PATH", "/usr/bin:/bin").env("HOSTLER_TOOLS", home.path().join("none"));
    let mut session = Session::start(command);
    refused(
        &mut session,
        &[(
            "lsp",
            hover("a.py", 1, "word"),
            &["`pyright-langserver` was not found", "/usr/bin", "`hostler tools install pyright`"],
        )],
    );
    let status = session.text("lsp", json!({"action": "status"}));
    assert!(status.contains("`hostler tools install pyright` gets it"), "{status}");
    let checked = session.text("lsp", json!({"action": "diagnostics", "file": "*"}));
    assert!(checked.contains("not verified") && checked.contains("tools install"), "{checked}");
    let edited = session.call("edit", json!({"path": "a.py", "old_text": "1", "new_text": "2"}));
    assert_eq!(edited["is_error"], false, "{edited:#}");
    assert!(edited.to_string().contains("no server"), "{edited:#}");
    assert!(session.end().success());
}

#[test]
fn programs_that_do_not_work_are_named_and_passed_over() {
    let home = Home::new();
    let dir = project(&home, &[("scripted.root", b""), ("a.txt", b"word\n")]);
    let (plain, shim) =
        (home.path().join("plain/fake-server"), home.path().join("shims/fake-server"));
    program(&plain, "exit 0", 0o644);
    program(&shim, "echo 'no version of fake-server is set' >&2; exit 1", 0o755);
    let path =
        format!("{}/plain:{}/shims:/usr/bin:/bin", home.path().display(), home.path().display());
    scripted(&home, &[], "binaries = ['fake-server']\n[probe]\nargs = ['--version']\n");
    let open = |path: &str| {
        let mut command = home.hostler(&["session", "--dir"]);
        command.arg(&dir).env("PATH", path);
        Session::start(command)
    };
    let mut session = open(&path);
    let says = [
        format!("{}: is not executable", plain.display()),
        shim.display().to_string(),
        "no version of fake-server is set".to_owned(),
    ];
    let says: Vec<_> = says.iter().map(String::as_str).collect();
    refused(&mut session, &[("lsp", hover("a.txt", 1, "word"), &says)]);
    assert!(session.end().success());

    // The real one stands behind both.
    let real = home.path().join("real/fake-server");
    let server = crate::support::scripted_server();
    let run = format!("[ \"$1\" = --version ] && exit 0; exec {} \"$@\"", server.display());
    program(&real, &run, 0o755);
    let mut session = open(&format!("{path}:{}/real", home.path().display()));
    assert_eq!(session.text("lsp", hover("a.txt", 1, "word")), "word");
    let status = session.text("lsp", json!({"action": "status"}));
    assert!(status.contains(&real.display().to_string()), "{status}");
    assert!(session.end().success());
}

#[test]
fn places_that_are_not_there_are_shown_with_what_is() {
    let home = Home::new();
    scripted(&home, &[], "");
    let dir = project(&home, &[("scripted.root", b""), ("a.txt", b"alpha beta\ngamma\n")]);
    let mut session = home.session(&dir, &[]);
    refused(
        &mut session,
        &[
            ("lsp", hover("a.txt", 1, "delta"), &["a.txt", "`delta`", "line 1", "alpha beta"]),
            ("lsp", hover("a.txt", 2, "alpha"), &["`alpha`", "gamma"]),
            ("lsp", hover("a.txt", 3, "alpha"), &["a.txt has 2 lines", "no line 3"]),
            ("lsp", hover("a.txt", 0, "alpha"), &["line"]),
            ("lsp", json!({"action": "hover", "file": "a.txt", "line": 1}), &["symbol"]),
            ("lsp", hover("b.txt", 1, "alpha"), &["b.txt", "no such file", "glob"]),
            ("read", json!({"path": "a.txt", "offset": 7}), &["2 lines", "offset 7"]),
            ("read", json!({"path": "b.txt"}), &["b.txt", "no such file", "glob"]),
        ],
    );
    assert_eq!(session.text("lsp", hover("a.txt", 1, "beta")), "beta");
    assert!(session.end().success());
}

#[test]
fn nothing_outside_the_folder_is_reached_and_links_in_a_circle_are_told() {
    let home = Home::new();
    scripted(&home, &[], "");
    let dir = project(&home, &[("scripted.root", b""), ("a.txt", b"word\n")]);
    let secret = home.path().join("secret.txt");
    std::fs::write(&secret, "word\n").unwrap();
    symlink(&secret, dir.join("out.txt")).unwrap();
    symlink(home.path(), dir.join("up")).unwrap();
    symlink("round.txt", dir.join("circle.txt")).unwrap();
    symlink("circle.txt", dir.join("round.txt")).unwrap();
    symlink(".", dir.join("self")).unwrap();
    let mut session = home.session(&dir, &[]);
    for path in ["../secret.txt", secret.to_str().unwrap(), "out.txt", "up/secret.txt"] {
        let says: &[&str] = &["secret.txt", "outside the work folder", "use a path inside it"];
        refused(
            &mut session,
            &[
                ("read", json!({"path": path}), says),
                ("grep", json!({"pattern": "word", "path": path}), says),
                ("write", json!({"path": path, "content": "gone"}), says),
                ("edit", json!({"path": path, "old_text": "word", "new_text": "gone"}), says),
                ("lsp", hover(path, 1, "word"), says),
                ("lsp", json!({"action": "diagnostics", "file": path}), says),
            ],
        );
    }
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "word\n");
    let says: &[&str] = &["circle.txt", "symbolic links lead round in a circle"];
    refused(
        &mut session,
        &[
            ("read", json!({"path": "circle.txt"}), says),
            ("write", json!({"path": "circle.txt", "content": "x"}), says),
            ("edit", json!({"path": "circle.txt", "old_text": "a", "new_text": "b"}), says),
            ("lsp", hover("circle.txt", 1, "word"), says),
        ],
    );
    // A folder that contains itself is walked once.
    let found = session.call("glob", json!({"pattern": "**/a.txt"}));
    assert_eq!(found["details"]["paths"], json!(["a.txt"]), "{found:#}");
    let found = session.call("grep", json!({"pattern": "word"}));
    assert_eq!(found["details"]["total"], 1, "{found:#}");
    assert!(session.end().success());
}

#[test]
fn a_huge_file_is_paged_searched_and_edited_in_time_and_not_given_to_servers() {
    const LINES: usize = 1_000_000;
    let home = Home::new();
    scripted(&home, &[], "");
    let mut huge: String =
        (0..LINES).map(|line| format!("{line:>8} {}\n", "x".repeat(41))).collect();
    huge.push_str("needle\n");
    assert!(huge.len() > 50_000_000);
    let dir = project(&home, &[("scripted.root", b""), ("huge.txt", huge.as_bytes())]);
    let mut session = home.session(&dir, &[]);
    let began = Instant::now();
    let read = session.text("read", json!({"path": "huge.txt", "offset": LINES, "limit": 2}));
    assert!(read.contains("999999 x") && read.contains("needle"), "{read}");
    let found = session.call("grep", json!({"pattern": "needle"}));
    assert_eq!(found["details"]["matches"][0]["line"], LINES + 1, "{found:#}");
    refused(
        &mut session,
        &[("lsp", hover("huge.txt", 1, "x"), &["huge.txt", "limit of 8388608 bytes"])],
    );
    let edit = json!({"path": "huge.txt", "old_text": "needle", "new_text": "thread"});
    let edited = session.call("edit", edit);
    assert_eq!(edited["is_error"], false, "{edited:#}");
    assert!(edited.to_string().contains("limit of 8388608 bytes"), "no verdict: {edited:#}");
    assert!(began.elapsed() < 6 * PROMPT, "{:?}", began.elapsed());
    assert!(std::fs::read_to_string(dir.join("huge.txt")).unwrap().ends_with("x\nthread\n"));
    goes_on(&mut session);
    assert!(session.end().success());
}

#[test]
fn bytes_that_are_no_text_are_kept_and_told() {
    let home = Home::new();
    scripted(&home, &[], "");
    let latin = b"caf\xE9 = word\nplain\n";
    let dir = project(&home, &[("scripted.root", b""), ("latin.txt", latin), ("nul.txt", b"a\0b")]);
    let mut session = home.session(&dir, &[]);
    let read = session.text("read", json!({"path": "latin.txt"}));
    assert!(read.contains("caf\u{FFFD} = word") && read.contains("not UTF-8 on lines 1"), "{read}");
    let binary = session.text("read", json!({"path": "nul.txt"}));
    assert!(binary.contains("nul.txt is a binary file of 3 bytes"), "{binary}");
    refused(
        &mut session,
        &[
            ("lsp", hover("latin.txt", 1, "word"), &["latin.txt", "byte 3 is not UTF-8"]),
            (
                "edit",
                json!({"path": "latin.txt", "old_text": "café", "new_text": "tea"}),
                &["latin.txt"],
            ),
        ],
    );
    let edited =
        session.call("edit", json!({"path": "latin.txt", "old_text": "plain", "new_text": "fine"}));
    assert_eq!(edited["is_error"], false, "{edited:#}");
    assert!(edited.to_string().contains("not UTF-8"), "no verdict, and why: {edited:#}");
    assert_eq!(std::fs::read(dir.join("latin.txt")).unwrap(), b"caf\xE9 = word\nfine\n");
    assert!(session.end().success());
}

#[test]
fn what_may_not_be_touched_is_named() {
    let home = Home::new();
    let dir = project(&home, &[("fixed.txt", b"old\n")]);
    std::fs::set_permissions(dir.join("fixed.txt"), PermissionsExt::from_mode(0o444)).unwrap();
    std::fs::create_dir(dir.join("folder")).unwrap();
    nix::unistd::mkfifo(&dir.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut session = home.session(&dir, &[]);
    refused(
        &mut session,
        &[
            (
                "edit",
                json!({"path": "fixed.txt", "old_text": "old", "new_text": "new"}),
                &["fixed.txt", "write-protected", "chmod u+w"],
            ),
            ("read", json!({"path": "folder"}), &["folder is a folder", "glob"]),
            ("read", json!({"path": "pipe"}), &["named pipe", "use bash"]),
            ("write", json!({"path": "fixed.txt/new", "content": ""}), &["fixed.txt/new", "file"]),
        ],
    );
    assert_eq!(std::fs::read_to_string(dir.join("fixed.txt")).unwrap(), "old\n");
    assert!(session.end().success());
}

/// A file system of its own, in the memory and soon full. Only this test's thread
/// and what it starts see it, so that it goes with them however they end.
struct Small(PathBuf);

impl Small {
    /// Mounts it, or says why that proves nothing here.
    #[expect(clippy::print_stdout, reason = "a test that proves nothing says so")]
    fn at(path: PathBuf, size: &str) -> Option<Self> {
        let options = format!("size={size},mode=700");
        let none = None::<&str>;
        let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        let mounted = unshare(CloneFlags::CLONE_NEWNS)
            .and_then(|()| mount(none, "/", none, private, none))
            .and_then(|()| {
                mount(none, &path, Some("tmpfs"), MsFlags::empty(), Some(options.as_str()))
            });
        match mounted {
            Ok(()) => Some(Self(path)),
            Err(error) => {
                println!("skipped: no file system can be mounted: {error}");
                None
            }
        }
    }

    /// Takes all the space that is left.
    fn fill(&self) {
        let mut file = std::fs::File::create(self.0.join("filler")).unwrap();
        let page = [b'x'; 4096];
        while std::io::Write::write_all(&mut file, &page).is_ok() {}
    }

    fn free(&self) {
        std::fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // Lazily: a failed test may still have something open in it.
        let _ = umount2(&self.0, MntFlags::MNT_DETACH);
    }
}

#[test]
fn a_full_disk_leaves_the_old_content_and_is_told() {
    let home = Home::new();
    let Some(disk) = Small::at(home.folder("project"), "1m") else { return };
    let file = disk.0.join("notes.txt");
    std::fs::write(&file, "what was there\n").unwrap();
    let mut session = home.session(&disk.0, &[]);
    session.text("read", json!({"path": "notes.txt"}));
    disk.fill();
    let long = "y".repeat(64 * 1024);
    let says: &[&str] = &["no space left", "nothing was changed", "free some space"];
    refused(
        &mut session,
        &[
            ("write", json!({"path": "notes.txt", "content": long}), says),
            ("write", json!({"path": "new.txt", "content": long}), says),
            ("edit", json!({"path": "notes.txt", "old_text": "was", "new_text": long}), says),
        ],
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "what was there\n");
    let names: Vec<_> =
        std::fs::read_dir(&disk.0).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(names.len(), 2, "nothing half-written is left: {names:?}");
    disk.free();
    session.text("write", json!({"path": "notes.txt", "content": long}));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), long);
    assert!(session.end().success());
}

#[test]
fn a_full_data_folder_shows_in_the_status_and_loses_no_call() {
    let home = Home::new();
    let dir = home.folder("project");
    let Some(disk) = Small::at(home.folder(".local/share/hostler"), "1m") else { return };
    let mut daemon = home.serve();
    let mut session = home.session(&dir, &[]);
    disk.fill();
    let result = session.call("bash", json!({"command": "seq 1 100000"}));
    assert_eq!(result["is_error"], false, "{result:#}");
    let shown = result["content"][0]["text"].as_str().unwrap();
    assert!(shown.starts_with("1\n2\n") && shown.contains("\n100000\n"), "{shown}");
    assert!(shown.contains("could not be kept: No space left"), "{shown}");
    // A transcript's line may still fit into what its last page has left.
    eventually("the status tells", || {
        session.text("bash", json!({"command": "true", "description": "z".repeat(4096)}));
        text(&home.run(&["status"]).stdout).contains("a line is lost: No space left")
    });
    disk.free();
    goes_on(&mut session);
    assert!(session.end().success());
    assert!(home.run(&["stop"]).status.success());
    assert!(daemon.wait().success());
}

#[test]
fn broken_definitions_are_refused_with_file_and_line() {
    let home = Home::new();
    let dir = project(&home, &[]);
    let folder = home.folder(".config/hostler/servers");
    let at = dir.to_str().unwrap();
    for (content, says) in [
        ("about = 'x\n", &["mine.toml", "1"][..]),
        ("about = 'x'\nbinary = ['x']\n", &["mine.toml", "binary", "binaries"]),
        ("about = 'x'\n", &["mine"]),
        ("about = 7\n", &["mine", "about"]),
    ] {
        std::fs::write(folder.join("mine.toml"), content).unwrap();
        let refused = home.run(&["session", "--dir", at]);
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{content}: {said}");
        for word in says {
            assert!(said.contains(word), "{content}: `{word}` is not in: {said}");
        }
    }
    std::fs::remove_file(folder.join("mine.toml")).unwrap();
    assert!(home.session(&dir, &[]).end().success());
}
