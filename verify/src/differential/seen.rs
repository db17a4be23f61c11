//! What can be seen of a device that carries out a program.

use std::collections::BTreeMap;

use cq_core::wc::{Wc, WcFlags, WcOpcode, WcStatus};

use super::dialect::Dialect;
use crate::device::State;

/// Receives have it in their `wr_id`.
pub const RECV: u64 = 1 << 63;

/// What can be seen from outside without changing anything but events, which were taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// The states of the queue pairs.
    pub states: Vec<State>,
    /// How many events each completion queue has raised.
    pub events: [u32; 4],
    /// How often each asynchronous event came: its number, whether it is a queue pair's, and whose.
    pub reports: BTreeMap<(u32, bool, usize), u32>,
}

/// A completion, as far as it is defined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    wr_id: u64,
    qp: Option<usize>,
    status: WcStatus,
    /// Opcode, bytes, immediate data.
    success: Option<(WcOpcode, Option<u32>, Option<[u8; 4]>)>,
}

/// The completions of each queue, in order: those of send queue `n` at `2 * n`, of its receive queue
/// behind it.
pub type Completed = Vec<Vec<Done>>;

impl Done {
    /// What this says, of the queue pair of this index.
    pub fn new(wc: &Wc, qp: Option<usize>, dialect: &Dialect) -> Self {
        let is_recv = wc.wr_id() & RECV != 0;
        let success = wc.result().ok().map(|done| {
            let counts = is_recv || !matches!(done.opcode(), WcOpcode::SEND | WcOpcode::RDMA_WRITE);
            let with_imm = is_recv && done.flags().contains(WcFlags::WITH_IMM);
            let imm = with_imm.then(|| done.imm()).flatten();
            (done.opcode(), counts.then(|| done.byte_len()), imm)
        });
        Self { wr_id: wc.wr_id(), qp, status: dialect.status(wc.status()), success }
    }

    /// How it ended.
    pub const fn status(&self) -> WcStatus {
        self.status
    }

    /// The place of its queue in [`Completed`].
    pub fn queue(&self) -> usize {
        self.qp.map_or(0, |qp| qp * 2 + usize::from(self.wr_id & RECV != 0))
    }
}
