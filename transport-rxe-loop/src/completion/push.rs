//! The producers' side: pushing under the queue's lock, whoever of any process does, and repairing what one
//! that died left.

use std::cell::Cell;

use cq_core::queue::raw::{Layout, Producer, Slot};
use cq_core::queue::{Channel, Dropped, Entry, NoChannel, OnChannel, State};
use cq_core::transport::{CqKey, Signal};
use cq_core::wc::Wc;

use super::moderation;
use super::queue::{self, ring};
use crate::completion::channel::{self, Source};
use crate::completion::soft_roce;
use crate::engine::complete;
use crate::engine::overrun;
use crate::fabric::Fabric;
use crate::protocol::fanin::Fanin;
#[cfg(test)]
use crate::protocol::lock::Owner;
use crate::protocol::mode::Trait;
use crate::shm::lock::{Guard, Stuck};
use crate::shm::mapping;
use crate::sync;

/// Remembers that an event is to be raised, so that it is raised without the queue's lock.
struct Asked(Cell<bool>);

impl Signal for &Asked {
    fn raise(&self, _: CqKey) {
        self.0.set(true);
    }
}

/// Takes the lock of the queue at `index`. From a producer that died it is inherited: what that one had
/// published counts, and everybody whom it concerns is told.
#[inline]
pub fn lock(fabric: &'static Fabric, index: u32) -> Result<Guard<'static>, Stuck> {
    let fanin = &fabric.cq(index).fanin;
    fabric.lock(&fanin.lock, || {
        if let Some(ring) = ring(fabric, fanin.place()) {
            let state = fanin.repair(&ring, |wc, tag| complete::settle(fabric, wc.qp_num(), tag));
            if state != State::Running {
                fabric.cq(index).mode.set(Trait::Overran, true);
            }
            tell(fabric, index);
        }
    })
}

/// Tells everybody whom the queue at `index` may concern that something may have come, or that it has
/// overrun: a producer that died may not have got to that. Who finds nothing sleeps again (N5). Needs no lock, and
/// looks at no ring.
#[cold]
pub fn tell(fabric: &'static Fabric, index: u32) {
    channel::raise(fabric, Source::Completion(index), || true);
    let slot = fabric.cq(index);
    // Before the look: where another queue has come by then, nothing is told of that one.
    let generation = sync::acquire(&slot.generation);
    if slot.mode.has_failed() {
        overrun::spread_again(fabric, index, generation);
    }
}

/// Adds completions to the queue at `index`, settles what their tags cover, and raises the event that the
/// queue was armed for. One that finds no room overruns the queue: the poller is told (O3), and its queue
/// pairs fail (O4).
#[inline]
pub fn push(fabric: &'static Fabric, index: u32, entries: &[Entry]) {
    let Some(last) = entries.last() else { return };
    let slot = fabric.cq(index);
    if !slot.mode.is_ordinary() {
        return push_otherwise(fabric, index, entries);
    }
    let asked = Asked(Cell::new(false));
    let pushed = {
        let Ok(_guard) = lock(fabric, index) else { return give_up(fabric, index, entries) };
        // Where a stranger wrote, there is no queue: completions are lost, but not the place of their requests.
        let place = slot.fanin.place();
        let Some(ring) = ring(fabric, place) else { return settle_all(fabric, entries) };
        let pushed = if channel::is_attached(fabric, Source::Completion(index)) {
            let channel = OnChannel { key: queue::key(fabric, index), signal: &asked };
            push_to(fabric, &slot.fanin, &mut slot.fanin.producer(ring, channel), entries)
        } else {
            push_to(fabric, &slot.fanin, &mut slot.fanin.producer(ring, NoChannel), entries)
        };
        if pushed.is_err() {
            slot.mode.set(Trait::Overran, true);
        }
        pushed
    };
    if asked.0.get() {
        channel::raise(fabric, Source::Completion(index), || true);
    }
    if pushed.is_err() {
        overrun::spread(fabric, index, last.wc.qp_num());
    }
}

/// Adds completions, under the lock.
#[inline(always)]
fn push_to<C: Channel>(
    fabric: &'static Fabric,
    fanin: &Fanin,
    producer: &mut Producer<'_, C>,
    entries: &[Entry],
) -> Result<(), Dropped> {
    let settle = |wc: &Wc, tag| complete::settle(fabric, wc.qp_num(), tag);
    match entries {
        [entry] => fanin.push(producer, entry, settle),
        entries => fanin.push_all(producer, entries, settle),
    }
}

/// [`push`] to a queue that is moderated, ignores overruns, is like Soft-RoCE's, is to be found full, or was given up.
#[cold]
#[inline(never)]
fn push_otherwise(fabric: &'static Fabric, index: u32, entries: &[Entry]) {
    let Some(last) = entries.last() else { return };
    let slot = fabric.cq(index);
    if slot.mode.has(Trait::GivenUp) {
        // Who waited once need not wait again.
        return give_up(fabric, index, entries);
    }
    let is_full = slot.mode.has(Trait::Full);
    if slot.mode.has(Trait::LikeRxe) && !is_full {
        return soft_roce::push(fabric, index, entries);
    }
    let settle = |wc: &Wc, tag| complete::settle(fabric, wc.qp_num(), tag);
    let (pushed, alert) = {
        let Ok(_guard) = lock(fabric, index) else { return give_up(fabric, index, entries) };
        let Some(ring) = ring(fabric, slot.fanin.place()) else {
            return settle_all(fabric, entries);
        };
        let control = ring.control();
        let mut producer = slot.fanin.producer(ring, NoChannel);
        let (mut dropped, mut pushed) = (0, Ok(()));
        if slot.mode.has(Trait::IgnoresOverrun) {
            slot.fanin.push_fitting(&mut producer, entries, settle, |entry| {
                // Nobody will poll it, and nothing else may come that covers it.
                complete::retire(fabric, &entry.wc, entry.tag);
                dropped += 1;
            });
            sync::store(&slot.dropped, sync::load(&slot.dropped).saturating_add(dropped));
        } else if is_full {
            settle_all(fabric, entries);
            pushed = Err(producer.overrun(entries.len() as u32));
        } else {
            pushed = slot.fanin.push_all(&mut producer, entries, settle);
        }
        if pushed.is_err() {
            slot.mode.set(Trait::Overran, true);
        }
        let lost = dropped > 0 || pushed.is_err();
        (pushed, moderation::alert(fabric, index, control, moderation::news(entries, lost)))
    };
    moderation::act(fabric, index, alert);
    if pushed.is_err() {
        overrun::spread(fabric, index, last.wc.qp_num());
    }
}

/// Completions are lost, but not the place of their requests.
#[cold]
pub fn settle_all(fabric: &'static Fabric, entries: &[Entry]) {
    for Entry { wc, tag, .. } in entries {
        complete::settle(fabric, wc.qp_num(), *tag);
    }
}

/// Another process holds the queue's lock and does not give it back: the queue is given up, as if it had overrun. Its
/// ring is left alone, which the owner may have resized away by now; the owner finds word of this in the table.
#[cold]
pub fn give_up(fabric: &'static Fabric, index: u32, entries: &[Entry]) {
    settle_all(fabric, entries);
    fabric.cq(index).mode.set(Trait::GivenUp, true);
    // Each time: the one who was first may be stopped before it has told anybody.
    tell(fabric, index);
}

/// The queue at `index` overruns at the next completion, full or not; unless it ignores that.
#[cold]
pub fn overrun(fabric: &'static Fabric, index: u32) {
    fabric.cq(index).mode.set(Trait::Full, true);
}

/// Has what pushing to the queue at `index` will write brought here meanwhile: `landing` is where that was
/// [expected](landing).
#[inline]
pub fn expect_push(fabric: &'static Fabric, index: u32, landing: u32) {
    mapping::expect_write(&fabric.cq(index).fanin);
    if let Some([slot]) = fabric.memory().slice::<Slot>(landing as usize, 1) {
        mapping::expect_write(slot);
    }
}

/// Where the next completion of the queue at `index` will lie, unless somebody else pushes one before.
#[inline]
pub fn landing(fabric: &'static Fabric, index: u32) -> u32 {
    let fanin = &fabric.cq(index).fanin;
    let place = fanin.place();
    let slot = fanin.position() as u32 & 1u32.wrapping_shl(place.log2).wrapping_sub(1);
    let slots = place.offset.wrapping_add(Layout::SLOTS_AT as u32);
    slots.wrapping_add(slot.wrapping_mul(size_of::<Slot>() as u32))
}

/// Waits until whoever is pushing to the queue at `index` is through; what somebody had published who died is
/// settled by then. False where the lock can't be had: nothing more is known than before.
#[cold]
pub fn outwait_push(fabric: &'static Fabric, index: u32) -> bool {
    lock(fabric, index).is_ok()
}

/// The same; where the lock can't be had, the queue is given up, so that who has it publishes nothing later. Who comes after
/// that does not wait once more, nor tell anybody: it would have all of the queue's queue pairs run again, this one too.
#[cold]
pub fn outwait_push_or_give_up(fabric: &'static Fabric, index: u32) {
    if !fabric.cq(index).mode.has(Trait::GivenUp) && !outwait_push(fabric, index) {
        give_up(fabric, index, &[]);
    }
}

/// As far as a producer gets that dies over a completion: it is published, and not settled.
#[cfg(test)]
pub fn die_pushing(fabric: &'static Fabric, index: u32, dead: Owner, wc: &Wc, tag: u32) {
    let fanin = &fabric.cq(index).fanin;
    assert!(fanin.lock.try_enter(dead));
    let mut producer = fanin.producer(ring(fabric, fanin.place()).unwrap(), NoChannel);
    producer.push(&Entry { wc: *wc, tag, solicited: false }).unwrap();
}

#[cfg(test)]
mod tests;
