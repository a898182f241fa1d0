//! `hostler config show`: every value and where it came from.

use crate::cli::exit::{Done, Exit};
use crate::cli::out;
use crate::config::Loaded;
use crate::config::error::dotted;

pub(crate) fn run(loaded: &Loaded) -> Done {
    out::raw(listing(loaded).as_bytes());
    Ok(Exit::Done)
}

/// Writes one line per value, in TOML with the origin as its comment.
fn listing(loaded: &Loaded) -> String {
    let lines = loaded.layers.leaves().into_iter().map(|(path, value)| {
        let value = match value {
            // On one line, whatever is in it.
            toml::Value::String(text) => format!("{text:?}"),
            other => other.to_string(),
        };
        (format!("{} = {value}", dotted(&path)), loaded.layers.origin(&path))
    });
    lines.map(|(line, origin)| format!("{line:<44}  # {origin}\n")).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::config::Sources;

    #[test]
    fn every_value_is_there_with_its_origin() {
        let sets = vec!["host.processes=7".to_owned()];
        let shown = listing(&Loaded::load(&Sources { sets, ..Sources::default() }).unwrap());
        assert!(shown.contains("host.processes = 7"), "{shown}");
        assert!(shown.contains("# --set host.processes=7\n"), "{shown}");
        assert!(shown.contains("servers.pyright.recipe = \"pull\""), "{shown}");
        assert!(shown.contains("servers.pyright.settings.python.analysis.autoSearchPaths = true"));
        assert!(shown.lines().all(|line| line.contains(" = ") && line.contains("  # ")), "{shown}");
        toml::from_str::<toml::Table>(&shown).unwrap();
    }
}
