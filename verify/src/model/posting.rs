//! Posting: what is refused and what goes into the queues (Q3, Q4, Q5).

use cq_core::transport::{PostError, Refused};
use cq_core::wr::{Data, RecvWr, SendFlags, SendOp, SendWr};

use super::world::{Bytes, Id, Op, Qp, Receive, Request, World};
use crate::device::State;

/// The longest message: that of the InfiniBand specification.
const MAX_MESSAGE: u64 = 1 << 31;

impl World {
    /// Q4: takes the list up to the first request that is refused, then lets what it took run.
    pub fn post_send(&mut self, number: Id, list: &[SendWr<'_>]) -> Result<(), PostError> {
        let qp = self.qps.get_mut(&number).expect("its handle is alive");
        let result = list
            .iter()
            .enumerate()
            .try_for_each(|(posted, wr)| qp.take_send(wr).map_err(|why| PostError { posted, why }));
        self.posted(number);
        result
    }

    /// Q4, as above.
    pub fn post_recv(&mut self, number: Id, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        let qp = self.qps.get_mut(&number).expect("its handle is alive");
        let result = list
            .iter()
            .enumerate()
            .try_for_each(|(posted, wr)| qp.take_recv(wr).map_err(|why| PostError { posted, why }));
        self.posted(number);
        result
    }

    /// Q2: in ERR requests are flushed as soon as they are posted; otherwise what can run now does.
    fn posted(&mut self, number: Id) {
        if self.qps[&number].state == State::Err {
            self.flush(number);
        }
        self.settle();
    }
}

impl Qp {
    fn take_send(&mut self, wr: &SendWr<'_>) -> Result<(), Refused> {
        let op = self.accept(wr)?;
        self.sends.push_back(Request {
            wr_id: wr.wr_id,
            position: self.sends_posted,
            op,
            signaled: self.sq_sig_all || wr.flags.contains(SendFlags::SIGNALED),
            solicited: wr.flags.contains(SendFlags::SOLICITED),
            data: match wr.data {
                Data::Sges(pieces) => Bytes::Pieces(pieces.to_vec()),
                Data::Inline(bytes) => Bytes::Inline(bytes.to_vec()),
            },
        });
        self.sends_posted += 1;
        Ok(())
    }

    /// What the request does, if it is not refused. Of several reasons, the first one here counts.
    fn accept(&self, wr: &SendWr<'_>) -> Result<Op, Refused> {
        // Q3
        if !matches!(self.state, State::Rts | State::Sqd | State::Err) {
            return Err(Refused::WrongState);
        }
        let op = operation(&wr.op).ok_or(Refused::Unsupported)?;
        // Q4
        match wr.data {
            Data::Sges(pieces) if pieces.len() > self.caps.max_send_sge as usize => {
                return Err(Refused::TooManySges { max: self.caps.max_send_sge });
            }
            Data::Inline(_) if wr.op.returns_data() => return Err(Refused::InlineResult),
            Data::Inline(bytes) if bytes.len() > self.caps.max_inline as usize => {
                return Err(Refused::InlineTooLong { max: self.caps.max_inline });
            }
            _ => {}
        }
        if wr.data.len() > MAX_MESSAGE {
            return Err(Refused::TooLong { max: MAX_MESSAGE });
        }
        // Q7: it would never be allowed to start.
        if wr.op.returns_data() && self.attr.max_rd_atomic.unwrap_or(0) == 0 {
            return Err(Refused::NoReadAtomic);
        }
        // Q5: done or not, a request has its slot until a completion that covers it is polled.
        if self.sends_posted - self.sends_retired >= self.caps.max_send_wr.into() {
            return Err(Refused::QueueFull);
        }
        Ok(op)
    }

    fn take_recv(&mut self, wr: &RecvWr<'_>) -> Result<(), Refused> {
        // Q3
        if self.state == State::Reset {
            return Err(Refused::WrongState);
        }
        // Q4
        if wr.sges.len() > self.caps.max_recv_sge as usize {
            return Err(Refused::TooManySges { max: self.caps.max_recv_sge });
        }
        // A receive has its slot until a message takes it.
        if self.receives.len() >= self.caps.max_recv_wr as usize {
            return Err(Refused::QueueFull);
        }
        self.receives.push_back(Receive { wr_id: wr.wr_id, pieces: wr.sges.to_vec() });
        Ok(())
    }
}

/// Q6: the operations that there are. FENCE needs nothing where each request is done before the next one
/// starts.
fn operation(op: &SendOp) -> Option<Op> {
    match *op {
        SendOp::Send { imm } => Some(Op::Send { imm }),
        SendOp::Write { remote, imm: None } => Some(Op::Write { remote }),
        SendOp::Read { remote } => Some(Op::Read { remote }),
        SendOp::CompareSwap { remote, compare, swap } => {
            Some(Op::CompareSwap { remote, compare, swap })
        }
        SendOp::FetchAdd { remote, add } => Some(Op::FetchAdd { remote, add }),
        _ => None,
    }
}
