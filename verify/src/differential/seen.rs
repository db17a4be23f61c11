//! The observable state of a device that executes a program.

use std::collections::BTreeMap;

use cq_core::wc::{Wc, WcFlags, WcOpcode, WcStatus};

use super::dialect::Dialect;
use crate::device::QpState;

/// Receives have it in their `wr_id`.
pub const RECV: u64 = 1 << 63;

/// The observable state. Observing it takes the events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// The states of the queue pairs.
    pub states: Vec<QpState>,
    /// The number of events that each completion queue has raised.
    pub events: [u32; 4],
    /// The number of asynchronous events by type and object.
    pub reports: BTreeMap<(u32, Option<usize>), u32>,
    /// How often the key of each window was incremented, and the limits of the shared receive queues.
    pub others: [(u8, u32); 2],
}

/// The defined fields of a completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    wr_id: u64,
    qp: Option<usize>,
    status: WcStatus,
    success: Option<Success>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Success {
    opcode: WcOpcode,
    bytes: Option<u32>,
    imm: Option<[u8; 4]>,
    /// Whether it has the flags WITH_INV and GRH.
    invalidates: bool,
    routed: bool,
    /// The sender of a datagram.
    from: Option<usize>,
}

/// The completions of each work queue, in order: those of send queue `n` at `2 * n`, those of its receive queue after it.
pub type Completed = Vec<Vec<Done>>;

impl Done {
    /// The defined fields of a completion; `find` maps numbers to queue pairs, and `is_ud` is whether it is of a datagram.
    pub fn new(
        wc: &Wc,
        find: impl Fn(u32) -> Option<usize>,
        is_ud: bool,
        dialect: &Dialect,
    ) -> Self {
        let is_recv = wc.wr_id() & RECV != 0;
        let qp = find(wc.qp_num());
        let success = wc.result().ok().map(|done| {
            let answered = [WcOpcode::RDMA_READ, WcOpcode::COMP_SWAP, WcOpcode::FETCH_ADD];
            let counts = is_recv || answered.contains(&done.opcode());
            let says = |flag| is_recv && done.flags().contains(flag);
            let from_there = is_recv && is_ud;
            Success {
                opcode: done.opcode(),
                bytes: counts.then(|| done.byte_len()),
                imm: if says(WcFlags::WITH_IMM) { done.imm() } else { None },
                invalidates: says(WcFlags::WITH_INV),
                routed: is_ud && says(WcFlags::GRH),
                from: if from_there { find(done.src_qp()) } else { None },
            }
        });
        Self { wr_id: wc.wr_id(), qp, status: dialect.status(wc.status()), success }
    }

    /// The status.
    pub const fn status(&self) -> WcStatus {
        self.status
    }

    /// The index of its queue in [`Completed`].
    pub fn queue(&self) -> usize {
        self.qp.map_or(0, |qp| qp * 2 + usize::from(self.wr_id & RECV != 0))
    }
}
