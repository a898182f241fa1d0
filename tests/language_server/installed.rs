//! Where the project's tools are installed, for tests and benches.

use std::path::PathBuf;

/// Finds node, and pyright's program below `HOSTLER_TOOLS`, however deep the folder
/// of its version is.
pub(crate) fn pyright() -> Option<(PathBuf, PathBuf)> {
    let mut folders = vec![PathBuf::from(std::env::var_os("HOSTLER_TOOLS")?)];
    let entry = (0..3).find_map(|_| {
        let programs = folders.iter().flat_map(|folder| {
            ["bin", "node_modules/.bin"].map(|bin| folder.join(bin).join("pyright-langserver"))
        });
        let found = programs.filter_map(|program| program.canonicalize().ok()).next();
        let inner = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok());
        folders = inner.flatten().flatten().map(|entry| entry.path()).collect();
        found
    })?;
    let path = std::env::var_os("PATH")?;
    let mut nodes = std::env::split_paths(&path).map(|folder| folder.join("node"));
    Some((nodes.find(|node| node.exists())?, entry))
}
