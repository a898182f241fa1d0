//! The places in which a piece of code may have been meant, by language.

use ast_grep_language::SupportLang;

/// A place: what stands around the pattern.
pub(super) struct Context {
    pub(super) before: &'static str,
    pub(super) after: &'static str,
    /// What is there, for the result.
    pub(super) place: &'static str,
    /// May the pattern be the head of what `after` completes.
    pub(super) head: bool,
}

const fn at(place: &'static str, before: &'static str, after: &'static str) -> Context {
    Context { before, after, place, head: false }
}

/// A head without its body.
const fn head(place: &'static str, before: &'static str, after: &'static str) -> Context {
    Context { before, after, place, head: true }
}

const RUST: &[Context] = &[
    at("in an expression", "fn f() { let x = ", "; }"),
    at("as a statement", "fn f() { ", " }"),
    at("as a statement", "fn f() { ", "; }"),
    at("as a type", "type T = ", ";"),
    at("as a match arm", "fn f() { match x { ", " } }"),
    at("as a match arm", "fn f() { match x { ", ", } }"),
    at("as a member", "impl T { ", " }"),
    at("as a member", "trait T { ", " }"),
    at("as a field", "struct S { ", " }"),
    at("as a field", "fn f() { S { ", " } }"),
    at("as a parameter", "fn f(", ") {}"),
    at("as a pattern", "fn f() { let ", " = x; }"),
    at("as a variant", "enum E { ", " }"),
    at("as a where clause", "fn f() ", " {}"),
    head("as a head", "", " {}"),
    head("as a head in an impl", "impl T { ", " {} }"),
    head("as a head in a function", "fn f() { ", " {} }"),
];

const PYTHON: &[Context] = &[
    at("as a statement", "", "\n"),
    head("as a head", "", "\n    pass\n"),
    head("as a clause of try", "try:\n    pass\n", "\n    pass\n"),
    head("as a clause of if", "if x:\n    pass\n", "\n    pass\n"),
    at("in an expression", "x = ", "\n"),
    at("as an argument", "f(", ")\n"),
    at("as a parameter", "def f(", "):\n    pass\n"),
    at("as an entry", "{", "}\n"),
    at("as a decorator", "", "\ndef f():\n    pass\n"),
    head("as a case", "match x:\n    ", "\n        pass\n"),
    at("as a type", "x: ", " = y\n"),
    at("in a with statement", "with ", ":\n    pass\n"),
];

const SCRIPT: &[Context] = &[
    at("in an expression", "x = ", ";"),
    at("as a statement", "function f() { ", " }"),
    at("as a statement", "async function f() { ", " }"),
    at("as a statement", "function f() { ", "; }"),
    at("as a property", "x = { ", " }"),
    at("as a member", "class C { ", " }"),
    at("as a member", "class C { ", "; }"),
    at("as a case", "switch (x) { ", " }"),
    at("as an argument", "f(", ")"),
    at("as a parameter", "function f(", ") {}"),
    at("as a catch clause", "try {} ", ""),
    at("as an import", "import { ", " } from 'm';"),
    head("as a head", "", " {}"),
    head("as a head of a member", "class C { ", " {} }"),
    head("as a head of a catch clause", "try {} ", " {}"),
];

const TYPED: &[Context] = &[
    at("as a property", "x = { ", " }"),
    at("as a type", "type T = ", ";"),
    at("as a member of a type", "interface I { ", " }"),
    at("as a type argument", "let x: T<", ">;"),
    at("as a member", "class C { ", " }"),
    at("as a member", "class C { ", "; }"),
    at("as a parameter", "class C { constructor(", ") {} }"),
    at("as a parameter", "function f(", ") {}"),
    at("as a clause", "class C ", " {}"),
    at("as a case", "switch (x) { ", " }"),
    at("in an expression", "x = ", ";"),
    at("as a statement", "function f() { ", " }"),
    at("as a statement", "async function f() { ", " }"),
    at("as an argument", "f(", ")"),
    at("as a catch clause", "try {} ", ""),
    at("as an import", "import { ", " } from 'm';"),
    at("as an enum member", "enum E { ", " }"),
    head("as a head", "", " {}"),
    head("as a head of a member", "class C { ", " {} }"),
    head("as a head of a catch clause", "try {} ", " {}"),
];

const GO: &[Context] = &[
    at("in an expression", "package p\nvar x = ", "\n"),
    at("as a statement", "package p\nfunc f() {\n", "\n}\n"),
    at("as a declaration", "package p\n", "\n"),
    at("as a type", "package p\ntype T ", "\n"),
    at("as a field", "package p\ntype T struct {\n", "\n}\n"),
    at("as a member of an interface", "package p\ntype T interface {\n", "\n}\n"),
    at("as a case", "package p\nfunc f() {\nswitch x {\n", "\n}\n}\n"),
    at("as a case", "package p\nfunc f() {\nselect {\n", "\n}\n}\n"),
    at("as an element", "package p\nvar x = T{", "}\n"),
    at("as a parameter", "package p\nfunc f(", ") {}\n"),
    head("as a head", "package p\n", " {}\n"),
    head("as a head in a function", "package p\nfunc f() {\n", " {}\n}\n"),
];

const C: &[Context] = &[
    at("in an expression", "int x = ", ";"),
    at("in an expression", "void f() { x = ", "; }"),
    at("as a statement", "void f() { ", " }"),
    at("as a statement", "void f() { ", "; }"),
    at("as an argument", "void f() { g(", "); }"),
    at("as a declaration", "", ";"),
    at("as a field", "struct S { ", " };"),
    at("as a field", "struct S { ", "; };"),
    at("as an enumerator", "enum E { ", " };"),
    at("as a case", "void f() { switch (x) { ", " } }"),
    at("as an initialiser", "struct S s = { ", " };"),
    at("as a parameter", "void f(", ");"),
    head("as a head", "", " {}"),
    head("as a head in a function", "void f() { ", " {} }"),
];

const CPP: &[Context] = &[
    at("in an expression", "int x = ", ";"),
    at("in an expression", "void f() { x = ", "; }"),
    at("as a statement", "void f() { ", " }"),
    at("as a statement", "void f() { ", "; }"),
    at("as an argument", "void f() { g(", "); }"),
    at("as a member", "class C { ", " };"),
    at("as a member", "class C { ", "; };"),
    at("as a declaration", "", ";"),
    at("as an enumerator", "enum E { ", " };"),
    at("as a case", "void f() { switch (x) { ", " } }"),
    at("as an initialiser", "S s = { ", " };"),
    at("as a parameter", "void f(", ");"),
    at("as a type", "using T = ", ";"),
    at("as a template argument", "T<", "> x;"),
    at("as a catch clause", "void f() { try {} ", " }"),
    head("as a head", "", " {}"),
    head("as a head in a class", "class C { ", " {} };"),
    head("as a head in a function", "void f() { ", " {} }"),
];

const JAVA: &[Context] = &[
    at("in an expression", "class C { Object x = ", "; }"),
    at("as a statement", "class C { void f() { ", " } }"),
    at("as a statement", "class C { void f() { ", "; } }"),
    at("as a member", "class C { ", " }"),
    at("as a member", "class C { ", "; }"),
    at("as a type", "class C { ", " x; }"),
    at("as a case", "class C { void f() { switch (x) { ", " } } }"),
    at("as a parameter", "class C { void f(", ") {} }"),
    at("as a clause", "class C ", " {}"),
    at("as an annotation", "", " class C {}"),
    at("as a catch clause", "class C { void f() { try {} ", " } }"),
    at("as a constant", "enum E { ", " }"),
    head("as a head", "", " {}"),
    head("as a head of a member", "class C { ", " {} }"),
    head("as a head in a method", "class C { void f() { ", " {} } }"),
];

const CSHARP: &[Context] = &[
    at("in an expression", "class C { object x = ", "; }"),
    at("as a statement", "class C { void F() { ", " } }"),
    at("as a statement", "class C { void F() { ", "; } }"),
    at("as a member", "class C { ", " }"),
    at("as a member", "class C { ", "; }"),
    at("as a type", "class C { ", " x; }"),
    at("as a case", "class C { void F() { switch (x) { ", " } } }"),
    at("as a parameter", "class C { void F(", ") {} }"),
    at("as an attribute", "", " class C {}"),
    at("as a catch clause", "class C { void F() { try {} ", " } }"),
    head("as a head", "", " {}"),
    head("as a head of a member", "class C { ", " {} }"),
    head("as a head in a method", "class C { void F() { ", " {} } }"),
];

const DART: &[Context] = &[
    at("in an expression", "var x = ", ";"),
    at("as a statement", "void f() { ", " }"),
    at("as a statement", "void f() async { ", " }"),
    at("as a statement", "void f() { ", "; }"),
    at("as a statement", "void f() async { ", "; }"),
    at("as an argument", "var x = f(", ");"),
    at("as a member", "class C { ", " }"),
    at("as a member", "class C { ", "; }"),
    at("as a case", "void f() { switch (x) { ", " } }"),
    at("as a parameter", "void f(", ") {}"),
    at("as an element", "var x = [", "];"),
    at("as an entry", "var x = {", "};"),
    at("as a type", "", " x;"),
    at("as an annotation", "", " class C {}"),
    head("as a head", "", " {}"),
    head("as a head of a member", "class C { ", " {} }"),
    head("as a head in a function", "void f() { ", " {} }"),
];

const KOTLIN: &[Context] = &[
    at("in an expression", "val x = ", "\n"),
    at("as a statement", "fun f() {\n", "\n}\n"),
    at("as a member", "class C {\n", "\n}\n"),
    at("as a case", "fun f() { when (x) {\n", "\n} }\n"),
    at("as a type", "val x: ", " = y\n"),
    at("as a parameter", "fun f(", ") {}\n"),
    at("as an argument", "f(", ")\n"),
    at("as an annotation", "", " class C\n"),
    head("as a head", "", " {}\n"),
];

const SWIFT: &[Context] = &[
    at("in an expression", "let x = ", "\n"),
    at("as a statement", "func f() {\n", "\n}\n"),
    at("as a member", "class C {\n", "\n}\n"),
    at("as a member of a protocol", "protocol P {\n", "\n}\n"),
    at("as a case", "func f() { switch x {\n", "\n} }\n"),
    at("as a type", "let x: ", " = y\n"),
    at("as a parameter", "func f(", ") {}\n"),
    head("as a head", "", " {}\n"),
];

const RUBY: &[Context] = &[
    at("in an expression", "x = ", "\n"),
    at("as a statement", "def f\n", "\nend\n"),
    at("as an argument", "f(", ")\n"),
    at("as an entry", "{ ", " }\n"),
    head("as a case", "case x\n", "\n  y\nend\n"),
    head("as a clause", "begin\n", "\n  y\nend\n"),
    head("as a head", "", "\nend\n"),
];

const PHP: &[Context] = &[
    at("in an expression", "$x = ", ";"),
    at("as a statement", "function f() { ", " }"),
    at("as a statement", "function f() { ", "; }"),
    at("as a member", "class C { ", " }"),
    at("as a member", "class C { ", "; }"),
    at("as a case", "switch ($x) { ", " }"),
    at("as an entry", "$x = [", "];"),
    at("as an argument", "f(", ");"),
    at("as a parameter", "function f(", ") {}"),
    at("as a catch clause", "try {} ", ""),
    head("as a head", "", " {}"),
    head("as a head of a member", "class C { ", " {} }"),
];

const SCALA: &[Context] = &[
    at("in an expression", "val x = ", "\n"),
    at("as a member", "object O {\n", "\n}\n"),
    at("as a statement", "def f = {\n", "\n}\n"),
    at("as a case", "x match {\n", "\n}\n"),
    at("as a type", "val x: ", " = y\n"),
    at("as a parameter", "def f(", ") = y\n"),
    head("as a head", "", " {}\n"),
];

const SOLIDITY: &[Context] = &[
    at("as a member", "contract C { ", " }"),
    at("as a member", "contract C { ", "; }"),
    at("as a statement", "contract C { function f() public { ", " } }"),
    at("as a statement", "contract C { function f() public { ", "; } }"),
    at("in an expression", "contract C { uint x = ", "; }"),
    head("as a head", "contract C { ", " {} }"),
];

const ZIG: &[Context] = &[
    at("in an expression", "const x = ", ";"),
    at("as a statement", "fn f() void { ", " }"),
    at("as a statement", "fn f() void { ", "; }"),
    at("as a member", "const S = struct { ", " };"),
    at("as a case", "fn f() void { switch (x) { ", " } }"),
    head("as a head", "", " {}"),
];

const LUA: &[Context] = &[
    at("in an expression", "x = ", "\n"),
    at("as a statement", "function f() ", " end\n"),
    at("as a field", "x = { ", " }\n"),
    head("as a head", "", " end\n"),
];

const BASH: &[Context] = &[
    at("as a case", "case x in\n", "\nesac\n"),
    at("in a test", "if ", "; then :; fi\n"),
    head("as a head", "", "\n:\nfi\n"),
];

const CSS: &[Context] = &[
    at("as a declaration", "a { ", " }"),
    at("as a declaration", "a { ", "; }"),
    at("as a selector", "", " {}"),
    at("as a value", "a { b: ", "; }"),
];

const JSON: &[Context] = &[at("as an entry", "{ ", " }"), at("as an element", "[ ", " ]")];

const NIX: &[Context] = &[
    at("as a binding", "{ ", " }"),
    at("as a binding", "{ ", "; }"),
    at("as a formal", "{ ", " }: x"),
];

const HCL: &[Context] =
    &[at("as an attribute", "a {\n", "\n}\n"), at("in an expression", "a = ", "\n")];

const HTML: &[Context] = &[at("as an attribute", "<a ", "></a>")];

const HASKELL: &[Context] = &[
    at("in an expression", "f = ", "\n"),
    at("as a type", "f :: ", "\n"),
    at("as a statement", "f = do\n  ", "\n"),
];

const ELIXIR: &[Context] =
    &[at("as a statement", "def f do\n", "\nend\n"), head("as a head", "", " do\nend\n")];

const YAML: &[Context] = &[at("as an element", "- ", "\n"), at("as a value", "a: ", "\n")];

/// Returns the places that a language has.
pub(super) fn contexts(language: SupportLang) -> &'static [Context] {
    match language {
        SupportLang::Rust => RUST,
        SupportLang::Python => PYTHON,
        SupportLang::JavaScript => SCRIPT,
        SupportLang::TypeScript | SupportLang::Tsx => TYPED,
        SupportLang::Go => GO,
        SupportLang::C => C,
        SupportLang::Cpp => CPP,
        SupportLang::Java => JAVA,
        SupportLang::CSharp => CSHARP,
        SupportLang::Dart => DART,
        SupportLang::Kotlin => KOTLIN,
        SupportLang::Swift => SWIFT,
        SupportLang::Ruby => RUBY,
        SupportLang::Php => PHP,
        SupportLang::Scala => SCALA,
        SupportLang::Solidity => SOLIDITY,
        SupportLang::Zig => ZIG,
        SupportLang::Lua => LUA,
        SupportLang::Bash => BASH,
        SupportLang::Css => CSS,
        SupportLang::Json => JSON,
        SupportLang::Nix => NIX,
        SupportLang::Hcl => HCL,
        SupportLang::Html => HTML,
        SupportLang::Haskell => HASKELL,
        SupportLang::Elixir => ELIXIR,
        SupportLang::Yaml => YAML,
        SupportLang::Markdown => &[],
    }
}
