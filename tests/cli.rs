//! The command line as a shell sees it: output, exit codes, bad configurations.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// Runs the binary with a home of its own and nothing else set.
#[expect(clippy::disallowed_methods, reason = "the shell's part is played here")]
fn hostler(home: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hostler"))
        .args(args)
        .env_clear()
        .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", home.join("bin").display()))
        .env("HOME", home)
        .current_dir(home)
        .output()
        .unwrap()
}

fn configure(home: &Path, name: &str, text: &str) {
    let path = home.join(".config/hostler").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_broken_configuration_is_refused_and_the_defaults_are_still_shown() {
    let home = tempfile::tempdir().unwrap();
    configure(home.path(), "hostler.toml", "[host]\n\nproceses = 3\n");
    let refused = hostler(home.path(), &["config", "show"]);
    assert_eq!(refused.status.code(), Some(2));
    let error = text(&refused.stderr);
    let place = ".config/hostler/hostler.toml:3: unknown key `host.proceses`";
    assert!(error.contains(place) && error.contains("did you mean `host.processes`?"), "{error}");
    let shown = hostler(home.path(), &["config", "show", "--defaults"]);
    assert_eq!(shown.status.code(), Some(0));
    assert!(text(&shown.stdout).contains("host.processes = 256"));
}

#[test]
fn what_is_shown_is_what_holds() {
    let home = tempfile::tempdir().unwrap();
    configure(home.path(), "servers/pyright.toml", "linger = \"5m\"\n");
    let shown = text(&hostler(home.path(), &["config", "show", "--set", "log.days=3"]).stdout);
    let line = |key: &str| shown.lines().find(|line| line.starts_with(key)).unwrap().to_owned();
    assert!(line("servers.pyright.linger").ends_with("servers/pyright.toml:1"), "{shown}");
    assert!(line("log.days = 3").ends_with("# --set log.days=3"), "{shown}");
}

#[test]
fn exit_codes_tell_usage_from_work() {
    let home = tempfile::tempdir().unwrap();
    let code = |args: &[&str]| hostler(home.path(), args).status.code();
    assert_eq!(code(&["--version"]), Some(0));
    assert_eq!(code(&["--help"]), Some(0));
    assert_eq!(code(&["nonsense"]), Some(2));
    assert_eq!(code(&["tools", "install"]), Some(2));
    assert_eq!(code(&["tools", "install", "nonsense"]), Some(2));
    assert_eq!(code(&["session"]), Some(2));
    assert_eq!(code(&["logs"]), Some(1));
    let refused = hostler(home.path(), &["session", "--dir", ".", "--mode", "review"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--mode review"));
    assert!(refused.stdout.is_empty(), "standard output is the session's");
}

#[test]
fn completions_and_the_manual_page_come_out_of_the_grammar() {
    let home = tempfile::tempdir().unwrap();
    let script = hostler(home.path(), &["completions", "bash"]);
    assert!(text(&script.stdout).contains("--autonomy"));
    let page = hostler(home.path(), &["man"]);
    assert!(text(&page.stdout).contains(".TH hostler"));
}

#[test]
fn doctor_names_what_is_lacking_and_the_way_out() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("pyproject.toml"), "").unwrap();
    let shown = hostler(home.path(), &["doctor"]);
    let findings = text(&shown.stdout);
    assert_eq!(shown.status.code(), Some(0), "{findings}{}", text(&shown.stderr));
    assert!(findings.contains(".local/share/hostler is private"), "{findings}");
    assert!(findings.contains("Python types"), "{findings}");
}

/// The words of the last step are `npm install … --prefix STAGE PACKAGE@VERSION`.
const NPM: &str = r#"#!/bin/sh
while [ "$1" != --prefix ]; do shift; done
case "$3" in
  pyright@*) mkdir -p "$2/bin"; cd "$2/bin"
    printf '#!/bin/sh\necho pyright 1\n' | tee pyright > pyright-langserver; chmod +x pyright* ;;
  *) echo "no such package: $3" >&2; exit 1 ;;
esac
"#;

#[test]
fn what_a_project_lacks_is_installed_and_one_failure_stops_nothing() {
    let home = tempfile::tempdir().unwrap();
    for (name, script) in [("npm", NPM), ("node", "#!/bin/sh\necho v20.20.0\n")] {
        let path = home.path().join("bin").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, script).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    for unwanted in ["ruff", "tombi", "taplo"] {
        configure(home.path(), &format!("servers/{unwanted}.toml"), "enabled = false\n");
    }
    let project = home.path().join("project");
    fs::create_dir(&project).unwrap();
    fs::write(project.join("pyproject.toml"), "").unwrap();
    fs::write(project.join("run.sh"), "").unwrap();
    let install = || {
        let done = hostler(home.path(), &["tools", "install", "--for", "project"]);
        (done.status.code(), text(&done.stdout), text(&done.stderr))
    };
    let (code, said, aside) = install();
    assert_eq!(code, Some(1), "{said}{aside}");
    assert!(said.contains("to install: bash-language-server, pyright"), "{said}");
    assert!(said.contains("pyright 1.1.414 installed: "), "{said}{aside}");
    assert!(aside.contains("no such package: bash-language-server@"), "{aside}");
    let (_, said, _) = install();
    assert!(said.contains("to install: bash-language-server\n"), "pyright is there now: {said}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let home = tempfile::tempdir().unwrap();
    #[expect(clippy::disallowed_methods, reason = "the shell's part is played here")]
    let output = Command::new("/bin/bash")
        .args(["-o", "pipefail", "-c", "\"$0\" completions bash | head -n 1"])
        .arg(env!("CARGO_BIN_EXE_hostler"))
        .env("HOME", home.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}
