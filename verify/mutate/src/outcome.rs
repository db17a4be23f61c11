//! What became of a mutant.

use serde::{Deserialize, Serialize};

use crate::checks::Kind;

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum Outcome {
    /// A check failed, or did not end.
    Noticed {
        /// What the check is one of.
        kind: Kind,
        /// Its name.
        by: String,
        /// Whether it did not end in its time.
        late: bool,
    },
    /// None did.
    Survived {
        /// How many reach it.
        reached: usize,
        /// The quickest of them, by name.
        reached_by: Vec<String>,
    },
    /// None did so far: there are more checks, or the time was over.
    Undecided,
}
