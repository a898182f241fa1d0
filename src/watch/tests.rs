//! Real files under a real watch.

use std::path::PathBuf;
use std::time::Duration;

use hostler_actors::host::language_server::spec::{AfterChange, Recipe, ServerSpec};
use hostler_actors::ports::Posture;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::*;

pub(super) fn key(name: &str) -> ServerKey {
    let spec = ServerSpec {
        name: name.to_owned(),
        root: PathBuf::from("/root"),
        program: PathBuf::from("/server"),
        args: Vec::new(),
        env: Vec::new(),
        posture: Posture::Writable,
        initialization_options: serde_json::Value::Null,
        settings: serde_json::Value::Null,
        recipe: Recipe::Pull,
        after_change: AfterChange::Nothing,
        inner_process: None,
        reread: None,
        start_deadline: Duration::from_secs(1),
        linger: Duration::from_secs(1),
        private_to: None,
    };
    spec.key()
}

fn names(watch: &RootWatch, root: &Path) -> Vec<String> {
    let since = watch.hand_over(&key("a"), |since| since);
    assert!(!since.lost && !since.partial);
    let below = |change: &FileChange| change.path.strip_prefix(root).unwrap().display().to_string();
    let mut names: Vec<_> = since.changes.iter().map(below).collect();
    names.sort();
    names
}

#[tokio::test]
async fn what_happened_before_a_question_is_known_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for pruned in ["node_modules", "src"] {
        std::fs::create_dir(root.join(pruned)).unwrap();
    }
    let watches = Watches::new(Arc::new(|_| {}));
    let watch = watches.of(root).unwrap();
    assert!(Arc::ptr_eq(&watch, &watches.of(root).unwrap()), "one watch per root");
    assert_eq!(names(&watch, root), [""; 0]);
    std::fs::write(root.join("src/a.py"), "a").unwrap();
    std::fs::write(root.join("node_modules/noise.js"), "a").unwrap();
    std::fs::create_dir_all(root.join("new/deep")).unwrap();
    std::fs::write(root.join("new/deep/b.py"), "b").unwrap();
    assert_eq!(names(&watch, root), ["new/deep/b.py", "src/a.py"]);
    std::fs::write(root.join("new/deep/b.py"), "again").unwrap();
    std::fs::remove_file(root.join("src/a.py")).unwrap();
    assert_eq!(names(&watch, root), ["new/deep/b.py", "src/a.py"]);
}

#[tokio::test]
async fn what_replaces_a_file_is_told_from_what_is_new() {
    use FileChangeKind::{Changed, Created, Deleted};
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let write = |name: &str| std::fs::write(root.join(name), "x").unwrap();
    let rename = |from: &str, to: &str| std::fs::rename(root.join(from), root.join(to)).unwrap();
    std::fs::create_dir(root.join("src")).unwrap();
    write("src/old");
    let watch = Watches::new(Arc::new(|_| {})).of(root).unwrap();
    let told = |name: &str| {
        let changes = watch.hand_over(&key("a"), |since| since.changes);
        let path = root.join(name);
        changes.iter().find(|change| *change.path == path).map(|change| change.kind)
    };
    assert_eq!(told("src/old"), None);
    write("src/.new");
    rename("src/.new", "src/old");
    assert_eq!(told("src/old"), Some(Changed), "as `sed -i` does");
    write("src/.new");
    rename("src/.new", "src/new");
    assert_eq!(told("src/new"), Some(Created));
    rename("src/new", "src/newer");
    assert_eq!(told("src/new"), Some(Deleted));
    write("src/new");
    assert_eq!(told("src/new"), Some(Created), "it was gone");
    std::fs::remove_dir_all(root.join("src")).unwrap();
    assert_eq!(told("src/old"), Some(Deleted));
    std::fs::create_dir(root.join("src")).unwrap();
    write("src/old");
    assert_eq!(told("src/old"), Some(Created), "all of the folder was");
}

#[tokio::test]
async fn a_root_that_goes_is_told_without_being_asked() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    std::fs::create_dir(&root).unwrap();
    let (tell, mut told) = mpsc::unbounded_channel();
    let watches = Watches::new(Arc::new(move |root| {
        let _ = tell.send(root.to_owned());
    }));
    let watch = watches.of(&root).unwrap();
    std::fs::remove_dir(&root).unwrap();
    let gone = timeout(Duration::from_secs(30), told.recv()).await.unwrap().unwrap();
    assert_eq!(gone, root);
    std::fs::create_dir(&root).unwrap();
    assert!(!Arc::ptr_eq(&watch, &watches.of(&root).unwrap()), "what comes again is watched anew");
}
