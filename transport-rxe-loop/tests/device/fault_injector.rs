//! The wrapper that injects faults, around the device: a server that sleeps gets everything (N6).

use std::time::Instant;

use crate::common::*;
use cq_testing::fault::{FaultInjector, Faults, When};

/// How many messages each of the peers sends.
const EACH: u64 = 6;
const PEERS: usize = 3;

#[test]
fn n06_a_server_gets_everything_in_order_however_late() {
    for seed in 0..20 {
        let faults = Faults::seeded(seed)
            .delay(When::chance(0.5), 3)
            .reorder(When::chance(0.5))
            .duplicate(When::chance(0.5));
        let context = open();
        let channel = context.create_channel().unwrap();
        let cq = context.cq(64).channel(&channel).create().unwrap();
        let mut pairs: Vec<_> = (0..PEERS)
            .map(|_| {
                let (mut a, mut b) = (End::new(), End::new());
                b.qp = b.pd.qp(&b.cq).caps(CAPS).recv_cq(&cq).create().unwrap();
                connect(&mut a.qp, &mut b.qp);
                (0..EACH).for_each(|wr_id| b.recv(wr_id, 0, 64));
                (a, b)
            })
            .collect();
        let mut cq = CompletionQueue::new(FaultInjector::<_, 32>::new(cq, &faults));
        let mut channel = FaultInjector::<_, 0>::new(channel, &faults);
        let (mut buffer, mut seen) = ([Wc::default(); 4], Vec::new());
        let mut serve = |seen: &mut Vec<(u32, u64, S)>, count: usize| {
            while seen.len() < count {
                let deadline = Some(Instant::now() + DEADLINE);
                let batch = cq.wait(&mut buffer, &mut channel, deadline).unwrap();
                assert!(!batch.is_empty(), "it slept over a completion; {seen:?}");
                seen.extend(batch.iter().map(|wc| (wc.qp_num(), wc.wr_id(), wc.status())));
            }
        };
        // They send while it serves.
        for wr_id in 0..EACH {
            pairs.iter_mut().for_each(|(a, _)| a.send(wr_id, 0, 8));
            let one_more = seen.len() + 1;
            serve(&mut seen, one_more);
        }
        serve(&mut seen, PEERS * EACH as usize);
        let injected = format!("{}; {}", cq.get_mut().injected(), channel.injected());
        assert_eq!(cq.poll(&mut [Wc::default(); 4]), Ok(&[][..]), "each comes once; {injected}");
        for (_, b) in &pairs {
            let of = seen.iter().filter(|(qp, ..)| *qp == b.qp.number());
            let of = of.map(|&(_, wr_id, status)| (wr_id, status));
            assert!(of.eq((0..EACH).map(|wr_id| (wr_id, S::SUCCESS))), "{injected}");
        }
    }
}
