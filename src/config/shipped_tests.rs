//! What every definition that ships must keep to.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::{Loaded, SHIPPED_DEFINITIONS};
use crate::config::definitions::{InstallRecipe, PackageManager, ServerDefinition};

fn servers() -> BTreeMap<String, ServerDefinition> {
    Loaded::shipped().unwrap().config.servers
}

#[test]
fn every_file_ships() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/servers");
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned());
    let shipped = SHIPPED_DEFINITIONS.iter().filter(|(kind, _, _)| *kind == "servers");
    let shipped: BTreeSet<_> = shipped.map(|(_, name, _)| (*name).to_owned()).collect();
    assert_eq!(files.collect::<BTreeSet<_>>(), shipped);
    assert!(shipped.len() >= 40, "{}", shipped.len());
}

#[test]
fn every_server_says_what_for_on_which_files_and_how_to_get_it() {
    for (name, server) in servers() {
        assert!(!server.about.is_empty() && server.about.len() <= 40, "{name}: {}", server.about);
        assert!(!server.binaries.is_empty(), "{name}");
        let patterns: Vec<_> = server.files.iter().flat_map(|kind| &kind.patterns).collect();
        assert!(!patterns.is_empty(), "{name}");
        let once: BTreeSet<_> = patterns.iter().collect();
        assert_eq!(once.len(), patterns.len(), "{name} names a pattern twice");
        assert!(server.files.iter().all(|kind| !kind.language_id.is_empty()), "{name}");
        assert!(server.root_markers.iter().all(|marker| !marker.contains('/')), "{name}");
        assert_ne!(server.install.is_some(), server.install_hint.is_some(), "{name}");
    }
}

#[test]
fn what_is_installed_has_an_exact_version_and_brings_the_program() {
    let exact =
        |version: &str| version.split('.').count() == 3 && !version.contains(['^', '~', '*']);
    for (name, server) in servers() {
        let Some(InstallRecipe { manager, version, binaries, with, .. }) = server.install else {
            continue;
        };
        assert!(exact(&version), "{name}: {version}");
        assert!(server.binaries.iter().any(|program| binaries.contains(program)), "{name}");
        for beside in with {
            let managed = matches!(manager, PackageManager::Npm | PackageManager::Pypi);
            let (_, version) = beside.rsplit_once('@').unwrap();
            assert!(managed && exact(version), "{name}: {beside}");
        }
    }
}

#[test]
fn every_quirk_names_a_version() {
    for (name, server) in servers() {
        for quirk in server.quirks {
            let digits = quirk.seen.starts_with(|first: char| first.is_ascii_digit());
            assert!(digits && !quirk.what.is_empty(), "{name}: {}", quirk.seen);
        }
    }
}

#[test]
fn those_of_a_group_have_ranks_and_their_files_belong_to_nobody_else() {
    let mut ranks: BTreeMap<(String, u8), String> = BTreeMap::new();
    let mut kinds: BTreeMap<(String, String), String> = BTreeMap::new();
    for (name, server) in servers() {
        if let Some(group) = &server.group {
            let other = ranks.insert((group.clone(), server.rank), name.clone());
            assert_eq!(other, None, "{name} has the rank of another one of {group}");
            continue;
        }
        // What does the same work on the same files has to be in a group with it.
        for pattern in server.files.iter().flat_map(|kind| kind.patterns.clone()) {
            let key = (server.about.clone(), pattern);
            let other = kinds.insert(key, name.clone());
            assert_eq!(other, None, "{name} does what another one does, and has no group");
        }
    }
}

#[test]
fn files_are_called_by_the_protocols_names() {
    let servers = servers();
    for (server, pattern, language_id) in [
        ("typescript-language-server", "*.tsx", "typescriptreact"),
        ("vtsls", "*.jsx", "javascriptreact"),
        ("typescript-native", "*.cts", "typescript"),
        ("eslint", "*.mjs", "javascript"),
        ("bash-language-server", "*.sh", "shellscript"),
        ("clangd", "*.mm", "objective-cpp"),
        ("json", "tsconfig.json", "jsonc"),
    ] {
        let kinds = &servers.get(server).unwrap().files;
        let kind = kinds.iter().find(|kind| kind.patterns.iter().any(|of| of == pattern));
        assert_eq!(kind.unwrap().language_id, language_id, "{server} {pattern}");
    }
}
