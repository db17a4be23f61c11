//! Faults on demand: each by itself, and what holds whatever is injected.
#![cfg(not(loom))]

mod completions;
mod events;
mod plans;
mod posts;
mod properties;

use cq_core::testing::fake::Script;
use cq_core::testing::fault::{FaultInjector, Faults};
use cq_core::transport::{CqKey, PollCq, PollError};
use cq_core::wc::{Wc, WcOpcode, WcStatus};

const KEY: CqKey = CqKey { index: 0, generation: 1 };

fn faults() -> Faults {
    Faults::seeded(1)
}

fn wc(wr_id: u64, qp: u32) -> Wc {
    Wc::new(wr_id, WcStatus::SUCCESS, qp).with_opcode(WcOpcode::RECV).with_byte_len(64)
}

fn injector<'a>(script: &'a Script<16>, faults: &Faults) -> FaultInjector<&'a Script<16>, 8> {
    FaultInjector::new(script, faults)
}

/// What a poll with room for eight finds.
fn poll(queue: &mut impl PollCq) -> Result<Vec<(u64, WcStatus)>, PollError> {
    let mut room = [Wc::default(); 8];
    let count = queue.poll(&mut room)?;
    Ok(room[..count].iter().map(|wc| (wc.wr_id(), wc.status())).collect())
}

/// The numbers of what a poll with room for eight finds.
fn numbers(queue: &mut impl PollCq) -> Vec<u64> {
    poll(queue).unwrap().into_iter().map(|(wr_id, _)| wr_id).collect()
}
