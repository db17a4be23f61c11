//! Has happen to a request what was decided: it waits, or fails, or is carried out with noise.

use std::ops::ControlFlow;

use cq_core::setup::QpType;
use cq_core::wc::WcStatus;
use cq_core::wr::SendOp;

use crate::completion::channel::{self, Source};
use crate::completion::push;
use crate::engine::requester::{Halt, Halted, Initiator};
use crate::engine::ring::{Ring, SendRequest};
use crate::memory::copy_guard::Window;
use crate::policy::faults::plan::{Candidate, Fate, Noise};
use crate::sync;

/// Has happen to the request at a position what is to go wrong with it, if it is `faulty`: says whether it is then
/// carried out nonetheless, or else which halted.
#[inline]
pub fn meet(
    faulty: bool,
    initiator: &mut Initiator<'_>,
    ring: &Ring,
    position: u64,
) -> ControlFlow<Option<Halted>> {
    if faulty { go_wrong(initiator, ring, position) } else { ControlFlow::Continue(()) }
}

#[cold]
#[inline(never)]
fn go_wrong(
    initiator: &mut Initiator<'_>,
    ring: &Ring,
    position: u64,
) -> ControlFlow<Option<Halted>> {
    let request = ring.read_send(position);
    let Some(fate) = fate(initiator, ring, &request, position) else {
        return ControlFlow::Continue(());
    };
    let why = match fate {
        Fate::Later(time) => come_back(initiator, time, Halt::Later),
        Fate::Waits(..) if initiator.kind != QpType::Rc => {
            // Nobody answers anyway: it is lost, as if it had been under way.
            initiator.complete(&request, position);
            return ControlFlow::Break(None);
        }
        Fate::Waits(waits_for, time) => come_back(initiator, time, Halt::Waits(waits_for)),
        Fate::Fails(status) => fail(initiator, &request, status),
        Fate::Runs(noise) => {
            make(noise, initiator);
            return ControlFlow::Continue(());
        }
    };
    ControlFlow::Break(Some(Halted { position, wr_id: request.wr_id, why }))
}

/// Sets the alarm to this time. Without one, the request fails like any other that has to wait.
fn come_back(initiator: &Initiator<'_>, time: u64, why: Halt) -> Halt {
    let service = initiator.fabric.service();
    match service.wake_at(initiator.fabric, initiator.number(), time) {
        Ok(()) => why,
        Err(_) => Halt::Failed(WcStatus::GENERAL_ERR),
    }
}

fn make(noise: Noise, initiator: &Initiator<'_>) {
    let (fabric, slot) = (initiator.fabric, initiator.slot);
    let (send_cq, recv_cq) = (sync::load(&slot.send_cq), sync::load(&slot.recv_cq));
    if noise.overruns {
        push::overrun(fabric, send_cq);
    }
    if noise.spurious {
        for cq in [send_cq, recv_cq] {
            channel::raise(fabric, Source::Completion(cq), || true);
        }
    }
}

/// What happens to the request at a position, if this process has faults.
fn fate(
    initiator: &Initiator<'_>,
    ring: &Ring,
    request: &SendRequest,
    position: u64,
) -> Option<Fate> {
    let (fabric, number) = (initiator.fabric, initiator.number());
    let peer = match (request.op, initiator.kind) {
        (SendOp::BindWindow(_) | SendOp::LocalInvalidate { .. }, _) => None,
        (_, QpType::Ud) => Some(ring.read_way(position).qp_num),
        _ => Some(initiator.peer.number()),
    };
    let candidate = Candidate {
        index: fabric.tables().qps.index(number),
        number,
        peer,
        position,
        takes_receive: is_send(request.op) || is_write_imm(request.op),
        now: fabric.service().now(),
    };
    Some(fabric.faults()?.fate(&candidate))
}

const fn is_send(op: SendOp) -> bool {
    matches!(op, SendOp::Send { .. } | SendOp::SendInvalidate { .. })
}

const fn is_write_imm(op: SendOp) -> bool {
    matches!(op, SendOp::Write { imm: Some(_), .. })
}

/// Fails a request with this status, and its peer as it would then.
fn fail(initiator: &mut Initiator<'_>, request: &SendRequest, status: WcStatus) -> Halt {
    let window = Window::open(initiator.fabric, initiator.number());
    let refused = refuse(initiator, request.op, status);
    drop(window);
    refused.err().unwrap_or(Halt::Failed(status))
}

/// The peer's part, where it has one.
fn refuse(initiator: &Initiator<'_>, op: SendOp, status: WcStatus) -> Result<(), Halt> {
    let theirs = match status {
        _ if initiator.kind != QpType::Rc => return Ok(()),
        WcStatus::REM_INV_REQ_ERR => is_send(op).then_some(WcStatus::LOC_LEN_ERR),
        WcStatus::REM_OP_ERR => is_send(op).then_some(WcStatus::LOC_PROT_ERR),
        WcStatus::REM_ACCESS_ERR => is_write_imm(op).then_some(WcStatus::LOC_ACCESS_ERR),
        _ => return Ok(()),
    };
    let peer = &initiator.peer;
    peer.listens().map_err(|why| initiator.halt(why))?;
    match theirs {
        Some(theirs) => {
            let receive = initiator.next_receive().map_err(|why| initiator.halt(why))?;
            peer.refused(&receive, theirs);
        }
        None => peer.refuse(status),
    }
    Ok(())
}
