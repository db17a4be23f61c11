//! What an observer sees of a fabric that one process uses: every kind of object, its state, what it waits for.

use std::fs;

use crate::common::*;
use transport_rxe_loop::QpState;
use transport_rxe_loop::observe::{
    Awaited, CompletionQueue as SeenCq, CqHealth, FabricObserver, QueuePair as SeenQp, Reason,
    RegionKind, Snapshot, Subject, Wait, WaitLimit,
};

fn observer() -> FabricObserver {
    FabricObserver::open(&fabric()).unwrap()
}

fn see() -> Snapshot {
    observer().snapshot()
}

fn seen_qp(qp: &QueuePair) -> SeenQp {
    see().queue_pair(qp.number()).cloned().unwrap()
}

fn seen_cq(cq: &Cq) -> SeenCq {
    let all = see().completion_queues;
    all.into_iter().find(|seen| seen.index == cq.key().index).unwrap()
}

fn why(qp: &QueuePair) -> Option<Reason> {
    let is_it = |subject| subject == Subject::QueuePair(qp.number());
    see().waits().into_iter().find(|wait| is_it(wait.subject)).map(|wait| wait.reason)
}

#[test]
fn it_sees_its_process_and_what_that_has() {
    let (a, _b) = pair();
    let seen = see();
    let [process] = &seen.processes[..] else { panic!("{:?}", seen.processes) };
    assert_eq!(process.pid, Some(std::process::id() as i32));
    assert!(process.is_alive && !process.is_leaving && process.arena_bytes > 0);
    assert_eq!(seen.arena.used, process.arena_bytes);
    assert!(seen.arena.largest_free <= seen.arena.bytes - seen.arena.used);
    assert_eq!(seen.limits, a.context.limits());
    let used: Vec<_> = seen.tables().into_iter().map(|(what, used, _)| (what, used)).collect();
    let expected = [
        ("processes", 1),
        ("queue pairs", 2),
        ("completion queues", 2),
        ("shared receive queues", 0),
        ("regions and windows", 2),
        ("channels", 2),
    ];
    assert_eq!(used, expected);
    assert!(seen.is_current && seen.missing_bytes == 0 && seen.locks.is_empty());
    let region = seen.regions.iter().find(|it| it.key == a.region.remote(0).unwrap().rkey).unwrap();
    assert_eq!((region.kind, region.len), (RegionKind::Fabric, 8192));
    assert_eq!(region.address, a.region.sge(..1).unwrap().addr);
}

#[test]
fn it_changes_no_byte_and_takes_no_slot() {
    let (mut a, mut b) = pair();
    b.recv(1, 0, 8);
    a.send(2, 0, 8);
    a.expect(&[(2, S::SUCCESS)]);
    let mut observer = observer();
    let before = fs::read(observer.path()).unwrap();
    let first = observer.snapshot();
    for _ in 0..20 {
        let mut again = observer.snapshot();
        again.taken_at_ns = first.taken_at_ns;
        assert_eq!(again, first);
    }
    assert!(before == fs::read(observer.path()).unwrap(), "it has written");
    let processes = see().processes.len();
    assert_eq!(processes, 1, "nor is another observer attached");
    b.expect(&[(1, S::SUCCESS)]);
}

#[test]
fn it_sees_the_state_of_each_queue_pair_and_its_peer() {
    let (mut a, mut b) = (End::new(), End::new());
    let states = [
        (QpAttr::init(&Port::new(1), Access::empty()), QpState::INIT),
        (rtr(&b.qp), QpState::RTR),
        (QpAttr::rts(), QpState::RTS),
        (QpAttr::new().state(QpState::SQD), QpState::SQD),
        (QpAttr::new().state(QpState::ERR), QpState::ERR),
        (QpAttr::new().state(QpState::RESET), QpState::RESET),
    ];
    assert_eq!(seen_qp(&a.qp).state, QpState::RESET);
    let mut epoch = seen_qp(&a.qp).epoch;
    for (attr, state) in states {
        a.qp.modify(&attr).unwrap();
        let seen = seen_qp(&a.qp);
        assert!(seen.state == state && seen.epoch != epoch, "{seen:?}");
        epoch = seen.epoch;
    }
    let seen = seen_qp(&a.qp);
    assert_eq!((seen.sends.capacity, seen.receives.capacity), (8, 8));
    assert_eq!([seen.send_cq, seen.recv_cq], [a.cq.key().index; 2]);
    connect(&mut a.qp, &mut b.qp);
    let seen = seen_qp(&a.qp);
    assert_eq!((seen.peer, seen.peer_state), (b.qp.number(), Some(QpState::RTS)));
    assert_eq!(seen.peer_of_peer, a.qp.number());
    let gone = b.qp.number();
    drop(b);
    let seen = seen_qp(&a.qp);
    assert_eq!((seen.peer, seen.peer_state, seen.peer_of_peer), (gone, None, 0));
    let datagrams = End::of(QpType::UD, CAPS);
    assert_eq!(seen_qp(&datagrams.qp).qp_type, QpType::UD);
}

#[test]
fn it_sees_what_is_outstanding_and_what_the_oldest_request_waits_for() {
    let (mut a, mut b) = (End::new(), End::new());
    let patient = patient().rnr_retry(7);
    connect_by(&mut a.qp, &rtr(&b.qp), &patient);
    a.send(7, 0, 8);
    a.send(8, 0, 8);
    let seen = seen_qp(&a.qp);
    assert_eq!((seen.sends.outstanding, seen.sends.posted - seen.sends.done), (2, 2));
    let oldest = seen.oldest.unwrap();
    assert_eq!((oldest.wr_id, format!("{:?}", oldest.operation)), (7, "SEND".to_owned()));
    assert_eq!(seen.waits.unwrap().awaited, Awaited::Answer);
    let limit = WaitLimit::Forever;
    let state = QpState::RESET;
    assert_eq!(why(&a.qp), Some(Reason::PeerNotReady { state, limit }));
    // It is connected to another queue pair, then to this one.
    let itself = rtr(&b.qp);
    connect_by(&mut b.qp, &itself, &QpAttr::rts());
    assert_eq!(why(&a.qp), Some(Reason::PeerElsewhere { limit }));
    b.to(QpState::RESET);
    connect_by(&mut b.qp, &rtr(&a.qp), &QpAttr::rts());
    assert_eq!(why(&a.qp), Some(Reason::NoReceive { limit }));
    assert!(seen_qp(&b.qp).is_starved);
    let wait = see().waits().into_iter().find(|wait| wait.reason == Reason::NoReceive { limit });
    assert_eq!(wait.unwrap().blocker, Some(see().processes[0].attachment));
    b.recv(1, 0, 8);
    a.expect(&[(7, S::SUCCESS)]);
    assert_eq!(seen_qp(&a.qp).oldest.unwrap().wr_id, 8);
    let seen = seen_qp(&b.qp);
    assert_eq!((seen.receives.outstanding, seen.receives.done), (0, seen.receives.posted));
    b.recv(2, 0, 8);
    a.expect(&[(8, S::SUCCESS)]);
    let seen = seen_qp(&a.qp);
    assert_eq!((seen.sends.outstanding, seen.oldest, seen.waits), (0, None, None));
    assert_eq!(why(&a.qp), None);
    b.recv(3, 0, 8);
    assert_eq!(seen_qp(&b.qp).receives.outstanding, 1);
    // With a time limit, of a peer that is gone.
    let (mut c, d) =
        unanswered(&QpAttr::rts().timeout(AckTimeout::from_number(25).unwrap()).retry_cnt(7));
    drop(d);
    c.send(1, 0, 8);
    assert_eq!(why(&c.qp), Some(Reason::PeerGone { limit: WaitLimit::Limited }));
}

#[test]
fn it_sees_how_full_a_completion_queue_is_within_what_the_consumer_tells() {
    let (mut a, mut b) = pair();
    let mut delivered = 0;
    for round in 0..40 {
        for _ in 0..3 {
            b.recv(round, 0, 8);
            a.send(round, 0, 8);
            a.expect(&[(round, S::SUCCESS)]);
            delivered += 1;
        }
        let polled = round as usize % 4;
        let there = b.cq.poll_into(&mut [Wc::default(); 4][..polled]).unwrap();
        delivered -= there as u32;
        let seen = seen_cq(&b.cq);
        let range = seen.unpolled_min..=seen.unpolled_max;
        assert!(range.contains(&delivered), "{delivered} is not in {range:?}");
        assert_eq!((seen.health, seen.dropped, seen.counts), (CqHealth::Running, 0, None));
        if delivered > 50 {
            delivered -= take(&mut b.cq).len() as u32;
        }
    }
    assert_eq!(seen_cq(&b.cq).pushed, 120);
    // It was polled, and has not told everything: a guess, unless that is little.
    let subject = Subject::CompletionQueue(a.cq.key().index);
    let of_cq = |wait: &Wait| wait.subject == subject;
    let (mut guesses, mut silent) = (0, 0);
    for round in 0..32 {
        b.recv(round, 0, 8);
        a.send(round, 0, 8);
        a.expect(&[(round, S::SUCCESS)]);
        take(&mut b.cq);
        let (at_most, wait) = (seen_cq(&a.cq).unpolled_max, see().waits().into_iter().find(of_cq));
        match wait.map(|wait| wait.reason) {
            Some(reason) => {
                assert_eq!(reason, Reason::PerhapsUnpolled { at_most });
                assert!(reason.is_usual() && at_most > 8, "{at_most}");
                guesses += 1;
            }
            None => silent += usize::from(at_most <= 8),
        }
    }
    assert!(guesses > 0 && silent > 0 && guesses + silent == 32, "{guesses} {silent}");
    assert_eq!((seen_cq(&a.cq).capacity, seen_cq(&a.cq).armed), (64, None));
}

#[test]
fn it_sees_what_a_queue_is_armed_for_and_its_unread_events() {
    let context = open();
    let mut channel = context.create_channel().unwrap();
    let (mut a, mut b) = small_queue(&channel);
    let index = b.cq.key().index;
    let waits = || {
        let is_it = |subject| subject == Subject::CompletionQueue(index);
        see().waits().into_iter().find(|wait| is_it(wait.subject)).map(|wait| wait.reason)
    };
    assert_eq!((seen_cq(&b.cq).armed, waits()), (None, None));
    for (on, solicited) in [(Notify::Solicited, true), (Notify::Next, false)] {
        let _ = b.cq.arm(on).unwrap();
        assert_eq!(seen_cq(&b.cq).armed, Some(on));
        assert_eq!(waits(), Some(Reason::Completion { solicited }));
    }
    b.recv(1, 0, 8);
    a.send(1, 0, 8);
    let seen = seen_cq(&b.cq);
    assert_eq!((seen.armed, seen.unread_events), (None, 1));
    assert_eq!(waits(), Some(Reason::EventsUnread { events: 1 }));
    let seen = see();
    let of_cq = seen.completion_queues.iter().find(|seen| seen.index == index).unwrap();
    let of_channel = seen.channels.iter().find(|seen| Some(seen.index) == of_cq.channel).unwrap();
    assert_eq!((of_channel.queues, of_channel.unread_events), (1, 1));
    assert_eq!(channel.take_event().unwrap(), Some(b.cq.key()));
    assert_eq!(seen_cq(&b.cq).unread_events, 0);
    assert_eq!(waits(), Some(Reason::Unpolled { completions: 1 }));
    assert_eq!((take(&mut b.cq).len(), waits()), (1, None));
}

/// An end whose completion queue holds two, and has a channel; and its peer.
fn small_queue(channel: &CompletionChannel) -> (End, End) {
    let context = open();
    let cq = context.cq(2).channel(channel).create().unwrap();
    let mut b = End::completing_in(&context, cq, QpType::RC, CAPS);
    let mut a = End::on(&context, QpType::RC, CAPS);
    connect(&mut a.qp, &mut b.qp);
    (a, b)
}

#[test]
fn it_sees_a_moderated_and_an_overrun_queue() {
    let context = open();
    let channel = context.create_channel().unwrap();
    let (mut a, mut b) = small_queue(&channel);
    b.cq.moderate(9, 60_000).unwrap();
    // On a busy machine the period may be over before the event is seen that is held: then once more.
    let moderated = (0..100).find_map(|_| {
        [&mut a.cq, &mut b.cq].into_iter().for_each(|cq| drop(take(cq)));
        let _ = b.cq.arm(Notify::Next).unwrap();
        b.recv(2, 0, 8);
        a.send(2, 0, 8);
        let moderated = seen_cq(&b.cq).moderation.unwrap();
        assert_eq!((moderated.count, moderated.period_us), (9, 60_000));
        (moderated.held == 1).then_some(moderated)
    });
    let moderated = moderated.expect("an event is held");
    assert!(moderated.due_in_ns.is_some_and(|ns| ns <= 60_000_000), "{moderated:?}");
    b.cq.moderate(1, 0).unwrap();
    assert_eq!(seen_cq(&b.cq).moderation, None);

    let mut wr_id = 3;
    while seen_qp(&b.qp).state == QpState::RTS {
        b.recv(wr_id, 0, 8);
        a.send(wr_id, 0, 8);
        wr_id += 1;
    }
    let seen = seen_cq(&b.cq);
    assert_eq!((seen.health, seen.dropped), (CqHealth::Overrun, 1));
    assert_eq!((seen.unpolled_min, seen.unpolled_max), (2, 2));
    assert!(seen_cq(&context.cq(2).ignore_overrun().create().unwrap()).ignores_overrun);
}

#[test]
fn it_sees_shared_receive_queues() {
    let context = open();
    let pd = context.alloc_pd().unwrap();
    let mut srq = pd.create_srq(&SrqInit::new(6)).unwrap();
    let cq = context.cq(16).create().unwrap();
    let init = pd.qp(&cq).srq(&srq);
    let mut b = init.create().unwrap();
    let mut a = End::on(&context, QpType::RC, CAPS);
    connect(&mut a.qp, &mut b);
    let of = |number| {
        let all = see().shared_receive_queues;
        all.into_iter().find(|seen| seen.number == number).unwrap()
    };
    let seen = of(srq.number());
    assert_eq!((seen.receives.outstanding, seen.receives.capacity, seen.limit), (0, 6, 0));
    for wr_id in 0..4 {
        srq.post_recv(&[RecvWr::new(wr_id, &[])]).unwrap();
    }
    srq.arm_limit(2).unwrap();
    a.send(1, 0, 0);
    a.expect(&[(1, S::SUCCESS)]);
    let seen = of(srq.number());
    assert_eq!((seen.receives.outstanding, seen.in_use, seen.limit), (3, 0, 2));
    assert_eq!((seen.receives.posted, seen.receives.done), (4, 1));
    assert_eq!(seen_qp(&b).srq, srq.number());
}

#[test]
fn it_sees_what_a_memory_window_is_bound_to() {
    let end = End::new();
    let (pd, mut qp) = (&end.pd, end.qp);
    qp.connect_to(qp.number()).unwrap();
    let window = pd.alloc_mw().unwrap();
    let kinds = || see().regions.iter().map(|seen| (seen.kind, seen.key)).collect::<Vec<_>>();
    assert!(kinds().iter().any(|(kind, _)| *kind == RegionKind::None), "it is not bound");
    let rkey = inc_rkey(window.rkey());
    let region = pd.allocate(64, ALL.union(Access::MW_BIND)).unwrap();
    let sge = region.sge(..64).unwrap();
    let access = Access::REMOTE_WRITE;
    let bind = WindowBind {
        window: window.rkey(),
        rkey,
        lkey: sge.lkey,
        addr: sge.addr,
        length: 64,
        access,
    };
    qp.post_send(&[SendWr::bind_window(1, bind)]).unwrap();
    let seen = see().regions.into_iter().find(|seen| seen.key == rkey).unwrap();
    assert_eq!((seen.kind, seen.qp, seen.len), (RegionKind::Window, qp.number(), 64));
}

#[test]
fn it_finds_a_fabric_by_its_name_and_says_why_not() {
    let name = fabric();
    let no = FabricObserver::open(&name).unwrap_err().to_string();
    assert!(no.contains(&name) && no.contains("there is no fabric"), "{no}");
    assert!(FabricObserver::open("a b").unwrap_err().to_string().contains("letters"));
    let context = open();
    assert!(transport_rxe_loop::observe::fabrics().contains(&name));
    let observer = observer();
    assert_eq!((observer.fabric(), observer.is_current()), (&*name, true));
    assert_eq!(observer.limits(), context.limits());
    fs::remove_file(observer.path()).unwrap();
    assert!(!observer.is_current());
}

/// A counted and an uncounted opening can't be in one process and fabric: this is in a fabric of its own.
#[test]
fn polls_are_counted_if_that_was_asked_for() {
    let options = OpenOptions::new().fabric(&fabric()).limits(SMALL);
    let context = options.count_polls().open("loop0").unwrap();
    let mut channel = context.create_channel().unwrap();
    let cq = context.cq(8).channel(&channel).create().unwrap();
    let mut b = End::completing_in(&context, cq, QpType::RC, CAPS);
    let mut a = End::on(&context, QpType::RC, CAPS);
    connect(&mut a.qp, &mut b.qp);
    let counts = |cq: &Cq| seen_cq(cq).counts.unwrap();
    let nothing = counts(&b.cq);
    assert_eq!((nothing.polls, nothing.high_water, nothing.arms), (0, 0, 0));
    let mut wcs = [Wc::default(); 2];
    for wr_id in 0..5 {
        b.recv(wr_id, 0, 8);
        a.send(wr_id, 0, 8);
        let seen = seen_cq(&b.cq);
        assert_eq!((seen.unpolled_min, seen.unpolled_max), (wr_id as u32 + 1, wr_id as u32 + 1));
    }
    for (polled, left) in [(2, 3), (2, 1), (1, 0), (0, 0)] {
        assert_eq!(b.cq.poll_into(&mut wcs), Ok(polled));
        let seen = seen_cq(&b.cq);
        assert_eq!((seen.unpolled_min, seen.unpolled_max), (left, left));
    }
    assert_eq!(b.cq.poll_into(&mut []), Ok(0));
    let seen = counts(&b.cq);
    assert_eq!((seen.polls, seen.empty_polls, seen.polled, seen.high_water), (5, 2, 5, 5));
    assert_eq!(b.cq.arm(Notify::Next), Ok(Armed::Armed));
    b.recv(5, 0, 8);
    a.send(5, 0, 8);
    assert_eq!(channel.take_event().unwrap(), Some(b.cq.key()));
    assert_eq!(b.cq.arm(Notify::Next), Ok(Armed::MayHaveMissed));
    let seen = counts(&b.cq);
    assert_eq!((seen.arms, seen.events), (2, 1));
    // It keeps on counting in another ring, and to the overrun.
    assert_eq!((b.cq.resize(100), b.cq.capacity()), (Ok(100), 100));
    assert_eq!(b.cq.poll_into(&mut wcs), Ok(1));
    assert_eq!((counts(&b.cq).polls, counts(&b.cq).polled), (6, 6));
    assert_eq!(b.cq.resize(1), Ok(1));
    let mut wr_id = 6;
    while seen_qp(&b.qp).state == QpState::RTS {
        b.recv(wr_id, 0, 8);
        a.send(wr_id, 0, 8);
        wr_id += 1;
    }
    while b.cq.poll_into(&mut wcs).is_ok_and(|count| count > 0) {}
    let overrun = Err(PollError::Overrun { dropped: Some(b.cq.dropped()) });
    assert!(b.cq.dropped() > 0);
    assert_eq!(b.cq.poll_into(&mut wcs), overrun);
    assert_eq!(seen_cq(&b.cq).health, CqHealth::Overrun);
    assert!(counts(&a.cq).polls == 0 && seen_cq(&a.cq).unpolled_min > 0, "nobody polled it");
}
