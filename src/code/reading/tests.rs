#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use super::*;

#[test]
fn dbg_it() {
    for (l, p, t) in [(SupportLang::Go, "a($X)", "package p\nfunc f() {\n\ta(1)\n}\n"), (SupportLang::Python, "f($$$A, k)", "f(k)\nf(a, k)\n"),(SupportLang::JavaScript, "$A.then($B)", "p.then(a).then(b);\n")] {
        let r = read(p, l).unwrap();
        let parsed = Arc::new(parse(t, l).unwrap());
        for one in r.all() {
            println!("{} {:?} {} {} clean {} {:?}", p, one.pattern.node, one.words(), shape(&one.pattern.node), one.clean, matching::all(&parsed, one));
        }
        for n in parsed.root().walk() { println!("  {} {:?} {}", n.kind_name(), n.source(), n.kind_id()); }
    }
}
