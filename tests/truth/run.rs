//! One run: makes the steps through its session and holds every answer to the truth.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::{Session, eventually};
use crate::truth::dialects::Dialect;
use crate::truth::group::Group;
use crate::truth::oracle::{Fault, States, all, differences, faults, introduced, owed};
use crate::truth::steps::{By, Line, Own, ROUND, Shared, Step};
use crate::truth::tally::Tally;

/// One run of a group.
pub(crate) struct Run {
    session: Session,
    dialect: Dialect,
    dir: PathBuf,
    group: Arc<Group>,
    number: usize,
    /// The lines that it has put in, in order.
    lines: VecDeque<(Line, String)>,
    last: usize,
    module: bool,
    pub(crate) tally: Tally,
}

/// What a step may have changed, before it is made.
struct Before {
    files: Vec<String>,
    faults: Vec<Fault>,
    texts: Vec<String>,
}

impl Run {
    /// Writes the run's own file and lets the server come up.
    pub(crate) fn start(
        mut session: Session,
        dialect: Dialect,
        dir: PathBuf,
        group: Arc<Group>,
        number: usize,
    ) -> Self {
        let file = dialect.file.replace("{r}", &number.to_string());
        // Where it is there already it may not be replaced unread.
        session.call("read", json!({ "path": file }));
        session.text("write", json!({ "path": file, "content": dialect.text }));
        let tally = Tally::default();
        let lines = VecDeque::new();
        let mut run =
            Self { session, dialect, dir, group, number, lines, last: 0, module: false, tally };
        run.ask(&file, "the first question");
        run.tally = Tally::default();
        run
    }

    fn named(&self, template: &str) -> String {
        let number = self.last.to_string();
        template.replace("{r}", &self.number.to_string()).replace("{n}", &number)
    }

    fn file(&self) -> String {
        self.named(self.dialect.file)
    }

    fn states(&self) -> States {
        let mut states = States::new();
        if self.group.is_broken() {
            states.insert("broken".to_owned());
        }
        if !self.module {
            states.insert("absent".to_owned());
        }
        states
    }

    fn faults(&self, files: &[String]) -> Vec<Fault> {
        let states = self.states();
        files.iter().flat_map(|file| faults(&self.dir, &self.dialect, &states, file)).collect()
    }

    /// What becomes wrong and right again when the dependency does, now or soon.
    fn unsettled(&self) -> Vec<Fault> {
        let broken: States = ["broken".to_owned()].into();
        let files = self.group.files();
        let conditional = |file: &String| {
            let with = faults(&self.dir, &self.dialect, &broken, file);
            let without = faults(&self.dir, &self.dialect, &States::new(), file);
            with.into_iter().filter(move |fault| !without.contains(fault))
        };
        files.iter().flat_map(conditional).collect()
    }

    /// Makes so many steps.
    pub(crate) fn make(mut self, steps: usize) -> Tally {
        for at in 0..steps {
            let step = ROUND[at % ROUND.len()];
            match step {
                Step::Own(own) if self.can(own) => self.own(own, &[]),
                Step::Shared(shared) if self.dialect.dependency.is_some() => {
                    self.shared(shared, at / ROUND.len());
                }
                // Something else in the place of what this server does not look at.
                _ => self.own(Own::Add(By::Tool, Line::Fine), &[]),
            }
        }
        assert!(self.session.end().success());
        self.tally
    }

    fn can(&self, own: Own) -> bool {
        match own {
            Own::Add(_, Line::Import) | Own::Drop(_, Line::Import) => self.dialect.module.is_some(),
            Own::MakeModule(_) | Own::RemoveModule | Own::RenameModule => {
                self.dialect.module.is_some()
            }
            Own::Crlf | Own::Lf => self.dialect.crlf,
            Own::Add(..) | Own::Drop(..) | Own::Shift | Own::Same => true,
        }
    }

    fn before(&self, files: Vec<String>) -> Before {
        let text = |file: &String| std::fs::read_to_string(self.dir.join(file)).unwrap_or_default();
        Before { faults: self.faults(&files), texts: files.iter().map(text).collect(), files }
    }

    /// What of those files is on lines that were not there.
    fn changed(&self, before: &Before) -> Vec<String> {
        let mut changed = Vec::new();
        for (file, old) in before.files.iter().zip(&before.texts) {
            let new = std::fs::read_to_string(self.dir.join(file)).unwrap_or_default();
            let known: Vec<_> = old.lines().collect();
            let lines = (1..).zip(new.lines()).filter(|(_, line)| !known.contains(line));
            changed.extend(lines.map(|(number, _)| format!("{file}:{number}")));
        }
        changed
    }

    /// What others do at the same time may show too.
    fn own(&mut self, own: Own, optional: &[Fault]) {
        let what = format!("run {}, {own:?}", self.number);
        let before = self.before(vec![self.file()]);
        let call = self.call_of(own);
        match call {
            Some((tool, arguments)) => {
                if tool == "write" {
                    // Nothing may be replaced that was not read as it is.
                    self.session.call("read", json!({ "path": arguments["path"] }));
                }
                self.judged(&what, tool, arguments, &before, optional);
            }
            None => {
                self.tally.edits += 1;
                self.ask(&self.file(), &what);
            }
        }
    }

    /// Does what is done by the shell, or returns the call that does it.
    fn call_of(&mut self, own: Own) -> Option<(&'static str, Value)> {
        let file = self.file();
        let text = std::fs::read_to_string(self.dir.join(&file)).unwrap();
        let content =
            |content: String| Some(("write", json!({ "path": file, "content": content })));
        match own {
            Own::Add(By::Tool, line) => self.add(line, &file, &text),
            Own::Add(By::Shell, line) => {
                let new = self.line(line);
                self.shell(&format!("cat >> {file} <<'END'\n{new}\nEND"));
                None
            }
            Own::Drop(by, line) => {
                let at =
                    self.lines.iter().rposition(|(kind, _)| *kind == line).expect("it is there");
                let (_, old) = self.lines.remove(at).expect("it is there");
                if by == By::Tool {
                    let gone = format!("{old}\n");
                    return Some((
                        "edit",
                        json!({ "path": file, "old_text": gone, "new_text": "" }),
                    ));
                }
                let number =
                    1 + text.lines().position(|line| line == old).expect("it stands there");
                self.shell(&format!("sed -i {number}d {file}"));
                None
            }
            Own::Shift => {
                let (first, rest) = text.split_once('\n').expect("more than a line");
                // The very first line may have a meaning of its own.
                let comment = format!("{} moves on\n", self.dialect.comment).repeat(3);
                content(format!("{first}\n{comment}{rest}"))
            }
            Own::Same => content(text),
            Own::Crlf => content(text.replace('\n', "\r\n")),
            Own::Lf => {
                self.shell(&format!("sed -i 's/\\r$//' {file}"));
                None
            }
            Own::MakeModule(By::Tool) => {
                let module = self.dialect.module.expect("a module");
                self.module = true;
                let path = self.named(module.file);
                Some(("write", json!({ "path": path, "content": module.text })))
            }
            Own::MakeModule(By::Shell) => {
                self.module(true, |path, text| format!("printf '{text}' > {path}"))
            }
            Own::RemoveModule => self.module(false, |path, _| format!("rm {path}")),
            Own::RenameModule => self.module(false, |path, _| format!("mv {path} {path}.old")),
        }
    }

    fn module(
        &mut self,
        there: bool,
        command: impl Fn(&str, &str) -> String,
    ) -> Option<(&'static str, Value)> {
        let module = self.dialect.module.expect("a module");
        self.shell(&command(&self.named(module.file), &module.text.replace('\n', "\\n")));
        self.module = there;
        None
    }

    fn line(&mut self, line: Line) -> String {
        self.last += 1;
        let dialect = &self.dialect;
        let text = self.named(match line {
            Line::Fine => dialect.fine,
            Line::Wrong => dialect.wrong,
            Line::Other => dialect.other,
            Line::Wide => dialect.wide,
            Line::Tabbed => dialect.tabbed,
            Line::Import => dialect.module.expect("a module").import,
        });
        self.lines.push_back((line, text.clone()));
        text
    }

    /// At the end by a whole text, or before everything else by a piece of it.
    fn add(&mut self, line: Line, file: &str, text: &str) -> Option<(&'static str, Value)> {
        let new = self.line(line);
        let comment = self.dialect.comment;
        let above = if line == Line::Import { "imports" } else { "body" };
        if line != Line::Import && self.last.is_multiple_of(2) {
            let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
            return Some((
                "write",
                json!({ "path": file, "content": format!("{text}{new}{end}") }),
            ));
        }
        let (old, new) = (format!("{comment} {above}\n"), format!("{comment} {above}\n{new}\n"));
        Some(("edit", json!({ "path": file, "old_text": old, "new_text": new })))
    }

    fn shell(&mut self, command: &str) {
        self.session.text("bash", json!({ "command": command }));
    }

    fn shared(&mut self, shared: Shared, round: usize) {
        self.group.gate();
        let what = format!("run {}, {shared:?}", self.number);
        if round % self.group.runs() == self.number {
            self.change(&what, shared);
        } else {
            // In the midst of it, what depends on it may show or not.
            let optional = self.unsettled();
            self.own(Own::Add(By::Tool, Line::Fine), &optional);
        }
        self.group.gate();
        self.ask(&self.file(), &what);
    }

    /// Changes what all depend on.
    fn change(&mut self, what: &str, shared: Shared) {
        let dependency = self.dialect.dependency.expect("a dependency");
        let (file, sound, broken) = (dependency.file, dependency.sound, dependency.broken);
        let others = |file: &str| self.group.is_of_another(self.number, file);
        // Others are writing theirs, and who is charged for that is open.
        let optional: Vec<_> =
            self.unsettled().into_iter().filter(|fault| others(fault.file())).collect();
        let files = self.group.files().into_iter().filter(|file| !others(file)).collect();
        let before = self.before(files);
        let (old, new, breaks) = match shared {
            Shared::Break(_) | Shared::CheckOut => (sound, broken, true),
            Shared::Mend(_) | Shared::CheckBack => (broken, sound, false),
            Shared::Touch => ("", "", self.group.is_broken()),
        };
        if let Shared::Break(By::Tool) | Shared::Mend(By::Tool) = shared {
            self.group.set_broken(breaks);
            let arguments = json!({ "path": file, "old_text": old, "new_text": new });
            return self.judged(what, "edit", arguments, &before, &optional);
        }
        self.shell(&match shared {
            Shared::CheckOut => "git checkout -q other".to_owned(),
            Shared::CheckBack => "git checkout -q main".to_owned(),
            Shared::Touch => format!("touch {file}"),
            _ => format!("sed -i 's/{old}/{new}/' {file}"),
        });
        self.group.set_broken(breaks);
        self.tally.edits += 1;
        for (file, ..) in dependency.breaks {
            self.ask(file, what);
        }
    }

    /// Makes a call that writes, and holds what it says to the truth.
    fn judged(
        &mut self,
        what: &str,
        tool: &str,
        arguments: Value,
        before: &Before,
        optional: &[Fault],
    ) {
        self.tally.edits += 1;
        let of = format!("{tool} {}", arguments["path"].as_str().unwrap_or_default());
        let began = Instant::now();
        let result = self.session.call(tool, arguments);
        self.tally.times.push(began.elapsed());
        assert_eq!(result["is_error"], false, "{what}: {result:#}");
        let details = &result["details"];
        let mut items = list(details, "diagnostics");
        let mut known = details["freshness"] == "fresh";
        let doubtful = list(details, "perhaps_older");
        // What is told beside the verdict is no lack of one, where others write too.
        let own = |item: &Value| item["path"] == self.file() && optional.is_empty();
        if !known || doubtful.iter().any(own) {
            self.tally.unknown(&format!("{what}: {details}"));
        }
        // Told too, and not said to be new.
        for mut item in doubtful {
            item["perhaps"] = true.into();
            items.push(item);
        }
        if details["freshness"] == "still analysing" {
            let late = self.late(&of);
            known = late["freshness"] == "fresh";
            items.extend(list(&late, "diagnostics"));
            for mut item in list(&late, "perhaps_older") {
                item["perhaps"] = true.into();
                items.push(item);
            }
        }
        let after = self.faults(&before.files);
        if known {
            let new = introduced(&before.faults, &after, &self.changed(before));
            self.tally.wrong(what, differences(&items, owed(new, optional), optional));
        } else {
            self.tally.never += 1;
            let at_all: Vec<_> = after.iter().chain(optional).cloned().collect();
            self.tally.wrong(what, differences(&items, Vec::new(), &at_all));
            self.ask(&self.file(), what);
        }
    }

    /// Waits for what comes of a write later.
    fn late(&mut self, of: &str) -> Value {
        let mut found = Value::Null;
        eventually("what comes late is told", || {
            let result = self.session.call("bash", json!({ "command": "true" }));
            let late = result["details"]["late"].as_array().cloned().unwrap_or_default();
            found = late.into_iter().find(|late| late["of"] == of).unwrap_or_default();
            !found.is_null()
        });
        found
    }

    /// Asks for everything in a file, until it is known, and holds it to the truth.
    fn ask(&mut self, file: &str, what: &str) {
        let mut details = Value::Null;
        let mut asked = 0;
        eventually(&format!("there is a verdict for {what}"), || {
            let result = self.session.call("lsp", json!({ "action": "diagnostics", "file": file }));
            assert_eq!(result["is_error"], false, "{what}: {result:#}");
            details = result["details"].clone();
            asked += 1;
            details["freshness"] == "fresh"
        });
        if asked > 1 {
            self.tally.unknown(&format!("{what}: asked for {file} {asked} times"));
        }
        let items = list(&details, "diagnostics");
        let expected = all(&self.faults(&[file.to_owned()]));
        let what = format!("{what}, asked for {file}");
        self.tally.wrong(&what, differences(&items, expected, &[]));
    }
}

fn list(details: &Value, name: &str) -> Vec<Value> {
    details[name].as_array().cloned().unwrap_or_default()
}
