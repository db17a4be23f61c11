//! What the process of a stage tells the checker: a line of JSON each, on its standard output.

use std::io::{self, Write};

use cq_verbs::causes::Causes;
use serde::{Deserialize, Serialize};

/// A line.
#[derive(Debug, Serialize, Deserialize)]
pub enum Message {
    /// What is under way from here on: a command, a guest.
    UnderWay(String),
    /// How far it is. There may be many of them.
    Progress(String),
    /// What came of the stage: its last line.
    Over(Outcome),
}

/// What came of a stage: what was shown, or why nothing was.
pub type Outcome = Result<String, Stop>;

/// Why a stage did not pass.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Stop {
    /// What is missing on this machine, so that nothing was shown either way.
    #[error("{0}")]
    Skipped(String),
    /// What is wrong: a command said no, or what was judged is not as it should be.
    #[error("{0}")]
    Failed(String),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Failed(Causes(&error).to_string())
    }
}

/// Says something to the checker, from the process of a stage.
pub fn tell(message: &Message) -> io::Result<()> {
    let line = serde_json::to_string(message)?;
    writeln!(io::stdout(), "{line}")
}
