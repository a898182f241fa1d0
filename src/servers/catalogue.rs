//! Which definitions take a file, and in which order they are tried. Pure.
//!
//! Built once for a configuration: a pattern is compiled for every file that is
//! asked about otherwise.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::config::Config;
use crate::config::definitions::ServerDefinition;

/// One kind of files of one server.
struct Kind {
    server: Arc<str>,
    language_id: Arc<str>,
}

/// The servers that are wanted, best first.
pub(crate) struct Catalogue {
    order: Vec<Arc<str>>,
    patterns: GlobSet,
    kinds: Vec<Kind>,
}

impl fmt::Debug for Catalogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.order).finish()
    }
}

impl Catalogue {
    /// Puts the definitions in order: those that the user prefers, then by rank.
    pub(crate) fn new(config: &Config) -> Self {
        let prefer = &config.language_servers.prefer;
        let preferred = |name: &String| {
            prefer.iter().position(|preferred| preferred == name).unwrap_or(prefer.len())
        };
        let wanted = config.servers.iter().filter(|(_, definition)| definition.enabled);
        let mut wanted: Vec<_> = wanted.collect();
        wanted.sort_by_key(|(name, definition)| (preferred(name), definition.rank));
        let mut set = GlobSetBuilder::new();
        let mut kinds = Vec::new();
        let mut order = Vec::new();
        for (name, definition) in wanted {
            let server: Arc<str> = name.as_str().into();
            for (glob, language_id) in globs(definition) {
                set.add(glob);
                kinds.push(Kind { server: Arc::clone(&server), language_id: language_id.into() });
            }
            order.push(server);
        }
        // Every pattern was compiled when the configuration was read.
        let patterns = set.build().unwrap_or_else(|_| GlobSet::empty());
        Self { order, patterns, kinds }
    }

    /// Returns all names, best first.
    pub(crate) fn order(&self) -> &[Arc<str>] {
        &self.order
    }

    /// Returns who takes a file, best first, and what the protocol calls its language.
    pub(crate) fn takers(&self, file: &Path) -> Vec<(Arc<str>, Arc<str>)> {
        let Some(name) = file.file_name() else { return Vec::new() };
        let mut takers: Vec<(Arc<str>, Arc<str>)> = Vec::new();
        let mut matching = self.patterns.matches(name);
        matching.sort_unstable();
        for kind in matching.into_iter().filter_map(|at| self.kinds.get(at)) {
            // A server's first kind that fits says what the file is.
            if takers.last().is_none_or(|(last, _)| *last != kind.server) {
                takers.push((Arc::clone(&kind.server), Arc::clone(&kind.language_id)));
            }
        }
        takers
    }
}

fn globs(definition: &ServerDefinition) -> impl Iterator<Item = (Glob, &str)> {
    definition.files.iter().flat_map(|kind| {
        let globs = kind.patterns.iter().filter_map(|pattern| Glob::new(pattern).ok());
        globs.map(|glob| (glob, kind.language_id.as_str()))
    })
}

/// Who does the work of each group already, and where.
#[derive(Debug, Default)]
pub(crate) struct Taken<P> {
    groups: BTreeMap<(String, P), Arc<str>>,
}

impl<P: Ord + Clone> Taken<P> {
    /// Says whose rival a server is that would come too late at this place.
    pub(crate) fn rival(&self, definition: &ServerDefinition, place: &P) -> Option<Arc<str>> {
        self.groups.get(&(definition.group.clone()?, place.clone())).cloned()
    }

    /// Notes that a server can do its group's work at this place.
    pub(crate) fn take(&mut self, name: &Arc<str>, definition: &ServerDefinition, place: P) {
        if let Some(group) = &definition.group {
            self.groups.entry((group.clone(), place)).or_insert_with(|| Arc::clone(name));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::config::Loaded;

    fn takers(config: &Config, file: &str) -> String {
        let takers = Catalogue::new(config).takers(Path::new(file));
        let takers = takers.iter().map(|(name, language)| format!("{name}={language}"));
        takers.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_order_is_preference_then_rank_and_the_unwanted_are_left_out() {
        let mut config = Loaded::shipped().unwrap().config;
        config.servers.retain(|name, _| {
            ["pyright", "basedpyright", "ruff", "typescript-language-server"]
                .contains(&name.as_str())
        });
        assert_eq!(takers(&config, "/w/a.py"), "pyright=python basedpyright=python ruff=python");
        config.language_servers.prefer = vec!["basedpyright".to_owned()];
        assert_eq!(takers(&config, "/w/a.py"), "basedpyright=python pyright=python ruff=python");
        config.servers.get_mut("pyright").unwrap().enabled = false;
        assert_eq!(takers(&config, "/w/a.py"), "basedpyright=python ruff=python");
        assert_eq!(takers(&config, "/w/[id].tsx"), "typescript-language-server=typescriptreact");
        assert_eq!(takers(&config, "/w/a.toml"), "");
    }
}
