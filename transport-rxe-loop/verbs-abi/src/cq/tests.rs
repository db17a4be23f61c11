use std::collections::HashSet;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;

use super::*;
use crate::exports::*;
use crate::test::open;
use crate::test::strict::without_system_calls;
use crate::test::traffic::{
    LIMIT, Shared, Traffic, arm, channel, event, poll, queue, until, wr_ids,
};

const NONE: *mut ibv_comp_channel = ptr::null_mut();

fn destroy(cq: *mut ibv_cq) -> c_int {
    // SAFETY: any pointer may be handed in.
    unsafe { ibv_destroy_cq(cq) }
}

fn resize(cq: *mut ibv_cq, cqe: c_int) -> c_int {
    // SAFETY: any pointer may be handed in.
    unsafe { ibv_resize_cq(cq, cqe) }
}

/// Polls into an array that is as it is.
fn poll_raw(cq: *mut ibv_cq, num_entries: c_int, wc: *mut ibv_wc) -> c_int {
    // SAFETY: every caller has a buffer for as many completions as there are.
    unsafe { ibv_poll_cq(cq, num_entries, wc.cast()) }
}

/// Why no queue is made.
fn refused(
    context: *mut ibv_context,
    cqe: c_int,
    channel: *mut ibv_comp_channel,
    vector: c_int,
) -> Errno {
    // SAFETY: any pointer may be handed in.
    let cq = unsafe { ibv_create_cq(context, cqe, ptr::null_mut(), channel, vector) };
    assert!(cq.is_null());
    Errno::last()
}

#[test]
fn o1_a_queue_says_what_it_holds_and_what_it_was_made_with() {
    let context = open();
    let (channel, mut cookie) = (channel(context), 7);
    let cookie = (&raw mut cookie).cast();
    // SAFETY: any pointer may be handed in; queues stay where they are.
    let public = unsafe { *ibv_create_cq(context, 100, cookie, channel, 0) };
    assert_eq!(public.cqe, 100);
    assert_eq!((public.context, public.channel), (context, channel));
    assert_eq!(public.cq_context, cookie);
}

#[test]
fn a_queue_that_can_t_be_is_refused() {
    let context = open();
    let max = OPENINGS.find(context).unwrap().with(|open| open.device.attributes().max_cqe);
    let max = max.unwrap() as c_int;
    for (cqe, vector) in [(0, 0), (-1, 0), (max + 1, 0), (c_int::MIN, 0), (4, 1), (4, -1)] {
        assert_eq!(refused(context, cqe, NONE, vector), Errno::INVAL, "{cqe} {vector}");
    }
    assert_eq!(refused(ptr::null_mut(), 4, NONE, 0), Errno::INVAL);
    assert_eq!(refused(context.wrapping_byte_add(8), 4, NONE, 0), Errno::NOENT);
    assert_eq!(refused(context, 4, channel(context).wrapping_byte_add(8), 0), Errno::NOENT);
    // A channel names what its own context has.
    assert_eq!(refused(context, 4, channel(open()), 0), Errno::INVAL);
}

#[test]
fn p4_nothing_is_written_past_what_was_asked_for() {
    let cq = queue(open(), 16, NONE);
    Traffic::to(cq).complete_each(1..=5);
    let untouched = ibv_wc::new(99, cq_core::wc::WcStatus::FATAL_ERR, 99);
    let mut buffer = [untouched; 3];
    assert_eq!(poll_raw(cq, 2, buffer.as_mut_ptr()), 2);
    assert_eq!((wr_ids(&buffer[..2]), buffer[2]), (vec![1, 2], untouched));
}

#[test]
fn p1_all_come_that_wait_also_more_than_were_promised_to_fit() {
    // The device rounds what it stores up, so these do not overrun it yet.
    let cq = queue(open(), 4, NONE);
    Traffic::to(cq).complete_each(1..=7);
    assert_eq!(wr_ids(&poll(cq, 64).unwrap()), [1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn p3_p6_nothing_is_no_error_and_what_can_t_be_is_one() {
    let cq = queue(open(), 4, NONE);
    let (mut buffer, nowhere) = ([ibv_wc::default(); 2], ptr::null_mut());
    let misaligned = buffer.as_mut_ptr().wrapping_byte_add(1);
    let (into, invalid) = (buffer.as_mut_ptr(), -libc::EINVAL);
    assert_eq!([poll_raw(cq, 1, into), poll_raw(cq, 0, into), poll_raw(cq, 0, nowhere)], [0; 3]);
    assert_eq!(poll_raw(cq, -1, into), invalid);
    assert_eq!(poll_raw(cq, c_int::MIN, into), invalid);
    assert_eq!(poll_raw(cq, 1, nowhere), invalid);
    assert_eq!(poll_raw(cq, 1, misaligned), invalid);
    assert_eq!(poll_raw(ptr::null_mut(), 1, into), invalid);
    assert_eq!(poll_raw(cq.wrapping_byte_add(8), 1, into), -libc::ENOENT);
}

#[test]
fn p4_an_array_has_to_be_no_longer_than_what_comes() {
    let cq = queue(open(), 4, NONE);
    Traffic::to(cq).complete_each(1..=4);
    let mut buffer = [ibv_wc::default(); 4];
    assert_eq!(poll_raw(cq, c_int::MAX, buffer.as_mut_ptr()), 4);
    assert_eq!(wr_ids(&buffer), [1, 2, 3, 4]);
}

#[test]
fn p5_polling_makes_no_system_call() {
    let channel = channel(open());
    // SAFETY: a channel.
    let cq = queue(unsafe { (*channel).context }, 16, channel);
    Traffic::to(cq).complete_each(1..=5);
    let cq = Shared(cq);
    without_system_calls(move || {
        let mut buffer = [ibv_wc::default(); 4];
        for polled in [4, 1, 0] {
            assert_eq!(poll_raw(cq.get(), 4, buffer.as_mut_ptr()), polled);
        }
        // SAFETY: a queue.
        assert_eq!(unsafe { ibv_req_notify_cq(cq.get(), 0) }, 0);
    });
}

#[test]
fn p8_each_completion_goes_to_one_of_those_who_poll() {
    const ALL: u64 = 2000;
    let cq = queue(open(), 4096, NONE);
    let (mut traffic, shared) = (Traffic::to(cq), Shared(cq));
    let (polled, was_polled) = mpsc::channel();
    let count = &AtomicU32::new(0);
    thread::scope(|scope| {
        for most in 1..=4 {
            let polled = polled.clone();
            scope.spawn(move || {
                until("all were polled", || {
                    let completions = wr_ids(&poll(shared.get(), most).unwrap());
                    count.fetch_add(completions.len() as u32, Ordering::Relaxed);
                    polled.send(completions).unwrap();
                    count.load(Ordering::Relaxed) >= ALL as u32
                });
            });
        }
        traffic.complete_each(0..ALL);
    });
    drop(polled);
    let all: Vec<u64> = was_polled.iter().flatten().collect();
    assert_eq!(all.len(), ALL as usize);
    assert_eq!(HashSet::from_iter(all), (0..ALL).collect::<HashSet<_>>());
}

#[test]
fn o3_o6_what_was_stored_before_an_overrun_comes_then_the_failure_for_ever() {
    let cq = queue(open(), 4, NONE);
    let mut traffic = Traffic::to(cq);
    (0..20).for_each(|wr_id| traffic.fail(wr_id));
    let stored = wr_ids(&poll(cq, 64).unwrap());
    assert!(stored.len() >= 4);
    assert_eq!(stored, (0..stored.len() as u64).collect::<Vec<_>>());
    assert_eq!(poll(cq, 64), Err(Errno::IO));
    assert_eq!(poll(cq, 1), Err(Errno::IO));
    assert_eq!(resize(cq, 100), libc::EINVAL);
    drop(traffic);
    assert_eq!(destroy(cq), 0);
}

#[test]
fn q11_a_queue_stays_as_long_as_queue_pairs_use_it_and_goes_once() {
    let cq = queue(open(), 4, NONE);
    let traffic = Traffic::to(cq);
    assert_eq!(destroy(cq), libc::EBUSY);
    assert_eq!(poll(cq, 1), Ok(vec![]));
    drop(traffic);
    assert_eq!(destroy(cq), 0);
    assert_eq!(destroy(cq), libc::ENOENT);
    assert_eq!(poll(cq, 1), Err(Errno::NOENT));
    assert_eq!(arm(cq, false), libc::ENOENT);
    assert_eq!(resize(cq, 8), libc::ENOENT);
    assert_eq!(destroy(ptr::null_mut()), libc::EINVAL);
}

#[test]
fn q11_a_garbled_handle_is_told_and_mended() {
    let context = open();
    let cq = queue(context, 4, channel(context));
    // SAFETY: a queue's handle.
    let garble = || unsafe { (*cq).handle ^= 0xdead_beef };
    garble();
    assert_eq!(arm(cq, false), libc::ENOENT);
    assert_eq!(poll(cq, 1), Err(Errno::NOENT));
    assert_eq!(resize(cq, 8), libc::ENOENT);
    assert_eq!(destroy(cq), libc::ENOENT);
    garble();
    assert_eq!(destroy(cq), 0);
}

#[test]
fn q12_a_size_that_can_t_be_is_refused_and_the_one_in_force_is_told() {
    let cq = queue(open(), 3, NONE);
    // SAFETY: a queue.
    let cqe = || unsafe { (*cq).cqe };
    for size in [1, 7] {
        assert_eq!((resize(cq, size), cqe()), (0, size));
    }
    Traffic::to(cq).complete_each(1..=6);
    for refused in [5, 0, -1, c_int::MAX] {
        assert_eq!((resize(cq, refused), cqe()), (libc::EINVAL, 7));
    }
}

#[test]
fn n11_a_queue_without_a_channel_can_t_be_armed() {
    let cq = queue(open(), 4, NONE);
    assert_eq!(arm(cq, false), libc::EINVAL);
    assert_eq!(arm(cq, true), libc::EINVAL);
}

#[test]
fn n7_destroying_waits_until_every_event_is_acknowledged() {
    let channel = channel(open());
    // SAFETY: a channel.
    let cq = queue(unsafe { (*channel).context }, 4, channel);
    let mut traffic = Traffic::to(cq);
    for wr_id in [1, 2] {
        assert_eq!(arm(cq, false), 0);
        traffic.complete(wr_id);
        assert_eq!(event(channel).map(|told| told.0), Ok(cq));
    }
    // Whether it is in use is judged before that.
    assert_eq!(destroy(cq), libc::EBUSY);
    drop(traffic);
    let (shared, (over, is_over)) = (Shared(cq), mpsc::channel());
    let destroyer = thread::spawn(move || over.send(destroy(shared.get())).unwrap());
    until("the queue is being destroyed", || poll(cq, 1) == Err(Errno::NOENT));
    // SAFETY: any pointer may be handed in.
    let acknowledge = || unsafe { ibv_ack_cq_events(cq, 1) };
    acknowledge();
    assert!(is_over.try_recv().is_err());
    acknowledge();
    assert_eq!(is_over.recv_timeout(LIMIT), Ok(0));
    destroyer.join().unwrap();
}

#[test]
fn nothing_but_moderation_is_modified() {
    let channel = channel(open());
    // SAFETY: a channel.
    let cq = queue(unsafe { (*channel).context }, 16, channel);
    let modify = |attr_mask| {
        let moderate = ibv_moderate_cq { cq_count: 3, cq_period: u16::MAX };
        let mut attr = ibv_modify_cq_attr { attr_mask, moderate };
        // SAFETY: a queue; the attributes are there.
        unsafe { ibv_modify_cq(cq, &raw mut attr) }
    };
    assert_eq!([0, 2, 3].map(modify), [libc::EINVAL; 3]);
    assert_eq!(modify(IBV_CQ_ATTR_MODERATE), 0);
    // SAFETY: any pointer may be handed in.
    assert_eq!(unsafe { ibv_modify_cq(cq, ptr::null_mut()) }, libc::EINVAL);
}
