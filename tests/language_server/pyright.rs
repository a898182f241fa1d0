//! The real pyright, where the project's tools are installed.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn pyright_answers_and_judges_each_write() {
    let Some((node, entry)) = installed::pyright() else {
        println!("skipped: HOSTLER_TOOLS holds no pyright, or there is no node");
        return;
    };
    let bench = bench(|spec| {
        spec.name = "pyright".to_owned();
        spec.program = node;
        spec.args = vec![entry.into(), "--stdio".into()];
    })
    .await;
    let lease = bench.lease(1);
    bench.write("lib.py", "def give() -> int:\n    return 1\n");
    let file = bench.write("main.py", "from lib import give\nvalue = give()\n");
    let said = hover(&lease, &file, "value").await.unwrap();
    assert!(said.contains("(variable) value: int"), "{said}");
    assert_eq!(messages(&verdict(&lease, &file, LONG).await), [""; 0]);

    let mut times = Vec::new();
    for round in 0..10 {
        let broken = format!("from lib import give\nvalue: str = give()\nx = {round}\n");
        let file = bench.write("main.py", &broken);
        let began = Instant::now();
        let found = verdict(&lease, &file, LONG).await;
        times.push(began.elapsed());
        assert!(messages(&found)[0].contains("\"int\" is not assignable to \"str\""), "{found:?}");
        let file = bench.write("main.py", "from lib import give\nvalue = give()\n");
        assert_eq!(messages(&verdict(&lease, &file, LONG).await), [""; 0]);
    }
    times.sort();
    println!("write to verdict: {:?} at the median, {:?} at most", times[5], times[9]);

    // A file that is not open changes; whoever depends on it is told the truth.
    bench.write("lib.py", "def give() -> str:\n    return ''\n");
    lease.changed(vec![hostler_actors::ports::FileChange {
        path: bench.resource.spec().root.join("lib.py").into(),
        kind: hostler_actors::ports::FileChangeKind::Changed,
    }]);
    let file = bench.write("main.py", "from lib import give\nvalue: int = give()\n");
    let found = verdict(&lease, &file, LONG).await;
    assert!(messages(&found)[0].contains("\"str\" is not assignable to \"int\""), "{found:?}");
    bench.end().await;
}
