//! Events that affect many queue pairs at once: each of them is served, failed or flushed (O4, Q2, Q7, Q9).

use std::collections::BTreeSet;

use super::shared::sharing;
use super::stand::*;

include!(concat!(env!("OUT_DIR"), "/many.rs"));

/// The number of queue pairs.
const MANY: usize = 9;

/// An end with [`MANY`] queue pairs on the same completion queues, and a peer of each.
struct Fan<D: Device> {
    hub: End<D>,
    others: Vec<D::Qp>,
    spokes: Vec<End<D>>,
}

/// Each connected to its peer.
fn fan<D: Device>(hub: &Plan) -> Fan<D> {
    fan_of(End::far(hub))
}

/// The same, from an end with its queue pair in RESET.
fn fan_of<D: Device>(mut hub: End<D>) -> Fan<D> {
    let spoke = &Plan::default();
    let mut spokes = vec![End::<D>::near(spoke)];
    hub.connect(&spokes[0].qp);
    spokes[0].connect(&hub.qp);
    let others = (1..MANY).map(|_| {
        let (mut qp, mut spoke) = (hub.second(), End::<D>::near(spoke));
        connect(&mut qp, spoke.qp.number());
        spoke.connect(&qp);
        spokes.push(spoke);
        qp
    });
    let others = others.collect();
    Fan { hub, others, spokes }
}

impl<D: Device> Fan<D> {
    /// All queue pairs of the end.
    fn qps(&mut self) -> impl Iterator<Item = &mut D::Qp> {
        std::iter::once(&mut self.hub.qp).chain(&mut self.others)
    }

    fn numbers(&mut self) -> BTreeSet<u32> {
        self.qps().map(|qp| qp.number()).collect()
    }
}

/// The queue pair numbers of these completions.
fn whose(completions: &[Wc]) -> BTreeSet<u32> {
    completions.iter().map(Wc::qp_num).collect()
}

fn o04_many_queue_pairs_of_one_queue_fail_together<D: Device>() {
    let mut hub = End::<D>::far(&Plan::default());
    hub.received = hub.device.create_cq(4, None).unwrap();
    hub.qp = hub.second();
    let mut fan = fan_of(hub);
    let numbers = fan.numbers();
    for (id, qp) in (0..).zip(fan.qps()) {
        // No receive is posted: they wait.
        qp.post_send(&[SendWr::send_inline(id, b"x")]).unwrap();
    }
    let Fan { hub, others, spokes } = &mut fan;
    let overrun = Element::Cq(hub.received.key());
    for id in 100..100 + 4 * u64::from(hub.received.capacity()) + 64 {
        if hub.is_told(AsyncEventType::CQ_ERR, overrun) {
            break;
        }
        hub.recv(id, 0, 8);
        spokes[0].post(SendWr::send_inline(id, b"x"));
        rest(&hub.device);
        take(&mut spokes[0].sent);
    }
    let flushed = settle(&hub.device, &mut hub.sent, MANY);
    assert_eq!(whose(&flushed), numbers, "each flushes what waited");
    assert_eq!(flushed.len(), MANY);
    assert!(flushed.iter().all(|wc| wc.status() == S::WR_FLUSH_ERR));
    assert!(others.iter().all(|qp| qp.state() == QpState::ERR));
}

fn q02_many_queue_pairs_flush_into_one_queue<D: Device>() {
    let mut fan = fan::<D>(&Plan::default());
    let numbers = fan.numbers();
    for (id, qp) in (0..).zip(fan.qps()) {
        qp.post_send(&[SendWr::send_inline(id, b"x")]).unwrap();
        qp.post_recv(&[RecvWr::new(100 + id, &[]), RecvWr::new(200 + id, &[])]).unwrap();
    }
    for qp in fan.qps() {
        qp.modify(&QpAttr::new().state(QpState::ERR)).unwrap();
    }
    let hub = &mut fan.hub;
    let sent = settle(&hub.device, &mut hub.sent, MANY);
    let received = settle(&hub.device, &mut hub.received, 2 * MANY);
    assert_eq!((sent.len(), received.len()), (MANY, 2 * MANY));
    assert_eq!((whose(&sent), whose(&received)), (numbers.clone(), numbers));
    assert!(sent.iter().chain(&received).all(|wc| wc.status() == S::WR_FLUSH_ERR));
}

fn q07_many_that_wait_for_a_peer_are_told_that_it_is_gone<D: Device>() {
    // The timeout is infinite.
    let endless = attr::rts().timeout(AckTimeout::UNLIMITED).retry_cnt(0);
    let plan = Plan { rts: endless, ..Plan::default() };
    let peer = End::<D>::far(&Plan::default());
    let mut waiting: Vec<_> = (0..MANY).map(|_| End::<D>::near(&plan)).collect();
    for end in &mut waiting {
        end.connect(&peer.qp);
        end.send(1);
        end.send(2);
    }
    waiting[0].expect_silence();
    drop(peer);
    for end in &mut waiting {
        end.expect_sent(&[(1, S::RETRY_EXC_ERR), (2, S::WR_FLUSH_ERR)]);
        end.expect_state(QpState::ERR);
    }
}

/// Senders that each wait for a receive of one shared receive queue.
fn starving<D: Device>() -> Fan<D> {
    let mut fan = fan::<D>(&sharing());
    fan.spokes.iter_mut().for_each(|end| end.send(1));
    fan.spokes[0].expect_silence();
    fan
}

fn q09_many_that_wait_for_shared_receives_are_served_together<D: Device>() {
    let mut fan = starving::<D>();
    let numbers = fan.numbers();
    let hub = &mut fan.hub;
    let sge = [hub.sge(0, 8)];
    let list: Vec<_> = (0..MANY as u64).map(|id| RecvWr::new(id, &sge)).collect();
    hub.srq.as_mut().unwrap().post_recv(&list).unwrap();
    let received = settle(&hub.device, &mut hub.received, MANY);
    assert_eq!((received.len(), whose(&received)), (MANY, numbers), "each takes one");
    fan.spokes.iter_mut().for_each(|end| drop(end.expect_sent(&[(1, S::SUCCESS)])));
}

fn q09_many_that_wait_are_served_as_receives_come<D: Device>() {
    let mut fan = starving::<D>();
    let numbers = fan.numbers();
    let mut served = BTreeSet::new();
    for id in 0..MANY as u64 {
        fan.hub.recv(id, 0, 8);
        let received = settle(&fan.hub.device, &mut fan.hub.received, 1);
        assert_eq!(received.len(), 1, "one of those who wait takes receive {id}");
        served.extend(whose(&received));
    }
    assert_eq!(served, numbers, "each takes one in the end");
    fan.spokes.iter_mut().for_each(|end| drop(end.expect_sent(&[(1, S::SUCCESS)])));
}

fn q09_what_many_took_of_a_shared_queue_comes_back<D: Device>() {
    let mut fan = fan::<D>(&sharing());
    let slots = u64::from(fan.hub.srq.as_ref().unwrap().caps().max_wr);
    for round in 0..4 {
        (0..slots).for_each(|id| fan.hub.recv(id, 0, 8));
        for id in 0..slots {
            let sender = (id + round) as usize % MANY;
            fan.spokes[sender].send(id);
        }
        let hub = &mut fan.hub;
        let received = settle(&hub.device, &mut hub.received, slots as usize);
        let ids: BTreeSet<_> = received.iter().map(Wc::wr_id).collect();
        assert_eq!((received.len() as u64, ids), (slots, (0..slots).collect()), "round {round}");
        for end in &mut fan.spokes {
            settle(&end.device, &mut end.sent, 1);
        }
    }
}
