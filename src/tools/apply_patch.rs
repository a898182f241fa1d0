//! `apply_patch`: several files changed by one patch, all of them or none.
//!
//! Everything is worked out in memory first: paths, places, contents. A file that stands
//! twice in a patch is changed twice. Adding and moving never put anything over what is
//! there. Details: `files[{action, path, from, places[], inserted, removed}]`,
//! `ignored[]` (what was not exact), `lost[]`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use hostler_actors::ports::BoxFuture;
use hostler_actors::profile::Tier;
use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::changes::{commit, with_lost};
use crate::code::patch::apply::{NoPlace, Patched, apply};
use crate::code::patch::{Change, Chunk, paths, read};
use crate::folder::commit::Step;
use crate::folder::disk::{cancelled, look};
use crate::folder::{Folder, FolderError, Hash, Inside};
use crate::seat::Seat;
use crate::seen::{Seen, Sight};
use crate::tools::glob::BOUND;
use crate::tools::write::WHOLE_FILE;
use crate::tools::{
    Cancel, Effect, Failure, Outcome, Output, Tool, Wired, arguments, never, schema_of,
};

pub(crate) const TOOL: Tool = Tool {
    name: "apply_patch",
    tier: Tier::Write,
    parallel_safe: true,
    overtakes: never,
    mutates_worktree: true,
    wired: Wired::Folder,
    effects: &[Effect::WorktreeWrite],
    description: "Changes several files at once, all or none. The patch stands between *** Begin \
        Patch and *** End Patch and holds *** Add File: PATH (every line with +), *** Delete File: \
        PATH, *** Update File: PATH (optionally *** Move to: PATH, then chunks: @@ or @@ with a \
        line before the place, and lines with a space, - or +). The lines of a chunk must stand \
        at one place only: give three lines of context.",
    schema: schema_of::<Args>,
    writes: |given| given.get("patch").and_then(Value::as_str).map(paths).unwrap_or_default(),
    call,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The patch.
    patch: String,
}

fn call(seat: &Seat, given: Value, cancel: Cancel) -> BoxFuture<'_, Outcome> {
    Box::pin(async move {
        let args: Args = arguments(TOOL.name, given)?;
        let changes =
            read(&args.patch).map_err(|error| Failure::new(format!("apply_patch: {error}")))?;
        let (folder, seen) = (seat.folder.clone(), seat.seen.clone());
        let worked = look(TOOL.name, &cancel, BOUND, move |leash| {
            let mut plan = Plan { folder, seen, files: BTreeMap::new(), told: Vec::new() };
            for change in changes {
                if leash.cut().is_some() {
                    return Err(cancelled(TOOL.name, "nothing was written"));
                }
                plan.change(change)?;
            }
            Ok(plan)
        })
        .await?;
        let steps = worked.steps();
        if steps.is_empty() {
            return Ok(worked.output());
        }
        let done = commit(seat, TOOL.name, steps, &cancel).await?;
        for file in worked.known() {
            seat.seen.wrote(file.0.absolute(), file.1);
        }
        Ok(with_lost(worked.output(), &done))
    })
}

/// One file as the patch leaves it.
struct Virtual {
    file: Inside,
    was: Option<Hash>,
    now: Option<Vec<u8>>,
    like: Option<Inside>,
    /// Was all of its content written by this patch.
    written: bool,
}

struct Told {
    action: &'static str,
    path: String,
    from: Option<String>,
    places: Vec<usize>,
    ignored: Vec<String>,
    inserted: usize,
    removed: usize,
}

struct Plan {
    folder: Folder,
    seen: Seen,
    files: BTreeMap<PathBuf, Virtual>,
    told: Vec<Told>,
}

impl Plan {
    fn file(&mut self, given: &str) -> Result<&mut Virtual, Failure> {
        let file = self.folder.locate(given)?;
        let key = file.absolute().to_owned();
        if !self.files.contains_key(&key) {
            let now = match self.folder.kind(&file) {
                None => None,
                Some(FileType::RegularFile) => Some(self.folder.read(&file, WHOLE_FILE)?),
                Some(kind) => return Err(FolderError::NotAFile { path: file.name(), kind }.into()),
            };
            let was = now.as_deref().map(Hash::of);
            let one = Virtual { file, was, now, like: None, written: false };
            self.files.insert(key.clone(), one);
        }
        self.files.get_mut(&key).ok_or_else(|| Failure::new("apply_patch: lost a file"))
    }

    fn change(&mut self, change: Change) -> Result<(), Failure> {
        match change {
            Change::Add { path, lines } => self.add(&path, &lines),
            Change::Delete { path } => {
                let one = self.file(&path)?;
                let name = one.file.name();
                if one.now.take().is_none() {
                    return Err(FolderError::Missing { path: name }.into());
                }
                self.tell("D", name, None, None);
                Ok(())
            }
            Change::Update { path, to, chunks } => self.update(&path, to.as_deref(), &chunks),
        }
    }

    fn add(&mut self, path: &str, lines: &[String]) -> Result<(), Failure> {
        let mut content = lines.join("\n").into_bytes();
        if !lines.is_empty() {
            content.push(b'\n');
        }
        let inserted = lines.len();
        let one = self.file(path)?;
        let name = one.file.name();
        match &one.now {
            Some(now) if *now == content => {}
            Some(_) => {
                return Err(Failure::new(format!(
                    "apply_patch: {name} exists, and nothing was written: use *** Update File, or \
                     delete it in the same patch before"
                )));
            }
            None => {
                one.now = Some(content);
                one.written = true;
            }
        }
        self.tell("A", name, None, None);
        if let Some(told) = self.told.last_mut() {
            told.inserted = inserted;
        }
        Ok(())
    }

    fn update(&mut self, path: &str, to: Option<&str>, chunks: &[Chunk]) -> Result<(), Failure> {
        let seen = self.seen.clone();
        let one = self.file(path)?;
        let (name, source) = (one.file.name(), one.file.clone());
        let Some(now) = &one.now else {
            return Err(FolderError::Missing { path: name }.into());
        };
        let patched = apply(now, chunks).map_err(|error| {
            let stale =
                one.was.is_some_and(|was| seen.sight(source.absolute(), was) == Sight::Other);
            no_place(&name, &error, stale)
        })?;
        let target = to.map(|to| self.file(to).map(|target| target.file.clone())).transpose()?;
        let Some(target) = target.filter(|target| *target != source) else {
            self.file(path)?.now = Some(patched.content.clone());
            self.tell("M", name, None, Some(&patched));
            return Ok(());
        };
        let target_name = target.name();
        if self.file(&target_name)?.now.is_some() {
            return Err(Failure::new(format!(
                "apply_patch: {name} cannot be moved to {target_name}, which exists; nothing was \
                 written: delete it in the same patch before, or choose another name"
            )));
        }
        let one = self.file(path)?;
        one.now = None;
        let like = one.like.clone().unwrap_or(source);
        let one = self.file(&target_name)?;
        one.now = Some(patched.content.clone());
        one.like = Some(like);
        self.tell("R", target_name, Some(name), Some(&patched));
        Ok(())
    }

    fn tell(
        &mut self,
        action: &'static str,
        path: String,
        from: Option<String>,
        patched: Option<&Patched>,
    ) {
        let places = patched.map(|patched| patched.places.as_slice()).unwrap_or_default();
        self.told.push(Told {
            action,
            path,
            from,
            places: places.iter().map(|(line, _)| *line).collect(),
            ignored: places
                .iter()
                .enumerate()
                .filter_map(|(at, (_, ignored))| {
                    Some(format!("chunk {} was matched ignoring {}", at + 1, ignored.as_ref()?))
                })
                .collect(),
            inserted: patched.map_or(0, |patched| patched.inserted),
            removed: patched.map_or(0, |patched| patched.removed),
        });
    }

    fn steps(&self) -> Vec<Step> {
        let step = |one: &Virtual| {
            let file = one.file.clone();
            match (one.was, &one.now) {
                (Some(was), Some(now)) if Hash::of(now) != was => {
                    Some(Step::Replace { file, was, content: now.clone() })
                }
                (None, Some(now)) => {
                    Some(Step::Create { file, content: now.clone(), like: one.like.clone() })
                }
                (Some(was), None) => Some(Step::Delete { file, was }),
                (Some(_), Some(_)) | (None, None) => None,
            }
        };
        self.files.values().filter_map(step).collect()
    }

    /// The files whose whole content the run gave, and so knows.
    fn known(&self) -> impl Iterator<Item = (&Inside, Hash)> {
        let known = self.files.values().filter(|one| one.written && one.like.is_none());
        known.filter_map(|one| Some((&one.file, Hash::of(one.now.as_deref()?))))
    }

    fn output(&self) -> Output {
        let mut lines = Vec::new();
        for told in &self.told {
            let from = told.from.as_ref().map_or_else(String::new, |from| format!("{from} -> "));
            let places: Vec<_> = told.places.iter().map(ToString::to_string).collect();
            let at = match places.as_slice() {
                [] => String::new(),
                [one] => format!(", line {one}"),
                many => format!(", lines {}", many.join(", ")),
            };
            let count = match (told.inserted, told.removed) {
                (0, 0) => String::new(),
                (inserted, removed) => format!(" (+{inserted} -{removed}{at})"),
            };
            lines.push(format!("{} {from}{}{count}", told.action, told.path));
            lines.extend(told.ignored.iter().map(|ignored| format!("  {ignored}")));
        }
        if self.steps().is_empty() {
            lines.push("everything was so already: nothing was written".to_owned());
        }
        let file = |told: &Told| {
            json!({
                "action": told.action, "path": told.path, "from": told.from,
                "places": told.places, "inserted": told.inserted, "removed": told.removed,
            })
        };
        let ignored: Vec<_> = self.told.iter().flat_map(|told| told.ignored.clone()).collect();
        let files: Vec<_> = self.told.iter().map(file).collect();
        Output::text(lines.join("\n"), json!({ "files": files, "ignored": ignored }))
    }
}

fn no_place(name: &str, error: &NoPlace, stale: bool) -> Failure {
    let stale = match stale {
        true => "\nThe file has changed since you last saw it: read it again.",
        false => "",
    };
    Failure::new(format!("apply_patch: {name}: {error}; nothing was written{stale}"))
}

#[cfg(test)]
mod tests;
