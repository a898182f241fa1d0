//! What runs write in each language, with the truth in the text itself.
//!
//! A line that ends in `~ KEY` behind the sign of a comment is wrong: exactly one
//! error or warning is to be reported for it, with that code or that text in its
//! message. `~ KEY@SYMBOL` says where on the line; `~ KEY when STATE` holds only
//! while the project is in that state. Lines with the same key have the same message.

/// What is written for one server.
#[derive(Clone, Copy)]
pub(crate) struct Dialect {
    /// Its project among the fixtures.
    pub(crate) project: &'static str,
    /// What begins a comment.
    pub(crate) comment: &'static str,
    /// The file of a run `{r}`.
    pub(crate) file: &'static str,
    /// What it holds at first: `imports` and `body` are where lines are put.
    pub(crate) text: &'static str,
    /// A line that is right. `{n}` is another number for each line.
    pub(crate) fine: &'static str,
    /// A line that is wrong, always in the same words.
    pub(crate) wrong: &'static str,
    /// A line that is wrong in another way, in words with its number.
    pub(crate) other: &'static str,
    /// The same behind an emoji and CJK.
    pub(crate) wide: &'static str,
    /// The same behind tabs.
    pub(crate) tabbed: &'static str,
    /// Does it take CRLF line endings for what they are.
    pub(crate) crlf: bool,
    /// What all runs depend on, where the server looks beyond a file.
    pub(crate) dependency: Option<Dependency>,
    /// What one run depends on, and that is not always there.
    pub(crate) module: Option<Module>,
}

/// A file of the project, and what breaks without a name in it.
#[derive(Clone, Copy)]
pub(crate) struct Dependency {
    /// The file.
    pub(crate) file: &'static str,
    /// A piece of it that stands there once.
    pub(crate) sound: &'static str,
    /// What is put there to break those who use it.
    pub(crate) broken: &'static str,
    /// Files of the project that then are wrong, each with a piece of the line and
    /// the key.
    pub(crate) breaks: &'static [(&'static str, &'static str, &'static str)],
}

/// A module of a run's own.
#[derive(Clone, Copy)]
pub(crate) struct Module {
    /// Its file, for a run `{r}`.
    pub(crate) file: &'static str,
    /// What it holds.
    pub(crate) text: &'static str,
    /// The line that imports it.
    pub(crate) import: &'static str,
}

const PYTHON: Dialect = Dialect {
    project: "python",
    comment: "#",
    file: "depot/run_{r}.py",
    text: r#""""What one run writes."""

# imports
from depot.money import Money

total = Money(1).times(2)  #~ times@times when broken

# body
"#,
    fine: "fine_{n}: int = {n}",
    wrong: "wrong_{n} = absent  #~ absent@absent",
    other: r#"other_{n}: int = absent_{n}  #~ absent_{n}@absent_{n}"#,
    wide: r#"wide_{n} = ("😀日本", absent_{n})  #~ absent_{n}@absent_{n}"#,
    tabbed: "tabbed_{n} = [\t\tabsent_{n}]  #~ absent_{n}@absent_{n}",
    crlf: true,
    dependency: Some(Dependency {
        file: "depot/money.py",
        sound: "def times(",
        broken: "def repeated(",
        breaks: &[("depot/orders.py", ".times(", "times")],
    }),
    module: Some(Module {
        file: "depot/extra_{r}.py",
        text: "RATE = 7\n",
        import: "from depot.extra_{r} import RATE  #~ extra_{r} when absent",
    }),
};

const TYPESCRIPT: Dialect = Dialect {
    project: "typescript",
    comment: "//",
    file: "src/run_{r}.ts",
    text: r#"import { Money } from "./money";
// imports

export const total = new Money(1).times(2); //~ times@times when broken

// body
"#,
    fine: "export const fine_{n}: number = {n};",
    wrong: "export const wrong_{n} = absent; //~ absent@absent",
    other: r#"export const other_{n}: number = absent_{n}; //~ absent_{n}@absent_{n}"#,
    wide: r#"export const wide_{n} = ["😀日本", absent_{n}]; //~ absent_{n}@absent_{n}"#,
    tabbed: "export const tabbed_{n} = [\t\tabsent_{n}]; //~ absent_{n}@absent_{n}",
    crlf: true,
    dependency: Some(Dependency {
        file: "src/money.ts",
        sound: "times(count",
        broken: "repeated(count",
        breaks: &[("src/orders.ts", ".times(", "times")],
    }),
    module: Some(Module {
        file: "src/extra_{r}.ts",
        text: "export const RATE = 7;\n",
        import: r#"import { RATE } from "./extra_{r}"; export { RATE }; //~ extra_{r} when absent"#,
    }),
};

const C: Dialect = Dialect {
    project: "c",
    comment: "//",
    file: "src/run_{r}.c",
    text: r#"#include "money.h"
// imports

money total(void) {
  return money_times(1, 2); //~ money_times@money_times when broken
}

// body
"#,
    fine: "int fine_{n}(void) { return {n}; }",
    wrong: "int wrong_{n}(void) { return absent; } //~ absent@absent",
    other: "int other_{n}(void) { return absent_{n}; } //~ absent_{n}@absent_{n}",
    wide: r#"int wide_{n}(void) { return "😀日本"[0] + absent_{n}; } //~ absent_{n}@absent_{n}"#,
    tabbed: "int tabbed_{n}(void) {\t\treturn absent_{n}; } //~ absent_{n}@absent_{n}",
    crlf: true,
    dependency: Some(Dependency {
        file: "src/money.h",
        sound: "money money_times(",
        broken: "money money_repeated(",
        breaks: &[("src/stock.c", "money_times(", "money_times")],
    }),
    module: Some(Module {
        file: "src/extra_{r}.h",
        text: "#define RATE 7\n",
        import: r#"#include "extra_{r}.h" // IWYU pragma: keep //~ extra_{r} when absent"#,
    }),
};

const BASH: Dialect = Dialect {
    project: "bash",
    comment: "#",
    file: "scripts/run_{r}.sh",
    text: r#"#!/bin/bash
# shellcheck source=scripts/money.sh
. "$(dirname "$0")/money.sh"
# imports

echo "$rate" #~ rate when broken

# body
"#,
    fine: "echo {n}",
    wrong: "cd /tmp/{n} #~ SC2164",
    other: r#"echo "$absent_{n}" #~ absent_{n}"#,
    wide: r#"echo "😀日本$absent_{n}" #~ absent_{n}"#,
    tabbed: "echo\t\t\"$absent_{n}\" #~ absent_{n}",
    crlf: false,
    dependency: Some(Dependency {
        file: "scripts/money.sh",
        sound: "rate=19",
        broken: "price=19",
        breaks: &[("scripts/report.sh", "$rate", "rate")],
    }),
    module: None,
};

/// Returns what is written for a server.
pub(crate) fn dialect(server: &str) -> Dialect {
    match server {
        // It looks at no file but the one that it is asked about.
        "ruff" => Dialect { dependency: None, module: None, ..PYTHON },
        "pyright" | "basedpyright" => PYTHON,
        "typescript-language-server" | "typescript-native" | "vtsls" => TYPESCRIPT,
        "clangd" => C,
        "bash-language-server" => BASH,
        other => panic!("nothing is known of {other}"),
    }
}
