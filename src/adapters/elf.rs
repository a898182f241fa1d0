//! What must be known of a compiled program: that it is one, and that it can be debugged.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Names of sections, all together, at most; a debug build has some 600 bytes.
const MOST_NAMES: u64 = 1 << 20;

/// Is this a file in the executable format of this system.
pub(crate) fn is_elf(path: &Path) -> bool {
    let mut magic = [0; 4];
    File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok()
        && magic == *b"\x7fELF"
}

/// Does a program carry debug information of its own, or say where it is. Where that
/// cannot be told it counts as yes, since it is only for a warning.
pub(crate) fn can_be_debugged(path: &Path) -> bool {
    match section_names(path) {
        Ok(names) => [&b".debug_info"[..], b".gnu_debuglink", b".zdebug_info"]
            .iter()
            .any(|wanted| names.windows(wanted.len()).any(|window| window == *wanted)),
        Err(_) => true,
    }
}

/// Reads the table of the sections' names of a 64-bit file.
fn section_names(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut header = [0; 64];
    file.read_exact(&mut header)?;
    let other = || io::Error::other("not a 64-bit little-endian program");
    if header.get(4) != Some(&2) || header.get(5) != Some(&1) {
        return Err(other());
    }
    let sections = number(&header, 0x28, 8).ok_or_else(other)?;
    let size = number(&header, 0x3a, 2).ok_or_else(other)?;
    let names = number(&header, 0x3e, 2).ok_or_else(other)?;
    let mut section = [0; 64];
    file.seek(SeekFrom::Start(sections + size * names))?;
    file.read_exact(&mut section)?;
    let at = number(&section, 0x18, 8).ok_or_else(other)?;
    let length = number(&section, 0x20, 8).filter(|length| *length <= MOST_NAMES);
    file.seek(SeekFrom::Start(at))?;
    let mut found = Vec::new();
    file.take(length.ok_or_else(other)?).read_to_end(&mut found)?;
    Ok(found)
}

fn number(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + width)?;
    Some(bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_program_is_told_from_a_script() {
        let this = std::env::current_exe().unwrap();
        assert!(is_elf(&this) && can_be_debugged(&this), "a test is built with line tables");
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("a.sh");
        std::fs::write(&script, "#!/bin/sh\n").unwrap();
        assert!(!is_elf(&script) && !is_elf(folder.path()));
        assert!(can_be_debugged(&script), "what cannot be told is not warned of");
    }
}
