//! The end that is written to: it polls its memory.

use bench::transport::Transport;

use super::grants::Grants;
use crate::control::Failure;
use crate::shape::Shape;
use crate::side::Side;
use crate::stats::Latencies;

/// Finds and checks `iters` messages. What is recorded is the time from when the sender began to write a
/// message's batch to when the message was found; too short ones don't tell.
pub fn receive_writes<T: Transport>(
    side: &mut Side<'_, T>,
    shape: Shape,
    iters: u64,
    latencies: &mut Latencies,
) -> Result<(), Failure> {
    let control = side.completions.control();
    let (mut grants, mut arrived) = (Grants::default(), 0);
    control.meet()?;
    while arrived < iters {
        let Side { slots, completions, .. } = side;
        let slot = slots.turn(arrived);
        let outstanding = grants.outstanding();
        let Some(batch) = completions.watch(outstanding, || slots.marked(slot, arrived))? else {
            break;
        };
        for wc in batch {
            grants.complete(&wc.result()?)?;
        }
        if batch.is_empty() {
            let now = control.now();
            let stamp = slots.check_marked(slot, arrived)?;
            stamp.into_iter().for_each(|stamp| latencies.record(now.saturating_sub(stamp)));
            arrived += 1;
            control.advance(arrived);
        }
        // What was checked may be written again.
        grants.grant(side, arrived / shape.credit())?;
    }
    Ok(())
}
