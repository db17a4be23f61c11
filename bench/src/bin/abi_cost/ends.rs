//! What is done: requests of eight bytes between two ends of this process, and polls.

use std::error::Error;

use bench::transport::{End, Needs, SetUpError, Transport};
use cq_core::wc::Wc;
use cq_core::wr::{RecvWr, SendWr};

use super::calls::Calls;

/// Something that is done.
#[derive(Clone, Copy)]
pub enum Thing {
    /// Polls for one, and finds none.
    EmptyPoll,
    /// A WRITE, and its completion.
    Write,
    /// A receive, a SEND, and the completions of both.
    Send,
}

/// Everything that is done.
pub const THINGS: [(&str, Thing); 3] = [
    ("an empty poll", Thing::EmptyPoll),
    ("a WRITE and its completion", Thing::Write),
    ("a SEND, its receive, and both completions", Thing::Send),
];

impl Thing {
    /// Which calls that takes: `post_send`, `post_recv`, `poll`.
    pub const fn calls(self) -> [bool; 3] {
        match self {
            Self::EmptyPoll => [false, false, true],
            Self::Write => [true, false, true],
            Self::Send => [true; 3],
        }
    }
}

/// Bytes of a request.
const BYTES: usize = 8;

/// Two ends that are connected.
pub struct Ends<T: Transport> {
    sender: End<T>,
    receiver: End<T>,
}

impl<T: Transport> Ends<T> {
    /// Connects two.
    ///
    /// # Errors
    /// What the device said.
    pub fn new(transport: &T) -> Result<Self, SetUpError> {
        let needs = Needs { sends: 16, receives: 16, bytes: BYTES, ..Needs::default() };
        let [sender, receiver] = transport.pair(&[needs; 2])?;
        Ok(Self { sender, receiver })
    }

    /// Does something.
    ///
    /// # Errors
    /// It failed.
    pub fn work(&mut self, thing: Thing, calls: &Calls<T>) -> Result<(), Box<dyn Error>> {
        let Self { sender, receiver } = self;
        let (from, to) = ([sender.memory.sge(0, BYTES)?], [receiver.memory.sge(0, BYTES)?]);
        match thing {
            Thing::EmptyPoll => poll(calls, &mut sender.queue, 0),
            Thing::Write => {
                let write = SendWr::write(1, &from, receiver.memory.remote(0)?);
                (calls.post_send)(&mut sender.pair, &write)?;
                poll(calls, &mut sender.queue, 1)
            }
            Thing::Send => {
                (calls.post_recv)(&mut receiver.pair, &RecvWr::new(1, &to))?;
                (calls.post_send)(&mut sender.pair, &SendWr::send(1, &from))?;
                poll(calls, &mut receiver.queue, 1)?;
                poll(calls, &mut sender.queue, 1)
            }
        }
    }
}

/// Polls for one completion, where so many are.
fn poll<T: Transport>(
    calls: &Calls<T>,
    queue: &mut T::Queue,
    due: usize,
) -> Result<(), Box<dyn Error>> {
    let mut room = [Wc::default()];
    let came = (calls.poll)(queue, &mut room)?;
    if came != due {
        return Err(format!("{came} completions were there instead of {due}").into());
    }
    room[..came].iter().try_for_each(|wc| wc.result().map(drop))?;
    Ok(())
}
