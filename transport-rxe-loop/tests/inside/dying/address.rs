//! How an end is reached, as processes tell it each other.

use std::fmt;
use std::str::FromStr;

use super::*;

/// How to reach an end: its number, and its memory, if it has some.
#[derive(Clone, Copy)]
pub struct Address {
    pub number: u32,
    pub memory: RemoteAddr,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.number, self.memory.addr, self.memory.rkey)
    }
}

impl FromStr for Address {
    type Err = Box<dyn Error>;

    fn from_str(said: &str) -> Outcome<Self> {
        let mut words = said.split(' ');
        let mut next = || words.next().ok_or("number, address, key");
        let (number, addr, rkey) = (next()?.parse()?, next()?.parse()?, next()?.parse()?);
        Ok(Self { number, memory: RemoteAddr { addr, rkey } })
    }
}
