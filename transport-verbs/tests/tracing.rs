//! What the transport tells a subscriber of `tracing`, on the device that VERBS_DEVICE names.

mod common;
#[path = "common/subscriber.rs"]
mod subscriber;

use std::fmt::Display;

use common::*;
use cq_verbs::async_event::{AsyncEventType, BlockAsync as _};
use cq_verbs::setup::SrqInit;
use subscriber::Recorder;
use tracing::Level;
use tracing::subscriber::DefaultGuard;

/// What the calls of this thread tell of, until the guard is dropped.
fn recorder() -> (&'static Recorder, DefaultGuard) {
    let recorder: &'static Recorder = Box::leak(Box::default());
    (recorder, recorder.listens())
}

#[test]
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn objects_are_told_of_with_their_numbers_when_they_are_made_and_destroyed() {
    let (recorder, _guard) = recorder();
    let context = device();
    recorder.only("device opened", &[("device", &context.name())]);
    let (channel, pd) = (context.create_channel().unwrap(), context.alloc_pd().unwrap());
    recorder.only("channel created", &[]);
    let cq = context.cq(16).channel(&channel).create().unwrap();
    let srq = pd.create_srq(&SrqInit::new(4)).unwrap();
    let qp = pd.qp(&cq).srq(&srq).create().unwrap();
    let region = pd.allocate(64, Access::LOCAL_WRITE).unwrap();
    let (key, qp_num, srq_num, rkey) = (cq.key(), qp.number(), srq.number(), region.rkey());
    let [of_cq, of_qp, of_srq, of_region]: [[(&str, &dyn Display); 1]; 4] =
        [[("cq", &key)], [("qp_num", &qp_num)], [("srq", &srq_num)], [("rkey", &rkey)]];

    let made = recorder.only("queue pair created", &of_qp);
    assert_eq!((made.level, made.field("qp_type")), (Level::DEBUG, "RC"));
    assert_eq!(
        (made.field("send_cq"), made.field("recv_cq")),
        (&*key.to_string(), &*key.to_string())
    );
    let of_pd: [(&str, &dyn Display); 1] = [("pd", &made.field("pd"))];
    recorder.only("protection domain allocated", &of_pd);
    let made = recorder.only("completion queue created", &of_cq);
    assert_eq!(made.field("capacity"), cq.capacity().to_string());
    let made = recorder.only("shared receive queue created", &of_srq);
    assert_eq!(made.field("capacity"), srq.caps().max_wr.to_string());
    let made = recorder.only("memory region registered", &of_region);
    assert_eq!((made.field("len"), made.field("pd")), ("64", &*of_pd[0].1.to_string()));

    let ended = || {
        [
            ("queue pair destroyed", &of_qp),
            ("completion queue destroyed", &of_cq),
            ("shared receive queue destroyed", &of_srq),
            ("memory region deregistered", &of_region),
            ("protection domain deallocated", &of_pd),
        ]
        .map(|(text, of)| recorder.seen(text, of).len())
    };
    assert_eq!(ended(), [0; 5]);
    drop((region, qp, srq, cq, pd));
    assert_eq!(ended(), [1; 5]);
}

#[test]
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn q01_changes_of_state_by_the_program_are_told_of() {
    let (recorder, _guard) = recorder();
    let (mut a, b) = ends();
    a.qp.connect(&a.port, &b.qp.endpoint(&b.port)).unwrap();
    a.qp.modify(
        &QpAttr::new().state(QpState::RTS).min_rnr_timer(RnrTimer::from_number(3).unwrap()),
    )
    .unwrap();
    assert!(a.qp.modify(&QpAttr::new().state(QpState::INIT)).is_err());
    a.qp.modify(&QpAttr::new().state(QpState::ERR)).unwrap();
    let seen = recorder.seen("queue pair changed its state", &[("qp_num", &a.qp.number())]);
    let changes: Vec<_> =
        seen.iter().map(|it| [it.field("from"), it.field("state")].join(" ")).collect();
    assert_eq!(changes, ["RESET INIT", "INIT RTR", "RTR RTS", "RTS ERR"]);
    assert!(seen.iter().all(|seen| seen.level == Level::DEBUG));
}

#[test]
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn o02_an_overrun_is_told_of_where_its_event_is_taken() {
    let (recorder, _guard) = recorder();
    let mut context = device();
    let (pd, port) = (context.alloc_pd().unwrap(), context.port(1).unwrap());
    let cq = context.cq(1).create().unwrap();
    let mut qp = pd.qp(&cq).caps(CAPS).create().unwrap();
    qp.connect(&port, &qp.endpoint(&port)).unwrap();
    let region = pd.allocate(64, ALL).unwrap();
    let (sge, to) = ([region.sge(..8).unwrap()], region.remote(8).unwrap());
    for wr_id in 0..cq.capacity() as u64 + 2 {
        // Refused once it has failed.
        let _ = qp.post_send(&[SendWr::write(wr_id, &sge, to)]);
    }
    let mut is_told = || {
        let event = context.wait_async(Some(Instant::now() + DEADLINE)).unwrap();
        event.expect("it comes in time").event_type == AsyncEventType::CQ_ERR
    };
    while !is_told() {}
    let overrun = &recorder.seen("completion queue overrun", &[("cq", &cq.key())])[0];
    assert_eq!(overrun.level, Level::ERROR);
}
