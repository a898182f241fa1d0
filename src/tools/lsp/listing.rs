//! The symbols of a file, and those of the project that match a word.

use hostler_actors::host::language_server::text::Encoding;
use hostler_actors::host::language_server::uri;
use serde_json::{Value, json};

use super::answers::{self, Symbol};
use super::asking::{Answers, Ask, Subject, ask};
use super::sources::{Spot, Unshown, spots};
use crate::diagnostics::details::with;
use crate::seat::Seat;
use crate::servers::{Server, Viewpoint};
use crate::tools::{Cancel, Failure, Outcome};

/// How many symbols of a file are shown.
const OF_FILE: usize = 200;
/// How many symbols of the project are shown.
const OF_PROJECT: usize = 100;

/// Lists the symbols of a file.
pub(super) async fn of_file(seat: &Seat, cancel: &Cancel, given: &str) -> Outcome {
    let subject = Subject::find(seat, given).await?;
    let document = subject.read(seat).await?;
    let params = |_: Encoding| json!({ "textDocument": { "uri": uri::of_path(&document.path) } });
    let question = Ask {
        action: "symbols",
        method: "textDocument/documentSymbol",
        documents: std::slice::from_ref(&document),
        params: &params,
        first: true,
    };
    let asked = ask(seat, cancel, subject.servers()?, question).await?;
    let mut found = gathered(&asked);
    for (symbol, _) in &mut found {
        symbol.path = Some(document.path.to_path_buf());
    }
    let (total, listed) = placed(seat, found, OF_FILE).await;
    let name = subject.file.name();
    let mut text = headed(total, listed.len(), &format!("in {name}"));
    for (symbol, spot) in &listed {
        let indent = "  ".repeat(symbol.depth);
        text.push_str(&format!("\n{:>5} {indent}{} {}", spot.line, symbol.kind, symbol.name));
    }
    Ok(asked.finish(text, with(details(total, &listed), json!({ "file": name }))))
}

/// Lists the symbols of the project that match a word.
pub(super) async fn of_project(seat: &Seat, cancel: &Cancel, query: &str) -> Outcome {
    let (servers, lacking) = everywhere(seat).await?;
    if servers.is_empty() {
        return Err(Failure {
            message: format!(
                "lsp symbols: no language server for this folder: {}",
                lacking.join("; ")
            ),
            details: json!({ "freshness": "no server", "reasons": lacking }),
        });
    }
    let params = |_: Encoding| json!({ "query": query });
    let question = Ask {
        action: "symbols",
        method: "workspace/symbol",
        documents: &[],
        params: &params,
        first: false,
    };
    let mut asked = ask(seat, cancel, &servers, question).await?;
    let unasked = lacking.iter().map(|why| format!("not asked: {why}"));
    asked.notes.extend(unasked);
    let (total, listed) = placed(seat, gathered(&asked), OF_PROJECT).await;
    let mut text = headed(total, listed.len(), &format!("matching `{query}`"));
    for (symbol, spot) in &listed {
        let container = symbol.container.as_ref();
        let container = container.map_or_else(String::new, |name| format!(" in {name}"));
        let Spot { path, line, .. } = spot;
        text.push_str(&format!("\n{path}:{line} {} {}{container}", symbol.kind, symbol.name));
    }
    Ok(asked.finish(text, with(details(total, &listed), json!({ "query": query }))))
}

/// Takes leases on every server that can be used in this folder; says of those that
/// have a root here and still cannot be used why not.
pub(super) async fn everywhere(seat: &Seat) -> Result<(Vec<Server>, Vec<String>), Failure> {
    let (mut servers, mut lacking) = (Vec::new(), Vec::new());
    let detected = seat.languages.for_folder(Viewpoint::of(seat)).await;
    if detected.is_empty() {
        lacking.push(seat.languages.none_for_folder(Viewpoint::of(seat)).await);
    }
    for detected in detected.into_iter().filter(|detected| detected.rival.is_none()) {
        match seat.languages.leased(&detected).await? {
            Ok(server) => servers.push(server),
            Err(why) => lacking.push(why),
        }
    }
    Ok((servers, lacking))
}

fn gathered(asked: &Answers) -> Vec<(Symbol, Encoding)> {
    let all = asked.answers.iter().flat_map(|answer| {
        answers::symbols(&answer.value).into_iter().map(|symbol| (symbol, answer.encoding))
    });
    all.collect()
}

/// Finds the lines of symbols, as many as are shown. Those that name no file are
/// left out and not counted.
async fn placed(
    seat: &Seat,
    mut found: Vec<(Symbol, Encoding)>,
    most: usize,
) -> (usize, Vec<(Symbol, Spot)>) {
    found.retain(|(symbol, _)| symbol.path.is_some());
    let total = found.len();
    found.truncate(most);
    let places = found.iter().filter_map(|(symbol, encoding)| {
        Some(Unshown { path: symbol.path.clone()?, start: symbol.start, encoding: *encoding })
    });
    let spots = spots(&seat.folder, places.collect()).await;
    (total, found.into_iter().map(|(symbol, _)| symbol).zip(spots).collect())
}

fn headed(total: usize, shown: usize, which: &str) -> String {
    match total {
        0 => format!("no symbols {which}"),
        1 => format!("1 symbol {which}:"),
        total if shown < total => format!("{total} symbols {which}, the first {shown}:"),
        total => format!("{total} symbols {which}:"),
    }
}

fn details(total: usize, listed: &[(Symbol, Spot)]) -> Value {
    let symbols: Vec<_> = listed
        .iter()
        .map(|(symbol, spot)| {
            json!({
                "name": symbol.name, "kind": symbol.kind, "container": symbol.container,
                "path": spot.path, "line": spot.line, "column": spot.column,
            })
        })
        .collect();
    json!({ "action": "symbols", "symbols": symbols, "shown": symbols.len(), "total": total })
}
