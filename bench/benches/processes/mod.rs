//! What the benches of two processes share: a device end each, and the far process that plays the other side.

pub mod bare;
pub mod end;
pub mod far;
pub mod near;
