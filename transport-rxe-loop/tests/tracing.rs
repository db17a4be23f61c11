//! What the device tells a subscriber of `tracing`, which is the whole process's: so these tests stand by themselves.

mod common;
#[path = "inside/subscriber.rs"]
mod subscriber;

use std::fmt::Display;

use common::process::{Actor, order, say};
use common::*;
use subscriber::Recorder;
use tracing::Level;
use tracing::subscriber::DefaultGuard;

/// What the calls of this thread tell of, until the guard is dropped.
fn recorder() -> (&'static Recorder, DefaultGuard) {
    let recorder: &'static Recorder = Box::leak(Box::default());
    (recorder, recorder.listens())
}

type Fields<'a> = [(&'a str, &'a dyn Display); 1];

/// The name of the file of this test's fabric ends with its own.
fn is_of(file: &str, fabric: &str) -> bool {
    file.strip_suffix(fabric).is_some_and(|rest| rest.ends_with('.'))
}

#[test]
fn opening_tells_of_the_fabric_and_of_limits_that_are_not_in_force() {
    let ((recorder, _guard), fabric) = (recorder(), fabric());
    let first = open();
    let of_this = |text: &str| {
        let mut seen = recorder.seen(text, &[]);
        seen.retain(|seen| is_of(seen.field("fabric"), &fabric));
        seen
    };
    let attached = of_this("fabric attached");
    let pid = std::process::id();
    assert!(
        attached[0].is("fabric attached", &[("created", &true), ("pid", &pid)]),
        "{attached:?}"
    );
    assert_eq!((attached.len(), attached[0].level), (1, Level::DEBUG));
    assert_eq!(of_this("device opened").len(), 1);
    assert!(of_this("limits not in force").is_empty());

    let other = SMALL.queue_pairs(8 * SMALL.queue_pairs);
    let second = OpenOptions::new().fabric(&fabric).limits(other).open("loop0").unwrap();
    assert_eq!(of_this("fabric attached").len(), 1, "it was attached already");
    assert_eq!(of_this("device opened")[1].field("device"), "loop0");
    let warned = of_this("limits not in force");
    assert_eq!((warned.len(), warned[0].level), (1, Level::WARN));
    assert!(warned[0].field("asked").contains("queue_pairs: 8192"), "{warned:?}");
    assert!(warned[0].field("in_force").contains("queue_pairs: 1024"), "{warned:?}");
    drop((first, second));
}

#[test]
fn objects_are_told_of_with_their_numbers_when_they_are_made_and_destroyed() {
    let (recorder, _guard) = recorder();
    let context = open();
    let (channel, pd) = (context.create_channel().unwrap(), context.alloc_pd().unwrap());
    let cq = context.cq(16).channel(&channel).create().unwrap();
    let srq = pd.create_srq(&SrqInit::new(4)).unwrap();
    let qp = pd.qp(&cq).srq(&srq).create().unwrap();
    let region = pd.allocate(64, Access::LOCAL_WRITE).unwrap();
    let window = pd.alloc_mw().unwrap();
    let (cq_key, qp_num, srq_number) = (cq.key(), qp.number(), srq.number());
    let (region_key, window_key) = (region.rkey(), window.rkey());
    let [of_cq, of_qp, of_srq]: [Fields<'_>; 3] =
        [[("cq", &cq_key)], [("qp_num", &qp_num)], [("srq", &srq_number)]];
    let [of_region, of_window]: [Fields<'_>; 2] =
        [[("rkey", &region_key)], [("rkey", &window_key)]];

    let made = recorder.only("queue pair created", &of_qp);
    assert_eq!((made.level, made.field("qp_type")), (Level::DEBUG, "RC"));
    assert_eq!(made.field("send_cq"), cq_key.to_string());
    assert_eq!(made.field("recv_cq"), cq_key.to_string());
    assert_eq!(made.field("srq"), srq_number.to_string());
    let pd_number = made.field("pd").to_owned();
    let of_pd: Fields<'_> = [("pd", &pd_number)];
    assert_eq!(recorder.only("completion queue created", &of_cq).field("capacity"), "16");
    assert_eq!(recorder.only("shared receive queue created", &of_srq).field("capacity"), "4");
    let made = recorder.only("memory region registered", &of_region);
    assert_eq!((made.field("len"), made.field("pd")), ("64", &*pd_number));
    assert!(made.field("access").contains("LOCAL_WRITE"), "{made:?}");
    assert_eq!(recorder.only("memory window allocated", &of_window).field("pd"), pd_number);

    let ended = || {
        [
            ("queue pair destroyed", &of_qp),
            ("completion queue destroyed", &of_cq),
            ("shared receive queue destroyed", &of_srq),
            ("memory region deregistered", &of_region),
            ("memory window deallocated", &of_window),
        ]
        .map(|(text, of)| recorder.seen(text, of).len())
    };
    assert_eq!(ended(), [0; 5]);
    drop((window, region, qp, srq, cq));
    assert_eq!(ended(), [1; 5]);
    pd.destroy().unwrap();
    recorder.only("protection domain deallocated", &of_pd);
    let [first, second] = &recorder.seen("channel created", &[])[..] else {
        panic!("that of the context, and the other one");
    };
    assert_ne!(first.field("channel"), second.field("channel"));
    channel.destroy().unwrap();
    recorder.only("channel destroyed", &[("channel", &second.field("channel"))]);
}

#[test]
fn q01_changes_of_state_by_the_program_are_told_of() {
    let (recorder, _guard) = recorder();
    let mut end = End::to_itself();
    let mut expected = vec!["RESET INIT", "INIT RTR", "RTR RTS"];
    for (attr, change) in [
        (QpAttr::new().state(QpState::RTS).min_rnr_timer(RnrTimer::from_number(3).unwrap()), None),
        (QpAttr::new().state(QpState::ERR), Some("RTS ERR")),
        (QpAttr::new().state(QpState::RTS), None),
        (QpAttr::new().state(QpState::RESET), Some("ERR RESET")),
    ] {
        let changed = end.qp.modify(&attr);
        expected.extend(change);
        let seen = recorder.seen("queue pair changed its state", &[("qp_num", &end.qp.number())]);
        assert!(seen.iter().all(|seen| seen.level == Level::DEBUG));
        let changes: Vec<_> =
            seen.iter().map(|it| [it.field("from"), it.field("state")].join(" ")).collect();
        assert_eq!(changes, expected, "{changed:?}");
    }
    assert!(recorder.seen("queue pair failed", &[]).is_empty(), "none by itself");
}

#[test]
fn q07_the_first_failed_request_is_told_of_and_why_both_queue_pairs_fail() {
    let (recorder, _guard) = recorder();
    let (mut a, b) = pair();
    let nowhere = RemoteAddr { addr: 0, rkey: 0xdead_0000 };
    let sge = [a.region.sge(..8).unwrap()];
    let wrong = SendWr::write(7, &sge, nowhere);
    a.qp.post_send(&[wrong, SendWr::write(8, &sge, nowhere)]).unwrap();
    a.expect(&[(7, S::REM_ACCESS_ERR), (8, S::WR_FLUSH_ERR)]);
    let of = |end: &End| end.qp.number();
    let failed = recorder.only("request failed", &[("qp_num", &of(&a))]);
    assert_eq!((failed.level, failed.field("status")), (Level::ERROR, "REM_ACCESS_ERR"));
    assert_eq!((failed.field("wr_id"), failed.field("cq")), ("7", &*a.cq.key().to_string()));
    for (end, peer) in [(&a, ""), (&b, &*of(&a).to_string())] {
        let changed = recorder.only("queue pair failed", &[("qp_num", &of(end))]);
        assert_eq!((changed.level, changed.field("state")), (Level::WARN, "ERR"));
        assert_eq!((changed.field("reason"), changed.field("peer")), ("REM_ACCESS_ERR", peer));
    }
    assert!(recorder.seen("request failed", &[("qp_num", &of(&b))]).is_empty(), "none of its own");
}

#[test]
fn q07_a_queue_pair_that_is_its_own_peer_fails_once() {
    let (recorder, _guard) = recorder();
    let mut end = End::to_itself();
    end.post(SendWr::write_inline(7, b"hello", RemoteAddr { addr: 0, rkey: 0xdead_0000 }));
    end.expect(&[(7, S::REM_ACCESS_ERR)]);
    recorder.only("request failed", &[("qp_num", &end.qp.number())]);
    recorder.only("queue pair failed", &[("qp_num", &end.qp.number())]);
}

#[test]
fn q01_a_queue_pair_that_goes_to_sqe_is_told_of() {
    let ((recorder, _guard), context) = (recorder(), open());
    let (mut a, _b) = pair_on(&context, QpType::UC);
    let dead = a.pd.allocate(64, Access::LOCAL_WRITE).unwrap().sge(..64).unwrap();
    a.post(SendWr::send(1, &[dead]));
    a.expect(&[(1, S::LOC_PROT_ERR)]);
    let changed = recorder.only("queue pair failed", &[("qp_num", &a.qp.number())]);
    assert_eq!((changed.field("state"), changed.field("reason")), ("SQE", "LOC_PROT_ERR"));
}

#[test]
fn o02_an_overrun_is_told_of_once_and_so_are_the_queue_pairs_that_fail() {
    let ((recorder, _guard), context) = (recorder(), open());
    let cq = context.cq(1).create().unwrap();
    let mut end = End::completing_in(&context, cq, QpType::RC, CAPS);
    end.qp.connect_to(end.qp.number()).unwrap();
    let empty = [SendWr::write_inline(1, &[], RemoteAddr { addr: 0, rkey: 0 }); 4];
    end.qp.post_send(&empty).unwrap();
    assert_eq!(end.state(), QpState::ERR);
    let overrun = recorder.only("completion queue overrun", &[("cq", &end.cq.key())]);
    assert_eq!(overrun.level, Level::ERROR);
    let changed = recorder.only("queue pair failed", &[("qp_num", &end.qp.number())]);
    assert_eq!((changed.level, changed.field("state")), (Level::WARN, "ERR"));
    assert_eq!(changed.field("reason"), "its completion queue has overrun");
}

#[test]
#[ignore = "a process of the other tests"]
fn lives() {
    let (recorder, _guard) = recorder();
    let end = End::new();
    say(end.qp.number());
    say(recorder.only("fabric attached", &[]).field("created"));
    order();
}

#[test]
fn x03_the_death_of_a_process_is_told_of_with_its_pid() {
    static RECORDER: Recorder = Recorder::new();
    // That of the service thread, too.
    tracing::subscriber::set_global_default(&RECORDER).unwrap();
    let recorder = &RECORDER;
    let mut a = End::new();
    let mut other = Actor::start("lives", &[(FABRIC, &fabric())]);
    let peer = other.number() as u32;
    assert_eq!(other.hear(), "false", "it is this process that created the fabric");
    let times = QpAttr::rts().timeout(AckTimeout::from_number(8).unwrap()).retry_cnt(1);
    let rtr = QpAttr::rtr(&Port::new(1), &Endpoint::new(peer));
    connect_by(&mut a.qp, &rtr, &times);
    other.kill();
    let dead: Fields<'_> = [("pid", &other.pid())];
    // The service thread finds it.
    wait_for(|| !recorder.seen("process died: freed what it had", &dead).is_empty());
    assert_eq!(recorder.only("process died: freed what it had", &dead).level, Level::WARN);
    a.post(SendWr::send_inline(1, b"hello"));
    a.expect(&[(1, S::RETRY_EXC_ERR)]);
    let failed = recorder.only("request failed", &[("qp_num", &a.qp.number())]);
    assert_eq!(failed.field("status"), "RETRY_EXC_ERR");
}

#[test]
fn x02_a_fabric_that_a_killed_process_left_is_told_of_when_it_is_removed() {
    let (recorder, _guard) = recorder();
    // A process of another test that creates a fabric may be the one that removes it: then the next one is looked at.
    let mut nth = 0;
    wait_for(|| {
        nth += 1;
        let named = |what: &str| format!("{what}-{}-{nth}", std::process::id());
        let create = |what| OpenOptions::new().fabric(&named(what)).limits(SMALL).open("loop0");
        let left = named("left");
        let is_told = || {
            let mut removed = recorder.seen("unused fabric removed", &[]).into_iter();
            assert!(removed.clone().all(|seen| seen.level == Level::DEBUG));
            removed.any(|seen| is_of(seen.field("fabric"), &left))
        };
        let mut other = Actor::start("lives", &[(FABRIC, &left)]);
        other.hear();
        create("first").unwrap();
        assert!(!is_told(), "it is in use");
        other.kill();
        other.status();
        create("second").unwrap();
        is_told()
    });
}
