//! What the memory windows of this process are bound to, and how that changes.
//!
//! | state | its key | left by |
//! |---|---|---|
//! | Free | dead | BIND_MW, to To |
//! | To | alive; or its peer has taken it away, or its region is gone: then it is as Free | LOCAL_INV, to Closing; SEND_WITH_INV of a peer in this process, and RESET and the end of the queue pair, to Free |
//! | Closing | dead | the LOCAL_INV that began that, to Free |
//!
//! This is in memory of this process' own, by which it judges. What others go by is the window's entry in the
//! table of regions, [sealed](crate::memory::region). A peer of another process takes the key out of that entry, and can't
//! change anything else. So here, too, a window's key is alive only while it is there, too: whoever writes to
//! the entry can kill the key, and no more.
//!
//! # Waiting
//! Once a LOCAL_INV has killed a key, what still goes through it is waited for, as deregistering does, before
//! the request completes and the window can be bound again. Only the peer of the queue pair that the window is
//! bound to can be at that. Whoever waits for it has the turn of that queue pair, and its own
//! [window for copying](crate::memory::copy_guard) closed: two who take each other's keys away do not wait for each
//! other, and a queue pair that is connected to itself does not wait at all. For a SEND_WITH_INV nobody is
//! waited for: it is the peer itself that sends it, and has done everything that came before.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cq_core::setup::Access;
use cq_core::wr::WindowBind;

use crate::memory::Memory;
use crate::memory::region::{Bound, RegionEntry, Whose};
use crate::sync;

/// What a peer may be let do through a window.
const GRANTED: Access = Access::REMOTE.union(Access::FLUSH_GLOBAL).union(Access::FLUSH_PERSISTENT);
/// What may be asked for besides, and says nothing of a window.
const IGNORED: Access = Access::LOCAL_WRITE.union(Access::MW_BIND).union(Access::OPTIONAL);

/// A window.
#[derive(Debug)]
struct Window {
    /// The key that it has, or had last.
    key: u32,
    domain: u32,
    /// Which life of its place in the table this is.
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
    /// What it is bound to.
    fn state(&self, memory: &'static Memory) -> State {
        match self.state {
            State::To(bound) if !self.is_there(memory) || !is_alive(memory, &bound) => State::Free,
            state => state,
        }
    }

    /// Whether nobody has taken its key away where all see it.
    fn is_there(&self, memory: &'static Memory) -> bool {
        sync::acquire(&memory.mr(self.key >> 8).key) == self.key
    }

    fn is_bound_to(&self, memory: &'static Memory, qp: u32) -> bool {
        matches!(self.state(memory), State::To(bound) if bound.qp == qp)
    }

    /// Gives it the key that it says, by which it is bound from now on.
    fn open(&mut self, memory: &'static Memory, entry: &RegionEntry) {
        let (index, holder) = (self.key >> 8, (memory.shm.place(), self.generation));
        // What it was bound to before may still be there, where a peer took the key away, or a region ended.
        erase(memory, index);
        entry.write(memory.own(index), holder);
        entry.write(memory.mr(index), holder);
        self.key = entry.key;
        self.state = entry.bound.map_or(State::Free, State::To);
    }

    /// Kills its key.
    fn close(&mut self, memory: &'static Memory, state: State) {
        erase(memory, self.key >> 8);
        self.state = state;
    }
}

/// Whether the region of this process' lives that a window opens on.
fn is_alive(memory: &'static Memory, bound: &Bound) -> bool {
    bound.is_in(memory.own(bound.region >> 8))
}

/// Makes the entries of a region or a window speak of nothing any more.
fn erase(memory: &'static Memory, index: u32) {
    RegionEntry::erase(memory.own(index));
    RegionEntry::erase(memory.mr(index));
}

/// All windows of this process, by their indices. Locked to change one, by who holds a turn, too; and not
/// while anything is waited for.
#[derive(Debug, Default)]
pub struct Bindings(Mutex<BTreeMap<u32, Window>>);

impl Bindings {
    /// A window that is not bound.
    pub fn add(&self, index: u32, generation: u32, key: u32, domain: u32) {
        self.lock().insert(index, Window { key, domain, generation, state: State::Free });
    }

    /// It is gone; its key is the caller's to kill.
    pub fn remove(&self, index: u32) {
        self.lock().remove(&index);
    }

    /// The key that the window at an index has, or had last.
    pub fn key(&self, index: u32) -> Option<u32> {
        self.lock().get(&index).map(|window| window.key)
    }

    /// Whether a window is bound to the queue pair with this number.
    pub fn any_of(&self, memory: &'static Memory, qp: u32) -> bool {
        self.lock().values().any(|window| window.is_bound_to(memory, qp))
    }

    /// Whether a window lies in the region with this key, which lives.
    pub fn any_in(&self, memory: &'static Memory, region: u32) -> bool {
        let is_in = |window: &Window| matches!(window.state(memory), State::To(bound) if bound.region == region);
        self.lock().values().any(is_in)
    }

    /// Kills the keys of all windows that are bound to a queue pair, whose turn is held.
    pub fn release(&self, memory: &'static Memory, qp: u32) {
        let mut windows = self.lock();
        let bound = windows.values_mut().filter(|window| window.is_bound_to(memory, qp));
        bound.for_each(|window| window.close(memory, State::Free));
    }

    /// Binds a window to a queue pair of this domain, whose turn is held; false if it can't be bound so.
    pub fn bind(
        &self,
        memory: &'static Memory,
        (qp, domain): (u32, u32),
        bind: &WindowBind,
    ) -> bool {
        let mut windows = self.lock();
        let Some(window) = windows.get_mut(&(bind.window >> 8)) else { return false };
        let is_it = (window.key, window.domain) == (bind.window, domain);
        let keeps_place = bind.window >> 8 == bind.rkey >> 8;
        let may = is_it && keeps_place && window.state(memory) == State::Free;
        let entry = entry(memory, (qp, domain), bind).filter(|_| may);
        entry.map(|entry| window.open(memory, &entry)).is_some()
    }

    /// Begins to take its key away from a window that is bound to a queue pair, whose turn is held; `None`
    /// if none is that has it.
    pub fn begin_invalidate(&self, memory: &'static Memory, qp: u32, rkey: u32) -> Option<Closing> {
        let mut windows = self.lock();
        let found = windows.get_mut(&(rkey >> 8));
        let window = found.filter(|window| window.key == rkey && window.is_bound_to(memory, qp))?;
        window.close(memory, State::Closing);
        Some(Closing { index: rkey >> 8, generation: window.generation })
    }

    /// Takes its key away from a window that is bound to a queue pair of this process, for the peer of that
    /// one, whose turn is held; false if none is that has it.
    pub fn take(&self, memory: &'static Memory, qp: u32, rkey: u32) -> bool {
        let mut windows = self.lock();
        let found = windows.get_mut(&(rkey >> 8));
        let window = found.filter(|window| window.key == rkey && window.is_bound_to(memory, qp));
        window.map(|window| window.close(memory, State::Free)).is_some()
    }

    /// Locked by a test, as by a thread that changes one.
    #[cfg(test)]
    pub fn hold(&self) -> impl Sized + '_ {
        self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Window>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a window will say, if it can be bound so.
fn entry(
    memory: &'static Memory,
    (qp, domain): (u32, u32),
    bind: &WindowBind,
) -> Option<RegionEntry> {
    let &WindowBind { rkey, lkey, addr, length, access, .. } = bind;
    let slot = memory.own(lkey >> 8);
    let region = RegionEntry::read(slot, lkey)?;
    let mut needs = Access::MW_BIND;
    needs.set(Access::LOCAL_WRITE, access.intersects(Access::REMOTE_WRITE | Access::REMOTE_ATOMIC));
    region.offset(Whose::local(domain), addr, length, needs)?;
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

/// A window whose key a LOCAL_INV has killed, and through which something may still go.
#[derive(Debug)]
#[must_use]
pub struct Closing {
    index: u32,
    generation: u32,
}

impl Closing {
    /// Ends it, once nothing goes through the key any more: false if the window was deallocated. It is not bound, either way.
    pub fn finish(self, memory: &Memory) -> bool {
        let mut windows = memory.windows.lock();
        let found = windows.get_mut(&self.index);
        let Some(window) = found.filter(|window| window.generation == self.generation) else {
            return false;
        };
        window.state = State::Free;
        true
    }
}

/// Takes its key away from a window that is bound to a queue pair of another process, at this place; false if none is that
/// has it.
pub fn take_from(memory: &Memory, place: Option<u16>, qp: u32, rkey: u32) -> bool {
    let slot = memory.mr(rkey >> 8);
    let found =
        RegionEntry::read_sealed(slot, rkey).filter(|(_, (owner, _), _)| Some(*owner) == place);
    let is_its = found
        .and_then(|(entry, ..)| entry.bound)
        .is_some_and(|bound| bound.qp == qp && bound.is_in(memory.mr(bound.region >> 8)));
    // Of two who take it, one does.
    is_its && sync::swap_if(&slot.key, rkey, 0).is_ok()
}
