//! Which language servers can serve a run's folder: detection by intersection.
//!
//! A server can be used where one of its root markers stands *and* its program is
//! found. With only one of the two nothing starts, and the answer says which half
//! is missing and where it was looked for. Nothing is guessed. May not start a
//! server: that is the host's, on a lease.

pub(crate) mod roots;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod watched;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use globset::Glob;
use hostler_actors::host::language_server::spec::ServerSpec;
use hostler_actors::host::workspace::space::conversation::run::language_session::{
    Gone, Held, LanguageSessionHandle,
};
use hostler_actors::ids::RunId;
use hostler_actors::ports::Posture;

use crate::config::Config;
use crate::config::definitions::{Probe, ServerDefinition, Share};
use crate::seat::Seat;
use crate::shims::{Programs, Search};
use roots::Root;
use watched::{UNSEEN, Watched};

/// What a run's tools need to reach language servers and checkers.
pub(crate) struct Languages {
    /// The run's leases, ledger and late results.
    pub(crate) session: LanguageSessionHandle,
    /// The definitions and bounds, as they were when the run began.
    pub(crate) config: Arc<Config>,
    /// Finds their programs.
    pub(crate) programs: Arc<Programs>,
    /// Folders of installed tools.
    pub(crate) installed: Vec<PathBuf>,
    /// What servers of this run may write.
    pub(crate) posture: Posture,
    /// What changes on disk behind our tools' back.
    pub(crate) watched: Watched,
}

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

/// A program that a definition names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// Its names, best first.
    pub(crate) names: &'a [String],
    /// Folders below a root in which it is looked for first.
    pub(crate) project_folders: &'a [PathBuf],
    /// How to see whether what was found works.
    pub(crate) probe: Option<&'a Probe>,
}

/// A server that can be asked about a file.
#[derive(Clone)]
pub(crate) struct Server {
    /// The lease.
    pub(crate) held: Held,
    /// What the protocol calls the file's language.
    pub(crate) language_id: Arc<str>,
    /// Is it told of everything that changes below its root.
    pub(crate) sees_all: bool,
}

/// Who can be asked about a file, and who cannot and why.
pub(crate) struct Serving {
    /// Those that can.
    pub(crate) servers: Vec<Server>,
    /// Why others cannot.
    pub(crate) lacking: Vec<String>,
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

impl<'a> Viewpoint<'a> {
    /// Returns a seat's.
    pub(crate) fn of(seat: &'a Seat) -> Self {
        Self { run: seat.run, top: seat.folder.root(), env: &seat.env }
    }
}

impl Serving {
    /// Says why nobody can be asked about a file.
    pub(crate) fn reason(&self, name: &str) -> String {
        format!("no language server for {name}: {}", self.lacking.join("; "))
    }
}

impl Server {
    /// Returns the definition's name.
    pub(crate) fn name(&self) -> Arc<str> {
        self.held.spec.name.as_str().into()
    }

    /// Returns what is to be said beside whatever it answers.
    pub(crate) fn caution(&self) -> Option<String> {
        (!self.sees_all).then(|| format!("{}: {UNSEEN}", self.held.spec.name))
    }
}

impl Languages {
    /// Takes leases on the servers that can be asked about a file.
    pub(crate) async fn serving(&self, from: Viewpoint<'_>, file: &Path) -> Result<Serving, Gone> {
        let mut serving = Serving { servers: Vec::new(), lacking: Vec::new() };
        let detected = self.for_file(from, file).await;
        if detected.is_empty() {
            serving.lacking.push(format!("no definition takes it; there are {}", self.kinds()));
        }
        for detected in detected {
            match self.leased(&detected).await? {
                Ok(server) => serving.servers.push(server),
                Err(why) => serving.lacking.push(why),
            }
        }
        Ok(serving)
    }

    /// Takes the lease on a detected server, or says why there is none to take.
    pub(crate) async fn leased(&self, detected: &Detected) -> Result<Result<Server, String>, Gone> {
        let Some(spec) = &detected.spec else { return Ok(Err(detected.to_string())) };
        // Before the server is there, so that nothing falls between the two.
        self.watched.begin(spec).await;
        Ok(match self.session.lease(Arc::clone(spec)).await? {
            Ok(held) => {
                let sees_all = self.watched.tell(&held, &[], Vec::new());
                Ok(Server { held, language_id: Arc::clone(&detected.language_id), sees_all })
            }
            Err(error) => Err(format!("{}: {error}", detected.name)),
        })
    }

    /// Lists which servers take which files.
    fn kinds(&self) -> String {
        let kinds = self.config.servers.iter().map(|(name, definition)| {
            let patterns = definition.files.iter().flat_map(|kind| &kind.patterns);
            format!("{name} ({})", patterns.cloned().collect::<Vec<_>>().join(", "))
        });
        kinds.collect::<Vec<_>>().join(", ")
    }

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
        let wanted = Wanted {
            names: &definition.binaries,
            project_folders: &definition.project_folders,
            probe: definition.probe.as_ref(),
        };
        let program = self.program(from, &at, wanted).await;
        let spec = match (&root, &program) {
            (Ok(root), Ok(program)) => {
                Some(Arc::new(self.spec(from, name, definition, root, program)))
            }
            _ => None,
        };
        Detected { name: name.to_owned(), language_id: language_id.into(), root, program, spec }
    }

    /// Finds a program for a root: the root's own folders, `PATH`, installed tools.
    pub(crate) async fn program(
        &self,
        from: Viewpoint<'_>,
        root: &Path,
        wanted: Wanted<'_>,
    ) -> Half {
        let search = Search {
            names: wanted.names,
            root,
            project_folders: wanted.project_folders,
            env: from.env,
            installed: &self.installed,
            probe: wanted.probe,
        };
        let found = self.programs.find(search).await;
        found.map(|found| found.path).map_err(|missing| {
            let names = wanted.names.join("` or `");
            format!("`{names}` was not found: {missing}{}", self.way_out(wanted.names))
        })
    }

    /// Says what brings one of these programs, where a definition tells how.
    fn way_out(&self, names: &[String]) -> String {
        let brings = |definition: &ServerDefinition| {
            let recipe = definition.install.as_ref();
            recipe.is_some_and(|recipe| names.iter().any(|name| recipe.binaries.contains(name)))
        };
        let tool = self.config.servers.iter().find(|(_, definition)| brings(definition));
        tool.map_or_else(String::new, |(name, _)| {
            format!("; `hostler tools install {name}` gets it")
        })
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
        let env = from.env.iter().filter(|(name, _)| !taken(name) && !is_of_a_terminal(name));
        let env = env.cloned();
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
            after_change: definition.after_change,
            inner_process: definition.inner_process.clone(),
            reread: definition.reread.clone(),
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

/// Says whether a variable only tells which terminal or login a session was started
/// from. It shapes no server, and would keep sessions from sharing one.
pub(crate) fn is_of_a_terminal(name: &OsString) -> bool {
    const NAMES: [&str; 16] = [
        "_",
        "COLORTERM",
        "COLUMNS",
        "DISPLAY",
        "GPG_TTY",
        "LINES",
        "LS_COLORS",
        "OLDPWD",
        "PWD",
        "SHLVL",
        "STY",
        "TERM",
        "TMUX",
        "TMUX_PANE",
        "VTE_VERSION",
        "WINDOWID",
    ];
    const BEGINNINGS: [&str; 4] = ["SSH_", "TERM_", "XDG_SESSION_", "WAYLAND_"];
    name.to_str().is_some_and(|name| {
        NAMES.contains(&name) || BEGINNINGS.iter().any(|begin| name.starts_with(begin))
    })
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
