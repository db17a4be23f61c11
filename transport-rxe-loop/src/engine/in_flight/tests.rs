use super::*;
use crate::inside::prelude::*;

#[test]
fn x03_nobody_waits_for_what_a_dead_process_was_in_the_middle_of() {
    let device = Fixture::new().device;
    let (index, _) = device.engine.qps.claim(ANOTHER).unwrap();
    let markers = &device.engine.qps.at(index).send.in_flight;
    for marker in [&markers.poster, &markers.owner] {
        marker.open();
        assert_eq!(wait_for_all(device.engine), Ok(()));
    }
}

#[test]
fn q06_q10_deregistering_and_invalidating_wait_for_copies_that_are_in_flight() {
    let fixture = Fixture::new();
    let (&Device { memory, engine, .. }, qp) = (fixture.device, fixture.own_peer());
    let slot = fixture.slot(&qp);
    let for_another = || CopyGuard::open_to_own(memory, &memory.copier.in_flight);
    let copies: [&dyn Fn() -> CopyGuard<'static>; 2] =
        [&for_another, &|| engine.copy_guard(slot, qp.index())];
    for open in copies {
        let (region, copy) = (fixture.region(64), open());
        let key = &memory.mrs.at(Key::new(region.lkey()).index()).key;
        waits(
            || region.deregister(),
            || {
                until("the key is dead", || sync::acquire(key) == 0);
                drop(copy);
            },
        );
        let copy = open();
        let peer = waits(|| wait_for_peer(engine, qp.qpn()), || drop(copy));
        assert_eq!(peer, Ok(()));
    }
}

#[test]
fn x01_only_a_queue_pair_that_is_connected_to_it_may_be_in_the_middle_of_a_request_for_one() {
    let fixture = Fixture::new();
    let engine = fixture.device.engine;
    let qps = [(); 3].map(|()| fixture.qp());
    let [target, peer, other] = qps.each_ref().map(QueuePair::qpn);
    let connect = |from, to: QpNumber| sync::store(engine.dest(engine.index(from)), to.get());
    let is_alone = || try_exclude_senders(engine, engine.qp(target), target).is_some();
    let is_open = || is_open_for(engine, engine.index(target));
    connect(target, peer);
    connect(peer, target);
    assert_eq!((is_alone(), is_open()), (true, false), "nothing is under way");
    let markers = &engine.qp(peer).send.in_flight;
    for marker in [&markers.poster, &markers.owner] {
        marker.open();
        assert_eq!((is_alone(), is_open()), (false, true));
        marker.close();
    }
    markers.owner.open();
    connect(peer, other);
    assert_eq!((is_alone(), is_open()), (true, false), "that is for another one");
    connect(peer, target);
    connect(target, QpNumber::new(peer.get() ^ 1 << 23));
    assert!(is_alone(), "its peer is gone, and another one has the place");
    markers.owner.close();
}

#[test]
fn x01_who_takes_receives_may_be_in_the_middle_of_a_datagram() {
    let fixture = Fixture::new();
    let (engine, qp) = (fixture.device.engine, fixture.create(&fixture.init(QpType::UD)));
    let slot = fixture.slot(&qp);
    let state = || {
        let is_alone = try_exclude_senders(engine, slot, qp.qpn()).is_some();
        (is_open_for(engine, qp.index()), is_alone)
    };
    let taken = take_receives(engine, slot).unwrap();
    assert_eq!(state(), (true, false));
    drop(taken);
    assert_eq!(state(), (false, true));
}

#[test]
fn c08_who_shares_a_queue_waits_for_a_message_of_the_one_that_was_alone() {
    let fixture = Fixture::new();
    let (Device { engine, completions, .. }, receives) = (fixture.device, fixture.another_cq());
    let qp = fixture.create(&fixture.init(QpType::RC).recv_cq(&receives));
    let index = fixture.cq.handle.queue.index;
    let (ownership, sole) = (engine.ownership(qp.index()), &completions.cq(index).sole);
    assert!(sole.is(qp.qpn()) && ownership.enter());
    ownership.open();
    let pushes_no_more = || {
        assert!(!sole.is(qp.qpn()));
        ownership.close();
    };
    waits(|| share_queue(engine, index), pushes_no_more);
    ownership.abandon();
}

#[test]
fn c08_another_queue_pair_resizing_and_moderating_end_that_one_is_alone() {
    type Ends = fn(&mut Fixture, &Cq);
    fn init<'a>(fixture: &'a Fixture, receives: &'a Cq) -> QpBuilder<'a, ProtectionDomain> {
        fixture.init(QpType::RC).recv_cq(receives)
    }
    let cases: [(&str, Ends); 5] = [
        ("sends", |fixture, receives| drop(fixture.create(&init(fixture, receives)))),
        ("receives", |fixture, receives| {
            let init = fixture.init(QpType::RC).send_cq(receives);
            drop(fixture.create(&init));
        }),
        ("resizing", |fixture, _| _ = fixture.cq.resize(8).unwrap()),
        ("moderating", |fixture, _| fixture.cq.moderate(2, 1).unwrap()),
        ("nothing", |_, _| ()),
    ];
    for (case, ends) in cases {
        let mut fixture = Fixture::new();
        let receives = fixture.another_cq();
        let qp = fixture.create(&init(&fixture, &receives));
        let sole = &fixture.device.completions.cq(fixture.cq.handle.queue.index).sole;
        assert!(sole.is(qp.qpn()), "its sends alone complete there");
        ends(&mut fixture, &receives);
        assert_eq!(sole.is(qp.qpn()), case == "nothing", "{case}");
        drop(qp);
        let next = fixture.create(&init(&fixture, &receives));
        let is_alone = sole.is(next.qpn());
        assert_eq!(is_alone, case == "nothing", "{case}: for good, but for one that is gone");
    }
}
