//! The projects that the parts play on: those that are kept for the tests, inside
//! the program, so that the demo needs no checkout.

use std::path::Path;

/// Files of a project, each with its text.
pub(super) type Project = &'static [(&'static str, &'static str)];

/// Embeds files of a project.
macro_rules! project {
    ($name:literal: $($path:literal)+) => {
        &[$((
            $path,
            include_str!(concat!("../../../tests/fixtures/projects/", $name, "/", $path)),
        )),+]
    };
}

pub(super) const PYTHON: Project = project! {
    "python":
        "pyproject.toml" "depot/__init__.py" "depot/__main__.py" "depot/items.py" "depot/money.py"
        "depot/orders.py" "depot/pricing.py" "depot/report.py" "depot/stock.py"
};

pub(super) const TYPESCRIPT: Project = project! {
    "typescript":
        "package.json" "tsconfig.json" "src/items.ts" "src/money.ts" "src/orders.ts"
        "src/report.ts" "src/stock.ts"
};

pub(super) const C: Project = project! {
    "c":
        "src/main.c" "src/money.c" "src/money.h" "src/stock.c" "src/stock.h"
};

pub(super) const DEBUGGED: Project = project! {
    "debug_python":
        "pyproject.toml" "main.py" "tally/__init__.py" "tally/sales.py"
};

/// Writes a project to a folder.
pub(super) fn lay_out(project: Project, folder: &Path) -> std::io::Result<()> {
    for (path, text) in project {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap_or(folder))?;
        std::fs::write(path, text)?;
    }
    Ok(())
}

/// Returns a file's text.
pub(super) fn text_of(project: Project, file: &str) -> &'static str {
    project.iter().find(|(path, _)| *path == file).map_or("", |(_, text)| text)
}
