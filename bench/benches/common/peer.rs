//! What a queue has to offer to be measured. The benches are compiled once for each queue, so that nothing
//! of this stands on the measured path.

use cq_core::wc::Wc;

/// A queue under test.
pub trait Peer {
    /// What the reports call it.
    const NAME: &'static str;
    /// Where its entries are, if the two sides borrow it; empty at first.
    type Memory: Default;
    /// The producer's side.
    type Sender<'a>: Sender;
    /// The consumer's side.
    type Receiver<'a>: Receiver;

    /// The two sides of a queue of so many entries, a power of two, in memory that was not used before.
    fn open(memory: &mut Self::Memory, capacity: usize) -> (Self::Sender<'_>, Self::Receiver<'_>);
}

/// The producer's side of a queue.
pub trait Sender: Send {
    /// Sends as many of the batch as there is room for, and says how many.
    fn send(&mut self, batch: &[Wc]) -> usize;

    /// Sends the whole batch, waiting for room.
    #[inline(always)]
    fn send_all(&mut self, batch: &[Wc]) {
        let mut sent = self.send(batch);
        while sent < batch.len() {
            sent += self.send(&batch[sent..]);
        }
    }
}

/// The consumer's side of a queue.
pub trait Receiver: Send {
    /// Receives as many entries as there are and `buffer` can hold, and says how many.
    fn receive(&mut self, buffer: &mut [Wc]) -> usize;
}

/// The batch of a queue that takes one entry at a time.
#[inline(always)]
pub fn send_each(batch: &[Wc], mut send: impl FnMut(&Wc) -> bool) -> usize {
    for (sent, wc) in batch.iter().enumerate() {
        if !send(wc) {
            return sent;
        }
    }
    batch.len()
}

/// The batch of a queue that gives one entry at a time.
#[inline(always)]
pub fn receive_each(buffer: &mut [Wc], mut receive: impl FnMut() -> Option<Wc>) -> usize {
    let mut received = 0;
    for place in buffer {
        let Some(wc) = receive() else { break };
        *place = wc;
        received += 1;
    }
    received
}

/// Implements the two sides of a queue: how a batch is sent, and how entries are received into a buffer; both are inlined.
macro_rules! sides {
    (
        $sender:ty: |$tx:ident, $batch:ident| $send:expr,
        $receiver:ty: |$rx:ident, $buffer:ident| $receive:expr $(,)?
    ) => {
        impl $crate::common::peer::Sender for $sender {
            #[inline(always)]
            fn send(&mut self, $batch: &[cq_core::wc::Wc]) -> usize {
                let $tx = self;
                $send
            }
        }

        impl $crate::common::peer::Receiver for $receiver {
            #[inline(always)]
            fn receive(&mut self, $buffer: &mut [cq_core::wc::Wc]) -> usize {
                let $rx = self;
                $receive
            }
        }
    };
}
pub(super) use sides;
