//! What a producer pushes.

use crate::entry::Entry;
use crate::wc::Wc;

/// What can be pushed into a queue of `E`: an entry, or for completions a [`Tagged`], which says more.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no entry of this queue",
    label = "this queue holds `{E}`"
)]
pub trait Completion<E>: sealed::Sealed<E> {
    /// The entry.
    fn entry(&self) -> &E;

    /// The tag that a [raw](super::raw) queue with tags returns with it. Other queues discard it.
    #[inline(always)]
    fn tag(&self) -> u32 {
        0
    }

    /// Whether a consumer armed for solicited completions waits for it ([N3](crate::contract#n3)).
    fn is_urgent(&self) -> bool;
}

impl<E: Entry> Completion<E> for E {
    #[inline(always)]
    fn entry(&self) -> &E {
        self
    }

    #[inline(always)]
    fn is_urgent(&self) -> bool {
        Entry::is_urgent(self)
    }
}

/// A completion with a tag and its SOLICITED flag.
///
/// ```
/// use cq_core::queue::{SoftCq, Tagged};
/// use cq_core::wc::{Wc, WcOpcode, WcStatus};
///
/// let mut storage = SoftCq::<4>::new();
/// let (mut producer, mut consumer) = storage.split();
/// let wc = Wc::new(7, WcStatus::SUCCESS, 5).with_opcode(WcOpcode::RECV);
/// producer.push(&Tagged { wc, solicited: true, ..Tagged::default() }).unwrap();
/// assert_eq!(consumer.pop()?.map(|wc| wc.wr_id()), Some(7));
/// # Ok::<(), cq_core::transport::PollError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Tagged {
    /// The completion.
    pub wc: Wc,
    /// The tag that a [raw](super::raw) queue with tags returns with it.
    pub tag: u32,
    /// Whether the message was sent SOLICITED. Applies to receives only ([N3](crate::contract#n3)).
    pub solicited: bool,
}

impl Completion<Wc> for Tagged {
    #[inline(always)]
    fn entry(&self) -> &Wc {
        &self.wc
    }

    #[inline(always)]
    fn tag(&self) -> u32 {
        self.tag
    }

    /// A solicited receive, or any failure, but never a successful send ([N3](crate::contract#n3)).
    #[inline]
    fn is_urgent(&self) -> bool {
        match self.wc.result() {
            Ok(done) => self.solicited && done.is_recv(),
            Err(_) => true,
        }
    }
}

/// No other code is called between the publication of the first and of the last slot of a batch: if that panicked, the
/// unsafe code of the queue would rely on what does not hold.
mod sealed {
    pub trait Sealed<E> {}
    impl<E: super::Entry> Sealed<E> for E {}
    impl Sealed<super::Wc> for super::Tagged {}
}
