//! The wrapper that injects faults, around the device: what a program sees, and what happened underneath.

use std::time::Instant;

use crate::common::{CAPS, DEADLINE, End, S, connect, open, settle, take};
use cq_core::cq::{CompletionQueue, WaitError};
use cq_core::testing::fault::{FaultInjector, Faults, When};
use cq_core::transport::{Arm, Block, CqKey, PollCq, Post, PostError, Refused};
use cq_core::wc::Wc;
use cq_core::wr::SendWr;
use transport_rxe_loop::{CompletionChannel, QpInit, QpState};

/// How many messages each of the peers sends.
const EACH: u64 = 6;
const PEERS: usize = 3;

/// What came, as who sent it, its number and its status.
type Seen = Vec<(u32, u64, S)>;

/// Takes so many completions, asleep where there are none.
fn serve<T: Arm>(
    cq: &mut CompletionQueue<T>,
    channel: &mut impl Block<Instant = Instant>,
    count: usize,
) -> Result<Seen, WaitError> {
    let (mut room, mut seen) = ([Wc::default(); 4], Seen::new());
    while seen.len() < count {
        let batch = cq.wait(&mut room, channel, Some(Instant::now() + DEADLINE))?;
        assert!(!batch.is_empty(), "it slept over a completion; {seen:?}");
        seen.extend(batch.iter().map(|wc| (wc.qp_num(), wc.wr_id(), wc.status())));
    }
    Ok(seen)
}

/// A server that several peers send to, and they.
fn servers() -> (Vec<End>, Vec<End>, transport_rxe_loop::Cq, CompletionChannel) {
    let context = open();
    let channel = context.create_channel().unwrap();
    let cq = context.create_cq(64, Some(&channel)).unwrap();
    let (mut peers, mut ends) = (Vec::new(), Vec::new());
    for _ in 0..PEERS {
        let (mut a, mut b) = (End::new(), End::new());
        let init = QpInit { caps: CAPS, recv_cq: &cq, ..QpInit::new(&b.cq) };
        b.qp = b.pd.create_qp(&init).unwrap();
        connect(&mut a, &mut b);
        (0..EACH).for_each(|wr_id| b.recv(wr_id, 0, 64));
        peers.push(a);
        ends.push(b);
    }
    (peers, ends, cq, channel)
}

/// Serves what all peers send while it does; says what came, by peer, in order.
fn run(faults: &Faults) -> (Vec<Vec<(u64, S)>>, String) {
    let (mut peers, ends, cq, channel) = servers();
    let mut cq = CompletionQueue::new(FaultInjector::<_, 32>::new(cq, faults));
    let mut channel = FaultInjector::<_, 0>::new(channel, faults);
    let mut seen = Seen::new();
    for wr_id in 0..EACH {
        peers.iter_mut().for_each(|peer| peer.send(wr_id, 0, 8));
        seen.extend(serve(&mut cq, &mut channel, 1).unwrap());
    }
    let left = PEERS * EACH as usize - seen.len();
    seen.extend(serve(&mut cq, &mut channel, left).unwrap());
    assert_eq!(cq.poll(&mut [Wc::default(); 4]), Ok(&[][..]), "each comes once");
    let of = |end: &End| {
        let of_end = seen.iter().filter(|(qp, ..)| *qp == end.qp.number());
        of_end.map(|&(_, wr_id, status)| (wr_id, status)).collect()
    };
    let injected = format!("{}; {}", cq.transport().injected(), channel.injected());
    (ends.iter().map(of).collect(), injected)
}

#[test]
fn n06_a_server_gets_everything_in_order_however_late() {
    let in_order: Vec<_> = (0..EACH).map(|wr_id| (wr_id, S::SUCCESS)).collect();
    for seed in 0..20 {
        let faults = Faults::seeded(seed)
            .delay(When::chance(0.5), 3)
            .reorder(When::chance(0.5))
            .duplicate(When::chance(0.5));
        let (seen, injected) = run(&faults);
        assert_eq!(seen, vec![in_order.clone(); PEERS], "{injected}");
    }
}

#[test]
fn n07_an_event_of_a_queue_that_nobody_knows_is_told() {
    let nowhere = CqKey { index: 0, generation: u32::MAX };
    let (_peers, _ends, cq, channel) = servers();
    let faults = Faults::seeded(1).spurious(When::nth(1), nowhere);
    let mut channel = FaultInjector::<_, 0>::new(channel, &faults);
    let (mut cq, mut room) = (CompletionQueue::new(cq), [Wc::default(); 4]);
    let waited = cq.wait(&mut room, &mut channel, Some(Instant::now() + DEADLINE));
    assert_eq!(waited, Err(WaitError::OtherQueue(nowhere)));
}

#[test]
fn the_same_seed_gives_the_same_failures() {
    let faults = Faults::seeded(3).fail(When::chance(0.2), S::REM_OP_ERR);
    let (first, again) = (run(&faults), run(&faults));
    assert_eq!(first, again);
    assert!(first.0.iter().flatten().any(|(_, status)| *status == S::REM_OP_ERR));
}

#[test]
fn q02_what_failed_for_the_program_did_not_for_the_peer() {
    let (mut peers, ends, cq, _channel) = servers();
    let plan = Faults::seeded(1).fail(When::nth(2), S::LOC_LEN_ERR);
    let mut cq = FaultInjector::<_, 32>::new(cq, &plan);
    let (peer, end) = (&mut peers[0], &ends[0]);
    (0..3).for_each(|wr_id| peer.send(wr_id, 0, 8));
    let mut room = [Wc::default(); 4];
    assert_eq!(cq.poll(&mut room), Ok(3));
    let statuses = [0, 1, 2].map(|nth| room[nth].status());
    assert_eq!(statuses, [S::SUCCESS, S::LOC_LEN_ERR, S::WR_FLUSH_ERR]);
    assert_eq!(end.qp.state().unwrap(), QpState::RTS);
    peer.expect(&[(0, S::SUCCESS), (1, S::SUCCESS), (2, S::SUCCESS)]);
}

#[test]
fn q04_a_refused_request_never_runs() {
    let (mut peers, _ends, mut cq, _channel) = servers();
    let peer = peers.remove(0);
    let plan = Faults::seeded(1).refuse_send(When::nth(2), Refused::QueueFull);
    let mut qp = FaultInjector::<_, 0>::new(peer.qp, &plan);
    let list = [1, 2, 3].map(|wr_id| SendWr::send_inline(wr_id, b"x"));
    assert_eq!(qp.post_send(&list), Err(PostError { posted: 1, why: Refused::QueueFull }));
    assert_eq!(settle(&mut cq, 1).len(), 1);
    assert_eq!(take(&mut cq), []);
    qp.post_send(&list[1..]).unwrap();
    assert_eq!(settle(&mut cq, 2).len(), 2);
}
