//! Which commands install a package. Pure.
//!
//! Each manager but the system's is told to put everything below one folder, with
//! the programs in its `bin`.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use crate::config::definitions::{InstallRecipe, PackageManager};

/// One command of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// The program: a name to be found in PATH, or a path.
    pub(crate) program: OsString,
    /// Its arguments.
    pub(crate) args: Vec<OsString>,
}

/// Makes a [`Step`] of words.
macro_rules! step {
    ($program:expr, $($arg:expr),+ $(,)?) => {
        Step { program: $program.into(), args: vec![$($arg.into()),+] }
    };
}

/// Returns the commands that install into `stage`, in order.
pub(crate) fn steps(recipe: &InstallRecipe, stage: &Path, is_root: bool) -> Vec<Step> {
    let InstallRecipe { package, version, .. } = recipe;
    match recipe.manager {
        PackageManager::Npm => vec![and(
            recipe.with.iter().map(Into::into),
            step![
                "npm",
                "install",
                "--global",
                "--no-fund",
                "--no-audit",
                "--no-update-notifier",
                "--prefix",
                stage,
                format!("{package}@{version}"),
            ],
        )],
        PackageManager::Pypi => vec![
            step!["python3", "-m", "venv", stage],
            and(
                recipe.with.iter().map(|with| with.replacen('@', "==", 1).into()),
                step![
                    stage.join("bin/python"),
                    "-m",
                    "pip",
                    "install",
                    "--disable-pip-version-check",
                    "--no-input",
                    format!("{package}=={version}"),
                ],
            ),
        ],
        PackageManager::Crates => vec![step![
            "cargo",
            "install",
            "--locked",
            "--root",
            stage,
            "--version",
            format!("={version}"),
            package,
        ]],
        PackageManager::Apt => {
            let install = step![
                "apt-get",
                "install",
                "--yes",
                "--no-install-recommends",
                format!("{package}={version}")
            ];
            vec![if is_root { install } else { as_root(install) }]
        }
    }
}

/// Adds arguments to a command.
fn and(more: impl Iterator<Item = OsString>, mut step: Step) -> Step {
    step.args.extend(more);
    step
}

/// Runs a command as root if that needs no password: nobody could type one.
fn as_root(step: Step) -> Step {
    let args = ["-n".into(), step.program].into_iter().chain(step.args).collect();
    Step { program: "sudo".into(), args }
}

/// Returns how long an installation may take: the slow ones build from source.
pub(crate) fn bound(manager: PackageManager) -> Duration {
    Duration::from_secs(match manager {
        PackageManager::Npm | PackageManager::Pypi => 5 * 60,
        PackageManager::Apt => 10 * 60,
        PackageManager::Crates => 30 * 60,
    })
}

/// Says what to do where a manager is missing or fails.
pub(crate) fn way_out(recipe: &InstallRecipe) -> String {
    let InstallRecipe { package, version, .. } = recipe;
    match recipe.manager {
        PackageManager::Npm => {
            "npm needs Node 20.15 or later, and to reach its registry (or a proxy, as set by \
             `npm config set proxy`)"
                .to_owned()
        }
        PackageManager::Pypi => {
            "pip needs python3 with its venv module (on Debian `apt install python3-venv`), and to \
             reach its index"
                .to_owned()
        }
        PackageManager::Crates => {
            "cargo needs a Rust toolchain, a C linker, and to reach its registry".to_owned()
        }
        PackageManager::Apt => {
            format!("this is a system package: run `apt-get install {package}={version}` as root")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(manager: PackageManager, is_root: bool) -> String {
        let recipe = InstallRecipe {
            manager,
            package: "pack".to_owned(),
            version: "1.2".to_owned(),
            binaries: Vec::new(),
            with: vec!["beside@3".to_owned()],
        };
        let line = |step: Step| {
            let words = std::iter::once(step.program).chain(step.args);
            words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        let steps = steps(&recipe, Path::new("/stage"), is_root);
        steps.into_iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn every_manager_installs_one_version_into_the_stage() {
        expect_test::expect![
            "npm install --global --no-fund --no-audit --no-update-notifier --prefix /stage pack@1.2 beside@3"
        ]
        .assert_eq(&lines(PackageManager::Npm, false));
        expect_test::expect![[r"
            python3 -m venv /stage
            /stage/bin/python -m pip install --disable-pip-version-check --no-input pack==1.2 beside==3"]]
        .assert_eq(&lines(PackageManager::Pypi, false));
        expect_test::expect!["cargo install --locked --root /stage --version =1.2 pack"]
            .assert_eq(&lines(PackageManager::Crates, false));
        expect_test::expect!["apt-get install --yes --no-install-recommends pack=1.2"]
            .assert_eq(&lines(PackageManager::Apt, true));
        expect_test::expect!["sudo -n apt-get install --yes --no-install-recommends pack=1.2"]
            .assert_eq(&lines(PackageManager::Apt, false));
    }
}
