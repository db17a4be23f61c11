//! Requests complete (C8, C9, Q2, Q7), their completions are polled (P1–P6), and queues overrun (O1–O6).

use std::mem;

use cq_core::transport::PollError;
use cq_core::wc::{Wc, WcOpcode, WcStatus};
use cq_verbs::async_event::{AsyncEventType, Element};
use cq_verbs::setup::QpType;
use cq_verbs::wr::SendOp;

use super::events::key;
use super::execute::Done;
use super::failures::Fault;
use super::world::{Cq, Entry, Id, LIMITS, Request, World};
use crate::device::{Errno, QpState};

impl World {
    /// The oldest send is done. C8: it completes if it is signaled; otherwise a later completion covers it (C9).
    pub fn succeed(&mut self, number: Id, request: &Request, done: &Done) {
        self.end_send(number);
        if request.signaled {
            let wc = Wc::new(request.wr_id, WcStatus::SUCCESS, number);
            let wc = wc.with_opcode(opcode(&request.op)).with_byte_len(done.byte_len);
            self.send_done(number, request, wc);
        }
    }

    /// The oldest send fails. First the queue pairs are in ERR, then the request completes, signaled or
    /// not (C8), then the requests behind it are flushed (Q2). A UC or UD queue pair goes to
    /// SQE instead (Q1), where receives continue.
    pub fn fail(&mut self, number: Id, fault: Fault) {
        let told = fault.consequences();
        let qp = self.qps.get_mut(&number).expect("it posted");
        let peer = qp.attr.dest_qp_num.filter(|_| told.responder_breaks);
        match qp.kind {
            QpType::RC => self.enter_err(number),
            _ => qp.state = QpState::SQE,
        }
        let request = self.end_send(number);
        if let Some(peer) = peer {
            self.enter_err(peer);
        }
        if let (Some(peer), Some(status)) = (peer, told.receive) {
            self.receive_fails(peer, status);
        }
        self.send_done(number, &request, Wc::new(request.wr_id, told.requester, number));
        if let (Some(peer), Some(report)) = (peer, told.report) {
            self.report_qp(peer, report);
        }
        for broken in [Some(number), peer].into_iter().flatten() {
            self.flush(broken);
        }
    }

    /// Q1, Q2: to ERR, where everything outstanding is flushed.
    pub fn break_qp(&mut self, number: Id) {
        self.enter_err(number);
        self.flush(number);
    }

    /// Q9: a queue pair that is in ERR already raises no event.
    fn enter_err(&mut self, number: Id) {
        let qp = self.qps.get_mut(&number).expect("it exists");
        if qp.state != QpState::ERR {
            qp.state = QpState::ERR;
            self.report_last_receive(number);
        }
    }

    /// Q2: every outstanding send completes with WR_FLUSH in order, and in ERR so does every receive of
    /// the queue pair's own. Q9: receives of a shared queue stay there.
    pub fn flush(&mut self, number: Id) {
        while !self.qps[&number].sends.is_empty() {
            let request = self.end_send(number);
            let wc = Wc::new(request.wr_id, WcStatus::WR_FLUSH_ERR, number);
            self.send_done(number, &request, wc);
        }
        let qp = self.qps.get_mut(&number).expect("it exists");
        if qp.state == QpState::ERR {
            for receive in mem::take(&mut qp.receives) {
                let wc = Wc::new(receive.wr_id, WcStatus::WR_FLUSH_ERR, number);
                self.receive_done(number, wc, false);
            }
        }
    }

    /// Removes the oldest send, which no longer waits.
    fn end_send(&mut self, number: Id) -> Request {
        let qp = self.qps.get_mut(&number).expect("it exists");
        qp.wait = None;
        qp.sends.pop_front().expect("it was carried out, or is to be flushed")
    }

    /// Q5: polling this entry frees the slots up to the request's.
    fn send_done(&mut self, number: Id, request: &Request, wc: Wc) {
        let retires = Some((number, request.position + 1));
        self.push(self.qps[&number].send_cq, Entry { wc, retires }, false);
    }

    /// Adds a completion to its queue.
    pub fn push(&mut self, queue: Id, entry: Entry, solicited: bool) {
        let failed = entry.wc.status() != WcStatus::SUCCESS;
        let cq = self.cqs.get_mut(&queue).expect("queue pairs keep their queues alive");
        let full = cq.entries.len() == cq.capacity as usize;
        let finds_no_room = full || cq.has_overrun();
        if finds_no_room {
            let first = cq.dropped == 0;
            cq.dropped = cq.dropped.saturating_add(1);
            if cq.ignores_overrun {
                // O8: no later completion may free the slot.
                self.retire(&entry);
            } else {
                cq.breaks = true;
                let opening = cq.opening;
                // O2
                if first {
                    self.report(opening, AsyncEventType::CQ_ERR, Element::Cq(key(queue)));
                }
            }
        } else {
            cq.entries.push_back(entry);
        }
        // N3; O5: one that does not fit raises an event, too. N12: neither that nor a failure is delayed.
        let urgent = failed || finds_no_room;
        self.notify(queue, solicited || urgent, urgent);
    }

    /// Q5: frees the slots that this completion covers.
    fn retire(&mut self, entry: &Entry) {
        let Some((number, up_to)) = entry.retires else { return };
        if let Some(qp) = self.qps.get_mut(&number) {
            qp.sends_retired = qp.sends_retired.max(up_to);
        }
    }

    /// O4: the queue pairs of queues that dropped a completion go to ERR, except those in RESET. Returns
    /// whether there were any such queues.
    pub fn break_for_overruns(&mut self) -> bool {
        let broken: Vec<Id> =
            self.cqs.iter().filter(|(_, cq)| cq.breaks).map(|(queue, _)| *queue).collect();
        for queue in &broken {
            self.cqs.get_mut(queue).expect("it was listed").breaks = false;
            let attached = self.qps.iter().filter(|(_, qp)| {
                (qp.send_cq == *queue || qp.recv_cq == *queue)
                    && !matches!(qp.state, QpState::RESET | QpState::ERR)
            });
            let numbers: Vec<Id> = attached.map(|(number, _)| *number).collect();
            for number in numbers {
                self.report_qp(number, AsyncEventType::QP_FATAL);
                self.break_qp(number);
            }
        }
        !broken.is_empty()
    }

    /// Polls completions of all queue pairs, the oldest first (P1, P2), and no more than the buffer holds (P4, P6). O3: an
    /// overrun is reported when none is left.
    pub fn poll(&mut self, queue: Id, buffer: &mut [Wc]) -> Result<usize, PollError> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let cq = self.cqs.get_mut(&queue).expect("its handle is alive");
        if cq.entries.is_empty() && cq.has_overrun() {
            return Err(PollError::Overrun { dropped: Some(cq.dropped) });
        }
        let count = buffer.len().min(cq.entries.len());
        let taken: Vec<Entry> = cq.entries.drain(..count).collect();
        for (place, entry) in buffer.iter_mut().zip(taken) {
            *place = entry.wc;
            self.retire(&entry);
        }
        Ok(count)
    }

    /// Q12: all completions stay. Fewer entries than completions, no entries, and an overrun queue are refused.
    pub fn resize(&mut self, queue: Id, capacity: u32) -> Result<u32, Errno> {
        let cq = self.cqs.get_mut(&queue).expect("its handle is alive");
        let legal =
            (1..=LIMITS.max_cqe).contains(&capacity) && cq.entries.len() <= capacity as usize;
        if !legal || cq.has_overrun() {
            return Err(Errno::EINVAL);
        }
        cq.capacity = capacity;
        Ok(capacity)
    }
}

impl Cq {
    /// O3, O8: whether it dropped a completion that it should not have.
    pub fn has_overrun(&self) -> bool {
        self.dropped > 0 && !self.ignores_overrun
    }
}

/// The opcode in the completion of a successful request.
fn opcode(op: &SendOp) -> WcOpcode {
    match op {
        SendOp::Write { .. } => WcOpcode::RDMA_WRITE,
        SendOp::Read { .. } => WcOpcode::RDMA_READ,
        SendOp::CompareSwap { .. } => WcOpcode::COMP_SWAP,
        SendOp::FetchAdd { .. } => WcOpcode::FETCH_ADD,
        SendOp::AtomicWrite { .. } => WcOpcode::ATOMIC_WRITE,
        SendOp::Flush { .. } => WcOpcode::FLUSH,
        SendOp::BindWindow(_) => WcOpcode::BIND_MW,
        SendOp::LocalInvalidate { .. } => WcOpcode::LOCAL_INV,
        _ => WcOpcode::SEND,
    }
}
