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

impl Message {
    /// As a line.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("words have a form in JSON")
    }

    /// What [`to_line`](Self::to_line) made; nothing of another line.
    pub fn of_line(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}

/// Says something to the checker, from the process of a stage.
pub fn tell(message: &Message) -> io::Result<()> {
    writeln!(io::stdout(), "{}", message.to_line())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_however_many_its_words_have() {
        let message = Message::Over(Outcome::Failed("one\ntwo \"three\"".to_owned()));
        assert_eq!(message.to_line().lines().count(), 1);
        assert_eq!(Message::of_line(&message.to_line()), Some(message));
        assert_eq!(Message::of_line("warning: unused"), None);
    }
}
