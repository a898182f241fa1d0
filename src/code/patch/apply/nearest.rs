//! Where a chunk that stands nowhere was probably meant to be.

/// Says where most of a chunk's lines stand, and where it first differs.
pub(super) fn nearest(text: &[&[u8]], old: &[&[u8]]) -> String {
    let agrees = |at: usize| {
        let lines = text.iter().skip(at).zip(old);
        lines.filter(|(line, wanted)| line.trim_ascii() == wanted.trim_ascii()).count()
    };
    // The first of equal ones.
    let best = (0..text.len())
        .map(|at| (agrees(at), at))
        .reduce(|best, next| if next.0 > best.0 { next } else { best });
    let Some((1.., at)) = best else {
        let first = old.iter().find(|line| !line.trim_ascii().is_empty()).copied();
        return format!(
            "no line of it is in the file, its first is `{}`",
            visible(first.unwrap_or_default())
        );
    };
    let lines = (at..).zip(old);
    let differs = lines
        .map(|(here, wanted)| (here, text.get(here).copied(), *wanted))
        .find(|(_, line, wanted)| *line != Some(*wanted));
    match differs {
        Some((here, Some(line), wanted)) => format!(
            "the nearest place is line {}; at line {} the file has `{}` and the patch `{}`",
            at + 1,
            here + 1,
            visible(line),
            visible(wanted)
        ),
        _ => format!("the nearest place is line {}, where the file ends too early", at + 1),
    }
}

/// A line with its white space to be seen.
fn visible(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let code = text.trim_start();
    let lead = text.get(..text.len() - code.len()).unwrap_or_default();
    let lead: String = lead.chars().map(|letter| if letter == '\t' { '→' } else { '·' }).collect();
    let bare = code.trim_end();
    let tail = code.chars().count() - bare.chars().count();
    crate::code::diff::clipped(&format!("{lead}{bare}{}", "·".repeat(tail)))
}
