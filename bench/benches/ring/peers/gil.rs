//! gil, by batches: the producer copies into its free slots, the consumer out of a guard.
#![allow(unsafe_code)]

use core::num::NonZeroUsize;
use core::ptr;

use gil::spsc::{self, Receiver as GilReceiver, Sender as GilSender};

use crate::entries::Item;
use crate::peer::{Peer, Reader, sides};

/// `gil::spsc`.
pub struct Gil;

impl<E: Item> Peer<E> for Gil {
    const NAME: &'static str = "gil";
    type Memory = ();
    type Sender<'a> = GilSender<E>;
    type Receiver<'a> = GilReceiver<E>;

    fn open((): &mut (), capacity: usize) -> (Self::Sender<'_>, Self::Receiver<'_>) {
        spsc::channel(NonZeroUsize::new(capacity).expect("not 0"))
    }
}

sides! { E:
    GilSender<E>: |queue, batch| {
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
    GilReceiver<E>: |queue, buffer| match buffer {
        [one] => queue.try_recv().map_or(0, |wc| {
            *one = wc;
            1
        }),
        buffer => queue.read_guard().copy_into(buffer),
    },
}

impl<E: Item> Reader<E> for GilReceiver<E> {
    #[inline(always)]
    fn read(&mut self, most: usize, mut see: impl FnMut(&[E])) -> usize {
        // Its slice ends where the memory does.
        let mut read = 0;
        while read < most {
            let mut guard = self.read_guard();
            let count = guard.len().min(most - read);
            if count == 0 {
                break;
            }
            see(&guard.as_slice()[..count]);
            guard.advance(count);
            read += count;
        }
        read
    }
}
