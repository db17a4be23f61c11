//! One step of the protocol, without I/O: what its caller sends and receives, and what that means.

use alloc::vec::Vec;
use std::io::{self, ErrorKind as Kind};

use super::{ExchangeError, VERSION};

const MAGIC: [u8; 4] = *b"CQVB";
const HEADER: usize = 8;

/// The step of a frame.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    Endpoint = 1,
    Ready = 2,
}

/// Sends a frame, whose body has `N` bytes, and receives the peer's.
pub(crate) struct Swap<const N: usize> {
    step: Step,
    ours: Vec<u8>,
    sent: usize,
    /// Why sending has ended.
    unsent: Option<ExchangeError>,
    header: [u8; HEADER],
    body: [u8; N],
    received: usize,
}

/// What the caller has to do. It [reports](Swap::did) what became of it.
pub(crate) enum Next<'s, const N: usize> {
    /// Send some of these bytes.
    Send(&'s [u8]),
    /// Receive at most as many bytes as fit.
    Receive(&'s mut [u8]),
    /// Nothing: this is the body of the peer's frame.
    Done([u8; N]),
}

impl<const N: usize> Swap<N> {
    pub(crate) fn new(step: Step, body: [u8; N]) -> Self {
        let ours = [&MAGIC, &VERSION.to_be_bytes()[..], &(step as u16).to_be_bytes(), &body];
        let (ours, unsent) = (ours.concat(), None);
        Self { step, ours, sent: 0, unsent, header: [0; HEADER], body, received: 0 }
    }

    /// Fails once the peer's frame begins wrongly, or is complete and this side's was not sent.
    pub(crate) fn next(&mut self) -> Result<Next<'_, N>, ExchangeError> {
        if self.sent < self.ours.len() {
            return Ok(Next::Send(&self.ours[self.sent..]));
        }
        if self.received < HEADER {
            return Ok(Next::Receive(&mut self.header[self.received..]));
        }
        self.judge()?;
        if self.received < HEADER + N {
            return Ok(Next::Receive(&mut self.body[self.received - HEADER..]));
        }
        self.unsent.take().map_or(Ok(Next::Done(self.body)), Err)
    }

    /// So many bytes were sent or received: 0 if the stream has ended, `None` if the time is over.
    pub(crate) fn did(&mut self, bytes: io::Result<Option<usize>>) -> Result<(), ExchangeError> {
        let (received, size) = (self.received, self.ours.len());
        let done = if self.sent < size { &mut self.sent } else { &mut self.received };
        let why = match bytes.map_err(|error| (error.kind(), error)) {
            Ok(Some(count @ 1..)) => {
                *done += count;
                return Ok(());
            }
            Ok(None) => ExchangeError::TimedOut { received, size },
            Ok(Some(0)) | Err((Kind::ConnectionReset, _)) => {
                ExchangeError::Closed { received, size }
            }
            Err((Kind::WouldBlock | Kind::Interrupted, _)) => return Ok(()),
            Err((_, error)) => error.into(),
        };
        if self.sent == size {
            return Err(why);
        }
        // A peer that refused the frame may have sent something before it closed the stream.
        (self.sent, self.unsent) = (size, Some(why));
        Ok(())
    }

    /// Whether a frame of this step begins like this.
    fn judge(&self) -> Result<(), ExchangeError> {
        let [m0, m1, m2, m3, v0, v1, s0, s1] = self.header;
        let (found, ours) = ([m0, m1, m2, m3], self.step as u16);
        match (u16::from_be_bytes([v0, v1]), u16::from_be_bytes([s0, s1])) {
            _ if found != MAGIC => Err(ExchangeError::NotAPeer { found }),
            (theirs, _) if theirs != VERSION => Err(ExchangeError::Version { theirs }),
            (_, theirs) if theirs != ours => Err(ExchangeError::OutOfStep { theirs, ours }),
            _ => Ok(()),
        }
    }
}
