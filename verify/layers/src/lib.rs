//! Checks the import structure of the workspace: which module uses which, against the table `verify/layers.toml`.
//!
//! Every path of product code counts: `use` declarations, paths in expressions, types and patterns, and paths in
//! the bodies of macros. A path is an arrow from the module that it stands in to the module that defines the item,
//! whatever re-exports lie between. It is also an arrow to a module that re-exports the item, if the path names that
//! module and it is not a parent of the user. Tests may use everything.
//!
//! ```toml
//! ["cq-core"]                       # the folder of the crate
//! uses = []                         # the crates that it may use
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
//! | [`workspace`] | the crates, their targets and what they depend on |
//! | [`tree`] | the modules of a target, read from its root |
//! | [`product`] | which code is product code, and what is only compiled for tests |
//! | [`tokens`] | the paths in a stream of tokens |
//! | [`resolve`] | where the item is defined that a path names |
//! | [`arrows`] | the arrows of a target |
//! | [`judge`](mod@judge) | the layer of each module: arrows that go up, circles, modules without a layer |
//! | [`check`](mod@check) | all of it, for every crate, against the table |
#![deny(unsafe_code)]

pub mod arrows;
pub mod check;
pub mod judge;
pub mod product;
pub mod resolve;
pub mod tokens;
pub mod tree;
pub mod workspace;

pub use crate::check::{Report, check};
