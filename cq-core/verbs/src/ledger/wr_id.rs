//! What a ledger writes into `wr_id`: the direction, its generation, the number of the request.

use cq_core::wc::Wc;

const RECEIVE: u64 = 1 << 63;
const NUMBER_BITS: u32 = 32;

/// Which queue a request was posted to.
///
/// ```
/// use cq_core::transport::CqKey;
/// use cq_core::wc::{Wc, WcStatus};
/// use cq_testing::fake::{Call, Script};
/// use cq_verbs::ledger::{Array, Direction, Generation, Receives};
///
/// // A queue pair: here a script.
/// let qp = &mut &Script::<4>::new(CqKey { index: 0, generation: 1 });
/// let mut receives = Receives::<&str, Array<4>>::fixed(Generation::new(1));
/// receives.post(qp, &[], "a")?;
/// let Call::Recv { wr_id, .. } = qp.calls()[0] else { unreachable!() };
/// assert_eq!(Direction::of(&Wc::new(wr_id, WcStatus::WR_FLUSH_ERR, 5)), Direction::Receive);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Direction {
    /// The send queue.
    Send,
    /// The receive queue, or a shared one.
    Receive,
}

impl Direction {
    /// The direction of a request that a ledger has posted, whether it succeeded or failed. A completion queue that has
    /// both tells by this which ledger a completion is for.
    #[inline]
    #[must_use]
    pub const fn of(wc: &Wc) -> Self {
        if wc.wr_id() & RECEIVE == 0 { Self::Send } else { Self::Receive }
    }
}

/// Tells the requests of one ledger from those of all others, and those before a RESET from those after it.
///
/// ```
/// use cq_core::transport::CqKey;
/// use cq_core::wc::{Wc, WcStatus};
/// use cq_testing::fake::{Call, Script};
/// use cq_verbs::ledger::{Array, Generation, Sends};
/// use cq_verbs::wr::SendWr;
///
/// // The ledgers of a queue pair, here a script, and of its successor.
/// let qp = &mut &Script::<4>::new(CqKey { index: 0, generation: 1 });
/// let [mut old, mut new] = [1, 2].map(|number| Sends::<&str, Array<4>>::fixed(Generation::new(number)));
/// old.post(qp, SendWr::send_inline(0, b"ping"), "a")?;
/// let Call::Send { wr_id, .. } = qp.calls()[0] else { unreachable!() };
/// let late = Wc::new(wr_id, WcStatus::SUCCESS, 5);
/// assert_eq!((new.retire(&late).count(), old.retire(&late).count()), (0, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Generation(u32);

impl Generation {
    const BITS: u32 = 31;

    /// The generation with this number, of which the lower 31 bits count. Two ledgers must differ in it if their
    /// completions may be polled from one queue; also if one queue pair is destroyed before the other is created.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number & (u32::MAX >> (u32::BITS - Self::BITS)))
    }

    /// A generation that no other ledger of this process has, among 2³¹ of them. Available on targets with
    /// compare-and-swap.
    #[cfg(target_has_atomic = "32")]
    #[must_use]
    pub fn unique() -> Self {
        Self::new(crate::sync::unique_number())
    }

    /// The `wr_id` of a request.
    #[inline]
    pub(super) const fn wr_id(self, direction: Direction, number: u32) -> u64 {
        let direction = match direction {
            Direction::Send => 0,
            Direction::Receive => RECEIVE,
        };
        direction | (self.0 as u64) << NUMBER_BITS | number as u64
    }

    /// The number of a request of this generation and direction.
    #[inline]
    pub(super) const fn number_of(self, direction: Direction, wc: &Wc) -> Option<u32> {
        let number = wc.wr_id() ^ self.wr_id(direction, 0);
        if number >> NUMBER_BITS == 0 { Some(number as u32) } else { None }
    }
}
