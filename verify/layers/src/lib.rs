//! Checks the import structure of the workspace: which module uses which, against the table `verify/layers.toml`.
//!
//! Every path of product code counts: in `use` declarations, expressions, types and patterns, and in what macros are
//! called with or expand to. It is an arrow from the module that it stands in to the module that it names, and through
//! imports by name on to the module that defines the item. What comes by `*` is not followed, and a name alone is not
//! looked up: the `use` that brings it is an arrow itself. Nor is a macro that textual scope brings, or what an import
//! takes out of an item of its own module (`use Kind::A`). Tests may use everything.
//!
//! ```toml
//! ["cq-core"]                       # the folder of the crate
//! uses = []                         # the crates that it may depend on
//! "src/lib.rs" = [                  # a target, by its root, with its layers from top to bottom
//!     "cq shared_cq",               # modules on one level; they must not form a circle
//!     "queue::mpsc",                # a deeper module with a place of its own
//!     "queue channel",
//! ]
//! ```
//!
//! A module may use those on its level and below. It stands where the longest name that the table has for it stands.
//! The root of a target is above all layers: it may use every module, and no module may use what it defines. A module
//! may re-export what is in it, whatever its layer. Modules with one parent must not form circles at any depth; a module
//! and its parent may use each other.
//!
//! | module | owns |
//! |---|---|
//! | [`tree`] | the modules of a target, read from its root, with their paths and imports |
//! | [`product`] | which code is product code, and what is only compiled for tests |
//! | [`judge`](mod@judge) | the arrows, the layer of each module: what goes up, circles, modules without a layer |
//! | [`check`](mod@check) | all of it, for every crate, against the table |
#![deny(unsafe_code)]

pub mod check;
pub mod judge;
pub mod product;
pub mod tree;

pub use crate::check::{Report, check};
