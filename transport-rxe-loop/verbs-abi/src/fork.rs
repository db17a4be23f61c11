//! Forked processes. The device is the parent's alone, whatever was said before the fork: a child reaches nothing
//! through what it inherits, and opens the device anew. Memory needs no protection from a fork, since the device
//! looks at a process' own.
//!
//! Another thread of the parent may have held any lock when it forked, and does not exist in the child. So before
//! any code of the child's runs, all tables of objects are replaced by empty ones: what it inherited is not found
//! there, nothing waits, and looking something up costs nobody more for that.

use transport_rxe_loop::SystemError;

use crate::ah::ADDRESSES;
use crate::channel::CHANNELS;
use crate::context::OPENINGS;
use crate::cq::QUEUES;
use crate::mr::REGIONS;
use crate::mw::WINDOWS;
use crate::pd::DOMAINS;
use crate::qp::PAIRS;
use crate::raw::child::{self, Alone};
use crate::rdmacm::id::{self, IDS};
use crate::rdmacm::objects;
use crate::srq::SHARED;
use crate::{cq, probe, wait};

/// Sees to it that a child has objects of its own.
///
/// # Errors
/// ENOMEM.
pub fn watch() -> Result<(), SystemError> {
    probe::prepare();
    child::watch(begin).map_err(|errno| {
        let errno = rustix::io::Errno::from_raw_os_error(errno.number());
        SystemError::of("pthread_atfork", "this process", errno)
    })
}

/// What a child does first.
fn begin(alone: &Alone) {
    OPENINGS.forget_all(alone);
    DOMAINS.forget_all(alone);
    REGIONS.forget_all(alone);
    WINDOWS.forget_all(alone);
    ADDRESSES.forget_all(alone);
    CHANNELS.forget_all(alone);
    QUEUES.forget_all(alone);
    SHARED.forget_all(alone);
    PAIRS.forget_all(alone);
    IDS.forget_all(alone);
    objects::CHANNELS.forget_all(alone);
    objects::EVENTS.forget_all(alone);
    id::renew(alone);
    wait::renew(alone);
    cq::renew(alone);
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;
    use crate::rdmacm::id::DEVICE;
    use crate::test::*;

    fn register(pd: *mut ibv_pd) -> *mut ibv_mr {
        let memory = Box::leak(Box::new([0_u64; 8]));
        // SAFETY: the memory stays.
        unsafe { ibv_reg_mr(pd, ptr::from_mut(memory).cast(), 64, 0) }
    }

    /// Whether everything works that base verbs do.
    fn works(context: *mut ibv_context) -> bool {
        // SAFETY: any pointer may be handed in.
        unsafe {
            let pd = ibv_alloc_pd(context);
            let (region, window) = (register(pd), ibv_alloc_mw(pd, IBV_MW_TYPE_2));
            [ibv_dereg_mr(region), ibv_dealloc_mw(window), ibv_dealloc_pd(pd)] == [0; 3]
        }
    }

    /// In the child: nothing can be made of what was inherited, nor can it be waited for or destroyed, and the
    /// device can be opened anew.
    fn finds_no_use(end: &End, channel: *mut ibv_comp_channel, shared: *mut ibv_context) -> bool {
        let (mut event, mut of) = (ptr::null_mut(), ptr::null_mut());
        let &End { context, pd, cq, qp, mr, .. } = end;
        // SAFETY: any pointer may be handed in; the buffer holds an event.
        unsafe {
            let is_refused = register(pd).is_null() && Errno::last() == Errno::NODEV;
            let is_refused = is_refused && ibv_alloc_mw(pd, IBV_MW_TYPE_2).is_null();
            let waits = ibv_get_cq_event(channel, &raw mut event, &raw mut of);
            let all =
                [ibv_dereg_mr(mr), ibv_destroy_qp(qp), ibv_destroy_cq(cq), ibv_dealloc_pd(pd)];
            is_refused
                && (waits, ibv_close_device(context)) == (-1, -1)
                && all == [libc::ENODEV; 4]
                && ibv_poll_cq(cq, 1, ptr::null_mut()) == -libc::ENODEV
                && ibv_req_notify_cq(cq, 0) == libc::ENODEV
                && works(ibv_open_device(device()))
                && ibv_close_device(shared) == -1
                && works(shared_context())
        }
    }

    /// What the child says of this; false if it comes to no good end. Panics never: somebody waits for this.
    fn said_by_child(end: &End, channel: *mut ibv_comp_channel, shared: *mut ibv_context) -> bool {
        // SAFETY: the child does what a program with threads may do after a fork, as far as this library is
        // concerned, which is what is tested; it ends without a word.
        let status = unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::alarm(120);
                libc::_exit(finds_no_use(end, channel, shared).into());
            }
            let mut status = -1;
            libc::waitpid(child, &raw mut status, 0);
            status
        };
        libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 1
    }

    /// Alone, so that the locks are held that are to be held while it forks, and no others.
    #[test]
    #[ignore = "forks: the next test runs it in a process of its own"]
    fn forks() {
        let mut end = End::new(IBV_QPT_RC);
        // SAFETY: any pointer may be handed in.
        let channel = unsafe { ibv_create_comp_channel(end.context) };
        let shared = shared_context();
        let (queue, domain) = (QUEUES.find(end.cq).unwrap(), DOMAINS.find(end.pd).unwrap());
        // In the child nobody will acknowledge it.
        queue.side().completions.take();
        let (all_held, forked) = (Barrier::new(2), Barrier::new(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                let hold = || {
                    all_held.wait();
                    forked.wait();
                };
                let _device = DEVICE.get().lock();
                domain.with(|_| queue.with(|_| hold())).unwrap().unwrap();
            });
            all_held.wait();
            let is_refused = said_by_child(&end, channel, shared);
            forked.wait();
            // First, since the queue waits for that when it goes. SAFETY: as above.
            unsafe { ibv_ack_cq_events(end.cq, 1) };
            assert!(is_refused);
        });
        assert!(works(end.context));
        assert_eq!(end.destroy_qp(), 0);
        // SAFETY: as above.
        unsafe {
            let all = [ibv_destroy_cq(end.cq), ibv_dereg_mr(end.mr), ibv_dealloc_pd(end.pd)];
            assert_eq!(all, [0; 3]);
        }
    }

    #[test]
    fn x07_a_forked_child_is_refused_whoever_held_what_lock_and_its_parent_goes_on() {
        let run = alone("fork::tests::forks", &[]);
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
    }
}
