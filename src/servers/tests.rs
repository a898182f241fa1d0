//! Who serves a file, and who does not and why.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use super::*;
use crate::seat::testing::{Bench, NoLaunch};

async fn standing(bench: &Bench, file: &str) -> Vec<String> {
    let from = Viewpoint::of(&bench.seat);
    let detected = bench.seat.languages.for_file(from, &bench.path(file)).await;
    detected.iter().map(ToString::to_string).collect()
}

/// A seat on which two rivals of pyright's group are known, each by its own program.
fn rivals() -> Bench {
    let mut bench = Bench::new(Arc::new(NoLaunch));
    let mut config = (*bench.seat.languages.config).clone();
    for (name, rank) in [("better", 1), ("worse", 99)] {
        let mut rival = config.servers.get("pyright").unwrap().clone();
        (rival.rank, rival.binaries) = (rank, vec![name.to_owned()]);
        config.servers.insert(name.to_owned(), rival);
    }
    bench.seat.languages.config = Arc::new(config);
    bench.put("pyproject.toml", "");
    bench
}

#[tokio::test]
async fn the_best_rival_that_is_there_serves_and_the_others_say_so() {
    let bench = rivals();
    bench.program("bin/fake", "");
    bench.program("bin/worse", "");
    let told = standing(&bench, "a.py").await;
    assert!(told.first().unwrap().starts_with("better: no program"), "{told:?}");
    assert!(told.get(1).unwrap().starts_with("pyright: usable"), "{told:?}");
    assert!(told.get(2).unwrap().starts_with("worse: passed over: pyright does"), "{told:?}");
    let from = Viewpoint::of(&bench.seat);
    let serving = bench.seat.languages.serving(from, &bench.path("a.py")).await.unwrap();
    let names: Vec<_> = serving.servers.iter().map(|server| server.name()).collect();
    assert_eq!(names, ["pyright".into()]);
    let folder = bench.seat.languages.for_folder(from).await;
    assert_eq!(folder.iter().filter(|detected| detected.spec.is_some()).count(), 1);
}

#[tokio::test]
async fn of_a_group_without_any_program_one_tells_why_and_names_the_others() {
    let bench = rivals();
    let from = Viewpoint::of(&bench.seat);
    let serving = bench.seat.languages.serving(from, &bench.path("a.py")).await.unwrap();
    assert_eq!(serving.lacking.len(), 1, "{:?}", serving.lacking);
    let why = serving.lacking.first().unwrap();
    assert!(why.ends_with("; in its place would do: pyright, worse"), "{why}");
}

#[tokio::test]
async fn a_warm_question_makes_nothing_anew() {
    let bench = rivals();
    bench.program("bin/better", "");
    let (languages, from) = (&bench.seat.languages, Viewpoint::of(&bench.seat));
    let file = bench.path("a/b/c/a.py");
    let first = languages.for_file(from, &file).await.first().unwrap().spec.clone().unwrap();
    for _ in 0..10 {
        let again = languages.for_file(from, &file).await.first().unwrap().spec.clone().unwrap();
        assert!(Arc::ptr_eq(&first, &again));
    }
}
