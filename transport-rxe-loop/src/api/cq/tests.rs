use cq_core::queue::{NoChannel, Tagged};
use cq_verbs::async_event::{AsyncEvent, Element};

use super::*;
use crate::completion::queue::CqRing;
use crate::inside::prelude::*;
use crate::protocol::fanin::Location;

/// Options of a device of one completion queue, so that each new one has the table entry of the last.
fn with_one() -> OpenOptions {
    OpenOptions::new().limits(Limits::default().completion_queues(1))
}

/// Completions of a queue pair that is gone.
fn entries<const N: usize>() -> [Tagged; N] {
    let wc = Wc::new(1, WcStatus::SUCCESS, 2);
    [Tagged { wc, ..Tagged::default() }; N]
}

/// Pushes completions to the first completion queue.
fn push_to_first(device: &'static Device, entries: &[Tagged]) {
    let mut cq = CqRing::new(device.completions, CqIndex::new(0));
    let nobody = (QpNumber::NONE, device.engine.qp(QpNumber::NONE));
    complete::push_received(device.engine, nobody, &mut cq, entries).raise(device.completions);
}

#[test]
fn x03_a_new_queue_inherits_the_lock_of_a_dead_one() {
    let (context, device) = with_one().alone();
    let lock = &device.completions.cq(CqIndex::new(0)).fanin.lock;
    assert!(lock.try_enter(DEAD));
    let _cq = context.cq(4).create().unwrap();
    assert_eq!(lock.holder(), None);
}

#[test]
fn o02_o08_each_queue_of_an_entry_reports_its_own_overrun_and_counts_its_own_drops() {
    for (options, is_like_rxe) in [(with_one(), false), (with_one().imitate_rxe(), true)] {
        let (mut context, device) = options.alone();
        for _ in 0..2 {
            let cq = context.cq(1).ignore_overrun().create().unwrap();
            push_to_first(device, &entries::<4>());
            assert_eq!((cq.dropped(), context.take_async_event()), (3, Ok(None)));
        }
        for _ in (0..2).filter(|_| !is_like_rxe) {
            let cq = context.cq(1).create().unwrap();
            push_to_first(device, &entries::<4>());
            let (event_type, element) = (AsyncEventType::CQ_ERR, Element::Cq(cq.key()));
            let event = AsyncEvent { event_type, element };
            assert_eq!(context.take_async_event(), Ok(Some(event)));
        }
    }
}

/// The event of giving it up may have been taken before: nothing else ends a sleep.
#[test]
fn n06_arming_a_queue_that_was_given_up_asks_for_a_poll() {
    let (context, _device) = with_one().alone();
    let channel = context.create_channel().unwrap();
    let mut cq = context.cq(4).channel(&channel).create().unwrap();
    assert_eq!(cq.arm(Notify::Next), Ok(Armed::Armed));
    cq.mode.set(CqFlag::GivenUp, true);
    assert_eq!(cq.arm(Notify::Next), Ok(Armed::MayHaveMissed));
    assert_eq!(cq.poll_into(&mut [Wc::default()]), Err(PollError::Failed));
    assert_eq!(cq.arm(Notify::Next), Ok(Armed::MayHaveMissed));
}

#[test]
fn n12_a_new_queue_is_not_moderated_as_the_last_in_its_entry() {
    let (context, device) = with_one().alone();
    let mut channel = context.create_channel().unwrap();
    let mut last = context.cq(4).create().unwrap();
    last.moderate(100, 0).unwrap();
    last.destroy().unwrap();
    let mut cq = context.cq(1).ignore_overrun().channel(&channel).create().unwrap();
    assert_eq!(cq.arm(Notify::Next), Ok(Armed::Armed));
    push_to_first(device, &entries::<1>());
    assert_eq!(channel.take_event(), Ok(Some(cq.key())));
}

#[test]
fn q11_nothing_is_pushed_to_where_a_queue_was() {
    let (context, device) = with_one().alone();
    let cq = context.cq(4).create().unwrap();
    let location = device.completions.cq(CqIndex::new(0)).fanin.location();
    cq.destroy().unwrap();
    push_to_first(device, &entries::<1>());
    let mut left = ring(device.completions, location).unwrap().into_consumer(0, NoChannel);
    assert_eq!(left.poll_into(&mut [Wc::default()]), Ok(0));
}

#[test]
fn no_queue_leads_out_of_the_arena() {
    let device = Fixture::new().device;
    let (arena, size) = (device.shm.arena.offset(), device.shm.memory().len());
    for (offset, log2, is_one) in [
        (arena, 4, true),
        (0, 4, false),
        (arena - 128, 4, false),
        (size - 128, 4, false),
        (arena, 20, false),
        (arena, 99, false),
    ] {
        let location = Location { offset: offset as u32, log2, promised: 8, is_exact: false };
        assert_eq!(ring(device.completions, location).is_some(), is_one, "{location:?}");
    }
}

#[test]
fn n07_a_queue_is_detached_before_its_entry_is_reused() {
    let Fixture { context, device, .. } = Fixture::new();
    let channel = context.create_channel().unwrap();
    let cq = context.cq(4).channel(&channel).create().unwrap();
    let (index, slot) = (cq.handle.queue.index, device.completions.cq(cq.handle.queue.index));
    let suspended = device.memory.lock(&slot.fanin.lock, || {}).unwrap();
    thread::scope(|scope| {
        let destroys = scope.spawn(|| cq.destroy().unwrap());
        until("it has left them", || {
            let sources = [Source::Completion(index), Source::Overrun(index)];
            sources.iter().all(|&source| source.node(device.completions).channel().is_none())
        });
        assert_eq!(slot.life().attachment(), Some(device.shm.attachment()));
        drop(suspended);
        destroys.join().unwrap();
    });
    assert_eq!(slot.life().attachment(), None);
}

/// A device of one completion queue, and a UC queue pair with one slot for sends that is its own peer.
fn with_one_slot() -> (Cq, QueuePair, &'static Device) {
    let (context, device) = with_one().alone();
    let cq = context.cq(4).create().unwrap();
    let (pd, caps) = (context.alloc_pd().unwrap(), QpCaps::USUAL.max_send_wr(1));
    let mut qp = pd.qp(&cq).caps(caps).qp_type(QpType::UC).create().unwrap();
    qp.connect_to(qp.number()).unwrap();
    (cq, qp, device)
}

#[test]
fn q05_what_came_after_the_first_look_of_a_poll_is_retired_too() {
    let (mut cq, mut qp, _device) = with_one_slot();
    for _ in 0..3 {
        qp.post_send(&[SendWr::send(1, &[])]).unwrap();
        let more = qp.post_send(&[SendWr::send(1, &[])]);
        assert!(more.is_err(), "its location is kept until it is polled");
        assert_eq!(cq.poll_again(&mut [Wc::default(); 8]), Ok(1));
    }
}

#[test]
fn x04_a_forged_completion_takes_no_slots_from_those_polled_with_it() {
    let (mut cq, mut qp, device) = with_one_slot();
    qp.post_send(&[SendWr::send(1, &[])]).unwrap();
    let wc = Wc::new(7, WcStatus::SUCCESS, qp.number());
    let forged = Tagged { wc, tag: tag::of_send(Position::new(1 << 20)), solicited: false };
    push_to_first(device, &[forged]);
    assert_eq!(cq.poll_into(&mut [Wc::default(); 4]), Ok(2));
    qp.post_send(&[SendWr::send(1, &[])]).unwrap();
}

#[test]
fn queue_pairs_come_and_go_by_a_handle_while_another_thread_polls() {
    const COUNT: u64 = 200;
    let (context, _) = with_one().alone();
    let mut cq = context.cq(256).create().unwrap();
    let handle = cq.handle();
    let poller = thread::spawn(move || {
        let mut all = Vec::new();
        until("every queue pair has completed", || {
            all.extend(polled(&mut cq));
            all.len() as u64 == COUNT
        });
        (cq, all)
    });
    let pd = context.alloc_pd().unwrap();
    let nowhere = RemoteAddr { addr: 0, rkey: 0 };
    for wr_id in 0..COUNT {
        let mut qp = pd.qp(&handle).create().unwrap();
        qp.connect_to(qp.number()).unwrap();
        qp.post_send(&[SendWr::write_inline(wr_id, &[], nowhere)]).unwrap();
    }
    let (cq, all) = poller.join().unwrap();
    assert!(all.into_iter().eq((0..COUNT).map(|wr_id| (wr_id, WcStatus::SUCCESS))));
    let cq = cq.destroy().unwrap_err().handle;
    drop(handle);
    cq.destroy().unwrap();
}
