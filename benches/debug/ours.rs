//! Ours: `hostler session` as a process, and the lines that go in and out.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::{Subject, built};

/// A session in which only `debug` is called.
pub(crate) struct Ours {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    last: u64,
    program: String,
    frame: Value,
    scope: Value,
}

impl Ours {
    /// Opens it, with the breakpoint set.
    pub(crate) fn start(subject: &Subject, place: &Path) -> Self {
        let home = place.join("home");
        let adapters = home.join(".config/hostler/adapters");
        std::fs::create_dir_all(&adapters).unwrap();
        let folder = built("scripted_adapter");
        let definition = format!(
            "about = 'scripted'\nprograms = ['*.txt']\nroot_markers = ['scripted.root']\n\
             binaries = ['scripted_adapter']\nproject_folders = ['{}']\nreach = 'stdio'\n\
             attach_by = 'listener'\n[launch]\nprogram = '{{program}}'\n",
            folder.parent().unwrap().display()
        );
        std::fs::write(adapters.join("scripted.toml"), definition).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_hostler"));
        command
            .args(["session", "--dir"])
            .arg(&subject.dir)
            .env("HOME", &home)
            .env_remove("XDG_DATA_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_RUNTIME_DIR")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let to = child.stdin.take().unwrap();
        let from = BufReader::new(child.stdout.take().unwrap());
        let program = subject.program.to_owned();
        let (frame, scope) = (Value::Null, Value::Null);
        let mut ours = Self { child, to, from, last: 0, program, frame, scope };
        ours.line(|line| line["event"] == "ready");
        ours.call("breakpoints", json!({ "file": subject.file, "lines": [subject.line] }));
        ours
    }

    /// Launches the program, up to the first stop.
    pub(crate) fn launch(&mut self) {
        let program = self.program.clone();
        let stop = self.call("launch", json!({ "program": program }));
        self.look(&stop["details"]["frames"][0]["id"]);
    }

    fn look(&mut self, frame: &Value) {
        self.frame = frame.clone();
        let scopes = self.call("scopes", json!({ "frame_id": self.frame }));
        self.scope = scopes["details"]["scopes"][0]["reference"].clone();
    }

    /// Calls one of the operations that are measured.
    pub(crate) fn operation(&mut self, operation: &str, subject: &Subject) {
        let arguments = match operation {
            "evaluate" => json!({ "expression": "1", "frame_id": self.frame }),
            "scopes" => json!({ "frame_id": self.frame }),
            "variables" => json!({ "reference": self.scope }),
            "breakpoints" => json!({ "file": subject.file, "lines": [subject.line] }),
            _ => json!({}),
        };
        self.call(operation, arguments);
    }

    /// Calls an operation that must succeed, and returns its result.
    pub(crate) fn call(&mut self, operation: &str, mut arguments: Value) -> Value {
        self.last += 1;
        let id = self.last;
        arguments["operation"] = json!(operation);
        let line = json!({ "id": id, "call": "debug", "arguments": arguments });
        writeln!(self.to, "{line}").unwrap();
        let mut answer = self.line(|line| line["id"] == id);
        assert_eq!(answer["result"]["is_error"], false, "{operation}: {answer}");
        answer["result"].take()
    }

    fn line(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).unwrap() > 0, "the session ended");
            let line: Value = serde_json::from_str(&line).unwrap();
            if fits(&line) {
                return line;
            }
        }
    }

    /// Counts what the daemon has open.
    pub(crate) fn descriptors(&self) -> usize {
        let folder = format!("/proc/{}/fd", self.child.id());
        std::fs::read_dir(folder).map_or(0, Iterator::count)
    }

    /// Counts the processes below the daemon, also those that left its groups: an
    /// orphan is found by the mark in its environment.
    pub(crate) fn processes(&self) -> usize {
        let home = std::fs::read(format!("/proc/{}/environ", self.child.id())).unwrap();
        let mut pairs = home.split(|byte| *byte == 0);
        let mark = pairs.find(|pair| pair.starts_with(b"HOME=")).unwrap().to_vec();
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let environs = entries.filter_map(|entry| std::fs::read(entry.path().join("environ")).ok());
        environs.filter(|pairs| pairs.split(|byte| *byte == 0).any(|pair| pair == mark)).count()
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
