use std::ptr;
use std::sync::mpsc;
use std::thread;

use super::*;
use crate::exports::*;
use crate::test::open;
use crate::test::traffic::{
    LIMIT, Shared, Traffic, arm, channel, event, hasty_channel, poll, queue, until, wr_ids,
};

/// The queue of the next event, which is acknowledged; `None` if there is no event.
fn next_event(channel: *mut ibv_comp_channel) -> Option<*mut ibv_cq> {
    match event(channel) {
        Ok((cq, _)) => {
            // SAFETY: any pointer may be handed in.
            unsafe { ibv_ack_cq_events(cq, 1) };
            Some(cq)
        }
        Err(why) => {
            assert_eq!(why, Errno::of(libc::EAGAIN));
            None
        }
    }
}

/// The context that a channel was made in.
fn open_of(channel: *mut ibv_comp_channel) -> *mut ibv_context {
    // SAFETY: a channel.
    unsafe { (*channel).context }
}

fn destroy(cq: *mut ibv_cq) -> c_int {
    // SAFETY: any pointer may be handed in.
    unsafe { ibv_destroy_cq(cq) }
}

#[test]
fn n6_who_arms_polls_and_sleeps_gets_everything() {
    const ALL: u64 = 2000;
    let channel = channel(open());
    let cq = queue(open_of(channel), 4096, channel);
    let (mut traffic, shared) = (Traffic::to(cq), (Shared(channel), Shared(cq)));
    let (polled, was_polled) = mpsc::channel();
    assert_eq!(arm(cq, false), 0);
    let consumer = thread::spawn(move || {
        let (channel, cq) = (shared.0.get(), shared.1.get());
        let mut left = ALL as usize;
        while left > 0 {
            assert_eq!(next_event(channel), Some(cq));
            assert_eq!(arm(cq, false), 0);
            let completions = wr_ids(&poll(cq, 4096).unwrap());
            left -= completions.len();
            polled.send(completions).unwrap();
        }
    });
    traffic.complete_each(0..ALL);
    let mut all = Vec::new();
    while all.len() < ALL as usize {
        all.extend(was_polled.recv_timeout(LIMIT).unwrap());
    }
    assert_eq!(all, (0..ALL).collect::<Vec<_>>());
    consumer.join().unwrap();
}

#[test]
fn n8_a_channel_stays_as_long_as_queues_use_it() {
    let channel = channel(open());
    // SAFETY: a channel, and any pointer may be handed in.
    let (refcnt, destroy_channel) =
        unsafe { (|| (*channel).refcnt, || ibv_destroy_comp_channel(channel)) };
    assert_eq!(refcnt(), 0);
    let queues = [4, 4].map(|cqe| queue(open_of(channel), cqe, channel));
    for (left, cq) in [(2, queues[0]), (1, queues[1])] {
        assert_eq!(refcnt(), left);
        assert_eq!(destroy_channel(), libc::EBUSY);
        assert_eq!(destroy(cq), 0);
    }
    assert_eq!(refcnt(), 0);
    assert_eq!(destroy_channel(), 0);
    assert_eq!(destroy_channel(), libc::ENOENT); // Q11
}

#[test]
fn n7_events_that_nobody_read_go_with_their_queue() {
    let channel = hasty_channel(open());
    let queues = [4, 4].map(|cqe| queue(open_of(channel), cqe, channel));
    for cq in queues {
        let mut traffic = Traffic::to(cq);
        for wr_id in [1, 2] {
            assert_eq!(arm(cq, false), 0);
            traffic.complete(wr_id);
        }
    }
    assert_eq!(destroy(queues[0]), 0);
    assert_eq!([(); 3].map(|()| next_event(channel)), [Some(queues[1]), Some(queues[1]), None]);
}

#[test]
fn n10_who_waits_sleeps_until_another_thread_arms_and_completes() {
    let channel = channel(open());
    let cq = queue(open_of(channel), 4, channel);
    let shared = Shared(channel);
    let (woken, is_woken) = mpsc::channel();
    let waiter = thread::spawn(move || {
        woken.send(event(shared.get()).unwrap().0.addr()).unwrap();
    });
    let mut traffic = Traffic::to(cq);
    traffic.complete(1);
    assert!(is_woken.try_recv().is_err());
    assert_eq!(arm(cq, false), 0);
    traffic.complete(2);
    assert_eq!(is_woken.recv_timeout(LIMIT), Ok(cq.addr()));
    waiter.join().unwrap();
}

#[test]
fn n1_each_event_goes_to_one_of_those_who_wait() {
    const EVENTS: usize = 100;
    let channel = channel(open());
    let cq = queue(open_of(channel), 4, channel);
    let mut traffic = Traffic::to(cq);
    let (shared, (taken, is_taken)) = (Shared(channel), mpsc::channel());
    thread::scope(|scope| {
        for _ in 0..4 {
            let taken = taken.clone();
            scope.spawn(move || {
                for _ in 0..EVENTS / 4 {
                    let (cq, _) = event(shared.get()).unwrap();
                    // SAFETY: any pointer may be handed in.
                    unsafe { ibv_ack_cq_events(cq, 1) };
                    taken.send(cq.addr()).unwrap();
                }
            });
        }
        for wr_id in 0..EVENTS as u64 {
            assert_eq!(arm(cq, false), 0);
            traffic.complete(wr_id);
            assert_eq!(is_taken.recv_timeout(LIMIT), Ok(cq.addr()));
            assert_eq!(poll(cq, 4).unwrap().len(), 1);
        }
    });
    drop(traffic);
    assert_eq!(destroy(cq), 0);
    assert!(is_taken.try_recv().is_err());
}

#[test]
fn q11_what_is_no_channel_has_no_events() {
    let foreign = channel(open()).wrapping_byte_add(1);
    assert_eq!(event(ptr::null_mut()), Err(Errno::INVAL));
    assert_eq!(event(foreign), Err(Errno::NOENT));
    // SAFETY: any pointer may be handed in.
    unsafe {
        assert_eq!(ibv_destroy_comp_channel(ptr::null_mut()), libc::EINVAL);
        assert_eq!(ibv_destroy_comp_channel(foreign), libc::ENOENT);
        assert!(ibv_create_comp_channel(ptr::null_mut()).is_null());
        assert_eq!(Errno::last(), Errno::INVAL);
        // There is no place for what it gives, so nothing is taken.
        let (channel, mut cq) = (channel(open()), ptr::null_mut());
        assert_eq!(ibv_get_cq_event(channel, &raw mut cq, ptr::null_mut()), -1);
        assert_eq!(Errno::last(), Errno::INVAL);
    }
}

#[test]
fn q11_acknowledging_too_many_is_harmless() {
    let channel = hasty_channel(open());
    let cq = queue(open_of(channel), 4, channel);
    // SAFETY: any pointer may be handed in.
    unsafe {
        ibv_ack_cq_events(cq, 1000);
        ibv_ack_cq_events(ptr::null_mut(), 1);
        ibv_ack_cq_events(cq.wrapping_byte_add(8), 1);
    }
    assert_eq!(arm(cq, false), 0);
    Traffic::to(cq).complete(1);
    assert_eq!(event(channel).map(|told| told.0), Ok(cq));
    // SAFETY: as above.
    unsafe { ibv_ack_cq_events(cq, u32::MAX) };
    assert_eq!(destroy(cq), 0);
}

#[test]
fn x7_a_channel_that_goes_takes_those_along_who_wait_for_it() {
    let channel = channel(open());
    let shared = Shared(channel);
    let (woken, is_woken) = mpsc::channel();
    thread::spawn(move || woken.send(event(shared.get()).err()));
    assert!(is_woken.try_recv().is_err());
    // SAFETY: any pointer may be handed in.
    assert_eq!(unsafe { ibv_destroy_comp_channel(channel) }, 0);
    let told = is_woken.recv_timeout(LIMIT).unwrap();
    let gone = [Errno::NOENT, Errno::of(libc::EBADF)];
    assert!(told.is_some_and(|why| gone.contains(&why)), "{told:?}");
}

/// Takes so many events of a queue, and acknowledges none.
fn take_events(channel: *mut ibv_comp_channel, cq: *mut ibv_cq, count: u64) {
    let mut traffic = Traffic::to(cq);
    for wr_id in 0..count {
        assert_eq!(arm(cq, false), 0);
        traffic.complete(wr_id);
        assert_eq!(event(channel).map(|told| told.0), Ok(cq));
        assert_eq!(poll(cq, 4).unwrap().len(), 1);
    }
}

/// Whether a thread of this process sleeps, or has ended.
fn is_at_rest(thread: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
    stat.map_or(true, |stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S')))
}

#[test]
fn n7_so_many_events_are_acknowledged_at_once_and_a_queue_waits_for_the_rest() {
    const EVENTS: u64 = 5;
    for (before, parts) in [(0, &[1, 3, 1][..]), (0, &[4, 1]), (4, &[1]), (2, &[2, 1]), (0, &[5])] {
        let channel = hasty_channel(open());
        let cq = queue(open_of(channel), 4, channel);
        take_events(channel, cq, EVENTS);
        // SAFETY: any pointer may be handed in.
        unsafe { ibv_ack_cq_events(cq, before) };
        let (shared, (told, is_told)) = (Shared(cq), mpsc::channel());
        let destroyer = thread::spawn(move || {
            // SAFETY: of this thread.
            told.send(unsafe { libc::gettid() }).unwrap();
            let status = destroy(shared.get());
            told.send(status).unwrap();
        });
        let thread = is_told.recv_timeout(LIMIT).unwrap();
        for part in parts {
            until("it waits, or is through", || is_at_rest(thread));
            assert!(
                is_told.try_recv().is_err(),
                "{parts:?}: not all is acknowledged before {part}"
            );
            // SAFETY: any pointer may be handed in.
            unsafe { ibv_ack_cq_events(cq, *part) };
        }
        assert_eq!(is_told.recv_timeout(LIMIT), Ok(0), "{parts:?}");
        destroyer.join().unwrap();
    }
}
