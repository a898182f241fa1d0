//! All or none: mismatches, races, and a crash at every point.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use super::*;

struct Ground {
    folder: Folder,
    journals: Journals,
    _data: tempfile::TempDir,
    place: tempfile::TempDir,
}

impl Ground {
    fn new() -> Self {
        let (place, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let folder = Folder::open(place.path()).unwrap();
        Self { folder, journals: Journals::at(data.path().join("commits")), _data: data, place }
    }

    fn put(&self, name: &str, content: &str) {
        let path = self.place.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn at(&self, name: &str) -> Inside {
        self.folder.locate(name).unwrap()
    }

    fn replace(&self, name: &str, content: &str) -> Step {
        let file = self.at(name);
        let was = self.folder.hash(&file).unwrap();
        Step::Replace { file, was, content: content.into() }
    }

    fn create(&self, name: &str, content: &str) -> Step {
        Step::Create { file: self.at(name), content: content.into(), like: None }
    }

    fn delete(&self, name: &str) -> Step {
        let file = self.at(name);
        let was = self.folder.hash(&file).unwrap();
        Step::Delete { file, was }
    }

    /// Everything below the folder, names and contents.
    fn tree(&self) -> BTreeMap<String, String> {
        let mut tree = BTreeMap::new();
        let mut open = vec![self.place.path().to_owned()];
        while let Some(dir) = open.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(self.place.path()).unwrap().display().to_string();
                if path.is_dir() {
                    tree.insert(name, "(folder)".to_owned());
                    open.push(path);
                } else {
                    tree.insert(name, fs::read_to_string(path).unwrap());
                }
            }
        }
        tree
    }

    fn journals_left(&self) -> usize {
        fs::read_dir(self.journals.folder()).map_or(0, |entries| entries.count())
    }
}

fn mixed(ground: &Ground) -> Vec<Step> {
    ground.put("a.txt", "a old");
    ground.put("b/b.txt", "b old");
    ground.put("c.txt", "c old");
    vec![
        ground.replace("a.txt", "a new"),
        ground.replace("b/b.txt", "b new"),
        ground.create("new/deep/d.txt", "d new"),
        ground.delete("c.txt"),
    ]
}

#[test]
fn every_kind_of_step_is_made() {
    let ground = Ground::new();
    let steps = mixed(&ground);
    ground.folder.commit(&steps, &ground.journals).unwrap();
    let tree = ground.tree();
    let names: Vec<_> = tree.iter().map(|(name, text)| format!("{name}={text}")).collect();
    assert_eq!(
        names,
        [
            "a.txt=a new",
            "b=(folder)",
            "b/b.txt=b new",
            "new=(folder)",
            "new/deep=(folder)",
            "new/deep/d.txt=d new"
        ]
    );
    assert_eq!(ground.journals_left(), 0);
}

#[test]
fn one_mismatch_refuses_all_and_every_one_is_named() {
    let ground = Ground::new();
    let steps = mixed(&ground);
    ground.put("a.txt", "a of somebody else");
    fs::remove_file(ground.place.path().join("c.txt")).unwrap();
    ground.put("new/deep/d.txt", "appeared");
    let before = ground.tree();
    let error = ground.folder.commit(&steps, &ground.journals).unwrap_err().to_string();
    assert_eq!(
        error,
        "nothing was written: a.txt has changed; new/deep/d.txt exists by now; c.txt is gone"
    );
    assert_eq!(ground.tree(), before);
}

/// Stops at every point in turn, as a crash would, and recovers.
#[test]
fn a_crash_at_any_point_leaves_all_old_or_all_new() {
    let mut seen = (0, 0);
    for stop_at in 0.. {
        let ground = Ground::new();
        let steps = mixed(&ground);
        let old = ground.tree();
        let mut pulses = 0;
        let done = ground.folder.commit_with(&steps, &ground.journals, &mut || {
            pulses += 1;
            if pulses > stop_at { Err(CommitError::Stopped) } else { Ok(()) }
        });
        if done.is_ok() {
            assert!(seen.0 > 5 && seen.1 > 3, "{seen:?} of {stop_at}");
            return;
        }
        assert!(ground.journals.recover().is_empty());
        let tree = ground.tree();
        if tree == old {
            seen.0 += 1;
        } else {
            assert_eq!(tree["a.txt"], "a new", "stopped at {stop_at}: {tree:?}");
            assert_eq!(tree["b/b.txt"], "b new");
            assert_eq!(tree["new/deep/d.txt"], "d new");
            assert_eq!(tree.len(), 6, "{tree:?}");
            seen.1 += 1;
        }
        assert_eq!(ground.journals_left(), 0);
    }
}

#[test]
fn a_write_between_the_check_and_the_exchange_takes_everything_back() {
    let ground = Ground::new();
    let steps = mixed(&ground);
    let path = ground.place.path().join("b/b.txt");
    let mut pulses = 0;
    // After the three contents were written, before the second exchange.
    let error = ground.folder.commit_with(&steps, &ground.journals, &mut || {
        pulses += 1;
        if pulses == 5 {
            fs::write(&path, "b of somebody else").unwrap();
        }
        Ok(())
    });
    assert_eq!(error.unwrap_err().to_string(), "nothing was written: b/b.txt has changed");
    let tree = ground.tree();
    assert_eq!((tree["a.txt"].as_str(), tree["b/b.txt"].as_str()), ("a old", "b of somebody else"));
    assert_eq!(tree.len(), 4, "{tree:?}");
}

#[test]
fn a_living_process_keeps_its_journal() {
    let ground = Ground::new();
    let steps = mixed(&ground);
    let mut looked = false;
    let journals = ground.journals.clone();
    ground
        .folder
        .commit_with(&steps, &ground.journals, &mut || {
            looked = true;
            assert!(journals.recover().is_empty());
            Ok(())
        })
        .unwrap();
    assert!(looked);
    assert_eq!(ground.tree()["a.txt"], "a new");
}

#[test]
fn what_a_file_has_beside_its_bytes_goes_along() {
    let ground = Ground::new();
    ground.put("run.sh", "old");
    ground.put("other", "old");
    let path = ground.place.path().join("run.sh");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
    let named = rustix::fs::setxattr(&path, "user.note", b"kept", rustix::fs::XattrFlags::empty());
    fs::hard_link(ground.place.path().join("other"), ground.place.path().join("twin")).unwrap();
    symlink("run.sh", ground.place.path().join("link")).unwrap();
    let steps = [
        ground.replace("link", "new"),
        ground.replace("other", "new"),
        Step::Create {
            file: ground.at("moved.sh"),
            content: b"m".to_vec(),
            like: Some(ground.at("run.sh")),
        },
    ];
    let done = ground.folder.commit(&steps, &ground.journals).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o751);
    assert_eq!(fs::metadata(ground.place.path().join("moved.sh")).unwrap().mode() & 0o7777, 0o751);
    if named.is_ok() {
        let mut value = [0; 8];
        assert_eq!(rustix::fs::getxattr(&path, "user.note", &mut value), Ok(4));
    }
    assert!(fs::symlink_metadata(ground.place.path().join("link")).unwrap().is_symlink());
    assert_eq!(done.lost.len(), 1);
    assert!(done.lost[0].0 == "other" && done.lost[0].1[0].contains("hard links"));
}

#[test]
fn what_is_protected_or_no_file_is_refused_before_anything_is_written() {
    let ground = Ground::new();
    ground.put("a", "old");
    ground.put("b", "old");
    let steps = [ground.replace("a", "new"), ground.replace("b", "new")];
    fs::set_permissions(ground.place.path().join("b"), fs::Permissions::from_mode(0o444)).unwrap();
    let error = ground.folder.commit(&steps, &ground.journals).unwrap_err().to_string();
    assert!(error.contains("b: is write-protected (mode 0444)"), "{error}");
    fs::remove_file(ground.place.path().join("b")).unwrap();
    fs::create_dir(ground.place.path().join("b")).unwrap();
    let error = ground.folder.commit(&steps, &ground.journals).unwrap_err().to_string();
    assert!(error.contains("b is a folder"), "{error}");
    assert_eq!(ground.tree()["a"], "old");
    assert_eq!(ground.journals_left(), 0);
}

#[test]
fn a_folder_that_vanishes_is_an_error() {
    let ground = Ground::new();
    ground.put("d/a", "old");
    let steps = [ground.replace("d/a", "new")];
    fs::remove_dir_all(ground.place.path().join("d")).unwrap();
    let error = ground.folder.commit(&steps, &ground.journals).unwrap_err().to_string();
    assert_eq!(error, "nothing was written: d/a is gone");
}
