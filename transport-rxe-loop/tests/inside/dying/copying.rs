//! Tests of a process that is stopped in the middle of a request: a process that takes back memory or a queue pair to
//! which it may be writing waits for it (X7).

#![allow(unsafe_code)]

use super::steps::{die_there, mortal_at};
use crate::engine::srq::queue as pool_of;
use crate::inside::prelude::*;

/// Longer than any bounded wait for a live process that makes no progress.
const LONG: Duration = Duration::from_millis(2500);
const WORDS: usize = 64;
const QKEY: u32 = 0x77;

/// The peer of a process that is stopped in the middle of a WRITE.
struct Target {
    device: &'static Device,
    qp: QueuePair,
    region: MemoryRegion,
    words: &'static [AtomicU64],
    victim: Actor,
    cq: Cq,
    pd: ProtectionDomain,
}

impl Target {
    fn new(name: &str) -> Self {
        let name = format!("{name}-{}", std::process::id());
        let limits = Limits { bytes: 4 << 20, ..Limits::default() };
        let context = OpenOptions::new().fabric(&name).limits(limits).open("loop0").unwrap();
        let (device, pd) = (context.device(), context.alloc_pd().unwrap());
        let cq = context.create_cq(4, None).unwrap();
        let words = Vec::leak((0..WORDS).map(|_| AtomicU64::new(0)).collect());
        let access = Access::LOCAL_WRITE | Access::REMOTE | Access::MW_BIND;
        // SAFETY: atomics, there for ever.
        let region = unsafe { pd.register(words.as_mut_ptr().cast(), 8 * WORDS, access) }.unwrap();
        let mut qp = pd.create_qp(&QpInit::new(&cq)).unwrap();
        let mut victim =
            mortal_at("inside::dying::copying::writes", &name, Step::Opened, 0, Signal::STOP);
        let peer = victim.number() as u32;
        qp.connect_to(peer).unwrap();
        let RemoteAddr { addr, rkey } = region.remote(0).unwrap();
        victim.order(format!("{} {addr} {rkey}", qp.number()));
        until("it is stopped", || victim.is_stopped());
        assert!(
            device
                .engine
                .qp(QpNumber::new(peer))
                .send
                .in_flight
                .are_open(&ChangeFence::after_change()),
            "in the middle of it"
        );
        Self { device, qp, region, words, victim, cq, pd }
    }

    /// The process continues, and ends successfully.
    fn goes_on(victim: Actor) {
        victim.signal(Signal::CONT);
        assert_ne!(victim.hear(), "SUCCESS", "its peer had shut it out");
        victim.finish();
    }
}

#[test]
#[ignore = "a process of another test"]
fn writes() {
    die_there();
    let context = super::open();
    let (pd, mut cq) = (context.alloc_pd().unwrap(), context.create_cq(4, None).unwrap());
    let mut qp = pd.create_qp(&QpInit::new(&cq)).unwrap();
    say(qp.number());
    let told = order();
    let mut numbers = told.split(' ').map(|number| number.parse::<u64>().unwrap());
    let mut next = || numbers.next().unwrap();
    let (peer, remote) = (next() as u32, RemoteAddr { addr: next(), rkey: next() as u32 });
    for step in [
        QpAttr::init(&Port::new(1), Access::empty()),
        QpAttr::rtr(&Port::new(1), &Endpoint::new(peer)),
        QpAttr::rts().timeout(0),
    ] {
        qp.modify(&step).unwrap();
    }
    qp.post_send(&[SendWr::write_inline(1, &[0xff; 8], remote)]).unwrap();
    let mut wcs = [Wc::default()];
    until("the WRITE ends", || cq.poll(&mut wcs).unwrap() == 1);
    let status =
        wcs[0].result().map_or_else(|failed| failed.status().to_string(), |_| "SUCCESS".into());
    say(status);
    order();
}

#[test]
fn x07_memory_is_kept_for_as_long_as_a_stopped_process_may_write_to_it() {
    // If an assertion fails, the process is dropped before what would wait for it.
    let Target { region, words, qp: _qp, cq: _cq, victim, .. } = Target::new("kept");
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
    let Target { region, mut qp, mut cq, pd, victim, .. } = Target::new("window");
    let window = pd.alloc_mw().unwrap();
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
    let mut wcs = [Wc::default(); 2];
    assert_eq!(cq.poll(&mut wcs), Ok(2));
    let statuses = wcs.map(|wc| wc.status());
    assert_eq!(statuses, [WcStatus::SUCCESS, WcStatus::MW_BIND_ERR]);
    drop(qp);
    Target::goes_on(victim);
}

#[test]
fn x07_a_queue_pair_is_kept_for_as_long_as_a_stopped_process_may_write_to_it() {
    let Target { device, region: _region, cq: _cq, mut qp, victim, .. } = Target::new("place");
    let mine = || Estate::of(device, AttachmentId::new(device.shm.attachment().get())).qps;
    assert_eq!(qp.modify(&QpAttr::to(QpState::RESET)), Err(ModifyError::PeerSuspended));
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

/// Is connected, and does nothing.
#[test]
#[ignore = "a process of another test"]
fn idles() {
    die_with_parent();
    let context = super::open();
    let (pd, cq) = (context.alloc_pd().unwrap(), context.create_cq(4, None).unwrap());
    let mut qp = pd.create_qp(&QpInit::new(&cq)).unwrap();
    say(qp.number());
    qp.connect_to(order().parse().unwrap()).unwrap();
    say("connected");
    order();
}

#[test]
fn x04_who_is_said_to_be_copying_says_that_it_is_not() {
    let name = format!("idle-{}", std::process::id());
    let context = OpenOptions::new().fabric(&name).open("loop0").unwrap();
    let (device, pd) = (context.device(), context.alloc_pd().unwrap());
    let cq = context.create_cq(4, None).unwrap();
    let mut other = Actor::start("inside::dying::copying::idles", &[(super::FABRIC, &name)]);
    let number = other.number() as u32;
    let mut qp = pd.create_qp(&QpInit::new(&cq)).unwrap();
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
        assert_eq!(qp.modify(&QpAttr::to(state)), Ok(()), "to {state}");
        assert!(!are_open(), "it was corrected by its own process");
    }
    for marker in [&markers.poster, &markers.owner] {
        let region = pd.allocate(64, Access::LOCAL_WRITE).unwrap();
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
    let context = OpenOptions::new().fabric(&super::fabric()).copying_by_service();
    let context = context.open("loop0").unwrap();
    let (pd, mut cq) = (context.alloc_pd().unwrap(), context.create_cq(8, None).unwrap());
    let words: &[AtomicU64] = Vec::leak((0..WORDS).map(|_| AtomicU64::new(0)).collect());
    let at = words.as_ptr().cast_mut().cast();
    // SAFETY: atomics, there for ever.
    let region = unsafe { pd.register(at, 8 * WORDS, Access::LOCAL_WRITE) }.unwrap();
    let mut srq = pd.create_srq(&SrqInit { max_wr: 4, max_sge: 1 }).unwrap();
    let init = QpInit { srq: Some(&srq), ..QpInit::new(&cq) };
    let mut qp = pd.create_qp(&init).unwrap();
    let mut datagrams = pd.create_qp(&QpInit { qp_type: QpType::Ud, ..init }).unwrap();
    srq.post_recv(&[RecvWr::new(7, &[region.sge(0, 64).unwrap()])]).unwrap();
    [qp.number(), datagrams.number(), srq.number()].into_iter().for_each(say);
    qp.connect_to(order().parse().unwrap()).unwrap();
    datagrams.activate(&Port::new(1), QKEY).unwrap();
    say("ready");
    let mut wcs = [Wc::default()];
    until("something comes", || cq.poll(&mut wcs).unwrap() == 1);
    say(format!("{} {}", wcs[0].wr_id(), wcs[0].status()));
    order();
}

/// Sends one message, which must fail or not, even while a process is stopped; returns its status.
fn send(qp: &mut QueuePair, peer: u32, cq: &mut Cq) -> WcStatus {
    let rts = QpAttr::rts().timeout(8).retry_cnt(1).rnr_retry(0);
    for step in [
        QpAttr::to(QpState::RESET),
        QpAttr::init(&Port::new(1), Access::empty()),
        QpAttr::rtr(&Port::new(1), &Endpoint::new(peer)),
        rts,
    ] {
        qp.modify(&step).unwrap();
    }
    qp.post_send(&[SendWr::send_inline(1, b"message")]).unwrap();
    let mut wcs = [Wc::default()];
    until("it completes", || cq.poll(&mut wcs).unwrap() == 1);
    wcs[0].status()
}

#[test]
fn x07_a_receive_whose_process_does_not_answer_is_given_back() {
    let name = format!("receives-{}", std::process::id());
    let context = OpenOptions::new().fabric(&name).copying_by_service().open("loop0").unwrap();
    let (device, pd) = (context.device(), context.alloc_pd().unwrap());
    let (here, mut cq) = (context.port(1).unwrap(), context.create_cq(8, None).unwrap());
    let mut other = Actor::start("inside::dying::copying::receives", &[(super::FABRIC, &name)]);
    let [number, datagrams, srq] = [(); 3].map(|()| other.number() as u32);
    let mut qp = pd.create_qp(&QpInit::new(&cq)).unwrap();
    let mut ud = pd.create_qp(&QpInit { qp_type: QpType::Ud, ..QpInit::new(&cq) }).unwrap();
    ud.activate(&Port::new(1), QKEY).unwrap();
    other.order(qp.number());
    assert_eq!(other.hear(), "ready");
    other.signal(Signal::STOP);
    until("it is stopped", || other.is_stopped());

    let pool = pool_of(device.engine, device.engine.srq(SrqNumber::new(srq))).unwrap();
    let waits = || (pool.len(), pool.taken().count());
    let ah = pd.create_ah(&AddressVector::of(&here, here.gid, here.lid)).unwrap();
    let to = Destination { ah: &ah, qp_num: datagrams, qkey: QKEY };
    ud.to(&to).post_send(&[SendWr::send_inline(2, b"datagram")]).unwrap();
    let mut wcs = [Wc::default()];
    until("it is lost", || cq.poll(&mut wcs).unwrap() == 1);
    assert_eq!((wcs[0].status(), waits()), (WcStatus::SUCCESS, (1, 0)));
    assert_eq!(send(&mut qp, number, &mut cq), WcStatus::RETRY_EXC_ERR);
    assert_eq!(waits(), (1, 0), "it is the next again");

    other.signal(Signal::CONT);
    assert_eq!(send(&mut qp, number, &mut cq), WcStatus::SUCCESS);
    assert_eq!(other.hear(), "7 success");
    other.finish();
}
