//! TypeScript's types, blanked where they stand.

use ast_grep_core::source::SgNode as _;

use super::super::tree::{Parsed, TreeNode};
use super::edits::Edits;
use super::{Refusal, unsupported};

/// Blanks every type of a cell; refuses what is more than a type.
pub(super) fn blank(parsed: &Parsed, edits: &mut Edits<'_>) -> Result<(), Refusal> {
    for node in parsed.root().walk() {
        if let Some(what) = refused(node) {
            return Err(unsupported(parsed, node, what));
        }
        match node.kind_name() {
            "type_annotation"
            | "type_arguments"
            | "type_parameters"
            | "implements_clause"
            | "accessibility_modifier"
            | "override_modifier"
            | "asserts_annotation"
            | "type_predicate_annotation"
            | "interface_declaration"
            | "type_alias_declaration"
            | "ambient_declaration"
            | "function_signature"
            | "method_signature"
            | "abstract_method_signature"
            | "index_signature" => edits.blank(node.span()),
            // The value stays, with what follows it gone.
            "as_expression" | "satisfies_expression" => {
                if let Some(value) = node.kids().next() {
                    edits.blank(value.span().end..node.span().end);
                }
            }
            "non_null_expression" => blank_words(node, &["!"], edits),
            "required_parameter" | "optional_parameter" => parameter(node, edits),
            "public_field_definition" => {
                blank_words(node, &["readonly", "declare", "abstract", "?", "!"], edits);
            }
            "method_definition" => blank_words(node, &["?"], edits),
            "abstract_class_declaration" => blank_words(node, &["abstract"], edits),
            "variable_declarator" => blank_words(node, &["!"], edits),
            _ => {}
        }
    }
    Ok(())
}

/// Says why something cannot be had by taking types away.
fn refused(node: TreeNode<'_>) -> Option<&'static str> {
    let property = |node: TreeNode<'_>| {
        let words = ["accessibility_modifier", "override_modifier", "readonly"];
        node.kids().any(|kid| words.contains(&kid.kind_name()))
    };
    match node.kind_name() {
        "enum_declaration" => Some("enums are not supported in a cell: use a `const` object"),
        "internal_module" | "module" if node.is_named() => {
            Some("namespaces are not supported in a cell: use a `const` object")
        }
        "decorator" => Some("decorators are not supported in a cell: call the function instead"),
        "required_parameter" | "optional_parameter" if property(node) => {
            Some("parameter properties are not supported in a cell: assign in the constructor")
        }
        "type_assertion" => Some("`<T>value` is not supported in a cell: write `value as T`"),
        _ => None,
    }
}

fn blank_words(node: TreeNode<'_>, words: &[&str], edits: &mut Edits<'_>) {
    for kid in node.kids().filter(|kid| words.contains(&kid.kind_name())) {
        edits.blank(kid.span());
    }
}

/// A parameter; one that is called `this` is only a type.
fn parameter(node: TreeNode<'_>, edits: &mut Edits<'_>) {
    blank_words(node, &["?"], edits);
    if node.kids().next().is_some_and(|name| name.kind_name() == "this") {
        edits.blank(node.span());
        let holder = node.holders().pop();
        let mut after = holder
            .into_iter()
            .flat_map(TreeNode::kids)
            .skip_while(|kid| kid.index() != node.index());
        if let Some(comma) = after.nth(1).filter(|kid| kid.kind_name() == ",") {
            edits.blank(comma.span());
        }
    }
}
