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

use crate::engine::in_flight;
use crate::fabric::Fabric;
use crate::layout::Entry as _;
use crate::memory::region::{Bound, Facts, Whose};
use crate::protocol::window::Shut;
use crate::shm::lock::Stuck;
use crate::sync;

/// What a peer may be let do through a window.
const GRANTED: Access = Access::REMOTE.union(Access::FLUSH_GLOBAL).union(Access::FLUSH_PERSISTENT);
/// What may be asked for besides, and says nothing of a window.
const IGNORED: Access = Access::LOCAL_WRITE.union(Access::MW_BIND).union(Access::OPTIONAL);

/// A window.
#[derive(Debug)]
struct Entry {
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

impl Entry {
    /// What it is bound to.
    fn state(&self, fabric: &'static Fabric) -> State {
        match self.state {
            State::To(bound) if !self.is_there(fabric) || !is_alive(fabric, &bound) => State::Free,
            state => state,
        }
    }

    /// Whether nobody has taken its key away where all see it.
    fn is_there(&self, fabric: &'static Fabric) -> bool {
        sync::acquire(&fabric.mr(self.key >> 8).key) == self.key
    }

    fn is_bound_to(&self, fabric: &'static Fabric, qp: u32) -> bool {
        matches!(self.state(fabric), State::To(bound) if bound.qp == qp)
    }

    /// Gives it the key that it says, by which it is bound from now on.
    fn open(&mut self, fabric: &'static Fabric, facts: &Facts) {
        let (index, holder) = (self.key >> 8, (fabric.place(), self.generation));
        // What it was bound to before may still be there, where a peer took the key away, or a region ended.
        erase(fabric, index);
        facts.write(fabric.reach().own(index), holder);
        facts.write(fabric.mr(index), holder);
        self.key = facts.key;
        self.state = facts.bound.map_or(State::Free, State::To);
    }

    /// Kills its key.
    fn close(&mut self, fabric: &'static Fabric, state: State) {
        erase(fabric, self.key >> 8);
        self.state = state;
    }
}

/// Whether the region of this process' lives that a window opens on.
fn is_alive(fabric: &'static Fabric, bound: &Bound) -> bool {
    bound.is_in(fabric.reach().own(bound.region >> 8))
}

/// Makes the entries of a region or a window speak of nothing any more.
fn erase(fabric: &'static Fabric, index: u32) {
    Facts::erase(fabric.reach().own(index));
    Facts::erase(fabric.mr(index));
}

/// All windows of this process, by their indices. Locked to change one, by who holds a turn, too; and not
/// while anything is waited for.
#[derive(Debug, Default)]
pub struct Bindings(Mutex<BTreeMap<u32, Entry>>);

impl Bindings {
    /// A window that is not bound.
    pub fn add(&self, index: u32, generation: u32, key: u32, domain: u32) {
        self.lock().insert(index, Entry { key, domain, generation, state: State::Free });
    }

    /// It is gone; its key is the caller's to kill.
    pub fn remove(&self, index: u32) {
        self.lock().remove(&index);
    }

    /// The key that the window at an index has, or had last.
    pub fn key(&self, index: u32) -> Option<u32> {
        self.lock().get(&index).map(|entry| entry.key)
    }

    /// Whether a window is bound to the queue pair with this number.
    pub fn any_of(&self, fabric: &'static Fabric, qp: u32) -> bool {
        self.lock().values().any(|entry| entry.is_bound_to(fabric, qp))
    }

    /// Whether a window lies in the region with this key, which lives.
    pub fn any_in(&self, fabric: &'static Fabric, region: u32) -> bool {
        let is_in = |entry: &Entry| matches!(entry.state(fabric), State::To(bound) if bound.region == region);
        self.lock().values().any(is_in)
    }

    /// Kills the keys of all windows that are bound to a queue pair, whose turn is held.
    pub fn release(&self, fabric: &'static Fabric, qp: u32) {
        let mut entries = self.lock();
        let bound = entries.values_mut().filter(|entry| entry.is_bound_to(fabric, qp));
        bound.for_each(|entry| entry.close(fabric, State::Free));
    }

    /// Binds a window to a queue pair of this domain, whose turn is held; false if it can't be bound so.
    pub fn bind(
        &self,
        fabric: &'static Fabric,
        (qp, domain): (u32, u32),
        bind: &WindowBind,
    ) -> bool {
        let mut entries = self.lock();
        let Some(entry) = entries.get_mut(&(bind.window >> 8)) else { return false };
        let is_it = (entry.key, entry.domain) == (bind.window, domain);
        let keeps_place = bind.window >> 8 == bind.rkey >> 8;
        let may = is_it && keeps_place && entry.state(fabric) == State::Free;
        let facts = facts(fabric, (qp, domain), bind).filter(|_| may);
        facts.map(|facts| entry.open(fabric, &facts)).is_some()
    }

    /// Begins to take its key away from a window that is bound to a queue pair, whose turn is held; `None`
    /// if none is that has it.
    pub fn begin_invalidate(&self, fabric: &'static Fabric, qp: u32, rkey: u32) -> Option<Closing> {
        let mut entries = self.lock();
        let found = entries.get_mut(&(rkey >> 8));
        let entry = found.filter(|entry| entry.key == rkey && entry.is_bound_to(fabric, qp))?;
        entry.close(fabric, State::Closing);
        Some(Closing { index: rkey >> 8, generation: entry.generation, qp })
    }

    /// Takes its key away from a window that is bound to a queue pair of this process, for the peer of that
    /// one, whose turn is held; false if none is that has it.
    fn take(&self, fabric: &'static Fabric, qp: u32, rkey: u32) -> bool {
        let mut entries = self.lock();
        let found = entries.get_mut(&(rkey >> 8));
        let entry = found.filter(|entry| entry.key == rkey && entry.is_bound_to(fabric, qp));
        entry.map(|entry| entry.close(fabric, State::Free)).is_some()
    }

    /// Locked by a test, as by a thread that changes one.
    #[cfg(test)]
    pub fn hold(&self) -> impl Sized + '_ {
        self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a window will say, if it can be bound so.
fn facts(fabric: &'static Fabric, (qp, domain): (u32, u32), bind: &WindowBind) -> Option<Facts> {
    let &WindowBind { rkey, lkey, addr, length, access, .. } = bind;
    let slot = fabric.reach().own(lkey >> 8);
    let region = Facts::read(slot, lkey)?;
    let mut needs = Access::MW_BIND;
    needs.set(Access::LOCAL_WRITE, access.intersects(Access::REMOTE_WRITE | Access::REMOTE_ATOMIC));
    region.offset(Whose::local(domain), addr, length, needs)?;
    let is_known = access.difference(GRANTED | IGNORED).is_empty();
    let bound = Bound { qp, region: lkey, seal: sync::load(&slot.seal) };
    (is_known && length != 0).then_some(Facts {
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
    qp: u32,
}

impl Closing {
    /// Ends it, once nothing goes through the key any more. The turn of the queue pair is held, and its
    /// window for copying is closed; false if the peer's process is suspended, or the window was
    /// deallocated. It is not bound, either way.
    pub fn finish(self, fabric: &'static Fabric) -> bool {
        let is_over = outwait(fabric, self.qp).is_ok();
        let mut entries = fabric.reach().windows().lock();
        let found = entries.get_mut(&self.index);
        let Some(entry) = found.filter(|entry| entry.generation == self.generation) else {
            return false;
        };
        entry.state = State::Free;
        is_over
    }
}

/// Waits until the peer of a queue pair does not go through a key any more that is dead.
fn outwait(fabric: &'static Fabric, qp: u32) -> Result<(), Stuck> {
    in_flight::outwait_senders(fabric, fabric.qp(qp), qp)?;
    // What this process copies for the peer's.
    fabric.reach().copier().outwait(&Shut::after_change());
    Ok(())
}

/// Takes its key away from a window that is bound to a queue pair, for the peer of that one, whose turn is
/// held; false if none is that has it.
pub fn take(fabric: &'static Fabric, qp: u32, rkey: u32) -> bool {
    if fabric.is_mine(qp) {
        return fabric.reach().windows().take(fabric, qp, rkey);
    }
    let slot = fabric.mr(rkey >> 8);
    let owner = fabric.qp(qp).life().place();
    let found = Facts::read_sealed(slot, rkey).filter(|(_, (place, _), _)| Some(*place) == owner);
    let is_its = found
        .and_then(|(facts, ..)| facts.bound)
        .is_some_and(|bound| bound.qp == qp && bound.is_in(fabric.mr(bound.region >> 8)));
    // Of two who take it, one does.
    is_its && sync::swap_if(&slot.key, rkey, 0).is_ok()
}
