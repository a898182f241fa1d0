//! When what was said may be taken as final, as tables.

use serde_json::json;

use super::*;

const PATH: &str = "/r/a";

struct Scene {
    observed: Observed,
    start: Instant,
}

impl Scene {
    fn new() -> Self {
        Self { observed: Observed::default(), start: Instant::now() }
    }

    fn at(&self, millis: u64) -> Instant {
        self.start + Duration::from_millis(millis)
    }

    fn publish(&mut self, at: u64, version: Option<i64>, said: &[&str]) {
        let items: Value = said.iter().map(|word| json!({ "message": word })).collect();
        let params = json!({ "uri": "file:///r/a", "version": version, "diagnostics": items });
        let at = self.at(at);
        self.observed.publish(at, &params);
    }

    fn status(&mut self, state: &str) {
        self.observed.file_status(&json!({ "uri": "file:///r/a", "state": state }));
    }

    fn subject(&self, recipe: Recipe) -> Subject<'static> {
        let since = self.start;
        Subject { recipe, path: Path::new(PATH), version: 2, since, checked_at: Some(since) }
    }

    fn look(&self, recipe: Recipe, at: u64) -> String {
        self.shown(&self.observed.settled(self.at(at), &self.subject(recipe)))
    }

    /// Answers the fence of a look, after what `meanwhile` does.
    fn fenced(&mut self, recipe: Recipe, at: u64, meanwhile: impl FnOnce(&mut Self)) -> String {
        let Settled::Fenced(mark) = self.observed.settled(self.at(at), &self.subject(recipe))
        else {
            return "no fence".to_owned();
        };
        meanwhile(self);
        let past = self.observed.past_fence(mark, &self.subject(recipe));
        past.map_or_else(|| "again".to_owned(), |settled| self.shown(&settled))
    }

    fn shown(&self, settled: &Settled) -> String {
        match settled {
            Settled::Yes(items) => {
                let words: Vec<_> = items.iter().map(|item| item.message.as_str()).collect();
                format!("final: {}", words.join(" "))
            }
            Settled::Fenced(_) => "after a fence".to_owned(),
            Settled::At(at, reason) => format!("{reason}, {} ms", (*at - self.start).as_millis()),
            Settled::No(reason) => (*reason).to_owned(),
            Settled::Never(reason) => format!("never: {reason}"),
        }
    }
}

#[test]
fn a_file_is_done_once_a_fence_passed_and_nothing_more_was_said_of_it() {
    let of = Recipe::FileStatus;
    let mut scene = Scene::new();
    assert_eq!(scene.look(of, 0), "it has not said what it does with the file");
    scene.status("parsing includes, running Update");
    assert_eq!(scene.look(of, 1), "it parses the file");
    // Between two builds clangd is idle for a moment, with the first one's errors.
    scene.publish(5, Some(2), &["stale"]);
    scene.status("idle");
    let first = scene.fenced(of, 6, |scene| {
        scene.status("parsing includes");
        scene.publish(7, Some(2), &["right"]);
        scene.status("idle");
    });
    assert_eq!(first, "again");
    assert_eq!(scene.fenced(of, 8, |_| {}), "final: right");
}

#[test]
fn an_idle_file_with_the_diagnostics_of_another_version_is_not_done() {
    let of = Recipe::FileStatus;
    let mut scene = Scene::new();
    scene.publish(0, Some(1), &["old"]);
    scene.status("idle");
    let nothing = "it has published nothing since the last change";
    assert_eq!(scene.fenced(of, 1, |_| {}), nothing);
    scene.publish(2, Some(2), &["new"]);
    scene.observed.text_changed(Path::new(PATH));
    assert_eq!(scene.fenced(of, 3, |_| {}), nothing);
}

#[test]
fn a_check_counts_that_began_after_the_save_and_ended() {
    let of = Recipe::Flycheck;
    let mut scene = Scene::new();
    scene.observed.loading = true;
    assert_eq!(scene.look(of, 0), "it loads the workspace");
    scene.observed.loading = false;
    assert_eq!(scene.look(of, 10), "the check of the project has not begun, 5000 ms");
    assert_eq!(scene.look(of, 5000), "never: the check of the project does not begin");
    scene.observed.unfit = Some("no workspace".into());
    assert_eq!(scene.look(of, 20), "never: no workspace");
    let (begins, ends) = (scene.at(200), scene.at(600));
    scene.observed.check.begin(begins, "0");
    scene.publish(500, Some(2), &[]);
    assert_eq!(scene.look(of, 550), "the project is being checked");
    scene.publish(560, Some(2), &["borrowed"]);
    scene.observed.check.end(ends, "0");
    let again = scene.fenced(of, 610, |scene| {
        let at = scene.at(620);
        scene.observed.check.begin(at, "0");
    });
    assert_eq!(again, "again");
    let at = scene.at(900);
    scene.observed.check.end(at, "0");
    assert_eq!(scene.fenced(of, 910, |_| {}), "final: borrowed");
    // What was found is known until it is published anew, also of a changed text.
    scene.observed.text_changed(Path::new(PATH));
    assert_eq!(scene.fenced(of, 910, |_| {}), "final: borrowed");
}

#[test]
fn an_earlier_check_says_nothing() {
    let mut scene = Scene::new();
    let (begins, ends) = (scene.at(0), scene.at(100));
    scene.observed.check.begin(begins, "0");
    scene.observed.check.end(ends, "0");
    let asked = Some(scene.at(200));
    let subject = Subject { checked_at: asked, ..scene.subject(Recipe::Flycheck) };
    let settled = scene.observed.settled(scene.at(300), &subject);
    assert_eq!(scene.shown(&settled), "the check of the project has not begun, 5200 ms");
}

#[test]
fn an_analysis_counts_that_ended_after_the_change() {
    let of = Recipe::AnalyzerStatus;
    let mut scene = Scene::new();
    assert_eq!(scene.look(of, 10), "it has not begun to analyse, 5000 ms");
    let (begins, ends) = (scene.at(50), scene.at(400));
    scene.observed.analysis.begin(begins, "a");
    scene.publish(100, None, &["undefined"]);
    assert_eq!(scene.look(of, 300), "it analyses");
    scene.observed.analysis.end(ends, "a");
    assert_eq!(scene.look(of, 400), "final: undefined");
}

#[test]
fn of_a_server_that_publishes_each_version_once_that_one_counts_at_once() {
    let of = Recipe::VersionedPush;
    let mut scene = Scene::new();
    scene.publish(5, Some(1), &["old"]);
    assert_eq!(scene.look(of, 6), "what it published is about an earlier version");
    scene.publish(9, Some(2), &["new"]);
    assert_eq!(scene.look(of, 9), "final: new");
}
