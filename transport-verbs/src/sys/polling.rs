//! The function that polls a completion queue: the device's own or, after an overrun, one that returns OVERRUN. So an
//! overrun needs no flag, and a poll no instruction more than in C.
//!
//! | polled by | until |
//! |---|---|
//! | the device's own function | the overrun's event is read ([`Polling::overran`]), or a poll says that it was one ([`Polling::end_if_overrun`]) |
//! | one that returns OVERRUN if the device's finds nothing, or fails | a poll returned it |
//! | one that returns OVERRUN | – : some devices use the queue again once it is empty, but its failure is permanent (O3) |

#![allow(unsafe_code)]

use std::ffi::c_int;
use std::mem;
use std::sync::atomic::{AtomicPtr, Ordering};

use rdma_sys::{ibv_context, ibv_cq, ibv_wc};

/// What a poll returns that finds nothing in a queue that is known to have overrun. Devices return a small number below 0.
const OVERRUN: c_int = c_int::MIN;

/// What a device returns that knows an overrun from other failures: the provider of cxgb4, and the loopback's C ABI.
const OVERFLOW: c_int = -libc::EOVERFLOW;

/// `ibv_poll_cq(3)` of a device.
type PollFn = unsafe extern "C" fn(*mut ibv_cq, c_int, *mut ibv_wc) -> c_int;

/// The function that polls a queue.
///
/// The thread that reads events sets it. The poller loads it, and sets it after it has returned the overrun. All are
/// relaxed: the functions exist from the start, and no other data is published.
#[derive(Debug)]
pub struct Polling(AtomicPtr<()>);

/// One address to know each by; that of a function may be another in each place.
static OVERRAN: PollFn = poll_overrun;
static ENDED: PollFn = poll_ended;

impl Polling {
    /// Polls queues of this context, none of which overran.
    ///
    /// # Safety
    /// The context is open.
    pub unsafe fn new(context: *mut ibv_context) -> Self {
        // SAFETY: as the caller promises.
        let poll = unsafe { device_poll(context) };
        Self(AtomicPtr::new(poll as *mut ()))
    }

    /// Finds nothing.
    #[cfg(test)]
    pub fn nothing() -> Self {
        unsafe extern "C" fn nothing(_: *mut ibv_cq, _: c_int, _: *mut ibv_wc) -> c_int {
            0
        }
        Self(AtomicPtr::new(nothing as PollFn as *mut ()))
    }

    /// Whether an overrun was reported.
    pub fn is_reported(&self) -> bool {
        self.0.load(Ordering::Relaxed) == OVERRAN as *mut ()
    }

    /// From now on a poll that finds nothing, or fails, returns [`OVERRUN`]. A device may report it for each
    /// completion that it drops, also after the end.
    pub fn overran(&self) {
        let overrun = |now: *mut ()| (now != ENDED as *mut ()).then_some(OVERRAN as *mut ());
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, overrun);
    }

    /// If a poll failed with this number because of an overrun, every poll fails so from now on, whatever the device does.
    /// Returns whether it is one: the number says so, or the event was read, maybe while the device was polled.
    ///
    /// What other numbers mean is the device's own: those of mlx4 and mlx5, for example, are of a completion that makes no
    /// sense, and nothing comes from their queues that overran.
    #[cold]
    pub fn end_if_overrun(&self, failed: c_int) -> bool {
        let is_one = self.is_reported() || [OVERRUN, OVERFLOW].contains(&failed);
        if is_one {
            self.0.store(ENDED as *mut (), Ordering::Relaxed);
        }
        is_one
    }

    /// `ibv_poll_cq(3)`: the count, or a negative number, which [may be](Self::end_if_overrun) an overrun.
    ///
    /// # Safety
    /// The queue is alive, of the context that this was made for, and there is space for `capacity` completions at `out`.
    #[inline]
    pub unsafe fn poll(&self, cq: *mut ibv_cq, capacity: c_int, out: *mut ibv_wc) -> c_int {
        let poll = self.0.load(Ordering::Relaxed);
        // SAFETY: nothing but such functions is stored; the caller promises the rest.
        unsafe { mem::transmute::<*mut (), PollFn>(poll)(cq, capacity, out) }
    }
}

/// The device's own function.
///
/// # Safety
/// The context is open.
unsafe fn device_poll(context: *mut ibv_context) -> PollFn {
    // SAFETY: as the caller promises; the table of operations does not change.
    unsafe { (*context).ops.poll_cq }.expect("every device can poll")
}

/// Polls a queue that overran: completions stored before come first (O3). A device that fails then does so because of
/// the overrun.
///
/// # Safety
/// As [`Polling::poll`].
unsafe extern "C" fn poll_overrun(cq: *mut ibv_cq, capacity: c_int, out: *mut ibv_wc) -> c_int {
    // SAFETY: as the caller promises; a queue's context is open.
    let polled = unsafe { device_poll((*cq).context)(cq, capacity, out) };
    match polled {
        ..=0 if capacity > 0 => OVERRUN,
        polled => polled,
    }
}

/// Polls a queue that has ended; asking for none is no error (P6).
///
/// # Safety
/// It has no conditions.
unsafe extern "C" fn poll_ended(_: *mut ibv_cq, capacity: c_int, _: *mut ibv_wc) -> c_int {
    if capacity > 0 { OVERRUN } else { 0 }
}

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;
    use std::ptr;

    use super::*;

    /// A device's function for a queue whose `cqe` is how many completions wait in it, or a failure.
    unsafe extern "C" fn counted(cq: *mut ibv_cq, capacity: c_int, _: *mut ibv_wc) -> c_int {
        // SAFETY: the test's queue is alive.
        let waiting = unsafe { &mut (*cq).cqe };
        let taken = capacity.min(*waiting);
        *waiting -= taken.max(0);
        taken
    }

    /// Tests how a queue is polled in which so many completions wait: `poll` adds some, and takes some.
    fn test(waiting: c_int, test: impl FnOnce(&Polling, &mut dyn FnMut(c_int, c_int) -> c_int)) {
        // SAFETY: of integers, pointers and optional functions zero is a value.
        let (mut context, mut cq): (ibv_context, ibv_cq) =
            unsafe { (MaybeUninit::zeroed().assume_init(), MaybeUninit::zeroed().assume_init()) };
        context.ops.poll_cq = Some(counted);
        (cq.context, cq.cqe) = (&mut context, waiting);
        // SAFETY: it is alive to the end of the test.
        let polling = unsafe { Polling::new(&mut context) };
        test(&polling, &mut |more, capacity| {
            cq.cqe += more;
            // SAFETY: the queue is alive, and the device's function writes no completion.
            unsafe { polling.poll(&mut cq, capacity, ptr::null_mut()) }
        });
    }

    #[test]
    fn o03_what_was_stored_comes_before_the_overrun_which_stays() {
        test(3, |polling, poll| {
            assert_eq!(poll(0, 2), 2);
            polling.overran();
            assert_eq!([2, 2, 2].map(|capacity| poll(0, capacity)), [1, OVERRUN, OVERRUN]);
            assert_eq!(poll(0, 0), 0, "asking for none is no error (P6)");
        });
        // A device that fails once it was told of has overrun.
        test(-5, |polling, poll| {
            assert_eq!(poll(0, 1), -5, "nobody knows why");
            polling.overran();
            assert_eq!(poll(0, 1), OVERRUN);
        });
    }

    #[test]
    fn o03_what_the_device_says_is_an_overrun_if_it_says_so_or_the_event_was_taken() {
        test(-libc::EOVERFLOW, |polling, poll| assert!(polling.end_if_overrun(poll(0, 1))));
        for other in [-libc::EIO, -1, -2, -libc::EAGAIN] {
            test(other, |polling, poll| {
                let said = poll(0, 1);
                assert!(!polling.end_if_overrun(said), "{other}: nobody knows why");
                // Another thread takes the event while the device is polled.
                polling.overran();
                assert!(polling.end_if_overrun(said), "{other}");
            });
        }
    }

    #[test]
    fn o03_what_a_device_stores_after_the_overrun_was_told_is_not_handed_out() {
        test(0, |polling, poll| {
            polling.overran();
            assert_eq!(poll(0, 2), OVERRUN);
            assert!(polling.end_if_overrun(OVERRUN));
            assert_eq!(poll(1, 2), OVERRUN);
            polling.overran();
            assert_eq!(
                [2, 0].map(|capacity| poll(0, capacity)),
                [OVERRUN, 0],
                "it is reported once more"
            );
        });
    }
}
