//! Installations with package managers that are small scripts.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::oneshot::direct;

/// A folder with the fake managers and the tools.
struct Shop {
    root: tempfile::TempDir,
}

impl Shop {
    fn new() -> Self {
        let shop = Self { root: tempfile::tempdir().unwrap() };
        shop.script("node", "echo v20.15.0");
        shop.npm("mkdir -p \"$7/bin\"; echo asked >> \"$LOG\"; printf '' > \"$7/bin/serve\"; chmod +x \"$7/bin/serve\"");
        shop
    }

    fn script(&self, name: &str, body: &str) {
        let path = self.root.path().join("path").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// The words of `npm install` are `… --prefix STAGE PACKAGE@VERSION`.
    fn npm(&self, body: &str) {
        self.script("npm", body);
    }

    fn tools(&self) -> PathBuf {
        self.root.path().join("tools")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.root.path().join("log")).unwrap_or_default()
    }

    async fn install(&self, recipe: &InstallRecipe) -> Result<Installed, String> {
        let launch = direct::launcher();
        let path = format!("{}:/usr/bin:/bin", self.root.path().join("path").display());
        let log = self.root.path().join("log").display().to_string();
        let environment = [("PATH", path), ("LOG", log)].into_iter().collect();
        let programs = Programs::new(Arc::clone(&launch));
        let tools = self.tools();
        let installer = Installer {
            launch: &launch,
            programs: &programs,
            environment: &environment,
            tools: &tools,
        };
        let outcome = installer.install("tool", recipe, &mut |_| {}).await;
        outcome.map_err(|error| error.to_string())
    }

    /// What is in the tool's folder, hidden names left out.
    fn left(&self) -> Vec<String> {
        let entries = fs::read_dir(self.tools().join("tool")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        names
    }
}

fn recipe() -> InstallRecipe {
    InstallRecipe {
        manager: PackageManager::Npm,
        package: "pack".to_owned(),
        version: "1.2.3".to_owned(),
        binaries: vec!["serve".to_owned()],
        with: Vec::new(),
    }
}

#[tokio::test]
async fn a_tool_is_installed_once() {
    let shop = Shop::new();
    let bin = shop.tools().join("tool/1.2.3/bin");
    assert_eq!(shop.install(&recipe()).await, Ok(Installed::Now(bin.clone())));
    assert!(bin.join("serve").exists());
    assert_eq!(shop.install(&recipe()).await, Ok(Installed::Already(bin)));
    assert_eq!(shop.log(), "asked\n");
    assert_eq!(shop.left().len(), 2, "the link and its folder");
}

#[tokio::test]
async fn concurrent_installations_of_one_tool_wait_for_each_other() {
    let shop = Shop::new();
    let recipe = recipe();
    let (one, two) = tokio::join!(shop.install(&recipe), shop.install(&recipe));
    assert!(matches!(one, Ok(Installed::Now(_))), "{one:?}");
    assert!(matches!(two, Ok(Installed::Already(_))), "{two:?}");
    assert_eq!(shop.log(), "asked\n");
}

#[tokio::test]
async fn a_failure_leaves_nothing_and_shows_the_managers_last_words() {
    let shop = Shop::new();
    shop.npm("mkdir -p \"$7/bin\"; echo 'network unreachable' >&2; exit 1");
    let error = shop.install(&recipe()).await.unwrap_err();
    assert!(error.starts_with("tool: `npm install --global"), "{error}");
    assert!(error.contains("exited with code 1: network unreachable\nnpm needs Node"), "{error}");
    assert_eq!(shop.left(), [""; 0]);
}

#[tokio::test]
async fn a_package_without_its_program_is_not_there() {
    let shop = Shop::new();
    shop.npm("true");
    let error = shop.install(&recipe()).await.unwrap_err();
    assert!(error.contains("has no program `serve`"), "{error}");
    assert_eq!(shop.left(), [""; 0]);
}

#[tokio::test]
async fn an_old_node_and_a_bad_name_are_refused_before_anything_happens() {
    let shop = Shop::new();
    shop.script("node", "echo v18.19.0");
    let error = shop.install(&recipe()).await.unwrap_err();
    assert!(error.contains("Node v18.19.0 is too old: 20.15 or later"), "{error}");
    let evil = InstallRecipe { version: "../../x".to_owned(), ..recipe() };
    assert!(shop.install(&evil).await.unwrap_err().contains("`../../x` cannot be the name"));
    assert_eq!(shop.log(), "");
}

#[tokio::test]
async fn what_a_killed_installation_left_is_swept() {
    let shop = Shop::new();
    let half = shop.tools().join("tool/1.2.3.half/bin");
    fs::create_dir_all(&half).unwrap();
    shop.install(&recipe()).await.unwrap();
    assert!(!half.exists());
}

#[tokio::test]
async fn a_system_package_that_is_there_is_not_asked_for() {
    let shop = Shop::new();
    shop.script("serve", "");
    let apt = InstallRecipe { manager: PackageManager::Apt, ..recipe() };
    assert!(matches!(shop.install(&apt).await, Ok(Installed::Already(_))));
}

#[test]
fn versions_are_compared_as_numbers() {
    assert_eq!(version_numbers("v20.15.1"), Some((20, 15)));
    assert!(version_numbers("v20.9.0") < Some(OLDEST_NODE));
    assert!(version_numbers("v22.0.0") >= Some(OLDEST_NODE));
    assert!(version_numbers("what?") < Some(OLDEST_NODE));
}
