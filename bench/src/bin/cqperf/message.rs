//! What the two processes of a run say to each other.
//!
//! ```text
//!   connector                                listener
//!      Hello  ------------------------------>
//!             <------------------------------  Hello
//!   for each job:
//!      Job    ------------------------------>
//!      Address ----------------------------->  makes its end
//!      makes its end  <----------------------  Address
//!      connects, posts receives                connects, posts receives
//!      Ready  <----------------------------->  Ready
//!      measures                                helps
//!      Ended  <----------------------------->  Ended
//!   then:
//!      Done   ------------------------------>
//! ```
//!
//! In place of any of these, either may say that it gives up: `Sorry` or `Interrupted`. An end stays as it is
//! until both have said `Ended`, so that the requests of the other one do not fail.

use bench::transport::Limits;
use serde::{Deserialize, Serialize};

use crate::command::Command;
use crate::stats::Tally;

/// One message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Message {
    /// Over what this process runs.
    Hello(Hello),
    /// What to measure.
    Job(Command),
    /// Where its end can be reached.
    Address(Address),
    /// Its receives are posted.
    Ready,
    /// Its part of the job is over.
    Ended(Ending),
    /// There are no more jobs.
    Done,
    /// It gives up, for this reason.
    Sorry(String),
    /// It gives up, because its user wants it.
    Interrupted,
}

/// Over what a process runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// The name of the transport.
    pub transport: String,
    /// What its device can.
    pub limits: Limits,
}

/// Where an end can be reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Address {
    /// Its queue pair, in the transport's words.
    pub pair: Vec<u8>,
    /// Where its memory starts.
    pub addr: u64,
    /// The key of its memory.
    pub rkey: u32,
}

/// How one end's part of a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ending {
    /// Its polls and completions.
    pub tally: Tally,
    /// Whether it was asked to leave before.
    pub left: bool,
    /// What went wrong.
    pub failure: Option<String>,
}

impl Message {
    /// Gives up, for this reason.
    pub fn sorry(why: &impl ToString) -> Self {
        Self::Sorry(words(&why.to_string()))
    }

    /// Whether who says this works on nothing any more, so that the other end must not wait for it.
    pub const fn is_leaving(&self) -> bool {
        match self {
            Self::Ended(ending) => ending.left || ending.failure.is_some(),
            Self::Sorry(_) | Self::Interrupted => true,
            _ => false,
        }
    }
}

/// The most characters of words that are sent or repeated: they fit into a message.
const WORDS: usize = 500;

/// Words for another process, or of one, fit for a line on a terminal.
pub fn words(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(WORDS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_others_stay_on_their_line() {
        assert_eq!(words("a\u{1b}[31m\nb"), "a[31mb");
        assert_eq!(words(&"x".repeat(2 * WORDS)).len(), WORDS);
    }
}
