//! What posting takes and refuses: Q3, Q4, Q7.

mod common;

use common::{CAPS, End, S, connect_by, device, impatient, pair};
use cq_core::transport::{Post, PostError, Refused};
use cq_core::wr::{Data, RecvWr, SendFlags, SendOp, SendWr, Sge};
use transport_verbs::{Access, CreateError, Limit, QpAttr, QpCaps, QpInit, QpType, SrqInit};

#[track_caller]
fn refused(result: Result<(), PostError>, posted: usize, why: Refused) {
    assert_eq!(result, Err(PostError { posted, why }));
}

#[test]
fn q04_an_empty_list_posts_nothing() {
    let Some(context) = device() else { return };
    let mut end = End::new(&context, QpType::Rc);
    end.qp.post_send(&[]).unwrap();
    end.qp.post_recv(&[]).unwrap();
    end.expect_nothing();
}

#[test]
fn q04_a_list_longer_than_a_chain_is_posted_in_order() {
    let Some((mut a, mut b)) = pair() else { return };
    let sges: Vec<[Sge; 1]> = (0..40).map(|nth| [b.region.sge(nth * 8, 8).unwrap()]).collect();
    let recvs: Vec<_> = (0..40).zip(&sges).map(|(id, sges)| RecvWr::new(id, sges)).collect();
    b.qp.post_recv(&recvs).unwrap();
    let bytes: Vec<[u8; 8]> = (0..40_u64).map(|id| (id * 3).to_ne_bytes()).collect();
    let sends: Vec<_> =
        (100..140).zip(&bytes).map(|(id, bytes)| SendWr::send_inline(id, bytes)).collect();
    a.qp.post_send(&sends).unwrap();
    a.expect(&(100..140).map(|id| (id, S::SUCCESS)).collect::<Vec<_>>());
    b.expect(&(0..40).map(|id| (id, S::SUCCESS)).collect::<Vec<_>>());
    for nth in 0..40 {
        assert_eq!(b.word(nth * 8), nth as u64 * 3);
    }
}

#[test]
fn q04_a_read_comes_between_the_writes_that_it_was_posted_between() {
    let Some((mut a, mut b)) = pair() else { return };
    let to = b.region.remote(0).unwrap();
    let sge = [a.region.sge(0, 8).unwrap()];
    let fenced = SendWr::write_inline(3, &[2; 8], to).fenced();
    let first = SendWr::write_inline(1, &[1; 8], to).unsignaled();
    a.qp.post_send(&[first, SendWr::read(2, &sge, to).unsignaled(), fenced]).unwrap();
    a.expect(&[(3, S::SUCCESS)]);
    assert_eq!((a.bytes(0, 8), b.bytes(0, 8)), (vec![1; 8], vec![2; 8]));
    b.expect_nothing();
}

/// Wherever in its chain a request is, and whoever refuses it.
#[test]
fn q04_a_list_stops_at_the_first_bad_request() {
    let Some((mut a, mut b)) = pair() else { return };
    let sge = a.region.sge(0, 1).unwrap();
    let (too_many, too_long) = ([sge; 99], [0; 5000]);
    let max_inline = a.qp.caps().max_inline;
    let bad = [
        (SendWr::send(0, &too_many), Refused::TooManySges { max: a.qp.caps().max_send_sge }),
        (SendWr::send_inline(0, &too_long), Refused::InlineTooLong { max: max_inline }),
        (
            SendWr::read(0, &too_many, b.region.remote(0).unwrap()),
            Refused::TooManySges { max: a.qp.caps().max_send_sge },
        ),
        (
            SendWr::new(0, SendOp::Read { remote: b.region.remote(0).unwrap() }, Data::Inline(b"")),
            Refused::InlineResult,
        ),
    ];
    let to = b.region.remote(0).unwrap();
    for (bad, why) in bad {
        for posted in [0, 1, 15, 16, 17, 35] {
            let mut list: Vec<_> =
                (0..40).map(|id| SendWr::write_inline(id, &[1; 4], to)).collect();
            list[posted] = bad;
            refused(a.qp.post_send(&list), posted, why);
            a.expect(&(0..posted as u64).map(|id| (id, S::SUCCESS)).collect::<Vec<_>>());
            a.expect_nothing();
        }
    }
    let pieces = [b.region.sge(0, 1).unwrap(); 99];
    for posted in [0, 16, 17] {
        let mut list = [RecvWr::new(1, &pieces[..1]); 20];
        list[posted] = RecvWr::new(1, &pieces);
        let why = Refused::TooManySges { max: b.qp.caps().max_recv_sge };
        refused(b.qp.post_recv(&list), posted, why);
    }
}

/// Sends that wait for receives keep their slots.
#[test]
fn q04_a_full_queue_refuses() {
    let Some(context) = device() else { return };
    let (mut a, b) = (End::new(&context, QpType::Rc), End::new(&context, QpType::Rc));
    connect_by(&mut a, &b, &QpAttr::rts());
    for takes_sends in [true, false] {
        let posted = match takes_sends {
            true => a.qp.post_send(&[SendWr::send_inline(1, b"x"); 500]),
            false => a.qp.post_recv(&[RecvWr::new(2, &[]); 500]),
        };
        let PostError { posted, why } = posted.unwrap_err();
        assert_eq!(why, Refused::QueueFull);
        assert!((CAPS.max_send_wr as usize..500).contains(&posted), "{posted}");
    }
}

#[test]
fn q03_states_that_take_no_request_refuse_it_for_good() {
    let Some(context) = device() else { return };
    let (mut a, mut b) = (End::new(&context, QpType::Rc), End::new(&context, QpType::Rc));
    connect_by(&mut b, &a, &impatient());
    b.recv(1, 0, 8);
    refused(a.qp.post_recv(&[RecvWr::new(9, &[])]), 0, Refused::WrongState);
    let steps = [
        QpAttr::init(&a.port, Access::empty()),
        QpAttr::rtr(&a.port, &b.qp.endpoint(&b.port)),
        impatient().sq_psn(a.qp.psn()),
    ];
    for step in steps {
        refused(a.qp.post_send(&[SendWr::send_inline(9, b"x")]), 0, Refused::WrongState);
        a.qp.modify(&step).unwrap();
        a.qp.post_recv(&[RecvWr::new(8, &[])]).unwrap();
    }
    a.qp.post_send(&[SendWr::send_inline(2, b"once")]).unwrap();
    a.expect(&[(2, S::SUCCESS)]);
    assert_eq!(b.expect(&[(1, S::SUCCESS)])[0].result().unwrap().byte_len(), 4);
}

#[test]
fn q07_a_refused_change_does_not_turn_reads_and_atomics_on() {
    let Some(context) = device() else { return };
    let (mut a, b) = (End::new(&context, QpType::Rc), End::new(&context, QpType::Rc));
    connect_by(&mut a, &b, &impatient().max_rd_atomic(0));
    let (sge, word) = ([a.region.sge(0, 8).unwrap()], b.region.remote(0).unwrap());
    a.qp.modify(&impatient()).unwrap_err();
    refused(a.qp.post_send(&[SendWr::read(1, &sge, word)]), 0, Refused::NoReadAtomic);
    a.expect_nothing();
}

#[test]
fn q06_inline_bytes_need_no_piece() {
    let Some(context) = device() else { return };
    let mut end = End::new(&context, QpType::Rc);
    let caps = QpCaps { max_send_sge: 0, ..CAPS };
    end.qp = end.pd.create_qp(&QpInit { caps, ..QpInit::new(&end.cq) }).unwrap();
    let myself = end.qp.endpoint(&end.port);
    end.qp.connect(&end.port, &myself).unwrap();
    end.recv(1, 0, 8);
    end.qp.post_send(&[SendWr::send_inline(2, b"inline").unsignaled()]).unwrap();
    end.expect(&[(1, S::SUCCESS)]);
    assert_eq!(end.bytes(0, 6), b"inline");
}

/// A flag without a name might be that of inline bytes: the device would read whatever an SGE says.
#[test]
fn q06_flags_without_a_name_do_not_reach_the_device() {
    let Some((mut a, mut b)) = pair() else { return };
    b.recv(1, 0, 64);
    let nowhere = [Sge { addr: 8, length: 8, lkey: 1 }];
    let flags = SendFlags::from_bits_retain(!0);
    a.qp.post_send(&[SendWr { flags, ..SendWr::send(2, &nowhere) }]).unwrap();
    let got = common::settle(&mut a.cq, 1);
    assert!(got[0].status() != S::SUCCESS && got[0].wr_id() == 2);
}

#[test]
fn q11_queues_of_another_opening_are_refused() {
    let (Some(context), Some(other)) = (device(), device()) else { return };
    // The same number of objects, so that the kernel's numbers of both queues are the same.
    let [(pd, cq), (other_pd, foreign)] =
        [&context, &other].map(|of| (of.alloc_pd().unwrap(), of.create_cq(8, None).unwrap()));
    let srq = other_pd.create_srq(&SrqInit { max_wr: 1, max_sge: 1 }).unwrap();
    for init in [
        QpInit::new(&foreign),
        QpInit { send_cq: &foreign, ..QpInit::new(&cq) },
        QpInit { recv_cq: &foreign, ..QpInit::new(&cq) },
        QpInit { srq: Some(&srq), ..QpInit::new(&cq) },
    ] {
        assert_eq!(pd.create_qp(&init).unwrap_err(), CreateError::OtherContext);
    }
    let qp = pd.create_qp(&QpInit::new(&cq)).unwrap();
    let cq = cq.destroy().unwrap_err().handle;
    qp.destroy();
    cq.destroy().unwrap();
}

#[test]
fn q11_a_channel_of_another_opening_is_refused() {
    let (Some(context), Some(other)) = (device(), device()) else { return };
    let channel = other.create_channel().unwrap();
    assert_eq!(context.create_cq(8, Some(&channel)).unwrap_err(), CreateError::OtherContext);
    channel.destroy().unwrap();
}

#[test]
fn what_is_more_than_the_device_can_is_refused_with_the_limit_to_look_at() {
    let Some(context) = device() else { return };
    let (pd, cq) = (context.alloc_pd().unwrap(), context.create_cq(8, None).unwrap());
    let most = context.attributes();
    let (wr, sge) = (most.max_qp_wr, most.max_sge);
    for asked in [wr + 1, u32::MAX] {
        for (caps, what, max) in [
            (QpCaps { max_send_wr: asked, ..CAPS }, Limit::SendWr, wr),
            (QpCaps { max_recv_wr: asked, ..CAPS }, Limit::RecvWr, wr),
            (QpCaps { max_send_sge: asked, ..CAPS }, Limit::SendSge, sge),
            (QpCaps { max_recv_sge: asked, ..CAPS }, Limit::RecvSge, sge),
        ] {
            let error = pd.create_qp(&QpInit { caps, ..QpInit::new(&cq) }).unwrap_err();
            assert_eq!(error, CreateError::TooMany { what, asked, max });
        }
    }
    let asked = u32::MAX;
    for (init, what, max) in [
        (SrqInit { max_wr: asked, max_sge: 1 }, Limit::SrqWr, most.max_srq_wr),
        (SrqInit { max_wr: 1, max_sge: asked }, Limit::SrqSge, most.max_srq_sge),
    ] {
        let error = pd.create_srq(&init).unwrap_err();
        assert_eq!(error, CreateError::TooMany { what, asked, max });
    }
}

/// Soft-RoCE posts what is too long, but no atomic that is not aligned; then the length is told first.
#[test]
fn q04_a_refused_message_that_is_longer_than_the_port_takes_is_told_as_that() {
    let Some((mut a, _b)) = pair() else { return };
    let max = a.port.max_msg_size;
    let length = u32::try_from(max + 1).unwrap();
    let sges = [Sge { length, ..a.region.sge(0, 8).unwrap() }];
    let refused = a.qp.post_send(&[SendWr::fetch_add(0, &sges, a.region.remote(1).unwrap(), 1)]);
    assert_eq!(refused, Err(PostError { posted: 0, why: Refused::TooLong { max } }));
}
