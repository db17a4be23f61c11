//! Shared receive queues: Q9.

mod common;

use std::time::Instant;

use common::{CAPS, DEADLINE, End, S, device, impatient};
use cq_core::async_event::{AsyncEvent, AsyncEventType, Element};
use cq_core::transport::{AsyncEvents, Post, PostError, Refused};
use cq_core::wr::{RecvWr, SendWr};
use transport_verbs::{
    Access, Context, Cq, OwnedRegion, Port, ProtectionDomain, QpAttr, QpInit, QpState, QpType,
    QueuePair, SharedReceiveQueue, SrqInit,
};

/// Two queue pairs that share their receives.
struct Shared {
    qps: [QueuePair; 2],
    srq: SharedReceiveQueue,
    cq: Cq,
    region: OwnedRegion,
    pd: ProtectionDomain,
    port: Port,
}

impl Shared {
    fn new(context: &Context) -> Self {
        let (pd, port) = (context.alloc_pd().unwrap(), context.port(1).unwrap());
        let cq = context.create_cq(255, None).unwrap();
        let srq = pd.create_srq(&SrqInit { max_wr: 31, max_sge: 2 }).unwrap();
        let init = QpInit { caps: CAPS, srq: Some(&srq), ..QpInit::new(&cq) };
        let qps = [(); 2].map(|()| pd.create_qp(&init).unwrap());
        let region = pd.allocate(4096, Access::LOCAL_WRITE).unwrap();
        Self { qps, srq, cq, region, pd, port }
    }

    /// With an end connected to each of them.
    fn connected(context: &Context) -> (Self, [End; 2]) {
        let mut shared = Self::new(context);
        let mut ends = [(); 2].map(|()| End::new(context, QpType::Rc));
        for (qp, end) in shared.qps.iter_mut().zip(&mut ends) {
            let peer = end.qp.endpoint(&end.port);
            let mine = qp.endpoint(&shared.port);
            qp.connect(&shared.port, &peer).unwrap();
            end.qp.modify(&QpAttr::init(&end.port, Access::REMOTE)).unwrap();
            end.qp.modify(&QpAttr::rtr(&end.port, &mine)).unwrap();
            end.qp.modify(&impatient().sq_psn(peer.psn)).unwrap();
        }
        (shared, ends)
    }

    fn recv(&mut self, wr_ids: impl IntoIterator<Item = u64>) {
        let sge = [self.region.sge(0, 64).unwrap()];
        let list: Vec<_> = wr_ids.into_iter().map(|wr_id| RecvWr::new(wr_id, &sge)).collect();
        self.srq.post_recv(&list).unwrap();
    }
}

#[test]
fn q09_queue_pairs_take_from_it_in_order_and_the_completion_names_them() {
    let Some(context) = device() else { return };
    let (mut shared, mut ends) = Shared::connected(&context);
    shared.recv(1..=20);
    for (nth, id) in (1..=20_u64).enumerate() {
        let end = &mut ends[nth % 2];
        end.qp.post_send(&[SendWr::send_inline(100, &id.to_ne_bytes())]).unwrap();
        end.expect(&[(100, S::SUCCESS)]);
        let got = common::settle(&mut shared.cq, 1)[0];
        assert_eq!((got.wr_id(), got.status()), (id, S::SUCCESS));
        assert_eq!(got.qp_num(), shared.qps[nth % 2].number());
    }
}

#[test]
fn q09_a_queue_pair_of_it_takes_no_receives_of_its_own() {
    let Some(context) = device() else { return };
    let (mut shared, _ends) = Shared::connected(&context);
    let PostError { posted, why } = shared.qps[0].post_recv(&[RecvWr::new(1, &[])]).unwrap_err();
    assert_eq!((posted, why), (0, Refused::SharedReceives));
}

#[test]
fn q09_err_of_one_queue_pair_leaves_it_alone() {
    let Some(context) = device() else { return };
    let (mut shared, mut ends) = Shared::connected(&context);
    shared.recv([1]);
    shared.qps[0].modify(&QpAttr::to(QpState::ERR)).unwrap();
    assert_eq!(common::take(&mut shared.cq), []);
    ends[1].send(2, 0, 8);
    assert_eq!(common::settle(&mut shared.cq, 1)[0].wr_id(), 1);
}

#[test]
fn q09_its_limit_is_reported_once_below_it() {
    let Some(mut context) = device() else { return };
    let (mut shared, [mut end, _other]) = Shared::connected(&context);
    shared.recv(1..=5);
    shared.srq.arm_limit(1_000_000).unwrap_err();
    shared.srq.arm_limit(4).unwrap();
    let mut send = |wr_id| {
        end.qp.post_send(&[SendWr::send_inline(wr_id, b"x")]).unwrap();
        end.expect(&[(wr_id, S::SUCCESS)]);
    };
    send(1);
    assert_eq!((shared.srq.limit().unwrap(), report(&mut context)), (4, None));
    (2..=4).for_each(&mut send);
    let reached = AsyncEvent {
        event_type: AsyncEventType::SRQ_LIMIT_REACHED,
        element: Element::Srq(shared.srq.number()),
    };
    assert_eq!(next_report(&mut context), reached);
    assert_eq!((shared.srq.limit().unwrap(), report(&mut context)), (0, None));

    shared.srq.arm_limit(1).unwrap();
    send(5);
    assert_eq!(next_report(&mut context), reached);
    let number = shared.srq.number();
    drop(shared);
    assert_ne!(Shared::new(&context).srq.number(), number);
}

/// What the shared receive queue reported, as far as it is known now.
fn report(context: &mut Context) -> Option<AsyncEvent> {
    std::iter::from_fn(|| context.take_async_event().unwrap())
        .find(|event| matches!(event.element, Element::Srq(_)))
}

/// What a shared receive queue reports next.
fn next_report(context: &mut Context) -> AsyncEvent {
    loop {
        let event = context
            .wait_async(Some(Instant::now() + DEADLINE))
            .unwrap()
            .expect("the limit is reported");
        if matches!(event.element, Element::Srq(_)) {
            return event;
        }
    }
}

#[test]
fn q04_it_refuses_what_is_too_much() {
    let Some(context) = device() else { return };
    let mut shared = Shared::new(&context);
    let pieces = [shared.region.sge(0, 1).unwrap(); 99];
    let max = shared.srq.caps().max_sge;
    let list = [RecvWr::new(1, &pieces[..1]), RecvWr::new(2, &pieces)];
    let why = Refused::TooManySges { max };
    assert_eq!(shared.srq.post_recv(&list), Err(PostError { posted: 1, why }));
    let full = shared.srq.post_recv(&[RecvWr::new(3, &[]); 5000]).unwrap_err();
    assert_eq!(full.why, Refused::QueueFull);
    assert!(full.posted + 1 >= 31, "{full}");
}

#[test]
fn q11_it_is_in_use_until_its_queue_pairs_are_gone() {
    let Some(context) = device() else { return };
    let Shared { qps, srq, region, pd, .. } = Shared::new(&context);
    drop(region);
    let srq = srq.destroy().unwrap_err().handle;
    drop(qps);
    srq.destroy().unwrap();
    pd.destroy().unwrap();
}
