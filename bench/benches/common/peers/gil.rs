//! gil, by batches: the producer copies into its free slots, the consumer out of a guard.
#![allow(unsafe_code)]

use core::num::NonZeroUsize;
use core::ptr;

use cq_core::wc::Wc;
use gil::spsc::{self, Receiver as GilReceiver, Sender as GilSender};

use crate::common::peer::{Peer, Receiver, Sender};

/// `gil::spsc`.
pub struct Gil;

impl Peer for Gil {
    const NAME: &'static str = "gil";
    type Memory = NonZeroUsize;
    type Sender<'a> = GilSender<Wc>;
    type Receiver<'a> = GilReceiver<Wc>;

    fn memory(capacity: usize) -> NonZeroUsize {
        NonZeroUsize::new(capacity).expect("not 0")
    }

    fn open(capacity: &mut NonZeroUsize) -> (Self::Sender<'_>, Self::Receiver<'_>) {
        spsc::channel(*capacity)
    }
}

impl Sender for GilSender<Wc> {
    #[inline(always)]
    fn send(&mut self, batch: &[Wc]) -> usize {
        if let [wc] = batch {
            return self.try_send(*wc).is_ok().into();
        }
        let free = self.write_buffer();
        let count = free.len().min(batch.len());
        // SAFETY: both have as many, and do not overlap; what is committed was written.
        unsafe {
            ptr::copy_nonoverlapping(batch.as_ptr(), free.as_mut_ptr().cast(), count);
            self.commit(count);
        }
        count
    }
}

impl Receiver for GilReceiver<Wc> {
    #[inline(always)]
    fn receive(&mut self, room: &mut [Wc]) -> usize {
        if let [one] = room {
            return match self.try_recv() {
                Some(wc) => {
                    *one = wc;
                    1
                }
                None => 0,
            };
        }
        self.read_guard().copy_into(room)
    }
}
