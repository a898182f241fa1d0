//! Draws the status table as a tree. Pure: what it shows is its argument.

use std::collections::HashMap;
use std::fmt::Write;

use hostler_actors::status::{NodeId, NodeView};

use super::out;

/// How many rows are shown below one parent. A host may have ten thousand
/// conversations; the JSON has them all.
const SHOWN_CHILDREN: usize = 50;

/// How much of an error or a name is shown.
const SHOWN_CHARS: usize = 160;

/// Is colour wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    /// For a terminal.
    Colour,
    /// For a file or a pipe.
    Plain,
}

impl Paint {
    /// Colour where a person looks.
    pub(crate) fn for_stdout() -> Self {
        if out::is_terminal() { Self::Colour } else { Self::Plain }
    }
}

/// Draws the tree.
pub(crate) fn tree(nodes: &[NodeView], paint: Paint) -> String {
    let known: HashMap<NodeId, &NodeView> = nodes.iter().map(|node| (node.id, node)).collect();
    let mut below: HashMap<Option<NodeId>, Vec<&NodeView>> = HashMap::new();
    for node in nodes {
        // A row whose parent is gone is shown rather than lost.
        let parent = node.parent.filter(|parent| known.contains_key(parent));
        below.entry(parent).or_default().push(node);
    }
    let mut drawing = Drawing { below, paint, out: String::new() };
    for root in drawing.below.remove(&None).unwrap_or_default() {
        drawing.row(root, "", "");
    }
    drawing.out
}

struct Drawing<'a> {
    below: HashMap<Option<NodeId>, Vec<&'a NodeView>>,
    paint: Paint,
    out: String,
}

impl Drawing<'_> {
    /// Draws a row after `head`, and everything below it after `stem`.
    fn row(&mut self, node: &NodeView, head: &str, stem: &str) {
        // Removed as it is drawn, so that no cycle can be walked twice.
        let children = self.below.remove(&Some(node.id)).unwrap_or_default();
        let line = self.line(node);
        self.push(head, &line);
        let bar = if children.is_empty() { "   " } else { "│  " };
        for detail in details(node) {
            self.push(stem, &format!("{bar}{}", self.painted("2", &detail)));
        }
        let cut = children.len().saturating_sub(SHOWN_CHILDREN);
        let last = children.len().min(SHOWN_CHILDREN).saturating_sub(usize::from(cut == 0));
        for (index, child) in children.iter().take(SHOWN_CHILDREN).enumerate() {
            let (branch, trunk) =
                if index == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            self.row(child, &format!("{stem}{branch}"), &format!("{stem}{trunk}"));
        }
        if cut > 0 {
            self.push(stem, &format!("└─ … {cut} more (`--json` has them all)"));
        }
    }

    fn push(&mut self, head: &str, line: &str) {
        let _ = writeln!(self.out, "{head}{}", line.trim_end());
    }

    fn line(&self, node: &NodeView) -> String {
        let mut parts = vec![node.kind.to_string()];
        if node.name != parts.join("") {
            parts.push(self.painted("1", &clean(&node.name)));
        }
        let phase = if node.phase == "failed" {
            "31"
        } else if matches!(node.phase.as_str(), "up" | "ready" | "running") {
            "32"
        } else {
            "33"
        };
        parts.push(self.painted(phase, &clean(&node.phase)));
        parts.extend(node.pid.map(|pid| format!("pid {pid}")));
        if node.restarts > 0 {
            parts.push(format!("{} restarted", times(node.restarts)));
        }
        parts.push(format!("age {}", span(node.age_ms)));
        parts.extend(node.usage.map(|usage| {
            let age = node.usage_age_ms.map(|age| format!(", {} ago", span(age)));
            format!(
                "{} in {} ({})",
                bytes(usage.resident_bytes),
                processes(usage.processes),
                age.unwrap_or_default().trim_start_matches(", "),
            )
        }));
        parts.extend(node.leases.map(|leases| match leases {
            1 => "1 lease".to_owned(),
            leases => format!("{leases} leases"),
        }));
        parts.join("  ")
    }

    fn painted(&self, code: &str, text: &str) -> String {
        match self.paint {
            Paint::Colour => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            Paint::Plain => text.to_owned(),
        }
    }
}

fn details(node: &NodeView) -> Vec<String> {
    let doing = node.doing.as_ref().map(|doing| match node.doing_ms {
        Some(ms) => format!("doing: {} for {}", clean(doing), span(ms)),
        None => format!("doing: {}", clean(doing)),
    });
    let error = node.last_error.as_ref().map(|error| format!("last error: {}", clean(error)));
    let note = node.note.as_ref().map(|note| format!("note: {}", clean(note)));
    [doing, error, note].into_iter().flatten().collect()
}

/// Takes out what would move the cursor or colour the screen: names and errors
/// hold what servers and commands wrote.
fn clean(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(SHOWN_CHARS)
        .map(|c| if c == '\n' || c == '\t' { ' ' } else { c })
        .filter(|c| !c.is_control())
        .collect();
    if text.chars().nth(SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn processes(count: u32) -> String {
    if count == 1 { "1 process".to_owned() } else { format!("{count} processes") }
}

/// Writes milliseconds as a person would say them.
pub(crate) fn span(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
        _ => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

/// Writes a number of bytes in binary units.
pub(crate) fn bytes(count: u64) -> String {
    const KIB: u64 = 1024;
    const MIB: u64 = 1024 * KIB;
    const GIB: u64 = 1024 * MIB;
    let tenths = |unit: u64| format!("{}.{}", count / unit, count % unit * 10 / unit);
    match count {
        0..KIB => format!("{count} B"),
        KIB..MIB => format!("{} KiB", count / KIB),
        MIB..GIB => format!("{} MiB", tenths(MIB)),
        _ => format!("{} GiB", tenths(GIB)),
    }
}

#[cfg(test)]
mod tests {
    use hostler_actors::status::{NodeKind, StatusTable, Usage};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_tree_says_what_lives_and_what_it_is_doing() {
        let table = StatusTable::default();
        let host = table.enter(None, NodeKind::Host, "host");
        host.update(|row| row.phase = "up");
        let server = host.child(NodeKind::LanguageServer, "pyright /project");
        let workspace = host.child(NodeKind::Workspace, "w1");
        let _space = workspace.child(NodeKind::Space, "s2");
        tokio::time::advance(std::time::Duration::from_millis(1500)).await;
        let now = tokio::time::Instant::now();
        server.update(|row| {
            row.phase = "up";
            row.pid = Some(42);
            row.restarts = 1;
            row.leases = Some(8);
            row.last_error = Some("was killed by \u{1b}[31mSIGKILL".into());
            row.doing = Some(("hover".into(), now));
            row.usage = Some((Usage { resident_bytes: 140_000_000, processes: 2 }, now));
        });
        tokio::time::advance(std::time::Duration::from_millis(250)).await;
        expect_test::expect![[r#"
            host  up  age 1.7 s
            ├─ language server  pyright /project  up  pid 42  once restarted  age 1.7 s  133.5 MiB in 2 processes (250 ms ago)  8 leases
            │     doing: hover for 250 ms
            │     last error: was killed by [31mSIGKILL
            └─ workspace  w1  idle  age 1.7 s
               └─ space  s2  idle  age 1.7 s
        "#]]
        .assert_eq(&tree(&table.snapshot(), Paint::Plain));
        assert!(tree(&table.snapshot(), Paint::Colour).contains("\u{1b}[32mup\u{1b}[0m"));
    }

    #[tokio::test]
    async fn a_long_list_says_how_much_it_cut_and_an_orphan_is_shown() {
        let table = StatusTable::default();
        let host = table.enter(None, NodeKind::Host, "host");
        let spaces: Vec<_> =
            (0..60).map(|number| host.child(NodeKind::Space, format!("s{number}"))).collect();
        let drawn = tree(&table.snapshot(), Paint::Plain);
        assert!(drawn.ends_with("└─ … 10 more (`--json` has them all)\n"), "{drawn}");
        assert_eq!(drawn.lines().count(), 52);
        drop(host);
        assert_eq!(tree(&table.snapshot(), Paint::Plain).lines().count(), spaces.len());
    }

    #[test]
    fn figures_are_written_for_people() {
        assert_eq!([span(7), span(61_000), span(7_260_000)], ["7 ms", "1 min 1 s", "2 h 1 min"]);
        assert_eq!([bytes(12), bytes(4096), bytes(1 << 30)], ["12 B", "4 KiB", "1.0 GiB"]);
    }
}
