//! Queue pairs: what their set-up, their changes of state and posting say and refuse where the conformance suite looks at
//! the errno alone.

mod common;

use std::os::unix::net::UnixStream;
use std::thread;

use common::*;
use cq_core::cq::CompletionQueue;
use cq_core::observe::Observed;
use cq_verbs::counters::Counters;
use cq_verbs::exchange::{barrier, connect_over};

#[track_caller]
fn refused(result: Result<(), PostError>, posted: usize, why: WrError) {
    assert_eq!(result, Err(PostError { posted, why }));
}

fn state(qp: &QueuePair) -> QpState {
    qp.state().unwrap()
}

#[test]
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn q01_a_refused_change_says_why_and_changes_nothing() {
    let context = device();
    let mut end = End::new(&context, QpType::RC);
    let (from, to, missing) = (QpState::RESET, QpState::INIT, QpAttrMask::PORT);
    let refused = end.qp.modify(&QpAttr::rts()).unwrap_err();
    assert_eq!(refused, ModifyError::Illegal { from, to: QpState::RTS });
    let init = QpAttr::init(&end.port, Access::REMOTE);
    let refused = end.qp.modify(&init.without(missing)).unwrap_err();
    assert_eq!(refused, ModifyError::Missing { from, to, missing });
    assert_eq!(state(&end.qp), from);
}

#[test]
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn q01_connect_goes_from_reset_to_rts() {
    let (mut a, mut b) = ends();
    let [to_a, to_b] = [&a, &b].map(|end| end.qp.endpoint(&end.port));
    let Endpoint { qp_num, psn, lid, gid, mtu, responder_resources, .. } = to_a;
    assert_eq!((qp_num, psn), (a.qp.number(), a.qp.psn()));
    assert_eq!((lid, gid, mtu), (a.port.lid, a.port.gid, a.port.mtu));
    assert_ne!(a.qp.number(), b.qp.number());
    a.qp.connect(&a.port, &to_b).unwrap();
    b.qp.connect(&b.port, &to_a).unwrap();
    assert_eq!((state(&a.qp), state(&b.qp)), (QpState::RTS, QpState::RTS));
    let attr = a.qp.attributes().unwrap();
    assert_eq!(attr.max_dest_rd_atomic, Some(responder_resources));
    assert!(attr.max_rd_atomic > Some(0) && attr.max_rd_atomic <= Some(to_b.responder_resources));
    b.recv(1, 0, 64);
    let sge = [a.region.sge(..64).unwrap()];
    let word = b.region.remote(0).unwrap();
    a.qp.post_send(&[SendWr::send(2, &sge), SendWr::read(3, &sge, word)]).unwrap();
    a.expect(&[(2, S::SUCCESS), (3, S::SUCCESS)]);
    b.expect(&[(1, S::SUCCESS)]);

    let again = a.qp.connect(&a.port, &to_b).unwrap_err();
    assert_eq!(again, ModifyError::Illegal { from: QpState::RTS, to: QpState::INIT });
    assert_eq!(state(&a.qp), QpState::RTS);
}

#[test]
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn queue_pairs_send_as_soon_as_they_are_connected() {
    let (ours, theirs) = ends();
    let side = |mut end: End, stream: UnixStream| {
        let peer = connect_over(&stream, &mut end.qp, &end.port, DEADLINE).unwrap();
        assert_ne!(peer.qp_num, end.qp.number());
        end.recv(1, 0, 32);
        end.qp.post_send(&[SendWr::send_inline(2, b"at once")]).unwrap();
        for wc in settle(&mut end.cq, 2) {
            assert_eq!(wc.status(), S::SUCCESS);
        }
        assert_eq!(end.bytes(0, 7), b"at once");
        // Neither leaves while the other's message is under way.
        barrier(&stream, DEADLINE).unwrap();
    };
    let (near, far) = UnixStream::pair().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| side(theirs, far));
        side(ours, near);
    });
}

#[test]
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn q01_connect_leads_nowhere_without_an_address() {
    let (mut a, _) = ends();
    let mine = a.qp.endpoint(&a.port);
    // An index that the port's table does not have.
    let nowhere = AddressVector::new(&a.port, mine.gid, 0);
    let route = nowhere.route.map(|route| route.sgid_index(255));
    a.qp.modify(&QpAttr::init(&a.port, Access::REMOTE)).unwrap();
    let rtr = QpAttr::rtr(&a.port, &mine).av(nowhere.route(route));
    a.qp.modify(&rtr).unwrap_err();
    assert_eq!(state(&a.qp), QpState::INIT);
}

/// Datagrams need a queue key, connections a peer.
#[test]
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn q01_each_kind_of_queue_pair_has_its_own_way() {
    let context = device();
    let [mut rc, mut uc, mut ud] =
        [QpType::RC, QpType::UC, QpType::UD].map(|of| End::new(&context, of));
    rc.qp.activate(&rc.port, 1).unwrap_err();
    let peer = ud.qp.endpoint(&ud.port);
    ud.qp.connect(&ud.port, &peer).unwrap_err();
    assert_eq!((state(&rc.qp), state(&ud.qp)), (QpState::RESET, QpState::RESET));
    ud.qp.activate(&ud.port, 1).unwrap();
    let myself = uc.qp.endpoint(&uc.port);
    uc.qp.connect(&uc.port, &myself).unwrap();
    assert_eq!((state(&uc.qp), state(&ud.qp)), (QpState::RTS, QpState::RTS));
}

/// Wherever in its chain a request is, and whoever refuses it.
#[test]
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn q04_a_list_stops_at_the_first_bad_request() {
    let (mut a, mut b) = pair();
    let sge = a.region.sge(..1).unwrap();
    let (too_many, too_long) = ([sge; 99], [0; 5000]);
    let max_inline = a.qp.caps().max_inline;
    let bad = [
        (SendWr::send(0, &too_many), WrError::TooManySges { max: a.qp.caps().max_send_sge }),
        (SendWr::send_inline(0, &too_long), WrError::InlineTooLong { max: max_inline }),
        (
            SendWr::read(0, &too_many, b.region.remote(0).unwrap()),
            WrError::TooManySges { max: a.qp.caps().max_send_sge },
        ),
        (
            SendWr::new(0, SendOp::Read { remote: b.region.remote(0).unwrap() }, Data::Inline(b"")),
            WrError::InlineResult,
        ),
    ];
    let to = b.region.remote(0).unwrap();
    for (bad, why) in bad {
        assert_eq!(a.qp.check_send(&bad), Err(why));
        for posted in [0, 1, 15, 16, 17, 35] {
            let mut list: Vec<_> =
                (0..40).map(|id| SendWr::write_inline(id, &[1; 4], to)).collect();
            list[posted] = bad;
            refused(a.qp.post_send(&list), posted, why);
            a.expect(&(0..posted as u64).map(|id| (id, S::SUCCESS)).collect::<Vec<_>>());
            a.expect_nothing();
        }
    }
    let sges = [b.region.sge(..1).unwrap(); 99];
    for posted in [0, 16, 17] {
        let mut list = [RecvWr::new(1, &sges[..1]); 20];
        list[posted] = RecvWr::new(1, &sges);
        let why = WrError::TooManySges { max: b.qp.caps().max_recv_sge };
        assert_eq!(b.qp.check_recv(&list[posted]), Err(why));
        refused(b.qp.post_recv(&list), posted, why);
    }
}

#[test]
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn q04_what_can_never_be_posted_is_refused_without_posting_it() {
    let (mut a, b) = pair();
    let remote = b.region.remote(0).unwrap();
    let sge = [a.region.sge(..8).unwrap()];
    assert_eq!(a.qp.check_send(&SendWr::read(1, &sge, remote)), Ok(()));
    assert_eq!(a.qp.check_recv(&RecvWr::new(1, &sge)), Ok(()));
    let flush = SendWr::flush(1, remote, 8, Placement::GLOBAL, Selectivity::Range);
    assert_eq!(a.qp.check_send(&flush), Err(WrError::Unsupported));
    refused(a.qp.post_send(&[flush]), 0, WrError::Unsupported);
    let srq = a.pd.create_srq(&SrqInit::new(1)).unwrap();
    let mut shares = a.pd.qp(&a.cq).srq(&srq).create().unwrap();
    shares.modify(&QpAttr::init(&a.port, Access::REMOTE)).unwrap();
    let wr = RecvWr::new(1, &sge);
    assert_eq!(shares.check_recv(&wr), Err(WrError::SharedReceives));
    refused(shares.post_recv(&[wr]), 0, WrError::SharedReceives);
}

#[test]
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn q04_a_datagram_is_judged_with_its_destination() {
    let context = device();
    let mut end = End::new(&context, QpType::UD);
    end.qp.activate(&end.port, 1).unwrap();
    let send = SendWr::send(1, &[]);
    assert_eq!(end.qp.check_send(&send), Err(WrError::NoDestination));
    refused(end.qp.post_send(&[send]), 0, WrError::NoDestination);
    let other = context.alloc_pd().unwrap();
    let address = AddressVector::new(&end.port, end.port.gid, end.port.lid);
    let [ah, foreign] = [&end.pd, &other].map(|pd| pd.create_ah(&address).unwrap());
    let (qp_num, qkey) = (end.qp.number(), 1);
    let probe = SendWr::probe(1);
    for (ah, wr, why) in
        [(&foreign, send, WrError::NoDestination), (&ah, probe, WrError::Unsupported)]
    {
        let mut directed = end.qp.to(&Destination::new(ah, qp_num, qkey));
        assert_eq!(directed.check_send(&wr), Err(why));
        refused(directed.post_send(&[wr]), 0, why);
    }
    assert_eq!(end.qp.to(&Destination::new(&ah, qp_num, qkey)).check_send(&send), Ok(()));
}

#[test]
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn q07_a_refused_change_does_not_turn_reads_and_atomics_on() {
    let (mut a, b) = ends();
    connect_by(&mut a, &b, &impatient().max_rd_atomic(0));
    let (sge, word) = ([a.region.sge(..8).unwrap()], b.region.remote(0).unwrap());
    a.qp.modify(&impatient()).unwrap_err();
    let read = SendWr::read(1, &sge, word);
    assert_eq!(a.qp.check_send(&read), Err(WrError::NoReadAtomic));
    refused(a.qp.post_send(&[read]), 0, WrError::NoReadAtomic);
    a.expect_nothing();
}

#[test]
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn q06_inline_bytes_need_no_piece() {
    let context = device();
    let mut end = End::new(&context, QpType::RC);
    let caps = CAPS.max_send_sge(0);
    end.qp = end.pd.qp(&end.cq).caps(caps).create().unwrap();
    let myself = end.qp.endpoint(&end.port);
    end.qp.connect(&end.port, &myself).unwrap();
    end.recv(1, 0, 8);
    end.qp.post_send(&[SendWr::send_inline(2, b"inline").unsignaled()]).unwrap();
    end.expect(&[(1, S::SUCCESS)]);
    assert_eq!(end.bytes(0, 6), b"inline");
}

#[test]
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn q11_queues_of_another_opening_are_refused() {
    let (context, other) = (device(), device());
    // The same number of objects, so that the kernel's numbers of both queues are the same.
    let [(pd, cq), (other_pd, foreign)] =
        [&context, &other].map(|of| (of.alloc_pd().unwrap(), of.cq(8).create().unwrap()));
    let srq = other_pd.create_srq(&SrqInit::new(1)).unwrap();
    for init in [
        pd.qp(&foreign),
        pd.qp(&cq).send_cq(&foreign),
        pd.qp(&cq).recv_cq(&foreign),
        pd.qp(&cq).srq(&srq),
    ] {
        assert_eq!(init.create().unwrap_err(), CreateError::OtherContext);
    }
    let qp = pd.qp(&cq).create().unwrap();
    let cq = cq.destroy().unwrap_err().handle;
    qp.destroy();
    cq.destroy().unwrap();
}

#[test]
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn q11_a_channel_of_another_opening_is_refused() {
    let (context, other) = (device(), device());
    let channel = other.create_channel().unwrap();
    assert_eq!(context.cq(8).channel(&channel).create().unwrap_err(), CreateError::OtherContext);
    channel.destroy().unwrap();
}

#[test]
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn what_is_more_than_the_device_can_is_refused_with_the_limit_to_look_at() {
    let context = device();
    let (pd, cq) = (context.alloc_pd().unwrap(), context.cq(8).create().unwrap());
    let most = context.attributes();
    let (wr, sge) = (most.max_qp_wr, most.max_sge);
    for asked in [wr + 1, u32::MAX] {
        for (caps, what, max) in [
            (CAPS.max_send_wr(asked), LimitKind::SendWr, wr),
            (CAPS.max_recv_wr(asked), LimitKind::RecvWr, wr),
            (CAPS.max_send_sge(asked), LimitKind::SendSge, sge),
            (CAPS.max_recv_sge(asked), LimitKind::RecvSge, sge),
        ] {
            let error = pd.qp(&cq).caps(caps).create().unwrap_err();
            assert_eq!(error, CreateError::TooMany { what, asked, max });
        }
    }
    let asked = u32::MAX;
    for (init, what, max) in [
        (SrqInit::new(asked), LimitKind::SrqWr, most.max_srq_wr),
        (SrqInit::new(1).max_sge(asked), LimitKind::SrqSge, most.max_srq_sge),
    ] {
        let error = pd.create_srq(&init).unwrap_err();
        assert_eq!(error, CreateError::TooMany { what, asked, max });
    }
}

/// Soft-RoCE posts what is too long, but no atomic that is not aligned; then the length is told first.
#[test]
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn q04_a_refused_message_that_is_longer_than_the_port_takes_is_told_as_that() {
    let (mut a, _b) = pair();
    let max = a.port.max_msg_size;
    let length = u32::try_from(max + 1).unwrap();
    let sges = [Sge { length, ..a.region.sge(..8).unwrap() }];
    let wr = SendWr::fetch_add(0, &sges, a.region.remote(1).unwrap(), 1);
    assert_eq!(a.qp.check_send(&wr), Err(WrError::TooLong { max }));
    let refused = a.qp.post_send(&[wr]);
    assert_eq!(refused, Err(PostError { posted: 0, why: WrError::TooLong { max } }));
}

#[test]
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn q01_every_attribute_is_told_until_reset() {
    let (mut a, b) = ends();
    assert_eq!(a.qp.attributes().unwrap(), QpAttr::new().state(QpState::RESET));
    let rtr = QpAttr::rtr(&a.port, &b.qp.endpoint(&b.port)).path_mtu(Mtu::MTU_1024).rq_psn(24);
    let rtr = rtr.max_dest_rd_atomic(4);
    let init = QpAttr::init(&a.port, Access::REMOTE_READ);
    let rts = QpAttr::rts()
        .timeout(AckTimeout::from_number(17).unwrap())
        .retry_cnt(6)
        .sq_psn(1225)
        .max_rd_atomic(2);
    for attr in [init, rtr, rts] {
        a.qp.modify(&attr).unwrap();
    }
    a.qp.modify(
        &QpAttr::new().min_rnr_timer(RnrTimer::from_number(7).unwrap()).cur_state(QpState::RTS),
    )
    .unwrap();
    assert_eq!(
        a.qp.attributes().unwrap(),
        rts.or(rtr).or(init).min_rnr_timer(RnrTimer::from_number(7).unwrap())
    );
    a.qp.modify(&QpAttr::new().state(QpState::RESET)).unwrap();
    assert_eq!(a.qp.attributes().unwrap(), QpAttr::new().state(QpState::RESET));
}

#[test]
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn a_queue_counts_and_its_high_water_mark_is_the_largest_batch() {
    let context = device();
    let (pd, port) = (context.alloc_pd().unwrap(), context.port(1).unwrap());
    let (recorder, counters) = Counters::shared();
    let queue = Observed::new(context.cq(64).create().unwrap(), recorder);
    let mut cq = CompletionQueue::new(queue);
    let mut qp = pd.qp(cq.get_ref()).caps(CAPS).create().unwrap();
    qp.connect(&port, &qp.endpoint(&port)).unwrap();
    let region = pd.allocate(64, ALL).unwrap();
    let (sge, to) = ([region.sge(..8).unwrap()], region.remote(8).unwrap());
    (0..6).for_each(|wr_id| qp.post_send(&[SendWr::write(wr_id, &sge, to)]).unwrap());
    qp.post_send(&[SendWr::write(6, &sge, RemoteAddr { addr: 0, rkey: 0xdead_0000 })]).unwrap();
    let (mut buffer, mut polled, end) = ([Wc::default(); 4], 0, Instant::now() + DEADLINE);
    while polled < 7 {
        assert!(Instant::now() < end, "{polled} came in time");
        polled += cq.poll(&mut buffer).unwrap().len();
    }
    let counts = counters.snapshot();
    assert_eq!(counts.completions.count(S::SUCCESS), 6);
    assert_eq!(counts.completions.count(S::REM_ACCESS_ERR), 1);
    assert!(
        (1..=4).contains(&counts.high_water),
        "the device does not tell how many wait: {counts}"
    );
    assert_eq!(counts.failed_polls, 0);
}

#[test]
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn x07_a_forked_child_that_drops_what_it_inherited_leaves_the_parent_all() {
    let ends = pair();
    let mut ends = Some(ends);
    in_child(|| {
        drop(ends.take());
        true
    });
    let (mut a, mut b) = ends.unwrap();
    b.recv(1, 0, 8);
    a.region.write(0, b"unharmed").unwrap();
    a.qp.post_send(&[SendWr::send(2, &[a.region.sge(..8).unwrap()])]).unwrap();
    a.expect(&[(2, S::SUCCESS)]);
    b.expect(&[(1, S::SUCCESS)]);
    assert_eq!(b.bytes(0, 8), b"unharmed");
}
