//! Reads that own their buffers until they complete.

use std::mem;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use cq_core::wc::Wc;
use cq_verbs::ledger::{Generation, NotPostedError, Received, Receives};
use cq_verbs::post::PostError;
use cq_verbs::wr::Sge;

use crate::ring::{DEPTH, Ring};

/// Bytes of a file: where they begin, and the buffer that they are read to.
pub struct Block {
    pub offset: usize,
    pub bytes: Vec<u8>,
}

/// The reads in flight. Their ledger is that of receives, which complete in any order.
pub struct Reads {
    ring: Rc<Ring>,
    ledger: Receives<Block>,
}

impl Reads {
    pub fn new(ring: Rc<Ring>) -> Self {
        Self { ring, ledger: Receives::with_capacity(Generation::unique(), DEPTH) }
    }

    pub const fn outstanding(&self) -> usize {
        self.ledger.outstanding()
    }

    /// Posts a read that fills the block.
    pub fn post(
        &mut self,
        file: BorrowedFd<'_>,
        mut block: Block,
    ) -> Result<(), NotPostedError<Block>> {
        let (addr, length) =
            (block.bytes.as_mut_ptr().expose_provenance() as u64, block.bytes.len() as u32);
        let (ring, offset) = (&self.ring, block.offset);
        self.ledger.post_by(&[Sge { addr, length, lkey: 0 }], block, |list| {
            // SAFETY: the ledger owns the buffer until `retire` is given the completion, which is polled once. The heap
            // memory of a vector stays where it is. Dropping waits for what was not retired.
            let posted = unsafe { ring.read(list[0].wr_id, file, offset, (addr, length)) };
            posted.map_err(|why| PostError { posted: 0, why })
        })
    }

    /// Returns the block of a read that has completed.
    pub fn retire<'w>(&mut self, wc: &'w Wc) -> Option<Received<'w, Block>> {
        self.ledger.retire(wc)
    }
}

/// Closing the ring would not end its reads at once: the kernel could still write to buffers that are freed.
impl Drop for Reads {
    fn drop(&mut self) {
        if self.ring.cancel().and_then(|()| self.ring.finish()).is_err() {
            self.ledger.tokens_mut().for_each(|block| mem::forget(mem::take(&mut block.bytes)));
        }
    }
}
