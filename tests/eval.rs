//! `eval` with the real Python and Node: what lasts, what is shown, what is survived.
#![allow(clippy::print_stdout, reason = "says why it skips")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::debug::text_of;
use crate::support::{Home, Session, eventually, lives, marked};

/// A session of which `eval` is called.
struct Cells {
    session: Session,
    dir: PathBuf,
    language: &'static str,
}

impl Cells {
    fn open(home: &Home, flags: &[&str]) -> Self {
        let dir = home.folder("project");
        Self { session: home.session(&dir, flags), dir, language: "python" }
    }

    fn call(&mut self, code: &str) -> Value {
        let id = self.begin(code);
        self.session.answer(id)["result"].clone()
    }

    fn begin(&mut self, code: &str) -> u64 {
        let language = self.language;
        let cell = json!({ "code": code, "description": "a cell of a test", "language": language });
        self.session.begin("eval", cell)
    }

    /// Runs a cell that must be a result, and returns what is shown.
    fn run(&mut self, code: &str) -> String {
        let result = self.call(code);
        assert_eq!(result["is_error"], false, "{code}: {result:#}");
        text_of(&result)
    }

    /// Runs cells each of which must show a text.
    fn all(&mut self, cells: &[(&str, &str)]) {
        for (code, expected) in cells {
            let shown = self.run(code);
            assert!(shown.contains(expected), "{code}\nshowed:\n{shown}\nnot:\n{expected}");
        }
    }

    fn fails(&mut self, code: &str) -> (String, Value) {
        let result = self.call(code);
        assert_eq!(result["is_error"], true, "{code}: {result:#}");
        (text_of(&result), result["details"].clone())
    }

    fn end(self) {
        assert!(self.session.end().success());
    }
}

#[test]
fn variables_last_and_the_last_expression_is_shown() {
    let home = Home::new();
    let mut cells = Cells::open(&home, &[]);
    let first = cells.run("x = 20\nprint('one')\nx + 1");
    assert!(first.starts_with("[Python 3."), "{first}");
    assert!(first.contains("one\n21\n[variables: new x: int 20]"), "{first}");
    cells.all(&[
        ("x * 2", "40"),
        ("x * 2;", ""),
        ("import asyncio\nasync def five(): return 5\nasyncio.run(five())", "5"),
        ("await five()", "5"),
        ("print('a'); import os; os.system('echo b; echo c >&2'); print('d')", "a\nb\nc\nd"),
        ("'\\ud800'", "'\\ud800'"),
        ("float('nan')", "nan"),
        ("print(1); print(2); print(3); 4", "1\n2\n3\n4"),
    ]);
    assert_eq!(cells.run("x * 2;"), "", "a semicolon keeps it quiet");
    cells.end();
}

#[test]
fn tracebacks_show_cells_and_nothing_of_ours() {
    let home = Home::new();
    let mut cells = Cells::open(&home, &[]);
    cells.run("def divide(by):\n    return 1 / by");
    let shown = cells.run("before = 1\ndivide(0)\nafter = 2");
    assert!(shown.contains("File \"<cell 1>\", line 2, in divide\n    return 1 / by"), "{shown}");
    assert!(shown.contains("File \"<cell 2>\", line 2, in <module>"), "{shown}");
    assert!(shown.contains("ZeroDivisionError"), "{shown}");
    assert!(!shown.contains("hostler"), "{shown}");
    assert!(shown.contains("not reached, so not updated by this cell: after"), "{shown}");
    let shown = cells.run("x = (1,\n  2");
    assert!(shown.contains("SyntaxError") && !shown.contains("hostler"), "{shown}");
    cells.end();
}

#[test]
fn magics_are_rewritten_only_where_a_cell_is_no_python() {
    let home = Home::new();
    let mut cells = Cells::open(&home, &[]);
    cells.run("name = 'world'");
    cells.all(&[
        ("s = '''\n%d items\n!ls here\n'''\ns", "'\\n%d items\\n!ls here\\n'"),
        ("x = ('a %s'\n     % 5)\nx", "'a 5'"),
        ("!echo hello {name} $name", "hello world world"),
        ("!echo a b | awk '{print $2}'", "b"),
        ("lines = !printf 'one\\ntwo\\n'\nlines", "['one', 'two']"),
        ("%%bash\necho in bash", "in bash"),
        ("%%bash\nexit 3", "exit code 3"),
        ("%%time\nsum(range(10))", "45"),
        ("%timeit -n 5 -r 2 1 + 1", "per loop"),
        ("%nothing", "there is no magic %nothing; there are: %autoreload"),
        ("if True:\n    !echo inside", "inside"),
        ("  y = 3\n  y", "3"),
        (">>> 1 + 1\n", "2"),
        ("%cd /\n", "/"),
        ("!cd /tmp", "`%cd` changes the interpreter's"),
        ("print?", "builtin_function_or_method"),
        ("%%writefile /dev/stdout\nwritten", "written"),
    ]);
    cells.end();
}

#[test]
fn whatever_a_cell_does_the_next_one_runs() {
    let home = Home::new();
    let mut cells = Cells::open(&home, &[]);
    cells.run("kept = 'still here'");
    for (code, expected) in [
        ("exit()", "the interpreter and its variables are kept"),
        ("raise SystemExit(3)", "exit(3) was called"),
        ("input('name? ')", "nobody can type here"),
        ("import os\nif os.fork() == 0:\n    print('child')\nelse:\n    os.wait()", "child"),
        ("import sys, io\nsys.stdout = io.StringIO()", "was left replaced, and is put back"),
        ("os.close(1)", "descriptor 1 was closed or replaced, and is put back"),
        ("import builtins\ndel builtins.print, builtins.len, builtins.open", ""),
        ("import subprocess\nsubprocess.run(['cat']).returncode", "0"),
        ("os.listdir('/proc/self/fd') and subprocess.run('ls /proc/self/fd', shell=True)", ""),
        ("import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)", ""),
        ("class Bad:\n    def __repr__(self): 1/0\nBad()", "whose repr failed"),
        ("bytearray(3 << 30)", "MemoryError"),
        ("import ctypes\nctypes.PyDLL(None).write(1, b'y' * 200000, 200000)", "200000"),
        ("'x' * 3000000", "left out"),
        ("tool = 5", "`del tool` brings back"),
        ("del tool\ntool", "Tool object"),
    ] {
        let shown = cells.run(code);
        assert!(shown.contains(expected), "{code}\nshowed:\n{shown}\nnot:\n{expected}");
        let after = cells.run("kept");
        assert!(after.contains("still here"), "after {code}: {after}");
    }
    cells.end();
}

#[test]
fn a_crash_costs_the_cell_and_not_the_variables() {
    let home = Home::new();
    let mut cells = Cells::open(&home, &[]);
    cells.run("data = list(range(1000))");
    for crash in ["import ctypes\nctypes.string_at(0)", "import os\nos._exit(9)"] {
        let (shown, details) = cells.fails(&format!("half = 1\n{crash}"));
        assert!(shown.contains("A snapshot took over"), "{shown}");
        assert_eq!(details["state"], "restored");
        assert!(cells.run("sum(data)").contains("499500"));
        assert!(cells.run("half").contains("NameError"));
    }
    cells.end();
}

#[test]
fn a_crash_without_a_snapshot_is_told_as_a_loss() {
    let home = Home::new();
    let mut cells = Cells::open(&home, &[]);
    cells.run(
        "import threading\nhold = threading.Event()\nthreading.Thread(target=hold.wait).start()",
    );
    let marker = cells.dir.join("once");
    let code = format!("open({marker:?}, 'a').write('x')\nimport os\nos.kill(os.getpid(), 9)");
    let (shown, details) = cells.fails(&code);
    assert!(shown.contains("was killed by SIGKILL in this cell"), "{shown}");
    assert!(shown.contains("The variables of 1 cells are gone"), "{shown}");
    assert_eq!(details["state"], "lost");
    assert_eq!(std::fs::read_to_string(marker).unwrap(), "x", "no cell is run again");
    assert!(cells.run("hold").contains("NameError"));
    cells.end();
}

#[test]
fn the_last_cell_is_undone() {
    let home = Home::new();
    let mut cells = Cells::open(&home, &[]);
    cells.run("rows = [1, 2, 3]");
    cells.run("rows.clear()");
    let undone = cells.session.call("eval", json!({ "undo": true, "description": "take it back" }));
    assert!(text_of(&undone).contains("the variables are those after cell 1"), "{undone:#}");
    assert!(cells.run("rows").contains("[1, 2, 3]"));
    cells.end();
}

#[test]
fn an_interrupt_stops_the_cell_and_keeps_the_state() {
    let home = Home::new();
    let mut cells = Cells::open(&home, &[]);
    cells.run("kept = 7\nimport os, re, time");
    for code in [
        "while True: pass",
        "time.sleep(60)",
        "os.system('sleep 60')",
        "while True: print('z' * 1000)",
        "re.match('(a+)+b', 'a' * 40)",
    ] {
        let id = cells.session.begin("eval", json!({ "code": code, "description": "endless" }));
        eventually("the cell runs", || {
            cells.session.send(&json!({ "id": "s", "control": "status" }).to_string());
            let status = cells.session.line(|line| line["id"] == "s");
            status["ok"]["calls"].as_array().unwrap().iter().any(|call| call["state"] == "running")
        });
        std::thread::sleep(Duration::from_millis(100));
        let asked = Instant::now();
        cells.session.send(&json!({ "id": "c", "control": "cancel", "target": id }).to_string());
        let result = cells.session.answer(id)["result"].clone();
        assert!(asked.elapsed() < Duration::from_secs(20), "{code}");
        assert_eq!(result["is_error"], true, "{code}: {result:#}");
        let shown = text_of(&result);
        assert!(shown.contains("The variables are kept"), "{code}: {shown}");
        assert!(cells.run("kept").contains('7'), "{code}");
    }
    cells.end();
}

#[test]
fn a_silent_cell_meets_its_limit_and_may_ask_for_more() {
    let home = Home::new();
    let mut cells = Cells::open(&home, &["--set", "eval.quiet=1s"]);
    let (shown, _) = cells.fails("import time\ntime.sleep(30)");
    assert!(shown.contains("no sign of activity for 1 s; budget(seconds)"), "{shown}");
    assert!(cells.run("budget(60)\ntime.sleep(1.5)\n'slept'").contains("slept"));
    assert!(
        cells
            .run("for _ in range(4):\n    time.sleep(0.5)\n    print('.')\n'told'")
            .contains("told")
    );
    let called = cells.run("tool('bash', command='sleep 2; echo done')");
    assert!(called.contains("done"), "the clock stands while a tool works: {called}");
    cells.end();
}

#[test]
fn a_cell_calls_tools_as_every_caller_does() {
    let home = Home::new();
    let mut cells = Cells::open(&home, &[]);
    std::fs::write(cells.dir.join("a.txt"), "from a file\n").unwrap();
    cells.all(&[
        ("text = tool('read', {'path': 'a.txt'})\nprint(text)", "from a file"),
        ("type(text).__name__, text.details is not None", "('ToolText', True)"),
        ("[len(t) for t in tool.map('bash', [{'command': f'echo {i}'} for i in range(20)])][:1]", "["),
        ("await tool.aio('read', path='a.txt')", "from a file"),
        ("try:\n    tool('read', {'path': 'none'})\nexcept ToolError as error:\n    print(error)", "none"),
        ("try:\n    tool('nothing')\nexcept ToolError as error:\n    print(error)", "there is no tool"),
        ("try:\n    tool('eval', {})\nexcept ToolError as error:\n    print(error)", "busy with it"),
        ("try:\n    tool('read', {'path': float('nan')})\nexcept ToolError as error:\n    print(error)", "nan: no such file"),
    ]);
    let shown = cells.run(
        "from concurrent.futures import ThreadPoolExecutor\n\
         with ThreadPoolExecutor(16) as pool:\n    \
         done = list(pool.map(lambda i: tool('bash', command=f'echo n{i}'), range(32)))\n\
         all(f'n{i}' in text for i, text in enumerate(done))",
    );
    assert!(shown.contains("True") && shown.contains("[tools called: bash x32]"), "{shown}");
    let shown = cells.run(
        "import threading, time\nsaid = []\ndef late():\n    time.sleep(0.5)\n    \
         try: tool('read', path='a.txt')\n    except ToolError as error: said.append(str(error))\n\
         thread = threading.Thread(target=late)\nthread.start()",
    );
    assert!(!shown.contains("Traceback"), "{shown}");
    std::thread::sleep(Duration::from_millis(800));
    assert!(cells.run("said").contains("no cell is running"));
    cells.end();
}

#[test]
fn what_is_written_between_cells_is_told_with_the_next() {
    let home = Home::new();
    let mut cells = Cells::open(&home, &[]);
    cells.run(
        "import threading, time\n\
         threading.Thread(target=lambda: (time.sleep(0.3), print('late words'))).start()",
    );
    std::thread::sleep(Duration::from_millis(700));
    let shown = cells.run("1");
    assert!(shown.contains("[written since the last cell:]\nlate words\n[end of that]"), "{shown}");
    cells.end();
}

#[test]
fn a_reset_ends_the_cell_that_runs() {
    let home = Home::new();
    let mut cells = Cells::open(&home, &[]);
    cells.run("x = 1");
    let id =
        cells.session.begin("eval", json!({ "code": "while True: pass", "description": "hot" }));
    std::thread::sleep(Duration::from_millis(300));
    let reset =
        cells.session.call("eval", json!({ "code": "x", "description": "fresh", "reset": true }));
    assert!(text_of(&reset).contains("NameError"), "{reset:#}");
    let stopped = cells.session.answer(id)["result"].clone();
    assert!(text_of(&stopped).contains("another call has reset"), "{stopped:#}");
    cells.end();
}

#[test]
fn a_file_of_the_projects_shadows_nothing_and_is_reloaded_when_it_changes() {
    let home = Home::new();
    let mut cells = Cells::open(&home, &[]);
    for name in ["json", "types", "http", "signal", "os"] {
        std::fs::write(cells.dir.join(format!("{name}.py")), "raise RuntimeError('shadowed')")
            .unwrap();
    }
    std::fs::write(cells.dir.join("mine.py"), "def f(): return 'old'\n").unwrap();
    cells.all(&[("import mine\nmine.f()", "old")]);
    std::fs::write(cells.dir.join("mine.py"), "def f(): return 'newer'\n").unwrap();
    let shown = cells.run("mine.f()");
    assert!(shown.contains("newer") && shown.contains("mine changed on disk"), "{shown}");
    cells.end();
}

#[test]
fn no_byte_of_a_thousand_cells_is_lost_or_misplaced() {
    let home = Home::new();
    let mut cells = Cells::open(&home, &[]);
    cells.run("import sys, os");
    for cell in 0..200 {
        let code = format!(
            "print('o{cell}'); print('e{cell}', file=sys.stderr); os.write(1, b'r{cell}\\n'); \
             _ = os.system('echo c{cell}')"
        );
        assert_eq!(cells.run(&code), format!("o{cell}\ne{cell}\nr{cell}\nc{cell}"));
    }
    let shown = cells.call("for i in range(20000): print('line', i)");
    let text = text_of(&shown);
    assert!(text.contains("line 0\n") && text.contains("line 19999"), "{}", text.len());
    assert!(shown["details"]["handle"].is_string(), "{:#}", shown["details"]);
    cells.end();
}

#[test]
fn a_display_stands_where_it_was_made() {
    let home = Home::new();
    let mut cells = Cells::open(&home, &[]);
    let code = "class Dot:\n    def _repr_png_(self): return b'\\x89PNG fake'\n\
                print('before')\ndisplay(Dot())\nprint('after')\nDot()";
    let result = cells.call(code);
    let kinds: Vec<_> = result["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| {
            block["text"].as_str().map_or("image", |text| {
                if text.contains("before") {
                    "before"
                } else if text.contains("after") {
                    "after"
                } else {
                    "rest"
                }
            })
        })
        .collect();
    assert_eq!(kinds, ["before", "image", "after", "image", "rest"], "{result:#}");
    cells.all(&[(
        "from IPython.display import display as show, Markdown\nshow(Markdown('**bold**'))",
        "**bold**",
    )]);
    cells.end();
}

/// A session whose cells are JavaScript, unless there is no Node of 20.12 or later.
fn node(home: &Home) -> Option<Cells> {
    let version = std::process::Command::new("node").arg("--version").output();
    let version = version.map(|out| String::from_utf8_lossy(&out.stdout).into_owned());
    let numbers = version.as_deref().unwrap_or_default().trim().trim_start_matches('v').to_owned();
    let mut parts = numbers.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let (major, minor) = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    if (major, minor) < (20, 12) {
        println!("skipped: cells of JavaScript need Node 20.12 or later, and there is `{numbers}`");
        return None;
    }
    Some(Cells { language: "javascript", ..Cells::open(home, &[]) })
}

#[test]
fn cells_of_javascript_last_as_well() {
    let home = Home::new();
    let Some(mut cells) = node(&home) else { return };
    assert!(cells.run("const x = 5\nx * 2").contains("[Node "));
    cells.all(&[
        ("const x = 7\nx", "7\n[variables: changed x: number 7]"),
        ("let v = 0; v = 1; await 0; v = 2", "2"),
        ("v", "2"),
        ("class A { f() { return 1 } }\nnew A().f()", "1"),
        ("kept = 1; throw new Error('boom')", "Error: boom"),
        ("kept", "1"),
        ("let z = zz", "zz is not defined"),
        ("let z = 3; z", "3"),
        ("Promise.reject(new Error('nobody looked'))\n1", "nobody looked"),
        ("x", "7"),
        ("import fs from 'fs'\nfs.existsSync('/')", "true"),
        ("require('path').basename('/a/b')", "'b'"),
        ("const n: number = 5\nconst f = <T,>(a: T): T => a\nf(n as number)", "5"),
        ("const y = (() => { return 1 })(); 'v'", "'v'"),
        ("[] instanceof Array", "true"),
        ("process.exit(3)", "the interpreter and its variables are kept"),
        ("process.stdin.read()", "null"),
        ("'x'.repeat(3000000).length", "3000000"),
        ("const fs = 'mine'\nfs", "'mine'"),
        ("fs", "'mine'"),
        ("throw 'a text'", "Uncaught 'a text'"),
    ]);
    let shown = cells.run(
        "console.log('one'); console.error('two')\n\
         require('child_process').execSync('echo three', { stdio: 'inherit' })\n4",
    );
    assert!(shown.starts_with("one\ntwo\nthree\n4"), "{shown}");
    let shown = cells.run("missing()");
    assert!(!shown.contains("__cell") && !shown.contains("hostler"), "{shown}");
    cells.end();
}

#[test]
fn cells_of_javascript_call_tools_and_are_interrupted() {
    let home = Home::new();
    let Some(mut cells) = node(&home) else { return };
    std::fs::write(cells.dir.join("a.txt"), "from a file\n").unwrap();
    cells.all(&[
        ("const text = await tool('read', { path: 'a.txt' }); text", "from a file"),
        ("tool.sync('read', { path: 'a.txt' })", "from a file"),
        (
            "await Promise.all([1, 2, 3].map((i) => tool('bash', { command: `echo ${i}` })))",
            "bash x3",
        ),
        ("try { await tool('nothing') } catch (e) { console.log(e instanceof ToolError) }", "true"),
        ("tool('bash', { command: 'echo unawaited > b.txt' }); 0", "bash x1"),
        ("require('fs').readFileSync('b.txt', 'utf8')", "unawaited"),
    ]);
    for code in ["while (true) {}", "await new Promise(() => {})"] {
        let id = cells.begin(code);
        std::thread::sleep(Duration::from_millis(300));
        cells.session.send(&json!({ "id": "c", "control": "cancel", "target": id }).to_string());
        let result = cells.session.answer(id)["result"].clone();
        assert!(text_of(&result).contains("The variables are kept"), "{code}: {result:#}");
        assert!(cells.run("String(text)").contains("from a file"));
    }
    let (shown, _) = cells.fails("process.kill(process.pid, 'SIGKILL'); while (true) {}");
    assert!(shown.contains("was killed by SIGKILL"), "{shown}");
    assert!(cells.run("typeof text").contains("undefined"));
    cells.end();
}

#[test]
fn nothing_is_left_of_a_session_that_ends_or_is_killed() {
    let home = Home::new();
    let mark = format!("EVAL_MARK={:x}", getrandom::u64().unwrap());
    let start = |cells: &mut Cells| {
        let (name, value) = mark.split_once('=').unwrap();
        cells.run(&format!(
            "import os, subprocess\nos.environ[{name:?}] = {value:?}\n\
             subprocess.Popen(['sleep', '600'])\nsubprocess.Popen(['setsid', 'sleep', '600'])"
        ));
        eventually("both run", || marked(&mark).len() >= 2);
    };
    let mut cells = Cells::open(&home, &[]);
    start(&mut cells);
    cells.end();
    assert_eq!(marked(&mark), Vec::<u32>::new(), "after its end");
    let mut cells = Cells::open(&home, &[]);
    start(&mut cells);
    cells.session.begin("eval", json!({ "code": "while True: pass", "description": "hot" }));
    let pid = cells.session.process.pid();
    cells.session.process.signal(nix::sys::signal::Signal::SIGKILL);
    eventually("all of it goes", || marked(&mark).is_empty() && !lives(pid));
}

#[test]
fn what_cannot_be_started_is_said() {
    let home = Home::new();
    let mut cells = Cells::open(&home, &["--set", "eval.start=1s"]);
    let bin = cells.dir.join(".venv/bin");
    std::fs::create_dir_all(&bin).unwrap();
    let python = bin.join("python3");
    std::fs::write(&python, "#!/bin/sh\necho I sleep >&2\nexec sleep 600\n").unwrap();
    std::fs::set_permissions(&python, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let (shown, _) = cells.fails("1");
    assert!(shown.contains("did not answer in time") && shown.contains("I sleep"), "{shown}");
    let empty = cells.session.call("eval", json!({ "code": " ", "description": "nothing" }));
    assert!(text_of(&empty).contains("`code` is empty"), "{empty:#}");
    let foreign =
        cells.session.call("eval", json!({ "code": "1", "description": "x", "language": "ruby" }));
    assert!(text_of(&foreign).contains("`language`"), "{foreign:#}");
    cells.end();
}
