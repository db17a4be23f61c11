//! gil, by batches: the producer copies into its free slots, the consumer out of a guard.
#![allow(unsafe_code)]

use core::num::NonZeroUsize;
use core::ptr;

use cq_core::wc::Wc;
use gil::spsc::{self, Receiver as GilReceiver, Sender as GilSender};

use crate::common::peer::{Peer, sides};

/// `gil::spsc`.
pub struct Gil;

impl Peer for Gil {
    const NAME: &'static str = "gil";
    type Memory = ();
    type Sender<'a> = GilSender<Wc>;
    type Receiver<'a> = GilReceiver<Wc>;

    fn open((): &mut (), capacity: usize) -> (Self::Sender<'_>, Self::Receiver<'_>) {
        spsc::channel(NonZeroUsize::new(capacity).expect("not 0"))
    }
}

sides! {
    GilSender<Wc>: |queue, batch| {
        if let [wc] = batch {
            return queue.try_send(*wc).is_ok().into();
        }
        let free = queue.write_buffer();
        let count = free.len().min(batch.len());
        // SAFETY: both have as many, and do not overlap; what is committed was written.
        unsafe {
            ptr::copy_nonoverlapping(batch.as_ptr(), free.as_mut_ptr().cast(), count);
            queue.commit(count);
        }
        count
    },
    GilReceiver<Wc>: |queue, buffer| match buffer {
        [one] => queue.try_recv().map_or(0, |wc| {
            *one = wc;
            1
        }),
        buffer => queue.read_guard().copy_into(buffer),
    },
}
