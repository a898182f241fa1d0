//! The floor: an adapter on its own pipes, from blocking code, with no more than the
//! protocol needs.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::Subject;
use crate::framed::Framed;

/// An adapter whose program stands at the breakpoint.
pub(crate) struct Raw {
    wire: Framed,
    last: usize,
    stops: usize,
    seen: usize,
    thread: Value,
    frame: Value,
    scope: Value,
}

impl Raw {
    /// Starts it, up to the first stop.
    pub(crate) fn start(subject: &Subject) -> Self {
        let mut command = Command::new(&subject.command[0]);
        command.args(&subject.command[1..]).stderr(Stdio::null()).current_dir(&subject.dir);
        let wire = Framed::start(&mut command);
        let none = Value::Null;
        let (thread, frame, scope) = (none.clone(), none.clone(), none);
        let mut raw = Self { wire, last: 0, stops: 0, seen: 0, thread, frame, scope };
        raw.ask("initialize", &json!({ "adapterID": "bench", "linesStartAt1": true }));
        let launch = raw.send("launch", &subject.launch);
        while raw.read()["event"] != "initialized" {}
        raw.operation("breakpoints", subject);
        raw.ask("setExceptionBreakpoints", &json!({ "filters": [] }));
        raw.send("configurationDone", &json!({}));
        let _ = launch;
        raw.stop();
        raw.report();
        raw
    }

    /// Does what one of our operations asks of an adapter.
    pub(crate) fn operation(&mut self, operation: &str, subject: &Subject) {
        let (thread, frame) = (self.thread.clone(), self.frame.clone());
        match operation {
            "evaluate" => {
                let asked = json!({ "expression": "1", "frameId": frame, "context": "watch" });
                self.ask("evaluate", &asked);
            }
            "status" => {}
            "threads" => drop(self.ask("threads", &json!({}))),
            "stack" => {
                let asked = json!({ "threadId": thread, "startFrame": 0, "levels": 30 });
                self.ask("stackTrace", &asked);
            }
            "scopes" => drop(self.ask("scopes", &json!({ "frameId": frame }))),
            "variables" => {
                let scope = self.scope.clone();
                let asked = json!({ "variablesReference": scope, "start": 0, "count": 50 });
                self.ask("variables", &asked);
            }
            "breakpoints" => {
                let source = json!({ "path": subject.dir.join(subject.file) });
                let lines = [subject.line];
                let asked = json!({ "source": source, "breakpoints": [{ "line": subject.line }],
                    "lines": lines });
                self.ask("setBreakpoints", &asked);
            }
            _ => {
                self.ask("next", &json!({ "threadId": thread, "granularity": "line" }));
                self.stop();
                self.report();
            }
        }
    }

    fn report(&mut self) {
        let asked = json!({ "threadId": self.thread, "startFrame": 0, "levels": 20 });
        self.frame = self.ask("stackTrace", &asked)["stackFrames"][0]["id"].clone();
        let asked = json!({ "frameId": self.frame });
        self.scope = self.ask("scopes", &asked)["scopes"][0]["variablesReference"].clone();
        let asked = json!({ "variablesReference": self.scope });
        self.ask("variables", &asked);
    }

    fn stop(&mut self) {
        while self.seen == self.stops {
            self.read();
        }
        self.seen = self.stops;
    }

    fn send(&mut self, command: &str, arguments: &Value) -> usize {
        self.last += 1;
        let message = json!({ "seq": self.last, "type": "request", "command": command,
            "arguments": arguments });
        self.wire.send(&message);
        self.last
    }

    fn ask(&mut self, command: &str, arguments: &Value) -> Value {
        let seq = self.send(command, arguments);
        loop {
            let mut message = self.read();
            if message["type"] == "response" && message["request_seq"] == json!(seq) {
                return message["body"].take();
            }
        }
    }

    fn read(&mut self) -> Value {
        let message = self.wire.read();
        if message["event"] == "stopped" {
            self.stops += 1;
            self.thread = message["body"]["threadId"].clone();
        }
        message
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // Its program goes with it, as it is stopped.
        self.send("disconnect", &json!({ "terminateDebuggee": true }));
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
}
