//! Carries out the faults that were decided for a request: it waits, fails, or is carried out with noise.

use std::ops::ControlFlow;

use cq_core::wc::WcStatus;
use cq_verbs::setup::QpType;
use cq_verbs::wr::SendOp;

use super::{Halt, Halted, Requester};
use crate::completion::channel::{self, Source};
use crate::completion::push;
use crate::engine::retry::WaitsFor;
use crate::engine::ring::SendRequest;
use crate::policy::faults::plan::{Candidate, Fate, Noise};
use crate::protocol::number::Position;

/// Applies a fault to the request at a position, if the queue pair is `faulty`. `Continue` means that the request is
/// carried out nonetheless; `Break` has the halt, if there is one.
#[inline]
pub fn meet(
    faulty: bool,
    requester: &mut Requester<'_>,
    position: Position,
) -> ControlFlow<Option<Halted>> {
    if faulty { apply_fault(requester, position) } else { ControlFlow::Continue(()) }
}

#[cold]
#[inline(never)]
fn apply_fault(requester: &mut Requester<'_>, position: Position) -> ControlFlow<Option<Halted>> {
    let request = requester.connection.ring.read_send(position);
    let Some(fate) = fate(requester, &request, position) else {
        return ControlFlow::Continue(());
    };
    let why = match fate {
        Fate::Later(time) => retry_at(requester, time, Halt::Later),
        Fate::Unanswered(_) | Fate::Starved(_) if requester.connection.kind != QpType::RC => {
            // Nothing is answered on an unreliable transport: the request is lost after it was sent.
            requester.complete(&request, position);
            return ControlFlow::Break(None);
        }
        Fate::Unanswered(time) => retry_at(requester, time, Halt::Waits(WaitsFor::Answer)),
        Fate::Starved(time) => retry_at(requester, time, Halt::Waits(WaitsFor::Receive)),
        Fate::Fails(status) => fail(requester, &request, status),
        Fate::Runs(noise) => {
            make(noise, requester);
            return ControlFlow::Continue(());
        }
    };
    ControlFlow::Break(Some(Halted { position, wr_id: request.wr_id, why }))
}

/// Sets an alarm for this time. Where none can be set, the request fails like any other that has to wait.
fn retry_at(requester: &Requester<'_>, time: u64, why: Halt) -> Halt {
    let (engine, number) = (requester.engine, requester.number());
    match engine.alarms.wake_at(engine.index(number), time) {
        Ok(()) => why,
        Err(_) => Halt::Failed(WcStatus::GENERAL_ERR),
    }
}

fn make(noise: Noise, requester: &Requester<'_>) {
    let (engine, slot) = (requester.engine, requester.slot);
    let (send_cq, recv_cq) = (slot.send_cq(), slot.recv_cq());
    if noise.overruns {
        push::overrun(engine.completions, send_cq);
    }
    if noise.spurious {
        for cq in [send_cq, recv_cq] {
            channel::raise(engine.completions, Source::Completion(cq), || true);
        }
    }
}

/// The fault of the request at a position, if this process injects faults.
fn fate(requester: &Requester<'_>, request: &SendRequest, position: Position) -> Option<Fate> {
    let (engine, number) = (requester.engine, requester.number());
    let peer = match (request.op, requester.connection.kind) {
        (SendOp::BindWindow(_) | SendOp::LocalInvalidate { .. }, _) => None,
        (_, QpType::UD) => Some(requester.connection.ring.read_ud_address(position).qp_num),
        _ => Some(requester.connection.peer.number),
    };
    let candidate = Candidate {
        index: engine.index(number),
        number,
        peer,
        position,
        takes_receive: is_send(request.op) || is_write_imm(request.op),
        now: engine.alarms.now(),
    };
    Some(engine.policy.faults.as_ref()?.fate(&candidate))
}

const fn is_send(op: SendOp) -> bool {
    matches!(op, SendOp::Send { .. } | SendOp::SendInvalidate { .. })
}

const fn is_write_imm(op: SendOp) -> bool {
    matches!(op, SendOp::Write { imm: Some(_), .. })
}

/// Fails a request with this status, and the responder as it would fail then.
fn fail(requester: &mut Requester<'_>, request: &SendRequest, status: WcStatus) -> Halt {
    let mut guard = Some(requester.copy_guard());
    let refused = refuse(requester, request.op, status);
    requester.close(&mut guard);
    refused.err().unwrap_or(Halt::Failed(status))
}

/// The responder's side of the failure, if it has one.
fn refuse(requester: &mut Requester<'_>, op: SendOp, status: WcStatus) -> Result<(), Halt> {
    let responder_status = match status {
        _ if requester.connection.kind != QpType::RC => return Ok(()),
        WcStatus::REM_INV_REQ_ERR => is_send(op).then_some(WcStatus::LOC_LEN_ERR),
        WcStatus::REM_OP_ERR => is_send(op).then_some(WcStatus::LOC_PROT_ERR),
        WcStatus::REM_ACCESS_ERR => is_write_imm(op).then_some(WcStatus::LOC_ACCESS_ERR),
        _ => return Ok(()),
    };
    requester.connection.peer.listens().map_err(|why| requester.halt(why))?;
    match responder_status {
        Some(responder_status) => {
            let receive = requester.next_receive().map_err(|why| requester.halt(why))?;
            let refused = requester.connection.peer.refused(&receive, responder_status);
            requester.add_received(refused);
            requester.deliver();
        }
        None => requester.connection.peer.refuse(status),
    }
    Ok(())
}
