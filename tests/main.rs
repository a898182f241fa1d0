//! The one integration binary; each module is one subject.

mod launch;
