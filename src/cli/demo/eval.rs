//! The part in which a run works with data: it loads a table in one cell, plots it in the
//! next, and calls its own tools from a third; then a cell crashes its interpreter.
//!
//! The project gets a virtual environment of its own, for which the network is needed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use serde_json::json;

use super::Stage;
use super::projects::{PYTHON, lay_out};
use super::remote::{Answer, Broken, Remote};
use super::show::Show;

/// What the network may take.
const INSTALLS: Duration = Duration::from_secs(150);
/// Lines of an answer that are shown.
const SHOWN: usize = 14;

const TABLE: &str = "day,orders,returns\n1,12,1\n2,19,2\n3,7,0\n4,31,4\n5,26,2\n6,40,3\n";

/// Plays the part.
pub(super) async fn part(stage: &Stage, show: Arc<Show>) -> Result<(), Broken> {
    let project = stage.folder.join("depot");
    lay_out(PYTHON, &project)?;
    std::fs::write(project.join("orders.csv"), TABLE)?;
    let mut remote = Remote::open(&stage.client, &stage.open(&project, &stage.env)).await?;
    remote.bound = INSTALLS;
    show.say("a virtual environment for the project, then pandas and matplotlib into it:");
    remote.call("bash", json!({ "command": "python3 -m venv .venv" })).await?;
    let mut run = Run { remote, show };
    run.cell("%pip install --quiet --disable-pip-version-check pandas matplotlib", "", "").await?;
    let load = "import pandas as pd\norders = pd.read_csv('orders.csv')\norders";
    run.cell(load, "load the orders", "[6 rows x 3 columns").await?;
    plot(&mut run).await?;
    tools(&mut run).await?;
    crash(&mut run).await?;
    run.remote.end().await.map(drop)
}

struct Run {
    remote: Remote,
    show: Arc<Show>,
}

impl Run {
    fn shows(&self, code: &str, answer: &Answer) {
        for line in code.lines() {
            self.show.say(&format!("  > {line}"));
        }
        for line in answer.text.lines().take(SHOWN) {
            self.show.say(&format!("    {line}"));
        }
    }

    /// Runs a cell, shows what it brought, and checks that.
    async fn cell(
        &mut self,
        code: &str,
        description: &str,
        expected: &str,
    ) -> Result<Answer, Broken> {
        let description =
            if description.is_empty() { "install what is needed" } else { description };
        let arguments = json!({ "code": code, "description": description });
        let answer = self.remote.call("eval", arguments).await?;
        self.shows(code, &answer);
        answer.expect(answer.text.contains(expected), description, expected)?;
        Ok(answer)
    }
}

async fn plot(run: &mut Run) -> Result<(), Broken> {
    let code = "import matplotlib.pyplot as plt\n\
                orders.plot(x='day', y=['orders', 'returns'], kind='bar')\n\
                plt.title('orders by day')";
    let answer = run.cell(code, "plot orders and returns by day", "").await?;
    let image = answer.images.first().map(|(_, data)| data.as_str()).unwrap_or_default();
    let bytes = base64::engine::general_purpose::STANDARD.decode(image).unwrap_or_default();
    answer.expect(bytes.starts_with(b"\x89PNG"), "the plot", "an image")?;
    let file = image_file();
    std::fs::write(&file, &bytes)?;
    run.show.say(&format!("    the plot, {} bytes: {}", bytes.len(), file.display()));
    Ok(())
}

/// Outlives the demo, so that it can be looked at.
fn image_file() -> PathBuf {
    Path::new(&std::env::temp_dir()).join("hostler-demo-plot.png")
}

async fn tools(run: &mut Run) -> Result<(), Broken> {
    let code = "text = tool('read', {'path': 'depot/money.py'})\n\
                problems = tool('lsp', {'action': 'diagnostics', 'file': 'depot/money.py'})\n\
                print(len(text.splitlines()), 'lines;', problems.splitlines()[0])";
    let called = "[tools called: lsp x1, read x1]";
    run.cell(code, "read a file and ask for its problems", called).await.map(drop)
}

async fn crash(run: &mut Run) -> Result<(), Broken> {
    run.show.say("a cell that crashes its interpreter costs that cell, and not the table:");
    let code = "import os; os.abort()";
    let arguments = json!({ "code": code, "description": "crash the interpreter" });
    let answer = run.remote.refused("eval", arguments).await?;
    run.shows(code, &answer);
    answer.expect(answer.text.contains("A snapshot took over"), "the crash", "a snapshot")?;
    run.cell("int(orders.orders.sum())", "see whether the table is there", "135").await.map(drop)
}
