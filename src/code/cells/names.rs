//! Which names a cell binds, and whether it awaits.

use super::super::tree::TreeNode;

/// Says whether a node has a scope of its own for `var` and `await`.
fn is_function(node: TreeNode<'_>) -> bool {
    matches!(
        node.kind_name(),
        "function_declaration"
            | "function_expression"
            | "generator_function_declaration"
            | "generator_function"
            | "arrow_function"
            | "method_definition"
            | "class_static_block"
            | "ambient_declaration"
            | "internal_module"
    )
}

/// Visits a node and what is in it, functions left out.
fn outside_functions<'r>(node: TreeNode<'r>, see: &mut dyn FnMut(TreeNode<'r>)) {
    let mut past = 0;
    for inner in node.walk() {
        if inner.index() < past {
            continue;
        }
        if is_function(inner) {
            past = inner.index() + inner.size();
            continue;
        }
        see(inner);
    }
}

/// Says whether a program awaits outside of its functions; an import does.
pub(super) fn awaits(root: TreeNode<'_>) -> bool {
    let mut found = false;
    outside_functions(root, &mut |node| {
        found |= match node.kind_name() {
            "await_expression" | "import_statement" => true,
            // Before `[` and `(` the grammar takes it for a name, which it cannot be here.
            "identifier" => node.source() == "await",
            "for_in_statement" | "using_declaration" | "lexical_declaration" => {
                node.kids().any(|kid| kid.kind_name() == "await")
            }
            _ => false,
        };
    });
    found
}

/// Visits every `var` below a statement.
pub(super) fn nested_vars<'r>(statement: TreeNode<'r>, see: &mut dyn FnMut(TreeNode<'r>)) {
    outside_functions(statement, &mut |node| match node.kind_name() {
        "variable_declaration" => see(node),
        "for_in_statement" if node.kids().any(|kid| kid.kind_name() == "var") => see(node),
        _ => {}
    });
}

/// Returns the name of a class or function that is declared.
pub(super) fn declared(node: TreeNode<'_>) -> Option<String> {
    if !node.kind_name().ends_with("_declaration") {
        return None;
    }
    let name = |kid: &TreeNode<'_>| matches!(kid.kind_name(), "identifier" | "type_identifier");
    match node.kind_name() {
        "lexical_declaration" | "variable_declaration" => Some(String::new()),
        _ => node.kids().find(name).map(|name| name.source().to_owned()),
    }
}

/// Adds what a declarator binds.
pub(super) fn bound(declarator: TreeNode<'_>, names: &mut Vec<String>) {
    if let Some(target) = declarator.kids().next() {
        pattern(target, names);
    }
}

/// Adds what a pattern binds.
pub(super) fn pattern(target: TreeNode<'_>, names: &mut Vec<String>) {
    match target.kind_name() {
        "identifier" | "shorthand_property_identifier_pattern" => {
            names.push(target.source().to_owned());
        }
        // The left side binds, the right is the value if there is none.
        "assignment_pattern" | "object_assignment_pattern" => {
            target.kids().next().into_iter().for_each(|left| pattern(left, names));
        }
        "pair_pattern" => {
            target.kids().last().into_iter().for_each(|value| pattern(value, names));
        }
        "object_pattern" | "array_pattern" | "rest_pattern" => {
            target.kids().for_each(|kid| pattern(kid, names));
        }
        _ => {}
    }
}
