//! Programs that are somebody else's: they live on, whatever happens to us.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Debugged, scripted};
use crate::support::{Home, Running, copy, eventually, lives};

/// A port that is free now.
#[expect(clippy::print_stdout, reason = "a test that proves nothing says so")]
fn skipped(why: &str) {
    println!("skipped: {why}");
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

const COUNTS: &str = "import time\nn = 0\nwhile n < 3000:\n    n += 1\n    time.sleep(0.02)\n";

/// Returns the Python that has debugpy, or says where it was looked for.
#[expect(clippy::print_stdout, reason = "a test that proves nothing says so")]
fn python() -> Option<std::path::PathBuf> {
    let tools = std::env::var_os("HOSTLER_TOOLS").unwrap_or_default();
    let versions = std::fs::read_dir(Path::new(&tools).join("debugpy")).into_iter().flatten();
    let found = versions.flatten().map(|it| it.path().join("bin/python3")).find(|it| it.exists());
    if found.is_none() {
        println!("skipped: no debugpy below HOSTLER_TOOLS={}", tools.display());
    }
    found
}

fn python_that_counts(home: &Home) -> Option<(Debugged, Running, u16)> {
    let python = python()?;
    let dir = home.folder("project");
    std::fs::write(dir.join("pyproject.toml"), "").unwrap();
    std::fs::write(dir.join("counts.py"), COUNTS).unwrap();
    let port = free_port();
    let child = Command::new(python)
        .args(["-m", "debugpy", "--listen", &format!("127.0.0.1:{port}"), "counts.py"])
        .current_dir(&dir)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let counts = Running(child);
    let debug = Debugged { session: home.session(&dir, &[]), dir };
    Some((debug, counts, port))
}

/// Attaches, as soon as somebody listens.
fn attached(debug: &mut Debugged, arguments: &Value) -> String {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let result = debug.call("attach", arguments.clone());
        if result["is_error"] == false || Instant::now() > until {
            assert_eq!(result["is_error"], false, "{result:#}");
            return super::text_of(&result);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_python_program_is_left_alive_by_terminate_and_by_our_death() {
    let home = Home::new();
    let Some((mut debug, counts, port)) = python_that_counts(&home) else { return };
    debug.done("breakpoints", json!({ "file": "counts.py", "lines": [4] }));
    let text = attached(&mut debug, &json!({ "port": port }));
    assert!(text.contains("stopped: breakpoint") && text.contains("counts.py:4"), "{text}");
    let (text, _) = debug.done("terminate", json!({}));
    assert!(text.contains("detached"), "{text}");
    assert!(lives(counts.pid()));
    // Again, and now it is we who die, while it is stopped.
    let text = attached(&mut debug, &json!({ "port": port }));
    assert!(text.contains("stopped"), "{text}");
    debug.session.process.signal(nix::sys::signal::Signal::SIGKILL);
    debug.session.process.wait();
    let ticks = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", counts.pid())).unwrap();
        stat.split(' ').nth(13).unwrap().parse::<u64>().unwrap()
    };
    let before = ticks();
    eventually("it runs on", || ticks() > before);
    assert!(lives(counts.pid()));
}

#[test]
fn a_go_program_is_left_running() {
    let home = Home::new();
    let dir = home.folder("project");
    let from = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/projects/debug_go");
    copy(Path::new(from), &dir);
    let waits = "package main\n\nimport \"time\"\n\nfunc main() {\n\tfor n := 0; n < 3000; n++ {\n\t\t\
                 time.Sleep(20 * time.Millisecond)\n\t}\n}\n";
    std::fs::write(dir.join("main.go"), waits).unwrap();
    let port = free_port();
    let started = Command::new("dlv")
        .args(["debug", "--headless", "--accept-multiclient", "--continue", "--output"])
        .arg(home.path().join("debuggee"))
        .args(["--listen", &format!("127.0.0.1:{port}"), "."])
        .current_dir(&dir)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = started else { return skipped("there is no `dlv`") };
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let dlv = Running(child);
    let mut debug = Debugged { session: home.session(&dir, &[]), dir };
    debug.done("breakpoints", json!({ "file": "main.go", "lines": [7] }));
    let text = attached(&mut debug, &json!({ "port": port }));
    assert!(text.contains("main.go:7"), "{text}");
    let (text, _) = debug.done("terminate", json!({}));
    assert!(text.contains("detached"), "{text}");
    assert!(lives(dlv.pid()), "the server of many clients lives");
    let text = attached(&mut debug, &json!({ "port": port, "wait_seconds": 1 }));
    assert!(text.contains("stopped") || text.contains("running"), "{text}");
    assert!(debug.session.end().success());
    assert!(lives(dlv.pid()));
}

#[test]
fn a_port_where_nobody_or_no_adapter_listens_is_said_to_be_one() {
    let home = Home::new();
    let mut debug = scripted(&home, &[], "", &[]);
    let arguments = |port: u16| json!({ "port": port, "adapter": "scripted" });
    let closed = free_port();
    let text = debug.fails("attach", arguments(closed));
    assert!(text.contains(&format!("port {closed} of this machine cannot be reached")), "{text}");
    assert!(debug.fails("attach", json!({ "port": 0 })).contains("no port"));
    assert!(debug.fails("attach", json!({})).contains("needs `port`"));
    // One that takes connections and drops them.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let ghost = std::thread::spawn(move || {
        for _ in 0..3 {
            drop(listener.accept().unwrap());
        }
    });
    let text = debug.fails("attach", arguments(port));
    assert!(text.contains("is no debug adapter"), "{text}");
    ghost.join().unwrap();
    // One that says nothing, and one that speaks something else.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mute = std::thread::spawn(move || {
        let mut taken = listener.accept().unwrap().0;
        let _ = taken.read_to_end(&mut Vec::new());
    });
    let begun = Instant::now();
    let text = debug.fails("attach", arguments(port));
    assert!(
        text.contains("no answer to `initialize`") && text.contains("is no debug adapter"),
        "{text}"
    );
    assert!(begun.elapsed() < Duration::from_secs(9));
    mute.join().unwrap();
    assert_eq!(debug.state(), "over");
    assert!(debug.session.end().success());
}

#[test]
fn a_c_program_is_left_alive_by_terminate_and_by_our_death() {
    let home = Home::new();
    let dir = home.folder("project");
    std::fs::write(dir.join("CMakeLists.txt"), "").unwrap();
    let waits = "#include <unistd.h>\nint main(void) {\n    volatile int n = 0;\n    \
                 while (n < 3000) {\n        n++;\n        usleep(20000);\n    }\n    return 0;\n}\n";
    std::fs::write(dir.join("waits.c"), waits).unwrap();
    let built =
        Command::new("cc").args(["-g", "waits.c", "-o", "waits"]).current_dir(&dir).status();
    assert!(built.is_ok_and(|status| status.success()), "set-up sees that there is a `cc`");
    for kill in [false, true] {
        let port = free_port();
        let started = Command::new("lldb-server-19")
            .args(["gdbserver", &format!("127.0.0.1:{port}"), "--"])
            .arg(dir.join("waits"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(server) = started else { return skipped("there is no `lldb-server-19`") };
        let _server = Running(server);
        let mut debug = Debugged { session: home.session(&dir, &[]), dir: dir.clone() };
        debug.done("breakpoints", json!({ "file": "waits.c", "lines": [5] }));
        let text = attached(&mut debug, &json!({ "port": port, "program": "waits" }));
        assert!(text.contains("waits.c:5"), "{text}");
        let path = dir.join("waits");
        let name = path.to_str().unwrap();
        let target = crate::support::running(name).pop().expect("it is there");
        let target = Target(target);
        if kill {
            debug.session.process.signal(nix::sys::signal::Signal::SIGKILL);
            debug.session.process.wait();
        } else {
            let (text, _) = debug.done("terminate", json!({}));
            assert!(text.contains("detached"), "{text}");
        }
        // Held for as long as it is traced.
        eventually("it is let go and runs on", || !traced(target.0));
        assert!(lives(target.0));
    }
}

fn traced(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("TracerPid:") && !line.ends_with("\t0"))
}

/// A process that nobody else would end.
struct Target(u32);

impl Drop for Target {
    fn drop(&mut self) {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.0).unwrap());
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
    }
}
