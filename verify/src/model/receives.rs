//! Receives: how they are consumed, from a receive queue or a shared one (Q9), and how they complete.

use std::collections::VecDeque;

use cq_core::wc::{Wc, WcStatus};
use cq_verbs::async_event::{AsyncEventType, Element};
use cq_verbs::post::{PostError, WrError};
use cq_verbs::setup::SrqInit;
use cq_verbs::wr::RecvWr;

use super::execute::{Stop, length};
use super::failures::Fault;
use super::memory::Place;
use super::posting::each;
use super::time::Why;
use super::world::{Entry, Id, LIMITS, Qp, Receive, Srq, World};
use crate::device::{Access, Errno, QpCaps, QpState};

impl World {
    /// The receive that the next message to this queue pair consumes, and the domain of its SGEs.
    pub fn next_receive(&self, number: Id) -> Option<(&Receive, Id)> {
        let qp = &self.qps[&number];
        let (queue, pd) = match qp.srq {
            Some(srq) => (&self.srqs[&srq].receives, self.srqs[&srq].pd),
            None => (&qp.receives, qp.pd),
        };
        Some((queue.front()?, pd))
    }

    /// A message consumes it. Q9: if fewer than the limit are left in the shared receive queue, SRQ_LIMIT_REACHED is
    /// raised, once.
    pub fn take_receive(&mut self, number: Id) -> Receive {
        const THERE: &str = "it was looked at before it is taken";
        let qp = self.qps.get_mut(&number).expect(THERE);
        let Some(number) = qp.srq else {
            return qp.receives.pop_front().expect(THERE);
        };
        let srq = self.srqs.get_mut(&number).expect("its queue pairs keep it alive");
        let receive = srq.receives.pop_front().expect(THERE);
        if srq.receives.len() < srq.limit as usize {
            srq.limit = 0;
            let opening = srq.opening;
            self.report(opening, AsyncEventType::SRQ_LIMIT_REACHED, Element::Srq(number));
        }
        receive
    }

    /// The places for a message of this length in the next receive, if there is one that it fits.
    pub fn landing(&self, to: Id, len: u64) -> Result<Vec<Place>, Stop> {
        let (receive, pd) = self.next_receive(to).ok_or(Stop::Wait(Why::NoReceive))?;
        if length(&receive.sges) < len {
            return Err(Stop::Fault(Fault::ReceiveTooSmall));
        }
        let places = self.places(pd, &receive.sges, len, Access::LOCAL_WRITE);
        places.ok_or(Stop::Fault(Fault::ReceiveMemory))
    }

    /// A message consumes the next receive, which completes with `wc`. N3: whether it was sent SOLICITED.
    pub fn receive_done(&mut self, number: Id, wc: Wc, solicited: bool) {
        let queue = self.qps[&number].recv_cq;
        self.push(queue, Entry { wc, retires: None }, solicited);
    }

    /// A message consumes the next receive, which fails.
    pub fn receive_fails(&mut self, number: Id, status: WcStatus) {
        let wr_id = self.take_receive(number).wr_id;
        self.receive_done(number, Wc::new(wr_id, status, number), false);
    }

    /// Q9: in ERR no more receives of the shared receive queue are consumed.
    pub fn report_last_receive(&mut self, number: Id) {
        if self.qps[&number].srq.is_some() {
            self.report_qp(number, AsyncEventType::QP_LAST_WQE_REACHED);
        }
    }

    /// Q4: posts to a queue pair's receive queue.
    pub fn post_recv(&mut self, number: Id, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        let qp = self.qps.get_mut(&number).expect("its handle is alive");
        let result = each(list, |wr| qp.take_recv(wr));
        self.posted(number);
        result
    }

    /// A shared receive queue.
    pub fn create_srq(&mut self, opening: Id, pd: Id, caps: SrqInit) -> Result<Id, Errno> {
        let SrqInit { max_wr, max_sge, .. } = caps;
        if !(1..=LIMITS.max_srq_wr).contains(&max_wr) || max_sge > LIMITS.max_srq_sge {
            return Err(Errno::EINVAL);
        }
        let srq = Srq { opening, pd, caps, receives: VecDeque::new(), limit: 0 };
        Ok(self.put(|world| &mut world.srqs, srq))
    }

    /// Q4 for a shared receive queue; requests that wait for a receive continue.
    pub fn post_srq_recv(&mut self, srq: Id, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        let queue = self.srqs.get_mut(&srq).expect("its handle is alive");
        let result = each(list, |wr| take(&mut queue.receives, queue.caps, wr));
        self.settle();
        result
    }

    /// Q9: 0 requests no event; a limit above the capacity is refused.
    pub fn arm_limit(&mut self, srq: Id, limit: u32) -> Result<(), Errno> {
        let srq = self.srqs.get_mut(&srq).expect("its handle is alive");
        if limit > srq.caps.max_wr {
            return Err(Errno::EINVAL);
        }
        srq.limit = limit;
        Ok(())
    }
}

impl Qp {
    fn take_recv(&mut self, wr: &RecvWr<'_>) -> Result<(), WrError> {
        // Q3
        if self.state == QpState::RESET {
            return Err(WrError::WrongState);
        }
        self.check_recv(wr)?;
        let caps = self.receive_caps();
        take(&mut self.receives, caps, wr)
    }

    /// Whether the receive is refused whatever the state, and whatever is outstanding.
    pub fn check_recv(&self, wr: &RecvWr<'_>) -> Result<(), WrError> {
        // Q9
        if self.srq.is_some() {
            return Err(WrError::SharedReceives);
        }
        judge(self.receive_caps(), wr)
    }

    fn receive_caps(&self) -> SrqInit {
        let QpCaps { max_recv_wr: max_wr, max_recv_sge: max_sge, .. } = self.caps;
        SrqInit::new(max_wr).max_sge(max_sge)
    }
}

/// Q4
fn judge(caps: SrqInit, wr: &RecvWr<'_>) -> Result<(), WrError> {
    match wr.sges.len() > caps.max_sge as usize {
        true => Err(WrError::TooManySges { max: caps.max_sge }),
        false => Ok(()),
    }
}

/// Q4. A receive has its slot until a message consumes it.
fn take(receives: &mut VecDeque<Receive>, caps: SrqInit, wr: &RecvWr<'_>) -> Result<(), WrError> {
    judge(caps, wr)?;
    if receives.len() >= caps.max_wr as usize {
        return Err(WrError::QueueFull);
    }
    receives.push_back(Receive { wr_id: wr.wr_id, sges: wr.sges.to_vec() });
    Ok(())
}
