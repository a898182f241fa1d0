//! Roots in trees of small files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::sync::Arc;

use super::*;
use crate::config::Loaded;

fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let top = place.path().canonicalize().unwrap().join("top");
    fs::create_dir_all(&top).unwrap();
    for (file, text) in files {
        let path = top.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    (place, top)
}

fn empty(files: &[&'static str]) -> Vec<(&'static str, &'static str)> {
    files.iter().map(|file| (*file, "")).collect()
}

fn markers() -> Vec<String> {
    ["pyproject.toml", "setup.py"].map(str::to_owned).to_vec()
}

#[test]
fn the_nearest_root_above_a_file_is_taken_and_none_above_the_run() {
    let files = ["pyproject.toml", "pkg/setup.py", "pkg/a/b/x.py", "other/x.py"];
    let (_place, top) = tree(&empty(&files));
    let (markers, contents) = (markers(), Contents::default());
    let rule = Rule::nearest(&markers);
    assert_eq!(rule.above(&top.join("pkg/a/b"), &top, &contents), Ok(top.join("pkg")));
    assert_eq!(rule.above(&top.join("other"), &top, &contents), Ok(top.clone()));
    let below = top.join("other");
    let none = rule.above(&below, &below, &contents).unwrap_err();
    assert_eq!(none, format!("none of pyproject.toml, setup.py in {}", below.display()));
}

#[tokio::test]
async fn roots_below_are_found_and_ignored_folders_are_not() {
    let (_place, top) = tree(&[
        ("b/pyproject.toml", ""),
        ("a/deep/er/setup.py", ""),
        ("node_modules/x/setup.py", ""),
        ("out/setup.py", ""),
        (".venv/setup.py", ""),
        ("1/2/3/4/5/setup.py", ""),
        (".gitignore", "out/\n"),
    ]);
    let found = below(&markers(), &top).await;
    assert_eq!(found, [Ok(top.join("a/deep/er")), Ok(top.join("b"))]);
    let none = below(&["go.mod".to_owned()], &top).await;
    assert_eq!(none, [Err(format!("none of go.mod in {} or 4 levels below it", top.display()))]);
}

/// One server, a tree, a folder in it, and the root that is expected.
struct Case {
    server: &'static str,
    files: &'static [(&'static str, &'static str)],
    folder: &'static str,
    root: Option<&'static str>,
}

#[test]
fn shipped_rules_know_nested_projects_and_workspaces() {
    let config = Loaded::shipped().unwrap().config;
    let cases = [
        Case {
            server: "typescript-language-server",
            files: &[
                ("package.json", "{ \"workspaces\": [\"p/*\"] }"),
                ("p/a/package.json", "{}"),
                ("p/a/tsconfig.json", "{}"),
            ],
            folder: "p/a/src",
            root: Some(""),
        },
        Case {
            server: "vtsls",
            files: &[("x/pnpm-workspace.yaml", ""), ("x/p/a/package.json", "{}")],
            folder: "x/p/a",
            root: Some("x"),
        },
        Case {
            server: "typescript-native",
            files: &[("web/tsconfig.json", "{}")],
            folder: "web/src/deep",
            root: Some("web"),
        },
        Case {
            server: "typescript-native",
            files: &[("web/tsconfig.json", "{}")],
            folder: "other",
            root: None,
        },
        Case {
            server: "pyright",
            files: &[("pyproject.toml", ""), ("pkg/setup.py", "")],
            folder: "pkg/a",
            root: Some("pkg"),
        },
        Case {
            server: "pyright",
            files: &[("pyproject.toml", "[tool.uv.workspace]\n"), ("pkg/pyproject.toml", "")],
            folder: "pkg/a",
            root: Some(""),
        },
        Case {
            server: "clangd",
            files: &[("CMakeLists.txt", ""), ("lib/CMakeLists.txt", "")],
            folder: "lib",
            root: Some(""),
        },
        Case {
            server: "rust-analyzer",
            files: &[("Cargo.toml", "[workspace]\n"), ("crates/a/Cargo.toml", "[package]\n")],
            folder: "crates/a/src",
            root: Some(""),
        },
        Case {
            server: "rust-analyzer",
            files: &[
                ("Cargo.toml", "[workspace]\nexclude = [\"fuzz\"]\n"),
                ("fuzz/Cargo.toml", "[package]\n[workspace]\n"),
            ],
            folder: "fuzz/src",
            root: Some("fuzz"),
        },
        Case {
            server: "gopls",
            files: &[("go.work", ""), ("a/go.mod", ""), ("b/go.mod", "")],
            folder: "b/internal",
            root: Some(""),
        },
        Case {
            server: "csharp-ls",
            files: &[("App.sln", ""), ("App/App.csproj", "")],
            folder: "App",
            root: Some(""),
        },
        Case {
            server: "eslint",
            files: &[("web/eslint.config.mjs", ""), ("node_modules/eslint/package.json", "")],
            folder: "web/src",
            root: Some("web"),
        },
        Case {
            server: "eslint",
            files: &[("web/eslint.config.mjs", "")],
            folder: "web/src",
            root: None,
        },
        Case { server: "bash-language-server", files: &[], folder: "scripts", root: Some("") },
    ];
    for Case { server, files, folder, root } in cases {
        let (_place, top) = tree(files);
        let rule = Rule::of(&config.servers[server]);
        let found = rule.above(&top.join(folder), &top, &Contents::default());
        assert_eq!(found.ok(), root.map(|root| top.join(root)), "{server} {files:?} {folder}");
    }
}

#[tokio::test]
async fn a_hundred_packages_of_one_workspace_have_one_root() {
    let config = Loaded::shipped().unwrap().config;
    let (_place, top) = tree(&[("package.json", "{ \"workspaces\": [\"packages/*\"] }")]);
    for package in 0..100 {
        let folder = top.join(format!("packages/p{package}"));
        fs::create_dir_all(folder.join("src")).unwrap();
        fs::write(folder.join("package.json"), "{}").unwrap();
        fs::write(folder.join("tsconfig.json"), "{}").unwrap();
        fs::write(folder.join("src/a.ts"), "").unwrap();
    }
    let rule = Rule::of(&config.servers["typescript-language-server"]);
    let contents = Contents::default();
    let catalogue = Arc::new(Catalogue::new(&config));
    let survey = Survey::of(&top, Some(catalogue)).await;
    assert_eq!(rule.below(&survey, &top, &contents), std::slice::from_ref(&top));
    assert!(survey.takers.contains("vtsls"), "{:?}", survey.takers);
    assert!(!survey.takers.contains("pyright"), "{:?}", survey.takers);
    for package in 0..100 {
        let folder = top.join(format!("packages/p{package}/src"));
        assert_eq!(rule.above(&folder, &top, &contents), Ok(top.clone()));
    }
}

#[test]
fn a_workspace_marker_counts_from_when_it_is_written() {
    let (_place, top) = tree(&[("p/a/Cargo.toml", "[package]\n"), ("Cargo.toml", "")]);
    let markers = ["Cargo.toml".to_owned()];
    let workspace = [WorkspaceMarker {
        file: "Cargo.toml".to_owned(),
        contains: Some("[workspace]".to_owned()),
    }];
    let rule =
        Rule { markers: &markers, workspace: &workspace, needs: &[], nested: Nested::Nearest };
    let contents = Contents::default();
    let folder = top.join("p/a/src");
    assert_eq!(rule.above(&folder, &top, &contents), Ok(top.join("p/a")));
    fs::write(top.join("Cargo.toml"), "[workspace]\nmembers = [\"p/*\"]\n").unwrap();
    assert_eq!(rule.above(&folder, &top, &contents), Ok(top.clone()));
}

#[test]
fn a_marker_may_be_a_pattern() {
    let (_place, top) = tree(&[("app/App.csproj", "")]);
    let markers = ["*.csproj".to_owned()];
    let root = Rule::nearest(&markers).above(&top.join("app/src"), &top, &Contents::default());
    assert_eq!(root, Ok(top.join("app")));
}
