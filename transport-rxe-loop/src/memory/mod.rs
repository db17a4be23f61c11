//! Keys to memory, and moving bytes.
pub mod atomics;
pub mod binding;
pub mod copier;
pub mod copy_guard;
pub mod domains;
pub mod files;
pub mod foreign;
pub mod paths;
pub mod reach;
pub mod region;
pub mod remote;
pub mod sge;
pub mod stage;
