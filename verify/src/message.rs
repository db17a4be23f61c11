//! What the process of a stage tells the checker: a line of JSON each, on its standard output.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

/// A line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// What is under way from here on: a command, a guest.
    UnderWay(String),
    /// How far it is. There may be many of them.
    Progress(String),
    /// What came of the stage: its last line.
    Over(Outcome),
}

/// What came of a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// What was shown.
    Passed(String),
    /// What is missing on this machine, so that nothing was shown.
    Skipped(String),
    /// What is wrong.
    Failed(String),
}

/// Says something to the checker, from the process of a stage.
pub fn tell(message: &Message) -> io::Result<()> {
    let line = serde_json::to_string(message)?;
    writeln!(io::stdout(), "{line}")
}
