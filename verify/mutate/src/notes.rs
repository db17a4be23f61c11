//! What was found of the sources, kept for the next run of the same sources.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What was found, and of which sources.
#[derive(Serialize, Deserialize)]
struct Note<T> {
    sources: u64,
    found: T,
}

/// What this file holds, if it is of these sources.
pub fn load<T: DeserializeOwned>(path: &Path, sources: u64) -> Option<T> {
    let note: Note<T> = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    (note.sources == sources).then_some(note.found)
}

/// Keeps it there.
pub fn keep(path: &Path, sources: u64, found: &impl Serialize) -> Result<()> {
    let text = serde_json::to_vec(&Note { sources, found })?;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
