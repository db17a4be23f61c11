//! What the fuzz targets share. Each target says in its first lines what is hostile, what is the victim, and what must hold.

pub mod fabric;
pub mod objects;
pub mod victim;
