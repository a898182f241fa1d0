//! What a user can write into a configuration, and what comes of it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use super::*;
use crate::servers::catalogue::Catalogue;

/// A folder with these files, and the sources that point at it.
fn with(files: &[(&str, &str)]) -> (tempfile::TempDir, Sources) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join("hostler").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let environment = [("XDG_CONFIG_HOME", folder.path())].into_iter().collect();
    (folder, Sources { environment, ..Sources::default() })
}

/// The error for this `hostler.toml`, with the folder's name left out.
fn error_of(name: &str, text: &str) -> String {
    let (folder, sources) = with(&[(name, text)]);
    let error = Loaded::load(&sources).expect_err("must be refused").to_string();
    error.replace(folder.path().to_str().unwrap(), "~")
}

fn origin(loaded: &Loaded, key: &str) -> String {
    let path: Vec<_> = key.split('.').map(str::to_owned).collect();
    loaded.layers.origin(&path).to_string()
}

#[test]
fn the_shipped_values_are_those_of_the_specification() {
    let config = Loaded::shipped().unwrap().config;
    assert_eq!((config.host.processes, config.host.memory_percent), (256, 60));
    assert_eq!(config.language_servers.linger, Duration::from_secs(60));
    assert_eq!(config.language_servers.start_deadline, Duration::from_secs(30));
    assert_eq!(config.language_servers.request, Duration::from_secs(20));
    assert_eq!(config.language_servers.share, Share::Host);
    assert_eq!(config.diagnostics.inline, Duration::from_secs(3));
    assert_eq!(config.bash.deadline, Duration::from_secs(120));
    assert_eq!(config.bash.longest, Duration::from_secs(1800));
    assert_eq!(config.results.inline_bytes, 32 * 1024);
    assert_eq!((config.results.grep, config.results.glob), (200, 200));
    assert_eq!(config.results.line_chars, 2000);
    assert_eq!(config.checkers["pyright"].deadline, Duration::from_secs(120));
    assert_eq!(config.profiles["chat"].mode.to_string(), "chat");
    let pyright = &config.servers["pyright"];
    assert_eq!(pyright.settings["python"]["analysis"]["diagnosticMode"], "openFilesOnly");
    assert_eq!(pyright.install.as_ref().unwrap().version, "1.1.414");
}

#[test]
fn each_layer_overrides_the_one_before_and_is_remembered() {
    let (_folder, mut sources) = with(&[(
        "hostler.toml",
        "[host]\nprocesses = 10\nmemory_percent = 20\n\n[bash]\ndeadline = \"1s\"\n",
    )]);
    let home = sources.environment.path("XDG_CONFIG_HOME").unwrap();
    sources.environment = [
        ("XDG_CONFIG_HOME", home.as_os_str()),
        ("HOSTLER_HOST_PROCESSES", "11".as_ref()),
        ("HOSTLER_TOOLS", "/opt/42".as_ref()),
    ]
    .into_iter()
    .collect();
    sources.sets = vec!["bash.deadline=2s".to_owned()];
    let loaded = Loaded::load(&sources).unwrap();
    assert_eq!(loaded.config.host.processes, 11);
    assert_eq!(loaded.config.host.memory_percent, 20);
    assert_eq!(loaded.config.tools, Path::new("/opt/42"));
    assert_eq!(loaded.config.bash.deadline, Duration::from_secs(2));
    assert_eq!(origin(&loaded, "host.processes"), "$HOSTLER_HOST_PROCESSES");
    assert!(origin(&loaded, "host.memory_percent").ends_with("hostler/hostler.toml:3"));
    assert_eq!(origin(&loaded, "bash.deadline"), "--set bash.deadline=2s");
    assert_eq!(origin(&loaded, "bash.longest"), "default");
    assert!(loaded.notices.is_empty(), "{:?}", loaded.notices);
}

#[test]
fn a_definition_file_changes_single_keys_or_adds_a_server() {
    let (_folder, sources) = with(&[
        ("servers/pyright.toml", "args = [\"--stdio\", \"--verbose\"]\n"),
        (
            "servers/mine.toml",
            "about = \"Mine\"\nfiles = []\nroot_markers = []\nbinaries = [\"mine\"]\n\
             recipe = \"push\"\nlinger = \"5m\"\n",
        ),
    ]);
    let loaded = Loaded::load(&sources).unwrap();
    assert_eq!(loaded.config.servers["pyright"].args, ["--stdio", "--verbose"]);
    assert_eq!(loaded.config.servers["pyright"].binaries, ["pyright-langserver"]);
    assert_eq!(loaded.config.servers["mine"].linger, Some(Duration::from_secs(300)));
    assert!(origin(&loaded, "servers.pyright.args").ends_with("servers/pyright.toml:1"));
    assert!(loaded.config.servers["pyright"].enabled);
}

#[test]
fn a_definition_file_turns_a_server_off_and_a_setting_prefers_another() {
    let (_folder, sources) = with(&[
        ("servers/pyright.toml", "enabled = false\n"),
        ("hostler.toml", "[language_servers]\nprefer = [\"ty\"]\n"),
    ]);
    let loaded = Loaded::load(&sources).unwrap();
    let order = Catalogue::new(&loaded.config);
    let python = order.takers(Path::new("/w/a.py"));
    let python: Vec<_> = python.iter().map(|(name, _)| &**name).collect();
    assert_eq!(python[..2], ["ty", "basedpyright"]);
    assert!(!python.contains(&"pyright"), "{python:?}");
    expect_test::expect!["~/hostler/servers/pyright.toml:1: servers.pyright.files.0.patterns: error parsing glob '*.{a': unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)"].assert_eq(&error_of(
        "servers/pyright.toml",
        "files = [{ patterns = [\"*.{a\"], language_id = \"x\" }]\n",
    ));
}

#[test]
fn an_unknown_key_is_refused_with_its_place_and_the_nearest_known_one() {
    expect_test::expect![
        "~/hostler/hostler.toml:3: unknown key `host.proceses`; did you mean `host.processes`?"
    ]
    .assert_eq(&error_of("hostler.toml", "\n[host]\nproceses = 5\n"));
    expect_test::expect!["~/hostler/hostler.toml:1: unknown key `memory_percent`; did you mean `host.memory_percent`?"]
        .assert_eq(&error_of("hostler.toml", "memory_percent = 5\n"));
    expect_test::expect![
        "~/hostler/hostler.toml:2: unknown key `log.zzz`; known here: filter, days"
    ]
    .assert_eq(&error_of("hostler.toml", "[log]\nzzz = 1"));
    expect_test::expect!["~/hostler/servers/pyright.toml:3: unknown key `servers.pyright.quirks.0.sen`; did you mean `servers.pyright.quirks.0.seen`?"]
        .assert_eq(&error_of("servers/pyright.toml", "[[quirks]]\nwhat = \"x\"\nsen = \"1\"\n"));
}

#[test]
fn a_bad_value_is_refused_with_its_place_and_key() {
    let cases = [
        ("[host]\nprocesses = \"many\"", "2: host.processes: invalid type: string \"many\""),
        ("[host]\nprocesses = -1", "2: host.processes: invalid value: integer `-1`"),
        ("[bash]\n\nlongest = \"5 days\"", "3: bash.longest: invalid value: string \"5 days\""),
        ("[language_servers]\nshare = \"all\"", "2: language_servers.share: unknown variant"),
        ("host = 3", "1: host: invalid type: integer `3`"),
        ("[host]\nprocesses = = 3", "2: not TOML: "),
    ];
    for (text, expected) in cases {
        let error = error_of("hostler.toml", text);
        assert!(error.contains(&format!("~/hostler/hostler.toml:{expected}")), "{error}");
    }
}

#[test]
fn only_a_file_that_was_named_must_exist() {
    assert!(Loaded::load(&Sources::default()).is_ok());
    let file = Some(PathBuf::from("/nowhere/hostler.toml"));
    let error = Loaded::load(&Sources { file, ..Sources::default() }).unwrap_err();
    assert!(error.to_string().starts_with("/nowhere/hostler.toml: cannot be read"), "{error}");
}

#[test]
fn a_variable_that_is_no_key_is_a_notice() {
    let environment = [("HOSTLER_HOST_PROCESES", "5")].into_iter().collect();
    let loaded = Loaded::load(&Sources { environment, ..Sources::default() }).unwrap();
    assert_eq!(
        loaded.notices,
        ["$HOSTLER_HOST_PROCESES does nothing: there is no such setting; did you mean \
          HOSTLER_HOST_PROCESSES?"]
    );
}

#[test]
fn a_flag_is_refused_like_any_other_layer() {
    let load = |set: &str| {
        let sets = vec![set.to_owned()];
        Loaded::load(&Sources { sets, ..Sources::default() }).unwrap_err().to_string()
    };
    assert!(load("host.processes").contains("expected KEY=VALUE"));
    assert!(load("host.processes=x").starts_with("--set host.processes=x: host.processes: "));
    assert!(load("hots.processes=3").ends_with("did you mean `host`?"));
}
