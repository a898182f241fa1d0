//! The tool on a folder: all files or none.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::sync::Arc;

use serde_json::{Value, json};

use super::TOOL;
use crate::seat::testing::{Bench, NoLaunch};
use crate::tools::write;

fn bench() -> Bench {
    Bench::new(Arc::new(NoLaunch))
}

fn patch(body: &str) -> Value {
    json!({"patch": format!("*** Begin Patch\n{body}\n*** End Patch")})
}

#[tokio::test]
async fn several_files_change_together() {
    let bench = bench();
    bench.put("a.py", "x = 1\ny = 2\n");
    bench.put("old.sh", "echo a\n");
    bench.put("gone.txt", "g\n");
    std::fs::set_permissions(bench.path("old.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    let text = bench
        .done(
            &TOOL,
            patch(
                "*** Update File: a.py\n@@\n-x = 1\n+x = 3\n y = 2\n*** Add File: deep/new.py\n+z\n\
                 *** Delete File: gone.txt\n*** Update File: old.sh\n*** Move to: bin/new.sh\n@@\n-echo a\n+echo b",
            ),
        )
        .await;
    assert_eq!(
        text,
        "M a.py (+1 -1, line 1)\nA deep/new.py (+1 -0)\nD gone.txt\nR old.sh -> bin/new.sh (+1 -1, line 1)"
    );
    assert_eq!(bench.content("a.py"), "x = 3\ny = 2\n");
    assert_eq!(bench.content("deep/new.py"), "z\n");
    assert_eq!(bench.content("bin/new.sh"), "echo b\n");
    assert_eq!(std::fs::metadata(bench.path("bin/new.sh")).unwrap().mode() & 0o777, 0o755);
    assert!(!bench.path("gone.txt").exists() && !bench.path("old.sh").exists());
    // The run gave all of the new file, and so may replace it.
    bench.done(&write::TOOL, json!({"path": "deep/new.py", "content": "w\n"})).await;
}

#[tokio::test]
async fn one_error_leaves_every_byte_as_it_was() {
    let bench = bench();
    bench.put("a.py", "x = 1\n");
    bench.put("b.py", "y = 1\n");
    let good = "*** Update File: a.py\n@@\n-x = 1\n+x = 2\n";
    for (bad, word) in [
        ("*** Update File: b.py\n@@\n-nowhere\n+z", "b.py: chunk 1: its lines stand nowhere"),
        ("*** Add File: b.py\n+z", "b.py exists, and nothing was written"),
        ("*** Update File: a.py\n*** Move to: b.py", "cannot be moved to b.py, which exists"),
        ("*** Update File: nowhere.py\n@@\n-a\n+b", "nowhere.py: no such file"),
        ("*** Delete File: nowhere.py", "nowhere.py: no such file"),
        ("*** Add File: ../x\n+z", "outside the work folder"),
        ("*** Add File: /tmp/hostler-x\n+z", "outside the work folder"),
        ("*** Delete File: .", "is a folder"),
    ] {
        let text = bench.fails(&TOOL, patch(&format!("{good}{bad}"))).await;
        assert!(text.contains(word), "{bad}: {text}");
        assert_eq!(
            (bench.content("a.py"), bench.content("b.py")),
            ("x = 1\n".into(), "y = 1\n".into())
        );
    }
}

#[tokio::test]
async fn a_link_that_leads_out_is_refused_and_one_inside_is_written_through() {
    let bench = bench();
    bench.put("real.txt", "a\n");
    symlink(bench.path("real.txt"), bench.path("in.txt")).unwrap();
    symlink("/tmp", bench.path("out")).unwrap();
    let refused = bench.fails(&TOOL, patch("*** Add File: out/hostler-x\n+z")).await;
    assert!(refused.contains("outside the work folder"), "{refused}");
    bench.done(&TOOL, patch("*** Update File: in.txt\n@@\n-a\n+b")).await;
    assert_eq!(bench.content("real.txt"), "b\n");
    assert!(std::fs::symlink_metadata(bench.path("in.txt")).unwrap().is_symlink());
}

#[tokio::test]
async fn a_file_that_stands_twice_is_changed_twice() {
    let bench = bench();
    bench.put("a", "1\n2\n3\n");
    bench
        .done(
            &TOOL,
            patch("*** Update File: a\n@@\n-1\n+one\n*** Update File: a\n@@\n one\n-2\n+two"),
        )
        .await;
    assert_eq!(bench.content("a"), "one\ntwo\n3\n");
    bench.done(&TOOL, patch("*** Delete File: a\n*** Add File: a\n+new")).await;
    assert_eq!(bench.content("a"), "new\n");
    let text =
        bench.done(&TOOL, patch("*** Update File: a\n*** Move to: ./a\n@@\n-new\n+newer")).await;
    assert_eq!(text, "M a (+1 -1, line 1)");
    let text = bench.done(&TOOL, patch("*** Add File: a\n+newer")).await;
    assert!(text.contains("nothing was written"), "{text}");
}

#[tokio::test]
async fn what_was_not_exact_is_told() {
    let bench = bench();
    bench.put("a.py", "def f():\n    return 1  \n");
    let (text, details) = bench
        .call(&TOOL, patch("*** Update File: a.py\n@@\n def f():\n-    return 1\n+    return 2"))
        .await
        .unwrap();
    assert!(
        text.contains("chunk 1 was matched ignoring white space at the ends of lines"),
        "{text}"
    );
    assert_eq!(details["ignored"].as_array().unwrap().len(), 1);
}

#[test]
fn the_files_are_known_before_the_call() {
    let given = patch("*** Update File: a\n*** Move to: b\n@@\n-x\n*** Add File: c\n+x");
    assert_eq!((TOOL.writes)(&given), ["a", "b", "c"]);
}
