//! What an idle daemon holds of memory.
//!
//! The start runs the command line's grammar, the configuration's reader and the
//! probe of the launcher, and never again; the kernel maps 64 KiB around every page
//! of code that they touch. These pages are clean: the file has them, and whatever
//! is needed again comes back by a minor fault.

use std::ffi::c_void;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{NonNull, with_exposed_provenance_mut};

use nix::sys::mman::{MmapAdvise, madvise};

/// Lets go of the code that was mapped so far. Where that is not possible, nothing
/// happens.
pub(crate) fn let_code_go() {
    let maps = std::fs::read("/proc/self/maps").unwrap_or_default();
    let Ok(program) = std::fs::read_link("/proc/self/exe") else { return };
    let code = maps.split(|byte| *byte == b'\n').find_map(|line| code(line, &program));
    if let Some((start, length)) = code {
        let Some(start) = NonNull::new(with_exposed_provenance_mut::<c_void>(start)) else {
            return;
        };
        // SAFETY: the range is a mapping of our program's file that nobody can write
        // to, so its pages hold what the file holds and are read from it again.
        let _ = unsafe { madvise(start, length, MmapAdvise::MADV_DONTNEED) };
    }
}

/// Returns where a line of the map says that the program's code is, and its length.
fn code(line: &[u8], program: &Path) -> Option<(usize, usize)> {
    let text = line.strip_suffix(program.as_os_str().as_bytes())?;
    let mut fields = std::str::from_utf8(text).ok()?.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    if fields.next()? != "r-xp" {
        return None;
    }
    let at = |text| usize::from_str_radix(text, 16).ok();
    let (start, end) = (at(start)?, at(end)?);
    Some((start, end.checked_sub(start)?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_the_code_of_the_program_is_found() {
        let program = Path::new("/usr/bin/x y");
        let line = |line: &str| code(line.as_bytes(), program);
        let found = line("1000-3000 r-xp 00002000 fe:00 6081212      /usr/bin/x y").unwrap();
        assert_eq!(found, (0x1000, 0x2000));
        assert_eq!(line("1000-3000 r--p 00002000 fe:00 6081212      /usr/bin/x y"), None);
        assert_eq!(line("1000-3000 rw-p 00002000 fe:00 6081212      /usr/bin/x y"), None);
        assert_eq!(line("1000-3000 r-xp 00002000 fe:00 6081212      /usr/lib/libc.so"), None);
        assert_eq!(line("1000-3000 rw-p 00000000 00:00 0"), None);
        assert_eq!(line(""), None);
    }

    #[test]
    fn what_was_let_go_still_runs() {
        let_code_go();
        assert!(code(b"", Path::new("/x")).is_none());
    }
}
