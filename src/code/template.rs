//! What a rewrite puts in the place of a match: text, with metavariables in it.

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Text that is taken as it stands.
    Text(String),
    /// A metavariable: its name, and whether it is written as a list.
    Variable { name: String, many: bool },
}

/// A template in pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template(pub(crate) Vec<Piece>);

/// Why a template cannot be used with a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadTemplate {
    /// The pattern has no such metavariable.
    #[error(
        "`rewrite` uses {name}, which the pattern does not bind ({bound}); if the text {name} \
         itself is meant, write \\{name}"
    )]
    Unbound { name: String, bound: String },
    /// One for the other.
    #[error("`rewrite` uses {used}, but the pattern binds it as {bound}: write {bound}")]
    OtherKind { used: String, bound: String },
}

impl Template {
    /// Reads a template. `\$` stands for a dollar that begins no metavariable.
    pub(crate) fn read(source: &str) -> Self {
        let (mut pieces, mut text, mut at) = (Vec::new(), String::new(), 0);
        for (place, name) in mentions(source) {
            text.push_str(&source.get(at..place.start).unwrap_or_default().replace("\\$", "$"));
            at = place.end;
            if !text.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut text)));
            }
            let many = source.get(place).is_some_and(|used| used.starts_with("$$$"));
            pieces.push(Piece::Variable { name, many });
        }
        text.push_str(&source.get(at..).unwrap_or_default().replace("\\$", "$"));
        if !text.is_empty() {
            pieces.push(Piece::Text(text));
        }
        Self(pieces)
    }

    /// Compares it with what a pattern binds.
    pub(crate) fn check(&self, pattern: &str) -> Result<(), BadTemplate> {
        let bound: Vec<(String, bool)> = mentions(pattern)
            .map(|(place, name)| (name, pattern.get(place).is_some_and(|at| at.starts_with("$$$"))))
            .filter(|(name, _)| !name.starts_with('_') && !name.is_empty())
            .collect();
        for piece in &self.0 {
            let Piece::Variable { name, many } = piece else { continue };
            match bound.iter().find(|(known, _)| known == name) {
                Some((_, as_list)) if as_list == many => {}
                Some((_, as_list)) => {
                    return Err(BadTemplate::OtherKind {
                        used: written(name, *many),
                        bound: written(name, *as_list),
                    });
                }
                None => {
                    let mut names: Vec<_> =
                        bound.iter().map(|(name, many)| written(name, *many)).collect();
                    names.dedup();
                    let bound = match names.as_slice() {
                        [] => "it binds none".to_owned(),
                        names => format!("it binds {}", names.join(", ")),
                    };
                    return Err(BadTemplate::Unbound { name: written(name, *many), bound });
                }
            }
        }
        Ok(())
    }
}

/// Writes a metavariable as it stands in patterns.
pub(crate) fn written(name: &str, many: bool) -> String {
    format!("{}{name}", if many { "$$$" } else { "$" })
}

/// Returns where metavariables stand in a text, and their names (empty for `$$$`).
pub(crate) fn mentions(
    source: &str,
) -> impl Iterator<Item = (std::ops::Range<usize>, String)> + '_ {
    let bytes = source.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr(b'$', rest)) {
            let first = at + found;
            let rest = bytes.get(first..).unwrap_or_default();
            let dollars = rest.iter().take_while(|byte| **byte == b'$').count();
            let name = rest.get(dollars..).unwrap_or_default();
            let begins =
                name.first().is_some_and(|byte| byte.is_ascii_uppercase() || *byte == b'_');
            let length = match begins {
                true => name.iter().take_while(|byte| is_name(**byte)).count(),
                false => 0,
            };
            let escaped = first > 0 && bytes.get(first - 1) == Some(&b'\\');
            at = first + dollars + length;
            // More than three are text before the last three.
            let start = first + dollars.saturating_sub(3);
            if !escaped && (length > 0 || dollars == 3) {
                let name = source.get(first + dollars..at).unwrap_or_default();
                return Some((start..at, name.to_owned()));
            }
        }
        None
    })
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte == b'_' || byte.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_template_is_read_in_pieces() {
        let variable = |name: &str, many| Piece::Variable { name: name.to_owned(), many };
        let text = |text: &str| Piece::Text(text.to_owned());
        for (source, expected) in [
            ("bar($A)", vec![text("bar("), variable("A", false), text(")")]),
            ("f($$$ARGS)", vec![text("f("), variable("ARGS", true), text(")")]),
            ("echo \\$HOME", vec![text("echo $HOME")]),
            ("`${x} $1 $a $`", vec![text("`${x} $1 $a $`")]),
            ("", vec![]),
            ("$A_1$B", vec![variable("A_1", false), variable("B", false)]),
        ] {
            assert_eq!(Template::read(source).0, expected, "{source}");
        }
    }

    #[test]
    fn what_the_pattern_does_not_bind_is_refused() {
        let refused = |pattern: &str, rewrite: &str| {
            Template::read(rewrite).check(pattern).unwrap_err().to_string()
        };
        assert_eq!(
            refused("foo($A, $$$B)", "bar($C)"),
            "`rewrite` uses $C, which the pattern does not bind (it binds $A, $$$B); if the text \
             $C itself is meant, write \\$C"
        );
        assert!(refused("foo()", "$_").contains("it binds none"));
        assert_eq!(
            refused("foo($$$A)", "bar($A)"),
            "`rewrite` uses $A, but the pattern binds it as $$$A: write $$$A"
        );
        assert!(Template::read("printf \"%s\" $A \\$HOME").check("echo $A").is_ok());
    }
}
