//! The table: which crates each crate may use, and the layers of its targets from top to bottom.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::fault::LayersError;

/// Where the table is, relative to the workspace.
pub const PATH: &str = "verify/layers.toml";

/// The table, by the folders of the crates.
pub type Table = BTreeMap<String, CrateTable>;

/// What the table says about a crate.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct CrateTable {
    /// The folders of the crates that it may use.
    pub uses: Vec<String>,
    /// By the root of each target that has modules: its layers, from top to bottom.
    #[serde(flatten)]
    pub targets: BTreeMap<String, Layers>,
}

/// The layers of a target from top to bottom; each lists its modules, separated by spaces.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Layers(Vec<String>);

impl Layers {
    /// Each module with its layer, from 1 at the top.
    pub fn modules(&self) -> impl Iterator<Item = (usize, &str)> {
        let layers = (1..).zip(&self.0);
        layers.flat_map(|(nth, layer)| layer.split_whitespace().map(move |module| (nth, module)))
    }
}

/// Reads the table.
pub fn read(path: &Path) -> Result<Table, LayersError> {
    let text = fs::read_to_string(path)
        .map_err(|error| LayersError::Read { path: path.to_owned(), error })?;
    toml::from_str(&text).map_err(|error| LayersError::Toml { path: path.to_owned(), error })
}
