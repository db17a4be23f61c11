//! Posting sends: which are refused, and which are queued (Q3, Q4, Q5).

use cq_verbs::post::{PostError, WrError};
use cq_verbs::setup::QpType;
use cq_verbs::wr::{Data, Placement, SendFlags, SendOp, SendWr};

use super::world::{AddressHandle, Bytes, Id, Qp, Request, Target, World};
use crate::device::{Destination, Posted, QpState};

/// The longest message: that of the InfiniBand specification.
const MAX_MESSAGE: u64 = 1 << 31;

/// Where datagrams go: by an address handle of this number.
type To<'a> = Destination<'a, Id>;

impl World {
    /// Q4: queues the list up to the first request that is refused, then executes what was queued.
    pub fn post_send(&mut self, number: Id, to: Option<&To<'_>>, list: &[SendWr<'_>]) -> Posted {
        let to = to.map(|&Destination { ah, qp_num, qkey, .. }| {
            let AddressHandle { pd, global } = self.handles[ah];
            (pd, Target { qp_num, qkey, global })
        });
        let qp = self.qps.get_mut(&number).expect("its handle is alive");
        let result = each(list, |wr| qp.take_send(wr, to));
        self.posted(number);
        result
    }

    /// Q2: in ERR requests are flushed as soon as they are posted; otherwise those that can be executed are.
    pub fn posted(&mut self, number: Id) {
        if self.qps[&number].state == QpState::ERR {
            self.flush(number);
        }
        self.settle();
    }
}

/// Q4: takes the requests of a list up to the first that is refused.
pub fn each<W>(list: &[W], mut take: impl FnMut(&W) -> Result<(), WrError>) -> Posted {
    let mut list = list.iter().enumerate();
    list.try_for_each(|(posted, wr)| take(wr).map_err(|why| PostError { posted, why }))
}

impl Qp {
    /// With its destination, if it is a datagram, and the domain of the address handle.
    fn take_send(&mut self, wr: &SendWr<'_>, to: Option<(Id, Target)>) -> Result<(), WrError> {
        self.accept(wr)?;
        let target = self.directed(to)?;
        self.sends.push_back(Request {
            wr_id: wr.wr_id,
            position: self.sends_posted,
            op: wr.op,
            target,
            signaled: self.sq_sig_all || wr.flags.contains(SendFlags::SIGNALED),
            solicited: wr.flags.contains(SendFlags::SOLICITED),
            data: match wr.data {
                Data::Sges(sges) => Bytes::Sges(sges.to_vec()),
                Data::Inline(bytes) => Bytes::Inline(bytes.to_vec()),
            },
        });
        self.sends_posted += 1;
        Ok(())
    }

    /// A datagram has a destination, with an address handle of the queue pair's domain; other requests have none.
    fn directed(&self, to: Option<(Id, Target)>) -> Result<Option<Target>, WrError> {
        match (self.kind, to) {
            (QpType::UD, Some((pd, target))) if pd == self.pd => Ok(Some(target)),
            (QpType::UD, _) => Err(WrError::NoDestination),
            (_, None) => Ok(None),
            (_, Some(_)) => Err(WrError::Unsupported),
        }
    }

    /// Whether the request is refused. Of several reasons, the first one here counts.
    fn accept(&self, wr: &SendWr<'_>) -> Result<(), WrError> {
        // Q3
        if !matches!(self.state, QpState::RTS | QpState::SQD | QpState::ERR) {
            return Err(WrError::WrongState);
        }
        self.judge(wr)?;
        // Q5: a request has its slot until a completion that covers it is polled.
        if self.sends_posted - self.sends_retired >= self.caps.max_send_wr.into() {
            return Err(WrError::QueueFull);
        }
        Ok(())
    }

    /// Whether a request that has no destination is refused whatever is outstanding.
    pub fn check_send(&self, wr: &SendWr<'_>) -> Result<(), WrError> {
        self.judge(wr)?;
        self.directed(None).map(drop)
    }

    /// Whether the request is refused whatever the state, and whatever is outstanding.
    fn judge(&self, wr: &SendWr<'_>) -> Result<(), WrError> {
        if !is_supported(self.kind, &wr.op) {
            return Err(WrError::Unsupported);
        }
        if let SendOp::Flush { placement, .. } = wr.op {
            if placement.is_empty() || !Placement::all().contains(placement) {
                return Err(WrError::BadPlacement);
            }
        }
        if wr.op.carries_data() {
            self.accept_data(wr)?;
        }
        // Q7: it could never start.
        if wr.op.returns_data() && self.attr.max_rd_atomic.unwrap_or(0) == 0 {
            return Err(WrError::NoReadAtomic);
        }
        Ok(())
    }

    /// Q4
    fn accept_data(&self, wr: &SendWr<'_>) -> Result<(), WrError> {
        match wr.data {
            Data::Sges(sges) if sges.len() > self.caps.max_send_sge as usize => {
                return Err(WrError::TooManySges { max: self.caps.max_send_sge });
            }
            Data::Inline(_) if wr.op.returns_data() => return Err(WrError::InlineResult),
            Data::Inline(bytes) if bytes.len() > self.caps.max_inline as usize => {
                return Err(WrError::InlineTooLong { max: self.caps.max_inline });
            }
            _ => {}
        }
        if wr.data.len() > MAX_MESSAGE {
            return Err(WrError::TooLong { max: MAX_MESSAGE });
        }
        Ok(())
    }
}

/// Q6: whether queue pairs of this type support this operation.
const fn is_supported(kind: QpType, op: &SendOp) -> bool {
    match kind {
        QpType::RC => true,
        QpType::UC => matches!(
            op,
            SendOp::Send { .. }
                | SendOp::SendInvalidate { .. }
                | SendOp::Write { .. }
                | SendOp::BindWindow(_)
                | SendOp::LocalInvalidate { .. }
        ),
        _ => matches!(op, SendOp::Send { .. }),
    }
}
