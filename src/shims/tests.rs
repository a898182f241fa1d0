//! Searches over folders of small scripts, some of which do not work.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::os::unix::fs::symlink;

use super::*;
use crate::oneshot::direct;

/// A root with a project, two folders for PATH and one of installed tools.
struct Files {
    root: tempfile::TempDir,
    env: Vec<(OsString, OsString)>,
}

impl Files {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name).display().to_string();
        let path = format!("{}:rel:{}:/usr/bin:/bin", path("shims"), path("second"));
        let env = vec![("PATH".into(), path.into())];
        Self { root, env }
    }

    fn write(&self, name: &str, text: &str, mode: u32) {
        let path = self.root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn script(&self, name: &str, body: &str) {
        self.write(name, &format!("#!/bin/sh\n{body}\n"), 0o755);
    }

    async fn find(&self, programs: &Programs, probe: Option<&Probe>) -> Result<String, NotFound> {
        let bin = self.root.path().join("tools/bin");
        let installed = [InstalledTool { bin, binaries: vec!["serve".to_owned()] }];
        let names = ["serve".to_owned()];
        let folders = ["own/bin".into()];
        let search = Search {
            names: &names,
            root: self.root.path(),
            project_folders: &folders,
            env: &self.env,
            installed: &installed,
            probe,
        };
        programs.find(search).await.map(|found| {
            let path = found.path.strip_prefix(self.root.path()).unwrap();
            format!("{} ({})", path.display(), found.source)
        })
    }

    async fn interpreter(&self, programs: &Programs) -> Result<PathBuf, NotFound> {
        let names = ["snake".to_owned()];
        let search = Search {
            names: &names,
            root: self.root.path(),
            project_folders: &[],
            env: &self.env,
            installed: &[],
            probe: None,
        };
        programs.interpreter(search).await
    }
}

fn programs() -> Programs {
    Programs::new(direct::launcher())
}

fn probe(companion: Option<&str>) -> Probe {
    Probe {
        companion: companion.map(str::to_owned),
        args: vec!["--version".to_owned()],
        prints: None,
    }
}

#[tokio::test]
async fn the_projects_own_comes_first_then_path_then_installed() {
    let files = Files::new();
    let programs = programs();
    let missing = files.find(&programs, None).await.unwrap_err();
    assert_eq!(missing.looked.len(), 6, "{missing}");
    for (name, expected) in [
        ("tools/bin/serve", "tools/bin/serve (installed)"),
        ("second/serve", "second/serve (PATH)"),
        ("own/bin/serve", "own/bin/serve (project)"),
    ] {
        files.script(name, "");
        assert_eq!(files.find(&programs, None).await.unwrap(), expected);
    }
}

#[tokio::test]
async fn what_does_not_work_is_passed_over_and_named() {
    let files = Files::new();
    let programs = programs();
    files.write("own/bin/serve", "", 0o644);
    files.script("second/serve", "echo no such toolchain >&2; exit 1");
    let missing = files.find(&programs, Some(&probe(None))).await.unwrap_err();
    let text = missing.to_string();
    assert!(text.contains("own/bin/serve: is not executable"), "{text}");
    assert!(text.contains("second/serve: exited with code 1: no such toolchain"), "{text}");
    files.script("tools/bin/serve", "");
    assert_eq!(
        files.find(&programs, Some(&probe(None))).await.unwrap(),
        "tools/bin/serve (installed)"
    );
}

#[tokio::test]
async fn a_companion_is_asked_in_its_place() {
    let files = Files::new();
    files.script("second/serve", "exit 1");
    files.script("second/ask", "echo asked >> \"$0.log\"");
    let programs = programs();
    for _ in 0..2 {
        let found = files.find(&programs, Some(&probe(Some("ask")))).await;
        assert_eq!(found.unwrap(), "second/serve (PATH)");
    }
    let log = fs::read_to_string(files.root.path().join("second/ask.log")).unwrap();
    assert_eq!(log, "asked\n", "the answer is remembered");
    let found = files.find(&programs, Some(&probe(Some("nobody")))).await;
    assert_eq!(found.unwrap(), "second/serve (PATH)", "without a companion nothing is asked");
}

#[tokio::test]
async fn an_interpreters_shim_is_resolved_once_per_project() {
    let files = Files::new();
    let real = files.root.path().join("second/snake");
    files.script("shims/snake", &format!("echo x >> \"$0.log\"; echo {}", real.display()));
    files.script("second/snake", "");
    let programs = programs();
    for _ in 0..2 {
        assert_eq!(files.interpreter(&programs).await.unwrap(), real);
    }
    assert_eq!(fs::read_to_string(files.root.path().join("shims/snake.log")).unwrap(), "x\n");
}

#[tokio::test]
async fn a_shim_that_fails_is_passed_over() {
    let files = Files::new();
    files.script("shims/snake", "echo 'version 3.99 is not installed' >&2; exit 127");
    let missing = files.interpreter(&programs()).await.unwrap_err();
    assert!(missing.to_string().contains("version 3.99 is not installed"), "{missing}");
    files.script("second/snake", "");
    let found = files.interpreter(&programs()).await.unwrap();
    assert_eq!(found, files.root.path().join("second/snake"));
}

#[tokio::test]
async fn a_shim_that_leads_to_itself_or_nowhere_is_passed_over() {
    let files = Files::new();
    for leads in ["$0", "/nowhere/snake", ""] {
        files.script("shims/snake", &format!("echo {leads}"));
        let missing = files.interpreter(&programs()).await.unwrap_err();
        assert!(missing.rejected[0].1.starts_with("is a shim that leads to"), "{missing}");
    }
}

#[test]
fn shims_are_known_by_folder_or_text() {
    let files = Files::new();
    files.script("bin/one", "exec \"/opt/pyenv\" exec \"$program\" \"$@\"");
    files.script("bin/two", "echo hello");
    files.write("bin/three", "\u{7f}ELF pyenv exec", 0o755);
    symlink(files.root.path().join("bin/two"), files.root.path().join("bin/four")).unwrap();
    let is = |name: &str| is_shim(&files.root.path().join(name));
    assert!(is("bin/one") && is("any/shims/python"));
    assert!(!is("bin/two") && !is("bin/three") && !is("bin/four") && !is("bin/none"));
}

#[tokio::test]
async fn what_one_definition_takes_another_may_refuse() {
    let files = Files::new();
    files.script("shims/serve", "echo Version 5");
    files.script("second/serve", "echo Version 7");
    let programs = programs();
    let any = probe(None);
    let seven = Probe { prints: Some("Version 7".to_owned()), ..any.clone() };
    assert_eq!(files.find(&programs, Some(&any)).await.unwrap(), "shims/serve (PATH)");
    assert_eq!(files.find(&programs, Some(&seven)).await.unwrap(), "second/serve (PATH)");
}
