//! An object that a transport does not support.

use cq_core::transport::PostError;
use cq_core::wr::RecvWr;

use super::{Destroy, Errno, Mw, Srq, SrqInit};

/// An object of a kind that the transport does not support.
#[derive(Clone, Copy, Debug)]
pub enum Absent {}

impl Destroy for Absent {
    fn destroy(self) -> Result<(), Self> {
        match self {}
    }
}

impl Srq for Absent {
    fn number(&self) -> u32 {
        match *self {}
    }

    fn caps(&self) -> SrqInit {
        match *self {}
    }

    fn post_recv(&mut self, _: &[RecvWr<'_>]) -> Result<(), PostError> {
        match *self {}
    }

    fn arm_limit(&mut self, _: u32) -> Result<(), Errno> {
        match *self {}
    }

    fn limit(&self) -> u32 {
        match *self {}
    }
}

impl Mw for Absent {
    fn rkey(&self) -> u32 {
        match *self {}
    }
}
