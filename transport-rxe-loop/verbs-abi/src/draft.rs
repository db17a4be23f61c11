//! What is asked for between `ibv_wr_start(3)` and `ibv_wr_complete(3)`, until it is posted as a whole.

use std::mem;

use cq_verbs::setup::{QpCaps, QpType};
use cq_verbs::wr::{Data, SendFlags, SendOp, SendWr};
use transport_rxe_loop::{Batch, QueuePair};

use crate::convert::{To, flags, put_to, renew};
use crate::errno::Errno;
use crate::mw::{Posted, Window};
use crate::raw::Slot;
use crate::sys::*;

/// Operations that datagrams have.
const OF_DATAGRAMS: u32 = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
/// Those that connections of either kind have.
const OF_CONNECTIONS: u32 = OF_DATAGRAMS
    | IBV_QP_EX_WITH_SEND_WITH_INV
    | IBV_QP_EX_WITH_RDMA_WRITE
    | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM
    | IBV_QP_EX_WITH_BIND_MW
    | IBV_QP_EX_WITH_LOCAL_INV;
/// Those that reliable connections have.
const OF_RELIABLE: u32 = OF_CONNECTIONS
    | IBV_QP_EX_WITH_RDMA_READ
    | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP
    | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD
    | IBV_QP_EX_WITH_ATOMIC_WRITE
    | IBV_QP_EX_WITH_FLUSH;

/// Bytes of an atomic write, which lie in the request.
pub const WORD: usize = size_of::<u64>();

/// Requests that are not posted yet. It grows when it has to, and keeps its memory.
#[derive(Default)]
pub struct Draft {
    /// The operations that were asked for when the queue pair was made; `None` if it has no functions of its own.
    ops: Option<u32>,
    is_begun: bool,
    /// What went wrong first.
    wrong: Option<Errno>,
    requests: Vec<Request>,
    /// The data of all of them.
    sges: Vec<ibv_sge>,
    bytes: Vec<u8>,
}

struct Request {
    wr_id: u64,
    op: SendOp,
    flags: SendFlags,
    data: Place,
    to: Option<To>,
    /// The one that it binds.
    window: Option<&'static Slot<Window>>,
}

/// Where the data of a request is: so much, from there on.
#[derive(Clone, Copy)]
enum Place {
    Sges { first: usize, count: usize },
    Inline { first: usize, count: usize },
}

impl Draft {
    /// Nothing, for a queue pair of this type.
    ///
    /// # Errors
    /// EOPNOTSUPP: the type does not have all of the operations.
    pub fn new(qp_type: QpType, ops: Option<u32>) -> Result<Self, Errno> {
        let all = match qp_type {
            QpType::RC => OF_RELIABLE,
            QpType::UC => OF_CONNECTIONS,
            _ => OF_DATAGRAMS,
        };
        if ops.unwrap_or_default() & !all != 0 {
            return Err(Errno::OPNOTSUPP);
        }
        Ok(Self { ops, ..Self::default() })
    }

    /// Whether the queue pair has functions of its own.
    pub const fn has_ops(&self) -> bool {
        self.ops.is_some()
    }

    /// Capacities of which the operations can be had: an atomic write's bytes are inline.
    pub fn suffice(&self, caps: QpCaps) -> QpCaps {
        let least = if self.has(IBV_QP_EX_WITH_ATOMIC_WRITE) { WORD as u32 } else { 0 };
        caps.max_inline(caps.max_inline.max(least))
    }

    fn has(&self, op: u32) -> bool {
        self.ops.is_some_and(|ops| ops & op != 0)
    }

    /// Begins anew.
    pub fn begin(&mut self) {
        self.is_begun = true;
        self.wrong = None;
        self.requests.clear();
        self.sges.clear();
        self.bytes.clear();
    }

    /// Whether it was begun; ends it.
    pub fn end(&mut self) -> bool {
        mem::take(&mut self.is_begun)
    }

    /// Something went wrong: nothing of it will be posted.
    pub fn fail(&mut self, why: Errno) {
        self.wrong.get_or_insert(why);
    }

    /// Adds a request.
    ///
    /// # Errors
    /// EOPNOTSUPP: its operation was not asked for. EINVAL: unknown flags. Why `op` is none.
    pub fn add(
        &mut self,
        needs: u32,
        (wr_id, wr_flags): (u64, c_uint),
        op: impl FnOnce(&Self) -> Result<(SendOp, Option<&'static Slot<Window>>), Errno>,
    ) -> Result<(), Errno> {
        if !self.is_begun {
            return Ok(());
        }
        if !self.has(needs) {
            return Err(Errno::OPNOTSUPP);
        }
        let ((op, window), flags) = (op(self)?, flags(wr_flags)?);
        let data = Place::Sges { first: 0, count: 0 };
        self.requests.push(Request { wr_id, op, flags, data, to: None, window });
        Ok(())
    }

    /// The last request.
    ///
    /// # Errors
    /// EINVAL: there is none.
    fn last(&mut self) -> Result<&mut Request, Errno> {
        self.requests.last_mut().ok_or(Errno::INVAL)
    }

    /// Gives the last request its SGEs. EINVAL: there is none.
    pub fn set_sges(&mut self, sges: &[ibv_sge]) -> Result<(), Errno> {
        let (first, count) = (self.sges.len(), sges.len());
        self.sges.extend_from_slice(sges);
        self.last()?.data = Place::Sges { first, count };
        Ok(())
    }

    /// Gives the last request its bytes. EINVAL: there is none.
    pub fn set_bytes(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        let (first, count) = (self.bytes.len(), bytes.len());
        self.bytes.extend_from_slice(bytes);
        self.last()?.data = Place::Inline { first, count };
        Ok(())
    }

    /// Gives the last request its destination. EINVAL: there is none.
    pub fn set_to(&mut self, to: To) -> Result<(), Errno> {
        self.last()?.to = Some(to);
        Ok(())
    }

    /// The key that a window will have once everything here is done, if something here binds it.
    pub fn key_of(&self, window: &'static Slot<Window>) -> Option<u32> {
        let binds =
            |request: &&Request| request.window.is_some_and(|bound| std::ptr::eq(bound, window));
        match self.requests.iter().rev().find(binds)?.op {
            SendOp::BindWindow(bind) => Some(bind.rkey),
            _ => None,
        }
    }

    /// Posts everything, or nothing.
    ///
    /// # Errors
    /// What went wrong first: while it was written, or with a request, as when it is posted.
    pub fn post(&self, qp: &mut QueuePair) -> Result<(), Errno> {
        if let Some(why) = self.wrong {
            return Err(why);
        }
        let (qp_num, first) = (qp.number(), qp.sends_posted());
        let mut batch = qp.batch();
        self.requests.iter().try_for_each(|request| self.put(&mut batch, request))?;
        batch.post();
        for (Request { op, window, .. }, position) in self.requests.iter().zip(first..) {
            renew(op, *window, Posted { qp_num, position });
        }
        Ok(())
    }

    fn put(&self, batch: &mut Batch<'_>, request: &Request) -> Result<(), Errno> {
        let data = match request.data {
            Place::Sges { first, count } => Data::Sges(&self.sges[first..first + count]),
            Place::Inline { first, count } => Data::Inline(&self.bytes[first..first + count]),
        };
        let &Request { wr_id, op, flags, to, .. } = request;
        let request = SendWr { wr_id, op, flags, data };
        match to {
            Some(to) => put_to(batch, &request, to),
            None => Ok(batch.put(&request)?),
        }
    }
}
