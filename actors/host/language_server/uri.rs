//! Paths as the URIs of the protocol, and back. Pure.
//!
//! Servers encode the same path differently, so documents are compared by path,
//! never by URI. `lsp_types::Uri` is not used: it cannot hold `file:///a/[id].ts`
//! nor what servers send unescaped, and its failure loses the whole message.

use std::path::{Path, PathBuf};

use url::Url;

/// Returns the URI of an absolute path.
#[must_use]
pub fn of_path(path: &Path) -> String {
    // Only a relative path fails, and a root's canonical paths are not.
    Url::from_file_path(path).map_or_else(|()| String::new(), String::from)
}

/// Returns the path of a `file` URI, or `None` for anything else.
#[must_use]
pub fn to_path(uri: &str) -> Option<PathBuf> {
    let url = Url::parse(uri).ok()?;
    (url.scheme() == "file").then(|| url.to_file_path().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_comes_back() {
        for path in ["/a/[id].ts", "/a b/ä.py", "/日本/😀.rs", "/x/{y}?#%.c", "/a/%41.py"] {
            assert_eq!(to_path(&of_path(Path::new(path))).as_deref(), Some(Path::new(path)));
        }
    }

    #[test]
    fn uris_are_read_as_servers_write_them() {
        let cases: &[(&str, Option<&str>)] = &[
            ("file:///a/%5Bid%5D.ts", Some("/a/[id].ts")),
            ("file:///a b.ts", Some("/a b.ts")),
            ("file:///日本.ts", Some("/日本.ts")),
            ("file://localhost/a.py", Some("/a.py")),
            ("file:///a/c%3A.py", Some("/a/c:.py")),
            ("untitled:Untitled-1", None),
            ("jdt://contents/rt.jar", None),
            ("not a uri", None),
            ("", None),
        ];
        for (uri, path) in cases {
            assert_eq!(to_path(uri).as_deref(), path.map(Path::new), "{uri}");
        }
    }
}
