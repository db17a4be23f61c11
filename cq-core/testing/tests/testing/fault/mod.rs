//! Faults on demand: each by itself, and what holds whatever is injected.

mod completions;
mod events;
mod plans;
mod posts;
mod properties;

use cq_testing::fault::{FaultInjector, Faults};

use super::*;
use cq_verbs::polling::PollWc;

const FLUSH: WcStatus = WcStatus::WR_FLUSH_ERR;
const RETRY: WcStatus = WcStatus::RETRY_EXC_ERR;

fn faults() -> Faults {
    Faults::seeded(1)
}

/// The completion of a receive of a queue pair.
fn wc(wr_id: u64, qp: u32) -> Wc {
    Wc::new(wr_id, WcStatus::SUCCESS, qp).with_opcode(WcOpcode::RECV).with_byte_len(64)
}

/// A device with four completions of two queue pairs.
fn four() -> Script<16> {
    Script::new(KEY).on_poll(Ok(&[wc(1, 5), wc(2, 6), wc(3, 5), wc(4, 6)]))
}

/// A device with three completions of three queue pairs.
fn three() -> Script<16> {
    Script::new(KEY).on_poll(Ok(&[wc(1, 5), wc(2, 6), wc(3, 7)]))
}

fn injector<'a>(script: &'a Script<16>, faults: &Faults) -> FaultInjector<&'a Script<16>, 8> {
    FaultInjector::new(script, faults)
}

/// What a poll into a slice of eight finds: the numbers of completions, with the statuses of those that failed; or an error.
fn poll(queue: &mut impl PollWc) -> String {
    let mut buffer = [Wc::default(); 8];
    let found = match queue.poll_into(&mut buffer) {
        Ok(count) => &buffer[..count],
        Err(error) => return format!("{error:?}"),
    };
    let said = found.iter().map(|wc| match wc.result() {
        Ok(done) => done.wr_id().to_string(),
        Err(failed) => format!("{} {:?}", failed.wr_id(), failed.status()),
    });
    said.collect::<Vec<_>>().join(", ")
}

/// Polls such a device through an injector that holds `N`, once for each text; the last one says what was injected.
#[track_caller]
fn check<const N: usize>(rows: &[(Script<16>, Faults, &[&str])]) {
    for (script, plan, expected) in rows {
        let mut queue = FaultInjector::<_, N>::new(script, plan);
        let mut said: Vec<_> = expected[1..].iter().map(|_| poll(&mut queue)).collect();
        said.push(queue.injected().to_string());
        assert_eq!(said, *expected, "{plan:?}");
    }
}
