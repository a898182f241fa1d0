//! What is to be run for one checker in one root: program, arguments, environment.
//!
//! Two plans with the same key are the same check, whoever asks. May start a program
//! only to learn where the true root is.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hostler_actors::ports::{Owner, Posture};

use crate::config::definitions::{CheckerDefinition, ExitCodes, Format, Runs};
use crate::oneshot::{self, OneShot, Terms};
use crate::seat::Seat;
use crate::servers::specs::is_of_a_terminal;
use crate::servers::{Viewpoint, Wanted};

/// How long a program may take to say where its root is.
const LOCATE: Duration = Duration::from_secs(10);

/// What makes two checks the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) root: PathBuf,
    pub(super) program: PathBuf,
    pub(super) args: Vec<OsString>,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) posture: Posture,
}

/// A check to be made.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) key: Key,
    /// From where the relative paths are meant that it prints.
    pub(super) base: PathBuf,
    /// A folder that it may fill.
    pub(super) cache: PathBuf,
    pub(super) markers: Vec<String>,
    /// How many files of its kind were seen there.
    pub(super) seen: usize,
    /// Names of files below the root that it may write itself.
    pub(super) writes: Vec<String>,
    pub(super) runs: Runs,
    pub(super) format: Format,
    pub(super) deadline: Duration,
    pub(super) exit_codes: ExitCodes,
}

impl Plan {
    /// Plans the check of a root, or says why there can be none.
    pub(super) async fn of(
        seat: &Seat,
        name: &str,
        definition: &CheckerDefinition,
        root: &Path,
        seen: usize,
    ) -> Result<Self, String> {
        let top = seat.folder.root();
        let above = root.ancestors().take_while(|folder| folder.starts_with(top));
        let folders =
            above.flat_map(|at| definition.project_folders.iter().map(|sub| at.join(sub)));
        let wanted = Wanted {
            names: &definition.binaries,
            project_folders: &folders.collect::<Vec<_>>(),
            probe: definition.probe.as_ref(),
        };
        let program = seat.languages.program(Viewpoint::of(seat), root, wanted).await;
        let program = program.map_err(|why| format!("no program: {why}"))?;
        let located = locate(seat, name, definition, &program, root).await?;
        // A root above the run's folder is not ours to check, but paths are meant from it.
        let root = if located.starts_with(top) { located.as_path() } else { root };
        let posture = seat.languages.posture.clone();
        let cache = cache(&seat.checks.cache(), &posture, name, root);
        Ok(Self {
            key: Key {
                name: name.to_owned(),
                root: root.to_owned(),
                program,
                args: definition.args.iter().map(Into::into).collect(),
                env: environment(&seat.env, definition, &cache),
                posture,
            },
            base: located,
            cache,
            seen,
            markers: definition.root_markers.clone(),
            writes: definition.writes.clone(),
            runs: definition.runs,
            format: definition.format,
            deadline: definition.deadline,
            exit_codes: definition.exit_codes.clone(),
        })
    }
}

/// Returns the true root of what a marker stands in.
async fn locate(
    seat: &Seat,
    name: &str,
    definition: &CheckerDefinition,
    program: &Path,
    root: &Path,
) -> Result<PathBuf, String> {
    if definition.locate.is_empty() {
        return Ok(root.to_owned());
    }
    let args: Vec<_> = definition.locate.iter().map(Into::into).collect();
    let shot = OneShot {
        label: name,
        program,
        args: &args,
        cwd: root,
        env: &seat.env,
        bound: LOCATE,
        terms: Terms {
            owner: Owner::Run(seat.run),
            posture: &seat.languages.posture,
            ..Terms::OURS
        },
    };
    let finished = oneshot::run(&*seat.launch, shot, &mut |_| {}).await;
    let finished = finished.map_err(|error| error.to_string())?;
    let file = Path::new(finished.stdout.lines().next().unwrap_or_default().trim());
    match file.parent().filter(|_| finished.is_success() && file.is_absolute()) {
        Some(located) => Ok(located.to_owned()),
        None => Err(format!("its root cannot be told: {finished}")),
    }
}

/// Where the worktree is read-only, nothing is kept outside the scratch folder.
fn cache(usual: &Path, posture: &Posture, name: &str, root: &Path) -> PathBuf {
    let base = match posture {
        Posture::Writable => usual,
        Posture::ReadOnly { scratch, .. } => scratch,
    };
    let hash = blake3::hash(root.as_os_str().as_encoded_bytes()).to_hex();
    base.join(format!("{name}-{}", hash.get(..16).unwrap_or_default()))
}

fn environment(
    session: &[(OsString, OsString)],
    definition: &CheckerDefinition,
    cache: &Path,
) -> Vec<(OsString, OsString)> {
    let taken =
        |name: &OsString| name.to_str().is_some_and(|name| definition.env.contains_key(name));
    let kept = session.iter().filter(|(name, _)| !taken(name) && !is_of_a_terminal(name));
    let own = definition.env.iter().map(|(name, value)| {
        let value = value.replace("{cache}", &cache.to_string_lossy());
        (name.into(), value.into())
    });
    kept.cloned().chain(own).collect()
}
