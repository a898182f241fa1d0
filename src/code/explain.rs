//! Why a pattern finds nothing: what people write that is no pattern, and what the
//! texts do hold.

use std::sync::LazyLock;

/// Habits from elsewhere: a test of the pattern, and what to write.
type Habit = (fn(&str) -> bool, &'static str);

static HABITS: LazyLock<Vec<Habit>> = LazyLock::new(|| {
    vec![
        (
            |source| {
                [".*", ".+", "\\(", "\\)", "\\s", "\\w", "\\d", "[^"]
                    .iter()
                    .any(|sign| source.contains(sign))
            },
            "this looks like a regular expression: a pattern is code, with $NAME for one node and \
             $$$NAME for several; grep takes regular expressions",
        ),
        (
            |source| dollar_before(source, |first| first.is_ascii_lowercase()),
            "metavariables are written in capitals: $name is text, $NAME is any node",
        ),
        (glued, "a metavariable stands for a whole node: foo$BAR and $BAR-foo are text"),
        (
            quoted,
            "a metavariable inside quotes is text: for any string write $NAME without the quotes",
        ),
        (|source| source.contains("..."), "`...` is text: for any number of nodes write $$$NAME"),
    ]
});

fn dollar_before(source: &str, test: impl Fn(char) -> bool) -> bool {
    source.split('$').skip(1).any(|rest| rest.chars().next().is_some_and(&test))
}

fn glued(source: &str) -> bool {
    let word = |letter: char| letter.is_alphanumeric() || letter == '_';
    super::template::mentions(source).any(|(place, name)| {
        let before = source.get(..place.start).and_then(|text| text.chars().next_back());
        let after = source.get(place.end..).and_then(|text| text.chars().next());
        !name.is_empty() && (before.is_some_and(word) || after.is_some_and(word))
    })
}

fn quoted(source: &str) -> bool {
    let inside = |quote: char| {
        source.split(quote).skip(1).step_by(2).any(|text| {
            let mut mentions = super::template::mentions(text);
            mentions.any(|(place, _)| place.len() < text.len())
        })
    };
    inside('"') || inside('\'')
}

/// Returns what to tell somebody whose pattern is written by another tool's rules.
pub(crate) fn habits(source: &str) -> Option<&'static str> {
    HABITS.iter().find(|(test, _)| test(source)).map(|(_, hint)| *hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn habits_of_other_tools_are_told() {
        for (source, word) in [
            ("foo\\(.*\\)", "regular expression"),
            ("foo($name)", "capitals"),
            ("get$NAME()", "whole node"),
            ("print(\"hello $NAME\")", "inside quotes"),
            ("foo(...)", "`...`"),
        ] {
            assert!(habits(source).is_some_and(|hint| hint.contains(word)), "{source}");
        }
        for source in ["foo($A, $$$B)", "\"$X\"", "a.b($_)", "`${x}`"] {
            assert_eq!(habits(source), None, "{source}");
        }
    }
}
