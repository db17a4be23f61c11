//! Whatever is injected, and however the code under test polls, arms and sleeps: what holds all the same.

use std::collections::BTreeMap;

use cq_testing::fault::{FaultInjector, Faults, When};

use super::*;

const STATUS: WcStatus = WcStatus::REM_OP_ERR;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// The device completes a request of a queue pair.
    Complete(u32),
    /// The code under test polls once, with so much room, out of turn.
    Poll(usize),
    /// It goes on until it sleeps, if it is awake or an event has come.
    Run,
}

/// Code that sleeps where it may, and keeps what it has polled.
struct Waiter<'a> {
    queue: FaultInjector<Consumer<'a, Wc, OnChannel<&'a EventCount>>, 8>,
    channel: FaultInjector<&'a EventCount, 0>,
    /// Whether it arms first and then polls until there is nothing, or polls first, and once more if something may have been
    /// missed.
    arms_first: bool,
    capacity: usize,
    asleep: bool,
    taken: Vec<(u64, WcStatus, u32)>,
}

impl Waiter<'_> {
    /// Polls once; says how many that gave.
    fn poll(&mut self, capacity: usize) -> usize {
        const UNTOUCHED: u64 = u64::MAX;
        let mut out = vec![wc(UNTOUCHED, 0); capacity];
        let count = self.queue.poll_into(&mut out).unwrap();
        assert!(out[count..].iter().all(|wc| wc.wr_id() == UNTOUCHED), "P4");
        self.taken.extend(out[..count].iter().map(|wc| (wc.wr_id(), wc.status(), wc.qp_num())));
        count
    }

    fn drain(&mut self) {
        while self.poll(self.capacity) > 0 {}
    }

    /// Goes on until it may sleep.
    fn run(&mut self) {
        if self.asleep && self.channel.take_event().unwrap().is_none() {
            return;
        }
        loop {
            if !self.arms_first {
                self.drain();
            }
            let armed = self.queue.arm(Notify::Next).unwrap();
            let mut found = 0;
            if self.arms_first {
                self.drain();
            } else if armed == Armed::MayHaveMissed {
                found = self.poll(self.capacity);
            }
            // An event that is there already ends the sleep at once.
            if found == 0 && self.channel.take_event().unwrap().is_none() {
                self.asleep = true;
                return;
            }
        }
    }
}

fn plans() -> impl Strategy<Value = Faults> {
    let chance = || prop_oneof![Just(0.0), 0.0..1.0];
    (any::<u64>(), [chance(), chance(), chance(), chance()], 0.0..0.5, 0_u32..5).prop_map(
        |(seed, [fail, delay, reorder, twice], nothing, polls)| {
            Faults::seeded(seed)
                .fail(When::chance(fail), STATUS)
                .delay(When::chance(delay), polls)
                .delay(When::chance(delay).of_qp(2), 7)
                .reorder(When::chance(reorder))
                .duplicate(When::chance(twice))
                .spurious(When::chance(nothing), KEY)
        },
    )
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (1_u32..5).prop_map(Step::Complete),
        1 => (0_usize..10).prop_map(Step::Poll),
        1 => Just(Step::Run),
    ];
    prop::collection::vec(step, 0..120)
}

/// Runs a program to its end, where nothing more completes; what the code under test got, and what was
/// injected.
fn run(
    faults: &Faults,
    steps: &[Step],
    arms_first: bool,
    capacity: usize,
) -> (Vec<(u64, WcStatus, u32)>, String) {
    let (mut storage, channel) = (SoftCq::<128>::new(), EventCount::default());
    let (mut device, consumer) = storage.split_with(&channel);
    let mut waiter = Waiter {
        queue: FaultInjector::new(consumer, faults),
        channel: FaultInjector::new(&channel, faults),
        arms_first,
        capacity,
        asleep: false,
        taken: Vec::new(),
    };
    for (wr_id, &step) in (0..).zip(steps) {
        match step {
            Step::Complete(qp) => device.push(&wc(wr_id, qp)).unwrap(),
            Step::Poll(capacity) => drop(waiter.poll(capacity)),
            Step::Run => waiter.run(),
        }
    }
    // Events for nothing do not help: it has to sleep well without.
    while !waiter.asleep || channel.unread() > 0 {
        waiter.run();
    }
    let injected = format!("{}; {}", waiter.queue.injected(), waiter.channel.injected());
    (waiter.taken, injected)
}

fn by_queue_pair<T>(list: impl Iterator<Item = (u32, T)>) -> BTreeMap<u32, Vec<T>> {
    let mut all = BTreeMap::<_, Vec<_>>::new();
    list.for_each(|(qp, item)| all.entry(qp).or_default().push(item));
    all
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Who sleeps has got everything, each once (C8, N6), of each queue pair in its order (C10). A queue pair succeeds, fails
    /// once, and is flushed from there on (C11, Q2). The same seed and the same calls give the same faults.
    #[test]
    fn n06_c08_c10_q02_nothing_is_slept_over_lost_or_out_of_order_and_failures_are_flushed_behind(
        faults in plans(), steps in steps(), arms_first in any::<bool>(), capacity in 1_usize..12,
    ) {
        let completed = (0..).zip(&steps).filter_map(|(wr_id, &step)| match step {
            Step::Complete(qp) => Some((qp, wr_id)),
            _ => None,
        });
        let (taken, injected) = run(&faults, &steps, arms_first, capacity);
        let numbers = taken.iter().map(|&(wr_id, _, qp)| (qp, wr_id));
        prop_assert_eq!(by_queue_pair(numbers), by_queue_pair(completed), "{}", injected);
        let statuses = taken.iter().map(|&(_, status, qp)| (qp, status));
        for statuses in by_queue_pair(statuses).values() {
            let mut left = statuses.iter().skip_while(|&&status| status == WcStatus::SUCCESS);
            prop_assert!(left.next().is_none_or(|&status| status == STATUS), "{}", injected);
            prop_assert!(left.all(|&status| status == WcStatus::WR_FLUSH_ERR), "{}", injected);
        }
        prop_assert_eq!(run(&faults, &steps, arms_first, capacity), (taken, injected));
    }

    /// Where nothing delays or overtakes, the queue's order is the order (P1, P2).
    #[test]
    fn p01_p02_without_delays_the_order_is_the_queues(
        seed in any::<u64>(), count in 0_u64..40, capacities in prop::collection::vec(1_usize..12, 40),
    ) {
        let mut storage = SoftCq::<64>::new();
        let (mut device, consumer) = storage.split();
        (0..count).for_each(|wr_id| device.push(&wc(wr_id, wr_id as u32 % 3)).unwrap());
        let faults = Faults::seeded(seed).fail(When::chance(0.3), STATUS);
        let mut queue = FaultInjector::<_, 8>::new(consumer, &faults);
        let mut next = 0;
        for capacity in capacities {
            let mut out = vec![Wc::default(); capacity];
            let found = queue.poll_into(&mut out).unwrap();
            prop_assert_eq!(found as u64, (capacity as u64).min(count - next));
            for wc in &out[..found] {
                prop_assert_eq!(wc.wr_id(), next);
                next += 1;
            }
        }
    }
}
