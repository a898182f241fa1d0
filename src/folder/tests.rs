//! Tests of the confinement: where paths lead, what is refused, what a race can do.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// A folder `work` with a secret beside it.
fn place() -> (tempfile::TempDir, Folder) {
    let place = tempfile::tempdir().unwrap();
    let work = place.path().join("work");
    std::fs::create_dir_all(work.join("src/deep")).unwrap();
    std::fs::write(work.join("src/a.txt"), "a\n").unwrap();
    std::fs::create_dir(place.path().join("out")).unwrap();
    std::fs::write(place.path().join("out/secret"), "secret\n").unwrap();
    let folder = Folder::open(&work).unwrap();
    (place, folder)
}

fn write(folder: &Folder, given: &str, content: &str) -> Result<Replaced, FolderError> {
    let file = folder.locate(given)?;
    let expected = match folder.kind(&file) {
        Some(_) => Some(folder.hash(&file)?),
        None => None,
    };
    folder.replace(&file, content.as_bytes(), expected)
}

#[test]
fn paths_lead_where_the_kernel_says() {
    let (place, folder) = place();
    let root = folder.root().to_owned();
    symlink("src", root.join("link")).unwrap();
    symlink(root.join("src/a.txt"), root.join("absolute")).unwrap();
    symlink("new.txt", root.join("dangling")).unwrap();
    symlink("../out", root.join("escape")).unwrap();
    symlink("../out/made", root.join("dangling-out")).unwrap();
    symlink("turn", root.join("round")).unwrap();
    symlink("round", root.join("turn")).unwrap();
    symlink("/proc/self/root", root.join("magic")).unwrap();
    let absolute = root.join("src/a.txt");
    for (given, expected) in [
        ("src/a.txt", Ok("src/a.txt")),
        (absolute.to_str().unwrap(), Ok("src/a.txt")),
        ("./src/../src//a.txt", Ok("src/a.txt")),
        ("../work/src/a.txt", Ok("src/a.txt")),
        ("link/a.txt", Ok("src/a.txt")),
        ("link/../src/deep/new", Ok("src/deep/new")),
        ("absolute", Ok("src/a.txt")),
        ("dangling", Ok("new.txt")),
        ("not/yet/there", Ok("not/yet/there")),
        (".", Ok("")),
        ("../out/secret", Err("outside the work folder")),
        ("src/../../out/secret", Err("outside the work folder")),
        ("/etc/passwd", Err("leads to /etc/passwd, outside")),
        ("escape/secret", Err("out/secret, outside")),
        ("escape/new", Err("out/new, outside")),
        ("dangling-out", Err("out/made, outside")),
        ("link/../../out/secret", Err("outside the work folder")),
        ("magic/etc/passwd", Err("outside the work folder")),
        ("round", Err("in a circle")),
        ("round/x", Err("in a circle")),
        ("src/a.txt/x", Err("a name on the way is a file")),
        ("missing/../src/a.txt", Err("no such file")),
        ("", Err("is not a path")),
        ("a\0b", Err("`a\\u{0}b` is not a path")),
        (&"x".repeat(300), Err("cannot be looked up")),
    ] {
        match (folder.locate(given), expected) {
            (Ok(inside), Ok(relative)) => assert_eq!(inside.relative(), Path::new(relative)),
            (Err(error), Err(message)) => {
                assert!(error.to_string().contains(message), "{given}: {error}");
            }
            (got, _) => panic!("{given}: {got:?}"),
        }
    }
    drop(place);
}

#[test]
fn only_regular_files_are_opened_and_nothing_blocks() {
    let (_place, folder) = place();
    let fifo = folder.root().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, Mode::from_raw_mode(0o600)).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(folder.root().join("socket")).unwrap();
    for (given, message) in [
        ("fifo", "fifo is a named pipe"),
        ("socket", "socket is a socket"),
        ("src", "src is a folder: list it with glob"),
        (".", ". is a folder"),
        ("nothing", "nothing: no such file or folder"),
    ] {
        let inside = folder.locate(given).unwrap();
        let error = folder.read(&inside, 10).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    let error = write(&folder, "fifo", "x").unwrap_err().to_string();
    assert!(error.contains("named pipe"), "{error}");
}

#[test]
fn a_link_that_appears_between_look_and_open_is_refused() {
    let (place, folder) = place();
    let file = folder.locate("src/secret").unwrap();
    std::fs::rename(folder.root().join("src"), folder.root().join("was")).unwrap();
    symlink(place.path().join("out"), folder.root().join("src")).unwrap();
    assert!(matches!(folder.read(&file, 10), Err(FolderError::Loop { .. })));
    assert!(matches!(folder.replace(&file, b"x", None), Err(FolderError::Loop { .. })));
    assert_eq!(std::fs::read_to_string(place.path().join("out/secret")).unwrap(), "secret\n");
}

#[test]
fn nothing_is_read_or_written_outside_while_a_folder_is_swapped_for_a_link() {
    let (place, folder) = place();
    let (root, over) = (folder.root().to_owned(), AtomicBool::new(false));
    symlink(place.path().join("out"), root.join("trap")).unwrap();
    std::fs::write(root.join("src/secret"), "ours\n").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            while !over.load(Ordering::Relaxed) {
                let (one, other) = (root.join("src"), root.join("trap"));
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let (mut read, mut written) = (0, 0);
        for round in 0..2_000 {
            if let Ok(file) = folder.locate("src/secret")
                && let Ok(content) = folder.read(&file, 100)
            {
                assert!(!content.starts_with(b"secret"), "read outside in round {round}");
                read += 1;
            }
            written += u32::from(write(&folder, "src/secret", &format!("{round}\n")).is_ok());
            written += u32::from(write(&folder, &format!("src/new{round}"), "x").is_ok());
        }
        over.store(true, Ordering::Relaxed);
        assert!(read > 0 && written > 0, "the race was too one-sided to tell anything");
    });
    let outside: Vec<_> = std::fs::read_dir(place.path().join("out"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(outside, ["secret"]);
    assert_eq!(std::fs::read_to_string(place.path().join("out/secret")).unwrap(), "secret\n");
}

#[test]
fn a_replaced_file_keeps_what_it_has_beside_its_bytes() {
    let (_place, folder) = place();
    let path = folder.root().join("src/a.txt");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o6751)).unwrap();
    let attribute =
        rustix::fs::setxattr(&path, "user.mark", b"kept", rustix::fs::XattrFlags::empty());
    symlink("src/a.txt", folder.root().join("link")).unwrap();
    assert_eq!(write(&folder, "link", "new\n").unwrap().lost, Vec::<&str>::new());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "new\n");
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o6751);
    assert!(folder.root().join("link").is_symlink());
    match attribute {
        Ok(()) => {
            let mut value = [0; 4];
            rustix::fs::getxattr(&path, "user.mark", &mut value).unwrap();
            assert_eq!(&value, b"kept");
        }
        Err(error) => eprintln!("extended attributes not tested: {error}"),
    }
    std::fs::hard_link(&path, folder.root().join("second")).unwrap();
    let lost = write(&folder, "src/a.txt", "newer\n").unwrap().lost;
    assert_eq!(lost, ["its other hard links, which keep the old content"]);
    assert_eq!(std::fs::read_to_string(folder.root().join("second")).unwrap(), "new\n");
}

#[test]
fn ownership_is_kept_where_it_can_be() {
    let (_place, folder) = place();
    let path = folder.root().join("src/a.txt");
    if let Err(error) = std::os::unix::fs::chown(&path, Some(65_534), Some(65_534)) {
        eprintln!("ownership not tested: {error}");
        return;
    }
    write(&folder, "src/a.txt", "new\n").unwrap();
    let meta = std::fs::metadata(&path).unwrap();
    assert_eq!((meta.uid(), meta.gid()), (65_534, 65_534));
}

#[test]
fn what_is_expected_is_compared() {
    let (_place, folder) = place();
    let file = folder.locate("src/a.txt").unwrap();
    let stale = folder.replace(&file, b"x", Some(Hash::of(b"other"))).unwrap_err();
    assert!(matches!(stale, FolderError::Changed { .. }), "{stale}");
    let there = folder.replace(&file, b"x", None).unwrap_err();
    assert!(matches!(there, FolderError::Appeared { .. }), "{there}");
    let gone = folder.locate("src/gone").unwrap();
    let gone = folder.replace(&gone, b"x", Some(Hash::of(b""))).unwrap_err();
    assert!(matches!(gone, FolderError::Missing { .. }), "{gone}");
    assert_eq!(folder.read(&file, 10).unwrap(), b"a\n");
    assert_eq!(siblings(&folder), ["a.txt", "deep"]);
}

#[test]
fn a_write_protected_file_is_left_alone_even_by_root() {
    let (_place, folder) = place();
    let path = folder.root().join("src/a.txt");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
    let error = write(&folder, "src/a.txt", "x").unwrap_err().to_string();
    assert!(error.contains("write-protected (mode 0444)"), "{error}");
}

#[test]
fn without_permission_nothing_changes_and_the_error_says_so() {
    let (place, folder) = place();
    let src = folder.root().join("src");
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(place.path(), 0o755);
    mode(&src, 0o555);
    std::fs::write(src.join("closed"), "x").unwrap();
    mode(&src.join("closed"), 0o200);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // For this thread alone: root may do everything.
            nix::unistd::setfsuid(nix::unistd::Uid::from_raw(65_534));
            for (given, doing) in [("a.txt", "written"), ("new", "written"), ("closed", "opened")] {
                let error = write(&folder, &format!("src/{given}"), "x").unwrap_err().to_string();
                let expected = format!("src/{given}: cannot be {doing}: permission denied");
                assert!(error.contains(&expected), "{error}");
            }
        });
    });
    assert_eq!(std::fs::read_to_string(src.join("a.txt")).unwrap(), "a\n");
    assert_eq!(siblings(&folder), ["a.txt", "closed", "deep"]);
    mode(&src, 0o755);
}

#[test]
fn on_a_full_disk_nothing_is_lost() {
    let place = tempfile::tempdir().unwrap();
    let target = place.path().join("small");
    std::fs::create_dir(&target).unwrap();
    let mounted = nix::mount::mount(
        Some("tmpfs"),
        &target,
        Some("tmpfs"),
        nix::mount::MsFlags::empty(),
        Some("size=64k"),
    );
    if let Err(error) = mounted {
        eprintln!("a full disk not tested: no small file system can be mounted: {error}");
        return;
    }
    let folder = Folder::open(&target).unwrap();
    let outcome = std::panic::catch_unwind(|| {
        write(&folder, "kept.txt", "old\n").unwrap();
        for given in ["kept.txt", "new.txt"] {
            let error = write(&folder, given, &"x".repeat(200_000)).unwrap_err().to_string();
            let expected = format!("{given}: cannot be written: no space left");
            assert!(error.contains(&expected), "{error}");
        }
        let names: Vec<_> = std::fs::read_dir(&target)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(names, ["kept.txt"]);
        assert_eq!(std::fs::read_to_string(target.join("kept.txt")).unwrap(), "old\n");
    });
    drop(folder);
    nix::mount::umount2(&target, nix::mount::MntFlags::MNT_DETACH).unwrap();
    outcome.unwrap();
}

#[test]
fn only_named_files_outside_can_be_read() {
    let (place, folder) = place();
    let secret = place.path().canonicalize().unwrap().join("out/secret");
    assert!(folder.allowed_file(&secret).is_none());
    folder.allow_outside(&secret);
    assert!(folder.allowed_file(&secret).unwrap().is_ok());
    assert!(folder.allowed_file(&secret.with_file_name("other")).is_none());
}

fn siblings(folder: &Folder) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder.root().join("src"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

use super::replace::Replaced;
