//! The projects and languages of the tests, for benches too.

#[path = "../../tests/truth/dialects.rs"]
pub(crate) mod dialects;
#[path = "../../tests/truth/ground.rs"]
pub(crate) mod ground;
