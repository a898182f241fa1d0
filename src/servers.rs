//! Which language servers can serve a run's folder: detection by intersection.
//!
//! A server can be used where one of its root markers stands *and* its program is
//! found. With only one of the two nothing starts, and the answer says which half
//! is missing and where it was looked for. Nothing is guessed. May not start a
//! server: that is the host's, on a lease.

pub(crate) mod catalogue;
pub(crate) mod roots;
pub(crate) mod specs;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub(crate) mod watched;
pub(crate) mod work;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hostler_actors::host::language_server::spec::ServerSpec;
use hostler_actors::host::workspace::space::conversation::run::language_session::{
    Gone, Held, LanguageSessionHandle,
};
use hostler_actors::ids::RunId;
use hostler_actors::ports::Posture;

use crate::config::Config;
use crate::config::definitions::{Probe, ServerDefinition};
use crate::seat::Seat;
use crate::shims::{InstalledTool, Programs, Search};
use catalogue::{Catalogue, Taken};
use roots::{Contents, Root, Rule};
use specs::Specs;
use watched::{UNSEEN, Watched};

/// What a run's tools need to reach language servers and checkers.
pub(crate) struct Languages {
    /// The run's leases, ledger and late results.
    pub(crate) session: LanguageSessionHandle,
    /// The definitions and bounds, as they were when the run began.
    pub(crate) config: Arc<Config>,
    /// Finds their programs.
    pub(crate) programs: Arc<Programs>,
    /// Where installed tools are.
    pub(crate) installed: Vec<InstalledTool>,
    /// What servers of this run may write.
    pub(crate) posture: Posture,
    /// What changes on disk behind our tools' back.
    pub(crate) watched: Watched,
    /// What need not be found out for each question.
    pub(crate) known: Known,
}

/// What one run's questions have found out.
#[derive(Debug, Default)]
pub(crate) struct Known {
    catalogue: OnceLock<Arc<Catalogue>>,
    contents: Contents,
    specs: Specs,
}

/// One half of what a server needs: found, or why not.
pub(crate) type Half = Result<PathBuf, String>;

/// One server, as it stands for a file or folder.
#[derive(Clone, Debug)]
pub(crate) struct Detected {
    /// The definition's name.
    pub(crate) name: Arc<str>,
    /// What the protocol calls the file's language.
    pub(crate) language_id: Arc<str>,
    /// Its root, by its markers.
    pub(crate) root: Half,
    /// Its program.
    pub(crate) program: Half,
    /// What to start, where both halves are there.
    pub(crate) spec: Option<Arc<ServerSpec>>,
    /// The better one of its group that serves in its place.
    pub(crate) rival: Option<Arc<str>>,
}

/// A definition that may serve.
struct Candidate<'a> {
    name: Arc<str>,
    definition: &'a ServerDefinition,
    language_id: Arc<str>,
    root: Root,
}

/// Why servers cannot be asked: of a group, whose members do the same work, only the
/// first is told in full.
#[derive(Default)]
struct Lacking<'a> {
    told: Vec<(Option<&'a str>, String, Vec<String>)>,
}

impl<'a> Lacking<'a> {
    fn add(&mut self, group: Option<&'a str>, name: &str, why: String) {
        let of_group = |entry: &&mut (Option<&str>, _, _)| group.is_some() && entry.0 == group;
        match self.told.iter_mut().find(of_group) {
            Some((_, _, others)) => others.push(name.to_owned()),
            None => self.told.push((group, why, Vec::new())),
        }
    }

    fn told(self) -> impl Iterator<Item = String> {
        self.told.into_iter().map(|(_, why, others)| match others.as_slice() {
            [] => why,
            others => format!("{why}; in its place would do: {}", others.join(", ")),
        })
    }
}

impl fmt::Display for Detected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name)?;
        if let Some(rival) = &self.rival {
            return write!(
                f,
                "passed over: {rival} does the same here (to have this one, put it into \
                 `language_servers.prefer`)"
            );
        }
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
    /// Takes leases on the servers that can be asked about a file, best first.
    pub(crate) async fn serving(&self, from: Viewpoint<'_>, file: &Path) -> Result<Serving, Gone> {
        let mut serving = Serving { servers: Vec::new(), lacking: Vec::new() };
        let detected = self.for_file(from, file).await;
        if detected.is_empty() {
            serving.lacking.push("no definition takes it".to_owned());
        }
        let one_works = detected.iter().any(|detected| detected.spec.is_some());
        let mut lacking = Lacking::default();
        for detected in detected {
            match self.leased(&detected).await? {
                Ok(server) => serving.servers.push(server),
                // A project that does not use a server lacks nothing.
                Err(_) if detected.rival.is_some() || (one_works && detected.root.is_err()) => {}
                Err(why) => lacking.add(self.group(&detected.name), &detected.name, why),
            }
        }
        serving.lacking.extend(lacking.told());
        Ok(serving)
    }

    fn group(&self, name: &str) -> Option<&str> {
        self.config.servers.get(name)?.group.as_deref()
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

    fn catalogue(&self) -> &Arc<Catalogue> {
        self.known.catalogue.get_or_init(|| Arc::new(Catalogue::new(&self.config)))
    }

    /// Returns how every server that takes this kind of file stands for this file,
    /// best first. Empty where no definition takes it.
    pub(crate) async fn for_file(&self, from: Viewpoint<'_>, file: &Path) -> Vec<Detected> {
        let folder = file.parent().unwrap_or(from.top);
        let mut detected = Vec::new();
        let mut taken = Taken::default();
        for (name, language_id) in self.catalogue().takers(file) {
            let Some(definition) = self.config.servers.get(&*name) else { continue };
            let root = Rule::of(definition).above(folder, from.top, &self.known.contents);
            let candidate = Candidate { name, definition, language_id, root };
            detected.push(self.detect(from, candidate, &mut taken, ()).await);
        }
        detected
    }

    /// Returns how every server stands for the whole folder: once for each root in
    /// it, best first. Those without a root in it are left out.
    pub(crate) async fn for_folder(&self, from: Viewpoint<'_>) -> Vec<Detected> {
        let contents = &self.known.contents;
        let fitting = roots::fitting(&self.config, self.catalogue(), from.top, contents).await;
        let mut detected = Vec::new();
        let mut taken = Taken::default();
        for (name, definition, roots) in fitting {
            let language_id = definition.files.first().map_or("", |kind| &kind.language_id);
            for root in roots {
                let (name, language_id) = (Arc::clone(&name), language_id.into());
                let candidate = Candidate { name, definition, language_id, root: Ok(root.clone()) };
                detected.push(self.detect(from, candidate, &mut taken, root).await);
            }
        }
        detected
    }

    /// Says why no server stands for the whole folder.
    pub(crate) async fn none_for_folder(&self, from: Viewpoint<'_>) -> String {
        roots::none_in(&self.config, self.catalogue(), from.top).await
    }

    /// Finds what a candidate needs. `place` is where it competes with its rivals.
    async fn detect<P: Ord + Clone>(
        &self,
        from: Viewpoint<'_>,
        candidate: Candidate<'_>,
        taken: &mut Taken<P>,
        place: P,
    ) -> Detected {
        let Candidate { name, definition, language_id, root } = candidate;
        if let Some(rival) = taken.rival(definition, &place) {
            let program = Err("not looked for".to_owned());
            return Detected { name, language_id, root, program, spec: None, rival: Some(rival) };
        }
        let at = root.as_deref().unwrap_or(from.top);
        let wanted = Wanted {
            names: &definition.binaries,
            project_folders: &definition.project_folders,
            probe: definition.probe.as_ref(),
        };
        let program = self.program(from, at, wanted).await;
        let spec = match (&root, &program) {
            (Ok(root), Ok(program)) => {
                taken.take(&name, definition, place);
                Some(self.spec(from, &name, definition, root, program))
            }
            _ => None,
        };
        Detected { name, language_id, root, program, spec, rival: None }
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

    /// Says what brings one of these programs, where a definition tells how; first the
    /// one that has the program as its own.
    fn way_out(&self, names: &[String]) -> String {
        let brings = |definition: &ServerDefinition| {
            let recipe = definition.install.as_ref();
            recipe.is_some_and(|recipe| names.iter().any(|name| recipe.binaries.contains(name)))
        };
        let tools = self.config.servers.iter().filter(|(_, definition)| brings(definition));
        let tool = tools.max_by_key(|(_, definition)| definition.binaries == names);
        tool.map_or_else(String::new, |(name, _)| {
            format!("; `hostler tools install {name}` gets it")
        })
    }

    /// Returns how long a write waits for the verdicts of these servers.
    pub(crate) fn inline(&self, servers: impl Iterator<Item = Arc<str>>) -> Duration {
        let own = |name: Arc<str>| self.config.servers.get(&*name)?.inline;
        servers.filter_map(own).fold(self.config.diagnostics.inline, Duration::max)
    }

    /// Returns how long a request may take.
    pub(crate) fn request_bound(&self) -> Duration {
        self.config.language_servers.request
    }
}
