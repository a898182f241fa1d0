//! Places in files as people read them: relative paths, and the source around a line.

use std::path::Path;
use std::time::SystemTime;

/// Lines before and after the one that is shown.
const AROUND: usize = 2;
/// Characters of a line.
const WIDE: usize = 160;
/// A source file over this is not shown.
const MOST_BYTES: u64 = 4 << 20;

/// Returns a path relative to the work folder where it lies in it, links resolved.
pub(super) fn shown(top: &Path, path: &str) -> String {
    let given = Path::new(path);
    if let Ok(inside) = given.strip_prefix(top) {
        return inside.display().to_string();
    }
    let real = given.canonicalize().ok();
    let inside = real.as_deref().and_then(|real| real.strip_prefix(top).ok());
    inside.map_or_else(|| path.to_owned(), |inside| inside.display().to_string())
}

/// Returns the lines around one, that one marked. Says so where the file has changed
/// since the session began: its lines are then not the program's.
pub(super) fn around(path: &str, line: i64, begun: SystemTime) -> Option<String> {
    let meta = std::fs::metadata(path).ok().filter(|meta| meta.len() <= MOST_BYTES)?;
    let text = String::from_utf8_lossy(&std::fs::read(path).ok()?).into_owned();
    let at = usize::try_from(line).ok()?.checked_sub(1)?;
    text.lines().nth(at)?;
    let first = at.saturating_sub(AROUND);
    let rows = text.lines().enumerate().skip(first).take(at + AROUND + 1 - first);
    let mut shown: Vec<String> = rows
        .map(|(index, row)| {
            let mark = if index == at { '>' } else { ' ' };
            format!("{mark} {:>4} | {}", index + 1, clipped(row, WIDE))
        })
        .collect();
    if meta.modified().is_ok_and(|changed| changed > begun) {
        shown.push("(the file was changed since the program was started)".to_owned());
    }
    Some(shown.join("\n"))
}

/// Returns the beginning of a text, on one line, and how long it is if that is not all.
pub(super) fn clipped(text: &str, most: usize) -> String {
    let flat = text.replace('\n', "\\n");
    match flat.char_indices().nth(most) {
        Some((end, _)) => {
            let (head, _) = flat.split_at(end);
            format!("{head}… ({} characters)", flat.chars().count())
        }
        None => flat,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_line_is_marked_and_a_changed_file_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.py");
        std::fs::write(&path, "a\nb\nc\nd\ne\nf\n").unwrap();
        let path = path.to_str().unwrap();
        let later = SystemTime::now() + std::time::Duration::from_secs(60);
        let text = around(path, 2, later).unwrap();
        assert_eq!(text, "     1 | a\n>    2 | b\n     3 | c\n     4 | d");
        assert!(around(path, 6, SystemTime::UNIX_EPOCH).unwrap().contains("was changed"));
        assert_eq!(around(path, 7, later), None);
        assert_eq!(around(path, 0, later), None);
    }

    #[test]
    fn long_values_say_how_long_they_are() {
        assert_eq!(clipped("ab\nc", 9), "ab\\nc");
        assert_eq!(clipped("äbcdef", 3), "äbc… (6 characters)");
    }
}
