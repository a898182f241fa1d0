//! Names of functions as people write them.
//!
//! rustc's older mangling, which its standard library still uses, leaves a hash behind
//! the path and writes signs as `$LT$`, which lldb passes on as they are.

use std::borrow::Cow;

/// Returns a function's name without what rustc's mangling put into it.
pub(super) fn function(name: &str) -> Cow<'_, str> {
    let stem = match name.rsplit_once("::h") {
        Some((stem, hash)) if hash.len() == 16 && hash.chars().all(|c| c.is_ascii_hexdigit()) => {
            stem
        }
        _ => name,
    };
    if !stem.contains('$') {
        return Cow::Borrowed(stem);
    }
    let parts = stem.split("::").map(part);
    Cow::Owned(parts.collect::<Vec<_>>().join("::"))
}

/// Reads one part of a path. One that is not mangled stays as it is.
fn part(part: &str) -> Cow<'_, str> {
    let mut name = String::new();
    // A part that begins with a sign has a `_` before it, as a name cannot begin so.
    let mut rest = part.strip_prefix('_').filter(|rest| rest.starts_with('$')).unwrap_or(part);
    while let Some((before, from)) = rest.split_once('$') {
        let Some((sign, after)) = from.split_once('$') else { return Cow::Borrowed(part) };
        let Some(sign) = character(sign) else { return Cow::Borrowed(part) };
        name.push_str(&before.replace("..", "::"));
        name.push(sign);
        rest = after;
    }
    name.push_str(&rest.replace("..", "::"));
    Cow::Owned(name)
}

fn character(sign: &str) -> Option<char> {
    match sign {
        "SP" => Some('@'),
        "BP" => Some('*'),
        "RF" => Some('&'),
        "LT" => Some('<'),
        "GT" => Some('>'),
        "LP" => Some('('),
        "RP" => Some(')'),
        "C" => Some(','),
        _ => u32::from_str_radix(sign.strip_prefix('u')?, 16).ok().and_then(char::from_u32),
    }
}

#[cfg(test)]
mod tests {
    use super::function;

    #[test]
    fn names_are_told_as_they_are_written() {
        for (given, told) in [
            ("main", "main"),
            ("shapes::main::h0123456789abcdef", "shapes::main"),
            ("a::helper", "a::helper"),
            (
                "_$LT$f64$u20$as$u20$core..iter..Sum$GT$::sum::_$u7b$$u7b$closure$u7d$$u7d$",
                "<f64 as core::iter::Sum>::sum::{{closure}}",
            ),
            ("_$LT$$RF$T$u20$as$u20$X$LT$A$C$B$GT$$GT$::f", "<&T as X<A,B>>::f"),
            // Other languages have the sign too.
            ("$scope.run", "$scope.run"),
            ("Outer$Inner$run", "Outer$Inner$run"),
            ("price$", "price$"),
        ] {
            assert_eq!(function(given), told);
        }
    }
}
