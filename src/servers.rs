//! Which language servers can serve a run's folder: detection by intersection.
//!
//! A server can be used where one of its root markers stands *and* its program is
//! found. With only one of the two nothing starts, and the answer says which half
//! is missing and where it was looked for. Nothing is guessed. May not start a
//! server: that is the host's, on a lease.

pub(crate) mod roots;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use globset::Glob;
use hostler_actors::host::language_server::spec::ServerSpec;
use hostler_actors::host::workspace::space::conversation::run::language_session::LanguageSession;
use hostler_actors::ids::RunId;
use hostler_actors::ports::{BoxFuture, Posture};

use crate::config::Config;
use crate::config::definitions::{Probe, ServerDefinition, Share};
use roots::Root;

/// A program that is looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// Its names, best first.
    pub(crate) names: &'a [String],
    /// The project's root, whose own folders are looked into first.
    pub(crate) root: &'a Path,
    /// Those folders, relative to the root.
    pub(crate) project_folders: &'a [PathBuf],
    /// How to see whether what was found works.
    pub(crate) probe: Option<&'a Probe>,
    /// The environment of the session, with its `PATH`.
    pub(crate) env: &'a [(OsString, OsString)],
}

/// Finds programs: in the project's own folders, then `PATH`, then installed tools.
pub(crate) trait Binaries: Send + Sync {
    /// Returns the program, or says what is wrong and where it was looked for.
    fn find<'a>(&'a self, wanted: Wanted<'a>) -> BoxFuture<'a, Result<PathBuf, String>>;
}

/// What a run's tools need to reach language servers and checkers.
pub(crate) struct Languages {
    /// The run's leases, ledger and late results.
    pub(crate) session: LanguageSession,
    /// The definitions and bounds, as they were when the run began.
    pub(crate) config: Arc<Config>,
    /// Finds their programs.
    pub(crate) binaries: Arc<dyn Binaries>,
    /// What servers of this run may write.
    pub(crate) posture: Posture,
    /// Programs found for this run: a look costs a start of the program.
    pub(crate) known: Known,
}

type ByRoot = BTreeMap<(String, PathBuf), PathBuf>;

/// Programs that were found, by definition and root.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<ByRoot>);

/// One half of what a server needs: found, or why not.
pub(crate) type Half = Result<PathBuf, String>;

/// One server, as it stands for a file or folder.
#[derive(Clone, Debug)]
pub(crate) struct Detected {
    /// The definition's name.
    pub(crate) name: String,
    /// What the protocol calls the file's language.
    pub(crate) language_id: Arc<str>,
    /// Its root, by its markers.
    pub(crate) root: Half,
    /// Its program.
    pub(crate) program: Half,
    /// What to start, where both halves are there.
    pub(crate) spec: Option<Arc<ServerSpec>>,
}

impl fmt::Display for Detected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name)?;
        match (&self.root, &self.program) {
            (Ok(root), Ok(program)) => {
                write!(f, "usable: root {}, program {}", root.display(), program.display())
            }
            (Ok(root), Err(why)) => write!(f, "no program: {why} (its root is {})", root.display()),
            (Err(why), Ok(program)) => {
                write!(f, "no root: {why} (its program is {})", program.display())
            }
            (Err(root), Err(program)) => write!(f, "no root: {root}; no program: {program}"),
        }
    }
}

/// Which run looks, and from where.
#[derive(Clone, Copy)]
pub(crate) struct Viewpoint<'a> {
    /// The run.
    pub(crate) run: RunId,
    /// Its work folder, canonical.
    pub(crate) top: &'a Path,
    /// Its environment.
    pub(crate) env: &'a [(OsString, OsString)],
}

impl Languages {
    /// Returns how every server that takes this kind of file stands for this file.
    /// Empty where no definition takes it.
    pub(crate) async fn for_file(&self, from: Viewpoint<'_>, file: &Path) -> Vec<Detected> {
        let folder = file.parent().unwrap_or(from.top);
        let mut detected = Vec::new();
        for (name, definition) in &self.config.servers {
            if let Some(language_id) = language_of(definition, file) {
                let root = roots::above(&definition.root_markers, folder, from.top);
                detected.push(self.detect(from, name, definition, &language_id, root).await);
            }
        }
        detected
    }

    /// Returns how every server stands for the whole folder: once for each root in
    /// it, or once as lacking one.
    pub(crate) async fn for_folder(&self, from: Viewpoint<'_>) -> Vec<Detected> {
        let mut detected = Vec::new();
        for (name, definition) in &self.config.servers {
            let language_id = definition.files.first().map_or("", |kind| &kind.language_id);
            for root in roots::below(&definition.root_markers, from.top).await {
                detected.push(self.detect(from, name, definition, language_id, root).await);
            }
        }
        detected
    }

    async fn detect(
        &self,
        from: Viewpoint<'_>,
        name: &str,
        definition: &ServerDefinition,
        language_id: &str,
        root: Root,
    ) -> Detected {
        let at = root.as_deref().unwrap_or(from.top).to_owned();
        let program = self.program(from, name, definition, &at).await;
        let spec = match (&root, &program) {
            (Ok(root), Ok(program)) => {
                Some(Arc::new(self.spec(from, name, definition, root, program)))
            }
            _ => None,
        };
        Detected { name: name.to_owned(), language_id: language_id.into(), root, program, spec }
    }

    async fn program(
        &self,
        from: Viewpoint<'_>,
        name: &str,
        definition: &ServerDefinition,
        root: &Path,
    ) -> Half {
        let key = (name.to_owned(), root.to_owned());
        if let Some(program) = self.known.get(&key).filter(|program| program.exists()) {
            return Ok(program);
        }
        let wanted = Wanted {
            names: &definition.binaries,
            root,
            project_folders: &definition.project_folders,
            probe: definition.probe.as_ref(),
            env: from.env,
        };
        let found = self.binaries.find(wanted).await;
        if let Ok(program) = &found {
            self.known.put(key, program.clone());
        }
        found
    }

    fn spec(
        &self,
        from: Viewpoint<'_>,
        name: &str,
        definition: &ServerDefinition,
        root: &Path,
        program: &Path,
    ) -> ServerSpec {
        let general = &self.config.language_servers;
        let own = |(name, value): (&String, &String)| (name.into(), value.into());
        let taken =
            |name: &OsString| name.to_str().is_some_and(|name| definition.env.contains_key(name));
        let env = from.env.iter().filter(|(name, _)| !taken(name)).cloned();
        ServerSpec {
            name: name.to_owned(),
            root: root.to_owned(),
            program: program.to_owned(),
            args: definition.args.iter().map(OsString::from).collect(),
            env: env.chain(definition.env.iter().map(own)).collect(),
            posture: self.posture.clone(),
            initialization_options: definition.initialization_options.clone(),
            settings: definition.settings.clone(),
            recipe: definition.recipe,
            start_deadline: definition.start_deadline.unwrap_or(general.start_deadline),
            linger: definition.linger.unwrap_or(general.linger),
            private_to: match definition.share.unwrap_or(general.share) {
                Share::Host => None,
                Share::Run => Some(from.run),
            },
        }
    }

    /// Returns how long a request may take.
    pub(crate) fn request_bound(&self) -> Duration {
        self.config.language_servers.request
    }
}

impl Known {
    fn get(&self, key: &(String, PathBuf)) -> Option<PathBuf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn put(&self, key: (String, PathBuf), program: PathBuf) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, program);
    }
}

/// Returns what the protocol calls a file's language, where the server takes it.
pub(crate) fn language_of(definition: &ServerDefinition, file: &Path) -> Option<Arc<str>> {
    let name = file.file_name()?;
    let takes = |pattern: &String| {
        Glob::new(pattern).is_ok_and(|glob| glob.compile_matcher().is_match(name))
    };
    let kind = definition.files.iter().find(|kind| kind.patterns.iter().any(takes))?;
    Some(kind.language_id.as_str().into())
}
