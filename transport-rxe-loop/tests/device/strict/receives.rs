//! A receive is outstanding until its completion was polled, whatever of others came in between: its slot is free only
//! then. So a queue of completions for all that can be outstanding never overruns (O7).

use super::*;
use transport_rxe_loop::SharedReceiveQueue;

const FULL: PostError = PostError { posted: 0, why: WrError::QueueFull };

/// Two queue pairs that are connected. The receives of the second complete in this queue, and may be shared ones.
fn pair(
    context: &Context,
    send_cq: &Cq,
    (recv_cq, srq): (&Cq, Option<&SharedReceiveQueue>),
) -> [QueuePair; 2] {
    let pd = context.alloc_pd().unwrap();
    let caps = CAPS.max_send_wr(512).max_recv_wr(4);
    let mut a = pd.qp(send_cq).caps(caps).create().unwrap();
    let init = pd.qp(send_cq).caps(caps).recv_cq(recv_cq).srq(srq);
    let mut b = init.create().unwrap();
    connect(&mut a, &mut b);
    [a, b]
}

fn send(qp: &mut QueuePair, count: usize) {
    qp.post_send(&vec![SendWr::send(0, &[]); count]).unwrap();
}

fn poll_one(cq: &mut Cq) {
    assert_eq!(cq.poll_into(&mut [Wc::default()]), Ok(1));
}

#[test]
fn a_receive_takes_a_slot_until_its_completion_is_polled() {
    let context = strict();
    let [send_cq, mut recv_cq] = [1024, 64].map(|cqe| context.cq(cqe).create().unwrap());
    let [[mut a, mut b], [mut c, mut d]] =
        [(); 2].map(|()| pair(&context, &send_cq, (&recv_cq, None)));
    // Completions of another queue pair lie in between, and positions wrap in the queue of four.
    for round in 0..20 {
        b.post_recv(&[RecvWr::new(0, &[]); 4]).unwrap();
        d.post_recv(&[RecvWr::new(0, &[]); 4]).unwrap();
        assert_eq!(b.post_recv(&[RecvWr::new(0, &[])]), Err(FULL));
        [2, 2].iter().for_each(|&count| {
            send(&mut c, count);
            send(&mut a, count);
        });
        assert_eq!(b.post_recv(&[RecvWr::new(0, &[])]), Err(FULL), "completed, and not polled");
        let mut polled_of_b = 0;
        for _ in 0..8 {
            let mut wcs = [Wc::default()];
            assert_eq!(recv_cq.poll_into(&mut wcs), Ok(1));
            if wcs[0].qp_num() == b.number() {
                polled_of_b += 1;
                b.post_recv(&[RecvWr::new(0, &[])]).unwrap();
            }
            assert_eq!(b.post_recv(&[RecvWr::new(0, &[])]), Err(FULL), "{round}: {polled_of_b}");
        }
        assert_eq!(polled_of_b, 4);
        send(&mut a, 4);
        (0..4).for_each(|_| poll_one(&mut recv_cq));
    }
}

#[test]
fn q02_flushed_receives_take_slots_until_they_are_polled_and_reset_frees_all() {
    let context = strict();
    let [send_cq, mut recv_cq] = [1024, 64].map(|cqe| context.cq(cqe).create().unwrap());
    let [_a, mut b] = pair(&context, &send_cq, (&recv_cq, None));
    b.modify(&QpAttr::new().state(QpState::ERR)).unwrap();
    b.post_recv(&[RecvWr::new(0, &[]); 4]).unwrap();
    assert_eq!(b.post_recv(&[RecvWr::new(0, &[])]), Err(FULL));
    poll_one(&mut recv_cq);
    b.post_recv(&[RecvWr::new(0, &[])]).unwrap();
    b.modify(&QpAttr::new().state(QpState::RESET)).unwrap();
    b.modify(&QpAttr::init(&Port::new(1), Access::empty())).unwrap();
    b.post_recv(&[RecvWr::new(0, &[]); 4]).unwrap();
    assert_eq!(b.post_recv(&[RecvWr::new(0, &[])]), Err(FULL));
    b.modify(&QpAttr::new().state(QpState::ERR)).unwrap();
    assert_eq!(
        take(&mut recv_cq).len(),
        4 + 4,
        "those from before are not counted, and still there"
    );
    b.post_recv(&[RecvWr::new(0, &[]); 4]).unwrap();
}

#[test]
fn o08_a_receive_whose_completion_was_dropped_takes_no_slot() {
    let context = strict();
    let send_cq = context.cq(1024).create().unwrap();
    let mut recv_cq = context.cq(2).ignore_overrun().create().unwrap();
    let [mut a, mut b] = pair(&context, &send_cq, (&recv_cq, None));
    for _ in 0..3 {
        for posted in [4, 2, 2, 2] {
            b.post_recv(&vec![RecvWr::new(0, &[]); posted]).unwrap();
            assert_eq!(b.post_recv(&[RecvWr::new(0, &[])]), Err(FULL));
            send(&mut a, posted);
        }
        assert_eq!(take(&mut recv_cq).len(), 2);
    }
    assert_eq!(recv_cq.dropped(), 3 * (4 + 2 + 2 + 2 - 2));
}

#[test]
fn q09_a_shared_receive_takes_a_slot_until_its_completion_is_polled() {
    let context = strict();
    let send_cq = context.cq(1024).create().unwrap();
    let mut cqs = [(); 2].map(|()| context.cq(64).create().unwrap());
    let mut srqs =
        [(); 2].map(|()| context.alloc_pd().unwrap().create_srq(&SrqInit::new(4)).unwrap());
    // Two queue pairs of the first shared queue complete in different queues; one of the other does, too.
    let mut pairs = [(0, 0), (1, 0), (1, 1)]
        .map(|(cq, srq)| pair(&context, &send_cq, (&cqs[cq], Some(&srqs[srq]))));
    let [srq, other] = &mut srqs;
    for _ in 0..20 {
        srq.post_recv(&[RecvWr::new(0, &[]); 4]).unwrap();
        other.post_recv(&[RecvWr::new(0, &[]); 4]).unwrap();
        for [a, _] in &mut pairs {
            send(a, 2);
        }
        assert_eq!(srq.post_recv(&[RecvWr::new(0, &[])]), Err(FULL), "completed, and not polled");
        for cq in [0, 1] {
            for _ in 0..2 {
                poll_one(&mut cqs[cq]);
                srq.post_recv(&[RecvWr::new(0, &[])]).unwrap();
                assert_eq!(srq.post_recv(&[RecvWr::new(0, &[])]), Err(FULL));
            }
        }
        assert_eq!(take(&mut cqs[1]).len(), 2);
        send(&mut pairs[0][0], 4);
        send(&mut pairs[2][0], 2);
        assert_eq!((take(&mut cqs[0]).len(), take(&mut cqs[1]).len()), (4, 2));
    }
    // Those of a queue pair that is gone take none, though they can be polled.
    srq.post_recv(&[RecvWr::new(0, &[]); 4]).unwrap();
    send(&mut pairs[0][0], 4);
    let [[_, gone], ..] = pairs;
    gone.destroy();
    srq.post_recv(&[RecvWr::new(0, &[]); 4]).unwrap();
    assert_eq!(take(&mut cqs[0]).len(), 4);
}

#[test]
fn on_soft_roce_a_slot_is_free_before_anything_is_polled() {
    let context = options().strict().imitate_rxe().open("loop0").unwrap();
    let [send_cq, recv_cq] = [1024, 64].map(|cqe| context.cq(cqe).create().unwrap());
    let srq = SrqInit::new(4);
    let mut srq = context.alloc_pd().unwrap().create_srq(&srq).unwrap();
    let [mut a, mut b] = pair(&context, &send_cq, (&recv_cq, None));
    let [mut c, _d] = pair(&context, &send_cq, (&recv_cq, Some(&srq)));
    for _ in 0..2 {
        b.post_recv(&[RecvWr::new(0, &[]); 7]).unwrap();
        assert_eq!(b.post_recv(&[RecvWr::new(0, &[])]), Err(FULL));
        srq.post_recv(&[RecvWr::new(0, &[]); 7]).unwrap();
        assert_eq!(srq.post_recv(&[RecvWr::new(0, &[])]), Err(FULL));
        [&mut a, &mut c].into_iter().for_each(|qp| send(qp, 7));
    }
}

/// Whatever a program posts as far as it is let, and however little it polls.
#[test]
fn o07_what_is_not_short_of_the_demand_never_overruns() {
    let mut context = strict();
    let pd = context.alloc_pd().unwrap();
    let mut srq = pd.create_srq(&SrqInit::new(5)).unwrap();
    let mut cq = context.cq(1).create().unwrap();
    let caps = CAPS.max_send_wr(3).max_recv_wr(2);
    let mut qps: Vec<_> = (0..4)
        .map(|nth| {
            let srq = (nth > 1).then_some(&srq);
            to_itself(pd.qp(&cq).caps(caps).srq(srq))
        })
        .collect();
    let demand = cq.handle().demand();
    assert_eq!((demand.outstanding, demand.missing()), (4 * 3 + 2 * 2 + 5, 4 * 3 + 2 * 2 + 5 - 1));
    cq.resize(demand.outstanding as u32).unwrap();
    let (mut polled, mut random) = (0, chance::Chance::new(1));
    for _ in 0..20_000 {
        for qp in &mut qps {
            let _ = qp.post_recv(&[RecvWr::new(0, &[])]);
            let _ = qp.post_send(&[SendWr::send(0, &[])]);
        }
        let _ = srq.post_recv(&[RecvWr::new(0, &[])]);
        let at_once = random.below(4);
        polled += cq.poll_into(&mut vec![Wc::default(); at_once]).unwrap();
    }
    assert!(polled > 10_000, "{polled}");
    assert_eq!(reports(&mut context), []);
}
