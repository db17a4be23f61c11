//! Memory windows of this process: what they are bound to, and their transitions.
//!
//! | state | its key | left by |
//! |---|---|---|
//! | Free | invalid | BIND_MW, to To |
//! | To | valid; once its peer has invalidated it, or its region is gone, the state counts as Free | LOCAL_INV, to Closing; SEND_WITH_INV of a peer in this process, RESET, and the end of the queue pair, to Free |
//! | Closing | invalid | the same LOCAL_INV, to Free |
//!
//! These states are in private memory, and this process judges by them. Other processes use the window's
//! [sealed](crate::memory::region) entry in the table of regions. A peer in another process invalidates the key by
//! clearing it in that entry, and can change nothing else. So here, too, a key is valid only while that entry has it:
//! a process that corrupts the entry can invalidate the key, and no more.
//!
//! # Waiting
//! After LOCAL_INV has invalidated a key, it waits for copies through the key, as deregistering does. Then the
//! request completes and the window can be bound again. Only the peer of the queue pair that the window is bound to
//! can be copying through it. The waiting thread owns the send queue of that queue pair, with its own [copy
//! guard](crate::memory::copy_guard) closed. So two peers that invalidate each other's keys do not deadlock, and a
//! queue pair that is connected to itself does not wait. SEND_WITH_INV does not wait: the peer itself sends it, after
//! it has completed all earlier requests.

use crate::memory::key::Key;
use crate::protocol::lock::AttachmentId;
use crate::protocol::number::{QpNumber, RegionIndex};
use std::collections::BTreeMap;
use std::sync::Mutex;

use cq_verbs::setup::Access;
use cq_verbs::wr::WindowBind;

use crate::memory::Memory;
use crate::memory::region::{Bound, KeyUser, RegionEntry};
use crate::sync;

/// Rights that a window can grant.
const GRANTED: Access = Access::REMOTE.union(Access::FLUSH_GLOBAL).union(Access::FLUSH_PERSISTENT);
/// Rights that may be requested as well, and have no effect on a window.
const IGNORED: Access = Access::LOCAL_WRITE.union(Access::MW_BIND).union(Access::OPTIONAL);

/// A memory window.
#[derive(Debug)]
struct Window {
    /// Its current or last key.
    key: Key,
    domain: u32,
    /// The generation of its table entry.
    generation: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    To(Bound),
    Closing,
}

impl Window {
    /// Its current state.
    fn state(&self, memory: &'static Memory) -> State {
        match self.state {
            State::To(bound) if !self.is_there(memory) || !is_alive(memory, &bound) => State::Free,
            state => state,
        }
    }

    /// Whether its key is still in the shared entry: a peer invalidates it there.
    fn is_there(&self, memory: &'static Memory) -> bool {
        sync::acquire(&memory.mrs.at(self.key.index()).key) == self.key.get()
    }

    fn is_bound_to(&self, memory: &'static Memory, qp: QpNumber) -> bool {
        matches!(self.state(memory), State::To(bound) if bound.qp == qp)
    }

    /// Binds it, with the key of the entry.
    fn open(&mut self, memory: &'static Memory, entry: &RegionEntry) {
        let (index, holder) = (self.key.index(), (memory.shm.attachment(), self.generation));
        // The entry may still be set, where a peer invalidated the key or the region was deregistered.
        erase(memory, index);
        entry.write(memory.own(index), holder);
        entry.write(memory.mrs.at(index), holder);
        self.key = entry.key;
        self.state = entry.bound.map_or(State::Free, State::To);
    }

    /// Invalidates its key.
    fn close(&mut self, memory: &'static Memory, state: State) {
        erase(memory, self.key.index());
        self.state = state;
    }
}

/// Whether the region of this process that a window is bound to still exists.
fn is_alive(memory: &'static Memory, bound: &Bound) -> bool {
    bound.is_in(memory.own(bound.region.index()))
}

/// Clears both entries of a region or a window.
fn erase(memory: &'static Memory, index: RegionIndex) {
    RegionEntry::erase(memory.own(index));
    RegionEntry::erase(memory.mrs.at(index));
}

/// All windows of this process, by their indices. Owners of send queues take the lock, too; it is never held during a
/// wait.
#[derive(Debug, Default)]
pub struct Bindings(Mutex<BTreeMap<RegionIndex, Window>>);

impl Bindings {
    /// Adds a window that is not bound.
    pub fn add(&self, index: RegionIndex, generation: u32, key: Key, domain: u32) {
        sync::lock(&self.0).insert(index, Window { key, domain, generation, state: State::Free });
    }

    /// Removes a window. The caller invalidates its key.
    pub fn remove(&self, index: RegionIndex) {
        sync::lock(&self.0).remove(&index);
    }

    /// The current or last key of the window at an index.
    pub fn key(&self, index: RegionIndex) -> Option<Key> {
        sync::lock(&self.0).get(&index).map(|window| window.key)
    }

    /// Whether a window is bound to the queue pair with this number.
    pub fn any_of(&self, memory: &'static Memory, qp: QpNumber) -> bool {
        sync::lock(&self.0).values().any(|window| window.is_bound_to(memory, qp))
    }

    /// Whether a window is bound to the registered region with this key.
    pub fn any_in(&self, memory: &'static Memory, region: Key) -> bool {
        let is_in = |window: &Window| matches!(window.state(memory), State::To(bound) if bound.region == region);
        sync::lock(&self.0).values().any(is_in)
    }

    /// Invalidates the keys of all windows that are bound to a queue pair, whose send queue is owned.
    pub fn release(&self, memory: &'static Memory, qp: QpNumber) {
        let mut windows = sync::lock(&self.0);
        let bound = windows.values_mut().filter(|window| window.is_bound_to(memory, qp));
        bound.for_each(|window| window.close(memory, State::Free));
    }

    /// Binds a window to a queue pair of this domain, whose send queue is owned; false if it can't be bound so.
    pub fn bind(
        &self,
        memory: &'static Memory,
        (qp, domain): (QpNumber, u32),
        bind: &WindowBind,
    ) -> bool {
        let (now, next) = (Key::new(bind.window), Key::new(bind.rkey));
        let mut windows = sync::lock(&self.0);
        let Some(window) = windows.get_mut(&now.index()) else { return false };
        let is_it = (window.key, window.domain) == (now, domain);
        let keeps_place = now.index() == next.index();
        let may = is_it && keeps_place && window.state(memory) == State::Free;
        let entry = entry(memory, (qp, domain), bind).filter(|_| may);
        entry.map(|entry| window.open(memory, &entry)).is_some()
    }

    /// Begins to invalidate the key of a window that is bound to a queue pair, whose send queue is owned. `None` if
    /// no window bound to it has this key.
    pub fn begin_invalidate(
        &self,
        memory: &'static Memory,
        qp: QpNumber,
        rkey: Key,
    ) -> Option<Closing> {
        let mut windows = sync::lock(&self.0);
        let found = windows.get_mut(&rkey.index());
        let window = found.filter(|window| window.key == rkey && window.is_bound_to(memory, qp))?;
        window.close(memory, State::Closing);
        Some(Closing { index: rkey.index(), generation: window.generation })
    }

    /// Invalidates the key of a window that is bound to a queue pair of this process, on behalf of that one's peer,
    /// whose send queue is owned. False if no window bound to it has this key.
    pub fn take(&self, memory: &'static Memory, qp: QpNumber, rkey: Key) -> bool {
        let mut windows = sync::lock(&self.0);
        let found = windows.get_mut(&rkey.index());
        let window = found.filter(|window| window.key == rkey && window.is_bound_to(memory, qp));
        window.map(|window| window.close(memory, State::Free)).is_some()
    }

    /// Holds the lock for a test.
    #[cfg(test)]
    pub fn hold(&self) -> impl Sized + '_ {
        sync::lock(&self.0)
    }
}

/// The region entry of a window once it is bound; `None` if it can't be bound so.
fn entry(
    memory: &'static Memory,
    (qp, domain): (QpNumber, u32),
    bind: &WindowBind,
) -> Option<RegionEntry> {
    let &WindowBind { addr, length, access, .. } = bind;
    let (rkey, lkey) = (Key::new(bind.rkey), Key::new(bind.lkey));
    let slot = memory.own(lkey.index());
    let region = RegionEntry::read(slot, lkey)?;
    let mut needs = Access::MW_BIND;
    needs.set(Access::LOCAL_WRITE, access.intersects(Access::REMOTE_WRITE | Access::REMOTE_ATOMIC));
    region.offset(KeyUser::local(domain), addr, length, needs)?;
    let is_known = access.difference(GRANTED | IGNORED).is_empty();
    let bound = Bound { qp, region: lkey, seal: sync::load(&slot.seal) };
    (is_known && length != 0).then_some(RegionEntry {
        key: rkey,
        access: access & GRANTED,
        domain,
        kind: region.kind,
        base: addr,
        len: length,
        bound: Some(bound),
    })
}

/// A window whose key LOCAL_INV has invalidated, and through which a copy may still be in flight.
#[derive(Debug)]
#[must_use]
pub struct Closing {
    index: RegionIndex,
    generation: u32,
}

impl Closing {
    /// Ends the LOCAL_INV once no copy uses the key; false if the window was deallocated meanwhile. It is unbound
    /// either way.
    pub fn finish(self, memory: &Memory) -> bool {
        let mut windows = sync::lock(&memory.windows.0);
        let found = windows.get_mut(&self.index);
        let Some(window) = found.filter(|window| window.generation == self.generation) else {
            return false;
        };
        window.state = State::Free;
        true
    }
}

/// Invalidates the key of a window that is bound to a queue pair of another process, with this attachment index.
/// False if no window bound to it has this key.
pub fn take_from(
    memory: &Memory,
    attachment: Option<AttachmentId>,
    qp: QpNumber,
    rkey: Key,
) -> bool {
    let slot = memory.mrs.at(rkey.index());
    let found = RegionEntry::read_sealed(slot, rkey)
        .filter(|(_, (owner, _), _)| Some(*owner) == attachment);
    let is_its = found
        .and_then(|(entry, ..)| entry.bound)
        .is_some_and(|bound| bound.qp == qp && bound.is_in(memory.mrs.at(bound.region.index())));
    // If two threads invalidate it, one of them succeeds.
    is_its && sync::cas(&slot.key, rkey.get(), 0).is_ok()
}
