//! The hostler binary as a stranger uses it: processes, pipes and JSON lines.
//!
//! Every wait is bounded, and whatever a test started is killed when the test's
//! value is dropped, so that a failing test leaves nothing either.

#![allow(clippy::needless_pass_by_value, reason = "arguments are written where they are passed")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Against hangs only: far above what anything here takes.
pub(crate) const BOUND: Duration = Duration::from_secs(60);

/// A home of its own, so that nothing of the machine's user is read or written.
pub(crate) struct Home(tempfile::TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns a folder below it, made.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    /// Prepares a command with this home.
    pub(crate) fn hostler(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hostler"));
        command
            .args(args)
            .env("HOME", self.path())
            .env_remove("XDG_DATA_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_RUNTIME_DIR")
            .stdin(Stdio::null());
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.hostler(args).output().unwrap()
    }

    /// Opens a session on a folder.
    pub(crate) fn session(&self, dir: &Path, more: &[&str]) -> Session {
        let mut command = self.hostler(&["session", "--dir"]);
        command.arg(dir).args(more);
        Session::start(command)
    }

    /// Starts a daemon on the usual data folder and waits until it serves.
    pub(crate) fn serve(&self) -> Running {
        let mut command = self.hostler(&["serve"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let daemon = Running(child);
        eventually("the daemon serves", || self.run(&["status", "--json"]).status.success());
        daemon
    }

    /// Returns the daemon's report.
    pub(crate) fn report(&self) -> Value {
        let output = self.run(&["status", "--json"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// Copies a folder with all that is in it.
pub(crate) fn copy(from: &Path, to: &Path) {
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

/// Returns bytes as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the language server that behaves as it is told.
pub(crate) fn scripted_server() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let built = here.ancestors().nth(2).unwrap().join("examples/scripted_server");
    assert!(built.exists(), "{}: `cargo build --examples` builds it", built.display());
    built
}

/// Defines it for a home as the server of text files below a `scripted.root`, in
/// these moods and with further keys.
pub(crate) fn scripted(home: &Home, moods: &[&str], more: &str) {
    let push = moods.iter().any(|mood| ["push", "lie"].contains(mood));
    let mut keys = vec![
        "about = 'a server that is told how to behave'".to_owned(),
        "files = [{ patterns = ['*.txt'], language_id = 'plaintext' }]".to_owned(),
        "root_markers = ['scripted.root']".to_owned(),
        format!("recipe = '{}'", if push { "push" } else { "pull" }),
        format!("args = {moods:?}"),
    ];
    if !more.contains("binaries") {
        let server = scripted_server();
        let folder = server.parent().unwrap().display();
        keys.push("binaries = ['scripted_server']".to_owned());
        keys.push(format!("project_folders = ['{folder}']"));
    }
    keys.push(more.to_owned());
    std::fs::write(home.folder(".config/hostler/servers").join("scripted.toml"), keys.join("\n"))
        .unwrap();
}

/// Waits until something holds.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + BOUND;
    while !holds() {
        assert!(Instant::now() < until, "not within {BOUND:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Says whether a process is there and not a zombie.
pub(crate) fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

/// Returns the processes whose environment carries this text: it reaches every
/// child, also one that left its group and session.
pub(crate) fn marked(mark: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.windows(mark.len()).any(|window| window == mark.as_bytes()) && lives(*pid)
        })
        .collect()
}

/// Returns the processes whose command line begins with this program.
pub(crate) fn running(program: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).next() == Some(program.as_bytes()) && lives(*pid)
        })
        .collect()
}

/// A process that is killed when the test is over.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.pid()).unwrap());
        nix::sys::signal::kill(pid, signal).unwrap();
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        eventually("the process ends", || {
            status = self.0.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A `hostler session`.
pub(crate) struct Session {
    pub(crate) process: Running,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    early: Vec<Value>,
    last: u64,
    pub(crate) ready: Value,
}

impl Session {
    /// Starts the command of one, and waits until it is ready.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (send, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let line = serde_json::from_str(&line).expect("a line of JSON");
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        let mut session = Self {
            process: Running(child),
            stdin,
            lines,
            early: Vec::new(),
            last: 0,
            ready: Value::Null,
        };
        session.ready = session.line(|line| line["event"] == "ready");
        session
    }

    /// Returns the first line that fits, and keeps the others for later.
    pub(crate) fn line(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.early.iter().position(&fits) {
            return self.early.remove(at);
        }
        loop {
            let line = self.lines.recv_timeout(BOUND).expect("a line in time");
            if fits(&line) {
                return line;
            }
            self.early.push(line);
        }
    }

    /// Sends a line as it is.
    pub(crate) fn send(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("an open pipe");
        writeln!(stdin, "{line}").unwrap();
    }

    /// Sends a call and returns its id.
    pub(crate) fn begin(&mut self, tool: &str, arguments: Value) -> u64 {
        self.last += 1;
        let line = json!({"id": self.last, "call": tool, "arguments": arguments});
        self.send(&line.to_string());
        self.last
    }

    /// Waits for the answer to an id.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        self.line(|line| line["id"] == id)
    }

    /// Makes a call and returns its result.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.begin(tool, arguments);
        self.answer(id)["result"].clone()
    }

    /// Makes a call that succeeds and returns its text.
    pub(crate) fn text(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["is_error"], false, "{result:#}");
        result["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }

    /// Makes a call that fails and returns what it says.
    pub(crate) fn failure(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["is_error"], true, "{result:#}");
        result["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }

    /// Sends a control and returns the whole answer.
    pub(crate) fn control(&mut self, control: &str, more: Value) -> Value {
        self.last += 1;
        let mut line = json!({"id": self.last, "control": control});
        if let (Some(line), Value::Object(more)) = (line.as_object_mut(), more) {
            line.extend(more);
        }
        self.send(&line.to_string());
        self.answer(self.last)
    }

    /// Ends the input, and waits for the process.
    pub(crate) fn end(mut self) -> ExitStatus {
        self.stdin = None;
        self.process.wait()
    }

    /// Closes the input and goes on.
    pub(crate) fn close_input(&mut self) {
        self.stdin = None;
    }
}
