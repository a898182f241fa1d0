//! Finds the piece of a line that a call names. Pure.
//!
//! A model that is asked for a column guesses, and a wrong guess is an answer
//! about something else. So it names a piece of the line instead, and a piece
//! that fits more than one place is an error, never a choice. Whole identifiers
//! go before parts: `x` in `max(x)` is the argument.

use std::ops::Range;

/// How much of a line an error shows, in characters.
const SHOWN: usize = 160;
/// How many places an error lists.
const LISTED: usize = 10;

/// Why a piece of a line could not be told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SymbolError {
    /// It is empty.
    #[error("`symbol` is empty: give a piece of line {line}, which is `{text}`")]
    Empty {
        /// The line's number.
        line: usize,
        /// The line.
        text: String,
    },
    /// It does not stand there.
    #[error("`{symbol}` is not on line {line}, which is `{text}`")]
    NotOnLine {
        /// What was looked for.
        symbol: String,
        /// The line's number.
        line: usize,
        /// The line.
        text: String,
    },
    /// It stands there more than once.
    #[error(
        "`{symbol}` stands {} times on line {line}: {}; say which one with `occurrence` (1 to {})",
        .places.len(), listed(.places), .places.len()
    )]
    Ambiguous {
        /// What was looked for.
        symbol: String,
        /// The line's number.
        line: usize,
        /// Each place with its surroundings.
        places: Vec<String>,
    },
    /// It stands there less often.
    #[error(
        "there is no occurrence {wanted} of `{symbol}` on line {line}: {there}; the line is `{text}`"
    )]
    NoSuchOccurrence {
        /// What was looked for.
        symbol: String,
        /// The line's number.
        line: usize,
        /// Which one was wanted.
        wanted: usize,
        /// How many there are, in words.
        there: String,
        /// The line.
        text: String,
    },
}

fn listed(places: &[String]) -> String {
    let mut text = String::new();
    for (at, place) in places.iter().take(LISTED).enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        text.push_str(&format!("{comma}{} in `{place}`", at + 1));
    }
    if places.len() > LISTED {
        text.push_str(&format!(" and {} more", places.len() - LISTED));
    }
    text
}

/// Returns the bytes of `line` that `symbol` names; `number` is for the errors.
pub(crate) fn find(
    line: &str,
    number: usize,
    symbol: &str,
    occurrence: Option<usize>,
) -> Result<Range<usize>, SymbolError> {
    if symbol.trim().is_empty() {
        return Err(SymbolError::Empty { line: number, text: shown(line) });
    }
    let all: Vec<Range<usize>> =
        line.match_indices(symbol).map(|(at, found)| at..at + found.len()).collect();
    let whole: Vec<_> = all.iter().filter(|place| is_whole(line, place)).cloned().collect();
    let places = if whole.is_empty() { all } else { whole };
    let symbol = || symbol.to_owned();
    match (places.as_slice(), occurrence) {
        ([], _) => {
            Err(SymbolError::NotOnLine { symbol: symbol(), line: number, text: shown(line) })
        }
        ([only], None) => Ok(only.clone()),
        (_, None) => Err(SymbolError::Ambiguous {
            symbol: symbol(),
            line: number,
            places: places.iter().map(|place| surroundings(line, place)).collect(),
        }),
        (places, Some(wanted)) => {
            let place = wanted.checked_sub(1).and_then(|at| places.get(at));
            place.cloned().ok_or_else(|| SymbolError::NoSuchOccurrence {
                symbol: symbol(),
                line: number,
                wanted,
                there: match places.len() {
                    1 => "it stands there once".to_owned(),
                    count => format!("it stands there {count} times, counted from 1"),
                },
                text: shown(line),
            })
        }
    }
}

/// Returns the first identifier in a place: `.area` is about `area`.
pub(crate) fn identifier<'a>(line: &'a str, place: &Range<usize>) -> (usize, &'a str) {
    let text = line.get(place.clone()).unwrap_or_default();
    let skipped = text.find(is_part).unwrap_or(0);
    let start = place.start + skipped;
    let rest = line.get(start..).unwrap_or_default();
    let inside =
        line.get(..start).and_then(|before| before.chars().next_back()).is_some_and(is_part);
    let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
    // A part of an identifier is shown as the identifier that it is a part of.
    let begin = if inside {
        line.get(..start).map_or(start, |before| before.trim_end_matches(is_part).len())
    } else {
        start
    };
    (start, line.get(begin..start + end).unwrap_or_default())
}

/// Letters, digits and `_` of any language; `$` stands in identifiers of several.
fn is_part(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '$'
}

fn is_whole(line: &str, place: &Range<usize>) -> bool {
    let (before, after) = (line.get(..place.start), line.get(place.end..));
    let text = line.get(place.clone()).unwrap_or_default();
    let meets = |outer: Option<char>, inner: Option<char>| {
        outer.is_some_and(is_part) && inner.is_some_and(is_part)
    };
    !meets(before.and_then(|text| text.chars().next_back()), text.chars().next())
        && !meets(after.and_then(|text| text.chars().next()), text.chars().next_back())
}

fn surroundings(line: &str, place: &Range<usize>) -> String {
    const AROUND: usize = 12;
    let (before, after) = (line.get(..place.start), line.get(place.end..));
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    let from = before.char_indices().rev().take(AROUND).last().map_or(place.start, |(at, _)| at);
    let to = after.char_indices().nth(AROUND).map_or(line.len(), |(at, _)| place.end + at);
    line.get(from..to).unwrap_or_default().trim().to_owned()
}

/// Returns a line as an error or a result shows it.
pub(crate) fn shown(line: &str) -> String {
    let line = line.trim();
    match line.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
    use super::*;

    /// The wanted place is between `«` and `»` in the line.
    fn check(marked: &str, symbol: &str, occurrence: Option<usize>) {
        let line = marked.replace(['«', '»'], "");
        let start = marked.find('«').unwrap();
        let found = find(&line, 1, symbol, occurrence).unwrap();
        assert_eq!(found.start, start, "{symbol} in {marked}");
    }

    fn refused(line: &str, symbol: &str, occurrence: Option<usize>) -> String {
        find(line, 7, symbol, occurrence).unwrap_err().to_string()
    }

    #[test]
    fn whole_identifiers_go_before_parts() {
        check("max(«x»)", "x", None);
        check("«max»(x)", "max", None);
        check("self.«area» = areas", "area", None);
        check("«gre»et()", "gre", None);
        check("a.«b.c» + ab.c", "b.c", None);
        check("名 = «面積»(面積計)", "面積", None);
        check("x = «$y» + y", "$y", None);
    }

    #[test]
    fn several_whole_matches_are_an_error_that_lists_them() {
        assert_eq!(
            refused("    x = max(x, y)", "x", None),
            "`x` stands 2 times on line 7: 1 in `x = max(x, y)`, 2 in `x = max(x, y)`; say which one with `occurrence` (1 to 2)"
        );
        check("«x» = max(x, y)", "x", Some(1));
        check("x = max(«x», y)", "x", Some(2));
        assert_eq!(
            refused("x = x", "x", Some(3)),
            "there is no occurrence 3 of `x` on line 7: it stands there 2 times, counted from 1; the line is `x = x`"
        );
        assert!(refused("x = 1", "x", Some(0)).contains("it stands there once"));
    }

    #[test]
    fn several_parts_are_an_error_too() {
        assert!(refused("areas + area_of", "are", None).contains("stands 2 times"));
    }

    #[test]
    fn what_is_not_there_shows_the_line() {
        assert_eq!(
            refused("\tfoo(bar)  ", "baz", None),
            "`baz` is not on line 7, which is `foo(bar)`"
        );
        assert!(refused(&"y".repeat(500), "baz", None).len() < 500);
        assert!(refused("foo", "  ", None).starts_with("`symbol` is empty"));
    }

    #[test]
    fn the_identifier_that_is_asked_about_is_named() {
        let named = |line: &str, symbol: &str| {
            let place = find(line, 1, symbol, None).unwrap();
            let (at, name) = identifier(line, &place);
            (at, name.to_owned())
        };
        assert_eq!(named("a.area()", ".area"), (2, "area".to_owned()));
        assert_eq!(named("shape.area()", "shape.area"), (0, "shape".to_owned()));
        assert_eq!(named("greeting()", "eet"), (2, "greeting".to_owned()));
    }
}
