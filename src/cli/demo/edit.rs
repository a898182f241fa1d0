//! The second part: one rewrite over a few hundred files, and two runs in one folder.
//!
//! A run finds a shape and stages its rewrite, another run changes one of the files,
//! and the change is refused as a whole with that file's name. Staged again it is
//! applied, and what it broke comes with the answer.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use hostler_actors::profile::Mode;
use serde_json::{Value, json};

use super::Stage;
use super::remote::{Answer, Broken, Remote};
use super::show::Show;
use crate::serve::protocol::Open;

/// Modules of the project.
const MODULES: usize = 300;
/// Lines of a long answer that are shown.
const SHOWN: usize = 8;

const CORE: &str = "\
def ratio(total: int, count: int) -> int:
    return total // count


def divide(total: int, count: int) -> float:
    return total / count
";

/// The module that another run changes.
const CHANGED: &str = "part_17.py";

/// Plays the part.
pub(super) async fn part(stage: &Stage, show: Arc<Show>) -> Result<(), Broken> {
    let project = stage.folder.join("parts");
    lay_out(&project)?;
    let open = Open {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        dir: project,
        mode: Mode::Chat,
        space: None,
        run: None,
        env: stage.env.clone(),
    };
    let mut one = Remote::open(&stage.client, &open).await?;
    let mut other = Remote::open(&stage.client, &open).await?;
    search(&mut one, &show).await?;
    // A harness has looked around before it changes hundreds of files.
    one.call("lsp", json!({"action": "diagnostics", "file": "core.py"})).await?;

    let first = stage_rewrite(&mut one, &show).await?;
    let edit = json!({"path": CHANGED, "old_text": "divide, ratio", "new_text": "ratio, divide"});
    other.call("edit", edit).await?;
    show.say(&format!("another run changes {CHANGED}"));
    let refused = one.refused("resolve", accept(&first)).await?;
    refused.expect(refused.text.contains(CHANGED), "the refusal", CHANGED)?;
    show.say(&refused.text);

    let second = stage_rewrite(&mut one, &show).await?;
    let began = Instant::now();
    let applied = one.call("resolve", accept(&second)).await?;
    let whole = applied.details.get("files") == Some(&Value::from(MODULES));
    applied.expect(whole, "the accepted rewrite", "every module")?;
    show.say(&format!("accepted, {:.1} s with the verdict:", began.elapsed().as_secs_f64()));
    shown(&show, &applied);
    let told = applied.freshness() == "fresh" && applied.text.contains("part_0.py:3:");
    applied.expect(told, "the accepted rewrite", "what it broke in part_0.py")?;
    one.end().await?;
    other.end().await?;
    Ok(())
}

fn lay_out(project: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(project)?;
    std::fs::write(project.join("pyproject.toml"), "[project]\nname = \"parts\"\n")?;
    std::fs::write(project.join("core.py"), CORE)?;
    for module in 0..MODULES {
        // One of them holds the type to what it was.
        let stated = if module == 0 { ": int" } else { "" };
        let text = format!(
            "from core import divide, ratio\n\nvalue_{module}{stated} = ratio({module}, 2)\n\
             again = [divide(1, 2), value_{module}]\n"
        );
        std::fs::write(project.join(format!("part_{module}.py")), text)?;
    }
    Ok(())
}

async fn search(run: &mut Remote, show: &Show) -> Result<(), Broken> {
    let asked = json!({"pattern": "ratio($A, $B)", "language": "python", "max_results": 2});
    let began = Instant::now();
    let found = run.call("ast_grep", asked).await?;
    let took = began.elapsed().as_secs_f64() * 1e3;
    let all = found.details.get("total") == Some(&Value::from(MODULES));
    found.expect(all, "the search", "one match in each module")?;
    show.say(&format!("ast_grep, {took:.0} ms: {}", found.text.lines().next().unwrap_or_default()));
    Ok(())
}

async fn stage_rewrite(run: &mut Remote, show: &Show) -> Result<String, Broken> {
    let rewrite = json!({
        "pattern": "ratio($A, $B)", "rewrite": "divide($A, $B)", "language": "python",
    });
    let staged = run.call("ast_edit", rewrite).await?;
    show.say(staged.text.lines().next().unwrap_or_default());
    let id = staged.details.get("edit_id").and_then(Value::as_str).unwrap_or_default().to_owned();
    staged.expect(!id.is_empty(), "the rewrite", "an edit to resolve")?;
    Ok(id)
}

fn accept(id: &str) -> Value {
    json!({"edit_id": id, "action": "accept"})
}

fn shown(show: &Show, answer: &Answer) {
    let (head, tail): (Vec<_>, Vec<_>) =
        answer.text.lines().partition(|line| line.starts_with("M ") || line.starts_with("and "));
    for line in tail.into_iter().take(SHOWN) {
        show.say(line);
    }
    show.say(&format!("({} more lines name the files)", head.len()));
}
