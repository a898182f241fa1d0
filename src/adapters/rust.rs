//! Where rustc keeps its formatters for lldb, without which a `String` is an address.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hostler_actors::ports::Launch;

use crate::install::in_path;
use crate::oneshot::{self, OneShot, Terms};
use crate::shims::Programs;

/// How long rustc may take to say where it is: a proxy may first look for toolchains.
const BOUND: Duration = Duration::from_secs(5);

/// What is known of toolchains, by the project's root: its own file may choose one.
#[derive(Debug, Default)]
pub(crate) struct Sysroots(Mutex<HashMap<PathBuf, Option<PathBuf>>>);

impl Sysroots {
    /// Returns the folder of the formatters for a project of Rust's.
    pub(crate) async fn formatters(
        &self,
        programs: &Programs,
        launch: &dyn Launch,
        root: &Path,
        env: &[(OsString, OsString)],
    ) -> Option<PathBuf> {
        if !root.join("Cargo.toml").exists() {
            return None;
        }
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(root).cloned();
        if let Some(known) = known {
            return known;
        }
        let found = ask(programs, launch, root, env).await;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(root.to_owned(), found.clone());
        found
    }
}

async fn ask(
    programs: &Programs,
    launch: &dyn Launch,
    root: &Path,
    env: &[(OsString, OsString)],
) -> Option<PathBuf> {
    let names = ["rustc".to_owned()];
    let rustc = programs.find(in_path(&names, root, env)).await.ok()?;
    let args = ["--print".into(), "sysroot".into()];
    let shot = OneShot {
        label: "rustc",
        program: &rustc.path,
        args: &args,
        cwd: root,
        env,
        bound: BOUND,
        terms: Terms::OURS,
    };
    let finished = oneshot::run(launch, shot, &mut |_| {}).await.ok()?;
    let etc = Path::new(finished.stdout.trim()).join("lib/rustlib/etc");
    (finished.is_success() && etc.join("lldb_commands").exists()).then_some(etc)
}
