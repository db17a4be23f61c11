//! What a queue has to offer to be measured. The benches are compiled once for each queue, so that nothing
//! of this stands on the measured path.

use cq_core::wc::Wc;

use super::entries::Item;

/// A queue under test, of these entries.
pub trait Peer<E: Item = Wc> {
    /// What the reports call it.
    const NAME: &'static str;
    /// Where its entries are, if the two sides borrow it; empty at first.
    type Memory: Default;
    /// The producer's side.
    type Sender<'a>: Sender<E>;
    /// The consumer's side.
    type Receiver<'a>: Receiver<E>;

    /// The two sides of a queue of so many entries, a power of two, in memory that was not used before.
    fn open(memory: &mut Self::Memory, capacity: usize) -> (Self::Sender<'_>, Self::Receiver<'_>);
}

/// The producer's side of a queue.
pub trait Sender<E = Wc>: Send {
    /// Sends as many of the batch as there is room for, and says how many.
    fn send(&mut self, batch: &[E]) -> usize;

    /// Sends the whole batch, waiting for room.
    #[inline(always)]
    fn send_all(&mut self, batch: &[E]) {
        let mut sent = self.send(batch);
        while sent < batch.len() {
            sent += self.send(&batch[sent..]);
        }
    }
}

/// The consumer's side of a queue.
pub trait Receiver<E = Wc>: Send {
    /// Receives as many entries as there are and `buffer` can hold, and says how many.
    fn receive(&mut self, buffer: &mut [E]) -> usize;
}

/// A receiver that shows entries where they lie in the queue.
pub trait Reader<E = Wc>: Receiver<E> {
    /// Shows up to `most` entries, in one slice or two, gives their slots back, and says how many they were.
    fn read(&mut self, most: usize, see: impl FnMut(&[E])) -> usize;
}

/// The batch of a queue that takes one entry at a time.
#[inline(always)]
pub fn send_each<E>(batch: &[E], mut send: impl FnMut(&E) -> bool) -> usize {
    for (sent, wc) in batch.iter().enumerate() {
        if !send(wc) {
            return sent;
        }
    }
    batch.len()
}

/// The batch of a queue that gives one entry at a time.
#[inline(always)]
pub fn receive_each<E>(buffer: &mut [E], mut receive: impl FnMut() -> Option<E>) -> usize {
    let mut received = 0;
    for place in buffer {
        let Some(wc) = receive() else { break };
        *place = wc;
        received += 1;
    }
    received
}

/// Implements the two sides of a queue, of any [`Item`] `E` or of [`Wc`]: how a batch is sent, and how
/// entries are received into a buffer; both are inlined.
macro_rules! sides {
    (E: $($rest:tt)*) => {
        $crate::peer::sides!(@ E [E: $crate::entries::Item] $($rest)*);
    };
    (Wc: $($rest:tt)*) => {
        $crate::peer::sides!(@ Wc [] $($rest)*);
    };
    (
        @ $entry:ident [$($bound:tt)*]
        $sender:ty: |$tx:ident, $batch:ident| $send:expr,
        $receiver:ty: |$rx:ident, $buffer:ident| $receive:expr $(,)?
    ) => {
        impl<$($bound)*> $crate::peer::Sender<$entry> for $sender {
            #[inline(always)]
            fn send(&mut self, $batch: &[$entry]) -> usize {
                let $tx = self;
                $send
            }
        }

        impl<$($bound)*> $crate::peer::Receiver<$entry> for $receiver {
            #[inline(always)]
            fn receive(&mut self, $buffer: &mut [$entry]) -> usize {
                let $rx = self;
                $receive
            }
        }
    };
}
pub(super) use sides;
