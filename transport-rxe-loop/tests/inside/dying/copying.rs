//! Tests of a process that is stopped in the middle of a request: a process that takes back memory or a queue pair to
//! which it may be writing waits for it (X7).

use std::sync::Arc;

use cq_verbs::tracked::TrackedQp;

use super::*;
use crate::conditions::PEER_SUSPENDED;
use crate::engine::srq::queue as pool_of;

/// Longer than any bounded wait for a live process that makes no progress.
const LONG: Duration = Duration::from_millis(2500);
const WORDS: usize = 64;

/// The peer of a process that is stopped in the middle of a WRITE.
struct Target {
    fixture: Fixture,
    qp: QueuePair,
    region: MemoryRegion,
    words: &'static [AtomicU64],
    victim: Actor,
}

impl Target {
    fn new(name: &str) -> Self {
        let limits = Limits::default().bytes(5 << 20);
        let (fixture, name) = named(name, OpenOptions::new().limits(limits));
        let access = Access::LOCAL_WRITE | Access::REMOTE | Access::MW_BIND;
        let ((words, region), mut qp) = (heap(&fixture.pd, WORDS, access), fixture.qp());
        let mut victim =
            mortal_at("inside::dying::copying::writes", &name, Step::Opened, 0, Signal::STOP);
        let peer = victim.number() as u32;
        qp.connect_to(peer).unwrap();
        victim.order(Address { number: qp.number(), memory: region.remote(0).unwrap() });
        until("it is stopped", || victim.is_stopped());
        let markers = &fixture.device.engine.qp(QpNumber::new(peer)).send.in_flight;
        assert!(markers.are_open(&ChangeFence::after_change()), "in the middle of it");
        Self { fixture, qp, region, words, victim }
    }

    /// The process continues, and ends successfully.
    fn goes_on(victim: Actor) {
        victim.signal(Signal::CONT);
        assert_ne!(victim.hear(), "success", "its peer had shut it out");
        victim.finish();
    }
}

#[test]
#[ignore = "a process of another test"]
fn writes() {
    die_there();
    let mut fixture = its_fixture();
    let mut qp = fixture.qp();
    say(qp.number());
    let Address { number, memory } = order().parse().unwrap();
    connect_with(&mut qp, number, QpAttr::rts().timeout(AckTimeout::UNLIMITED));
    qp.post_send(&[SendWr::write_inline(1, &[0xff; 8], memory)]).unwrap();
    say(fixture.next_wc().1);
    order();
}

#[test]
fn x07_memory_is_kept_for_as_long_as_a_stopped_process_may_write_to_it() {
    // If an assertion fails, the process is dropped before what would wait for it.
    let Target { region, words, qp: _qp, fixture: _fixture, victim } = Target::new("kept");
    let deregistering = thread::spawn(move || region.deregister());
    let end = Instant::now() + LONG;
    while Instant::now() < end {
        assert!(!deregistering.is_finished(), "the process may still write");
        thread::sleep(Duration::from_millis(1));
    }
    Target::goes_on(victim);
    until("nobody can write any more", || deregistering.is_finished());
    deregistering.join().unwrap();
    assert!(words.iter().all(|word| sync::load(word) == 0));
}

#[test]
fn x07_a_window_is_not_waited_for_long_while_a_stopped_process_may_write() {
    let Target { region, mut qp, mut fixture, victim, .. } = Target::new("window");
    let window = fixture.pd.alloc_mw().unwrap();
    let bind = WindowBind {
        window: window.rkey(),
        rkey: inc_rkey(window.rkey()),
        lkey: region.lkey(),
        addr: region.addr(),
        length: 8,
        access: Access::REMOTE_WRITE,
    };
    let invalidate = SendWr::local_invalidate(2, bind.rkey);
    qp.post_send(&[SendWr::bind_window(1, bind), invalidate]).unwrap();
    // The service thread may own the send queue at this moment, and then carries them out.
    let done = [(); 2].map(|()| fixture.next_wc());
    assert_eq!(done, [(1, WcStatus::SUCCESS), (2, WcStatus::MW_BIND_ERR)]);
    drop(qp);
    Target::goes_on(victim);
}

#[test]
fn x07_a_queue_pair_is_kept_for_as_long_as_a_stopped_process_may_write_to_it() {
    let Target { fixture, region: _region, mut qp, victim, .. } = Target::new("place");
    let device = fixture.device;
    let mine = || Estate::mine(device).qps;
    assert_eq!(qp.modify(&QpAttr::new().state(QpState::RESET)), Err(PEER_SUSPENDED.into()));
    assert_eq!(qp.state().unwrap(), QpState::ERR, "its peer is shut out all the same");
    drop(qp);
    deaths::look(device);
    assert_eq!(mine(), 1, "its place is nobody else's yet");
    Target::goes_on(victim);
    until("its place is free", || {
        deaths::look(device);
        mine() == 0
    });
}

#[test]
fn x07_buffers_that_a_stopped_process_may_write_to_are_not_freed_with_their_queue_pair() {
    let Target { fixture: _fixture, region, qp, victim, .. } = Target::new("buffers");
    let mut qp = TrackedQp::<_, (), _>::with_capacity(qp, 0, 1);
    let token = Arc::new(());
    qp.post_recv(&[region.sge(..8).unwrap()], token.clone()).unwrap();
    drop(qp);
    assert_eq!(Arc::strong_count(&token), 2);
    Target::goes_on(victim);
}

/// Is connected, and does nothing.
#[test]
#[ignore = "a process of another test"]
fn idles() {
    die_with_parent();
    let mut qp = its_fixture().qp();
    say(qp.number());
    qp.connect_to(order().parse().unwrap()).unwrap();
    say("connected");
    order();
}

#[test]
fn x04_who_is_said_to_be_copying_says_that_it_is_not() {
    let (fixture, name) = named("idle", OpenOptions::new());
    let (device, mut qp) = (fixture.device, fixture.qp());
    let mut other = Actor::start("inside::dying::copying::idles", &[(FABRIC, &name)]);
    let number = other.number() as u32;
    qp.connect_to(number).unwrap();
    other.order(qp.number());
    assert_eq!(other.hear(), "connected");
    let markers = &device.engine.qp(QpNumber::new(number)).send.in_flight;
    let are_open = || markers.are_open(&ChangeFence::after_change());
    for (state, marker) in [
        (QpState::ERR, &markers.poster),
        (QpState::RESET, &markers.owner),
        (QpState::RESET, &markers.poster),
    ] {
        marker.open();
        assert_eq!(qp.modify(&QpAttr::new().state(state)), Ok(()), "to {state}");
        assert!(!are_open(), "it was corrected by its own process");
    }
    for marker in [&markers.poster, &markers.owner] {
        let region = fixture.region(64);
        marker.open();
        drop(region);
        assert!(!are_open(), "it was waited for, and corrected");
    }
    other.finish();
}

/// Has one receive for two queue pairs, in memory that other processes cannot map.
#[test]
#[ignore = "a process of another test"]
fn receives() {
    die_with_parent();
    let mut fixture = its_fixture();
    let mut srq = fixture.srq(4);
    let (_words, region) = heap(&fixture.pd, WORDS, Access::LOCAL_WRITE);
    let init = |qp_type| fixture.init(qp_type).srq(&srq);
    let [mut qp, mut datagrams] = [QpType::RC, QpType::UD].map(|it| fixture.create(&init(it)));
    srq.post_recv(&[RecvWr::new(7, &[region.sge(..64).unwrap()])]).unwrap();
    [qp.number(), datagrams.number(), srq.number()].into_iter().for_each(say);
    qp.connect_to(order().parse().unwrap()).unwrap();
    datagrams.activate(&Port::new(1), 1).unwrap();
    say("ready");
    let (wr_id, status) = fixture.next_wc();
    say(format!("{wr_id} {status}"));
    order();
}

/// Sends one message, which must fail or not, even while a process is stopped; returns its status.
fn send(qp: &mut QueuePair, peer: u32, cq: &mut Cq) -> WcStatus {
    qp.modify(&QpAttr::new().state(QpState::RESET)).unwrap();
    connect_with(
        qp,
        peer,
        QpAttr::rts().timeout(AckTimeout::from_number(8).unwrap()).retry_cnt(1).rnr_retry(0),
    );
    qp.post_send(&[SendWr::send_inline(1, b"message")]).unwrap();
    next_wc(cq).1
}

#[test]
fn x07_a_receive_whose_process_does_not_answer_is_given_back() {
    let (mut fixture, name) = named("receives", OpenOptions::new().copying_by_service());
    let (engine, environment) = (fixture.device.engine, [(FABRIC, &*name), (BY_SERVICE, "")]);
    let mut other = Actor::start("inside::dying::copying::receives", &environment);
    let [number, datagrams, srq] = [(); 3].map(|()| other.number() as u32);
    let (mut qp, mut ud, ah) = (fixture.qp(), fixture.datagrams(), fixture.ah());
    other.order(qp.number());
    assert_eq!(other.hear(), "ready");
    other.signal(Signal::STOP);
    until("it is stopped", || other.is_stopped());

    let pool = pool_of(engine, engine.srq(SrqNumber::new(srq))).unwrap();
    let waits = || (pool.len(), pool.taken().count());
    let to = Destination::new(&ah, datagrams, 1);
    ud.to(&to).post_send(&[SendWr::send_inline(2, b"datagram")]).unwrap();
    assert_eq!(fixture.next_wc(), (2, WcStatus::SUCCESS), "it is lost");
    assert_eq!(waits(), (1, 0));
    assert_eq!(send(&mut qp, number, &mut fixture.cq), WcStatus::RETRY_EXC_ERR);
    assert_eq!(waits(), (1, 0), "it is the next again");

    other.signal(Signal::CONT);
    assert_eq!(send(&mut qp, number, &mut fixture.cq), WcStatus::SUCCESS);
    assert_eq!(other.hear(), "7 success");
    other.finish();
}
