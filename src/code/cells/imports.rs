//! Static imports, made dynamic: a script has no others.

use ast_grep_core::source::SgNode as _;

use super::super::tree::TreeNode;
use super::{Cell, Dialect, NAMED, Refusal, unsupported};

/// What an import binds.
#[derive(Default)]
struct Bindings<'r> {
    default: Option<&'r str>,
    all: Option<&'r str>,
    /// What it is called there, and here.
    named: Vec<(&'r str, &'r str)>,
    /// Whether there is nothing but types.
    only_types: bool,
}

impl<'c> Cell<'c> {
    pub(super) fn import(&mut self, statement: TreeNode<'c>) -> Result<(), Refusal> {
        let kids: Vec<_> = statement.kids().collect();
        let find = |kind: &str| kids.iter().find(|kid| kid.kind_name() == kind).copied();
        let typed = kids.iter().skip(1).any(|kid| matches!(kid.kind_name(), "type" | "typeof"));
        let clause = find("import_clause").map(clause).unwrap_or_default();
        if typed || clause.only_types {
            self.edits.blank(statement.span());
            return Ok(());
        }
        let Some(module) = find("string") else {
            let what = "`import x = …` is not supported: use `require` or `import`";
            return Err(unsupported(self.parsed, statement, what));
        };
        let options = find("import_attribute").and_then(|with| with.kids().last());
        let options =
            options.map_or_else(String::new, |with| format!(",{{with:{}}}", with.source()));
        let module = format!("await import({}{options})", module.source());
        let mut text = self.assignments(&clause, &module);
        // A cell's lines stay where they are.
        let lines = statement.source().matches('\n').count();
        text.push(';');
        text.extend(std::iter::repeat_n('\n', lines));
        self.edits.replace(statement.span(), text);
        Ok(())
    }

    fn assignments(&mut self, clause: &Bindings<'c>, module: &str) -> String {
        let here = clause.default.iter().chain(&clause.all).copied();
        self.names
            .extend(here.chain(clause.named.iter().map(|(_, here)| *here)).map(str::to_owned));
        if let Some(all) = clause.all {
            let default = clause.default.map(|name| format!(",{name}={all}.default"));
            return format!("{all}={module}{}", default.unwrap_or_default());
        }
        let mut pairs = clause.named.clone();
        pairs.extend(clause.default.map(|name| ("default", name)));
        if pairs.is_empty() {
            return module.to_owned();
        }
        let targets: Vec<_> = pairs.iter().map(|(there, here)| format!("{there}:{here}")).collect();
        let targets = targets.join(",");
        // In TypeScript a name that is not there may have been a type.
        if self.dialect == Dialect::TypeScript {
            return format!("0,{{{targets}}}={module}");
        }
        let quoted = |name: &str| match name.starts_with(['"', '\'']) {
            true => name.to_owned(),
            false => format!("\"{name}\""),
        };
        let wanted: Vec<_> = pairs.iter().map(|(there, _)| quoted(there)).collect();
        format!("0,{{{targets}}}={NAMED}({module},{})", wanted.join(","))
    }
}

fn clause(node: TreeNode<'_>) -> Bindings<'_> {
    let mut found = Bindings::default();
    for kid in node.kids() {
        match kid.kind_name() {
            "identifier" => found.default = Some(kid.source()),
            "namespace_import" => found.all = kid.kids().last().map(TreeNode::source),
            "named_imports" => {
                let all: Vec<_> =
                    kid.kids().filter(|one| one.kind_name() == "import_specifier").collect();
                found.named = all.iter().filter_map(|one| specifier(*one)).collect();
                found.only_types =
                    !all.is_empty() && found.named.is_empty() && found.default.is_none();
            }
            _ => {}
        }
    }
    found
}

/// Returns what a name is called there and here, unless it is a type.
fn specifier(node: TreeNode<'_>) -> Option<(&str, &str)> {
    let typed = node.kids().any(|kid| matches!(kid.kind_name(), "type" | "typeof"));
    let mut names = node.kids().filter(|kid| kid.is_named() || kid.kind_name() == "default");
    let there = names.next().filter(|_| !typed)?.source();
    Some((there, names.next().map_or(there, TreeNode::source)))
}
