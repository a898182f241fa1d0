//! What the processes of a tree can see and write.

use std::path::Path;

use hostler::launch::LaunchConfig;
use hostler_actors::ports::{Launch, LaunchOrder, Posture};

use super::{config, ended, launcher, read_all, script};

#[tokio::test]
async fn the_daemons_folders_are_hidden_and_what_is_kept_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let tools = data.join("tools/bin");
    std::fs::create_dir_all(&tools).unwrap();
    std::fs::write(data.join("secret"), "s").unwrap();
    std::fs::write(tools.join("tool"), "tool").unwrap();
    let launcher = launcher(LaunchConfig {
        hide: vec![data.clone(), folder.path().join("absent")],
        keep: vec![tools.clone(), data.join("absent")],
        ..config()
    })
    .await;
    let text = "ls $D; ls $D/tools; cat $D/tools/bin/tool; echo; echo x >$D/tools/bin/tool; echo x >$D/new; mount | grep -c $D";
    let mut order = script(text);
    order.env.push(("D".into(), data.clone().into()));
    let mut launched = launcher.launch(order).await.unwrap();
    assert_eq!(read_all(&mut launched, 1).await, "tools\nbin\ntool\n2\n");
    ended(&launched).await;
    let complaints = launched.tree.ring_tail(9);
    assert_eq!(complaints.matches("Read-only file system").count(), 2, "{complaints}");

    let mut order = script("cat tool");
    order.cwd = tools;
    let mut launched = launcher.launch(order).await.unwrap();
    assert_eq!(read_all(&mut launched, 1).await, "tool");
    for cwd in [data.clone(), data.join("tools")] {
        let mut order = script("true");
        order.cwd = cwd.clone();
        let error = launcher.launch(order).await.unwrap_err().to_string();
        let expected = format!(
            "{}: cannot be used as working directory: it is below {}, which processes do not see",
            cwd.display(),
            data.canonicalize().unwrap().display()
        );
        assert_eq!(error, expected);
    }
}

pub(super) fn read_only(folder: &Path, text: &str) -> LaunchOrder {
    let mut order = script(text);
    let (worktree, scratch) = (folder.join("wt"), folder.join("scratch"));
    std::fs::create_dir_all(worktree.join("sub")).unwrap();
    std::fs::create_dir_all(&scratch).unwrap();
    std::fs::write(worktree.join("file"), "before").unwrap();
    order.env.push(("SCRATCH".into(), scratch.clone().into()));
    order.cwd.clone_from(&worktree);
    order.posture = Posture::ReadOnly { worktree, scratch };
    order
}

pub(super) const TRIES: &str = "echo x >file; echo x >sub/new; chmod 777 file; rm file; mv file $SCRATCH/; \
    mkdir d; mount -o remount,rw,bind . ; umount . ; \
    echo ok >$SCRATCH/out; cat $SCRATCH/out; cat file; echo; echo x >/dev/null && echo null; \
    unshare -rm mount -o remount,rw,bind \"$PWD\" && echo broken";

#[tokio::test]
async fn a_read_only_worktree_is_read_only() {
    let launcher = launcher(config()).await;
    assert!(launcher.containment().enforces_read_only());
    let folder = tempfile::tempdir().unwrap();
    let mut launched = launcher.launch(read_only(folder.path(), TRIES)).await.unwrap();
    assert_eq!(read_all(&mut launched, 1).await, "ok\nbefore\nnull\n");
    ended(&launched).await;
    let complaints = launched.tree.ring_tail(20);
    let chmod = complaints.lines().find(|line| line.contains("chmod")).unwrap();
    assert!(chmod.contains("Read-only file system"), "{complaints}");
    assert_eq!(std::fs::read_to_string(folder.path().join("wt/file")).unwrap(), "before");
    assert!(!folder.path().join("wt/d").exists());
}

#[tokio::test]
async fn landlock_alone_keeps_contents() {
    let launcher = launcher(LaunchConfig { subreaper_only: true, ..config() }).await;
    if !launcher.containment().enforces_read_only() {
        println!("skipped: this kernel has no landlock");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = "echo x >file; rm file; mkdir d; echo ok >$SCRATCH/out; cat $SCRATCH/out file; echo x >/dev/null && echo null";
    let mut launched = launcher.launch(read_only(folder.path(), text)).await.unwrap();
    assert_eq!(read_all(&mut launched, 1).await, "ok\nbeforenull\n");
    ended(&launched).await;
}
