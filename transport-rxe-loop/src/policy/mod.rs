//! What imitation and faults decide.
pub mod faults;
pub mod imitation;
