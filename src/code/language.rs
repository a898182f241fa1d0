//! The languages that have a grammar here, by the ids under which they are asked for.

use std::path::Path;

use ast_grep_language::{Language as _, SupportLang};

/// Why a language is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no grammar for `{given}`{near}; there are: {known}")]
pub(crate) struct UnknownLanguage {
    given: String,
    near: String,
    known: String,
}

/// Returns the id of a language.
pub(crate) fn id(language: SupportLang) -> String {
    language.to_string().to_lowercase()
}

/// Lists every id.
pub(crate) fn ids() -> String {
    let ids: Vec<_> = SupportLang::all_langs().iter().map(|language| id(*language)).collect();
    ids.join(", ")
}

/// Finds a language by its id or one of its usual names.
pub(crate) fn by_name(given: &str) -> Result<SupportLang, UnknownLanguage> {
    let name = given.trim().to_lowercase();
    let other = match name.as_str() {
        "shell" | "sh" | "zsh" => "bash",
        "c_sharp" | "c-sharp" | "c#" => "csharp",
        "terraform" => "hcl",
        "typescriptreact" => "tsx",
        "javascriptreact" => "javascript",
        "python3" => "python",
        "objective-c" | "objc" => "",
        other => other,
    };
    other.parse().map_err(|_| {
        let all = SupportLang::all_langs().iter().map(|language| id(*language));
        let near = all
            .map(|id| (strsim::damerau_levenshtein(&id, &name), id))
            .min()
            .filter(|(distance, _)| *distance <= 2);
        UnknownLanguage {
            given: given.to_owned(),
            near: near.map_or_else(String::new, |(_, id)| format!(", did you mean `{id}`?")),
            known: ids(),
        }
    })
}

/// Finds the language of a file by its name.
pub(crate) fn of_file(path: &Path) -> Option<SupportLang> {
    SupportLang::from_path(path).or_else(|| {
        // Some systems write their endings in capitals.
        let lower = path.file_name()?.to_str()?.to_lowercase();
        SupportLang::from_path(&lower)
    })
}

/// Says whether a search in a language looks at a file.
pub(crate) fn takes(language: SupportLang, path: &Path) -> bool {
    of_file(path) == Some(language)
        // A header is as often C++ as C, and its name does not say.
        || (language == SupportLang::Cpp && path.extension().is_some_and(|end| end == "h"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn languages_go_by_id_alias_and_file() {
        for (name, expected) in [
            ("dart", SupportLang::Dart),
            ("Rust", SupportLang::Rust),
            ("rs", SupportLang::Rust),
            ("c++", SupportLang::Cpp),
            ("shell", SupportLang::Bash),
            ("C#", SupportLang::CSharp),
        ] {
            assert_eq!(by_name(name).unwrap(), expected, "{name}");
        }
        for language in SupportLang::all_langs() {
            assert_eq!(by_name(&id(*language)).unwrap(), *language);
        }
        let unknown = by_name("pyton").unwrap_err().to_string();
        assert!(unknown.contains("did you mean `python`?"), "{unknown}");
        assert!(by_name("cobol").unwrap_err().to_string().contains("dart"));
        assert_eq!(of_file(Path::new("a/B.PY")), Some(SupportLang::Python));
        assert_eq!(of_file(Path::new("Makefile")), None);
        assert!(takes(SupportLang::Cpp, Path::new("a.h")));
        assert!(takes(SupportLang::C, Path::new("a.h")));
        assert!(!takes(SupportLang::C, Path::new("a.cc")));
    }
}
