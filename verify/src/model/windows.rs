//! Memory windows of type 2 (Q6): binding them, and invalidating their keys.
//!
//! The 24 high bits of a window's key never change; the user chooses the low byte at each bind. The key is valid while
//! the window is bound, for peers only, and only through the queue pair that it was bound by. A bound window can't be
//! bound again.

use cq_verbs::wr::{RemoteAddr, WindowBind};

use super::execute::{Done, Execution, Stop};
use super::failures::Fault;
use super::memory::Place;
use super::world::{Bound, Id, Window, World};
use crate::device::Access;

/// The bits of a key that the user chooses.
const LOW: u32 = 0xff;

/// The rights that a window can have.
const RIGHTS: Access = Access::REMOTE.union(Access::FLUSH_GLOBAL).union(Access::FLUSH_PERSISTENT);
/// Flags that are accepted, and have no effect: the region has them or not.
const MEANINGLESS: Access = Access::LOCAL_WRITE.union(Access::MW_BIND);

impl World {
    /// A window that is not bound. Its keys are no region's: those are small numbers.
    pub fn alloc_window(&mut self, pd: Id) -> Id {
        let id = self.fresh();
        let rkey = 1 << 31 | id << 8;
        self.windows.insert(id, Window { pd, rkey, bound: None });
        id
    }

    /// BIND_MW.
    pub fn bind(&mut self, number: Id, bind: &WindowBind) -> Execution {
        let (id, bound) = self.binding(number, bind).ok_or(Stop::Fault(Fault::Window))?;
        let window = self.windows.get_mut(&id).expect("it was found");
        window.rkey = bind.rkey;
        window.bound = Some(bound);
        Ok(Done::default())
    }

    /// The binding that a BIND_MW requests, if it is valid.
    fn binding(&self, number: Id, bind: &WindowBind) -> Option<(Id, Bound)> {
        let pd = self.qps[&number].pd;
        let mut windows = self.windows.iter();
        let (&id, window) = windows.find(|(_, window)| window.rkey == bind.window)?;
        let own_key = bind.rkey & !LOW == window.rkey & !LOW;
        let region = self.regions.get(&bind.lkey)?;
        let writes = bind.access.intersects(Access::REMOTE_WRITE | Access::REMOTE_ATOMIC);
        let mut needed = Access::MW_BIND;
        needed.set(Access::LOCAL_WRITE, writes);
        let known = RIGHTS.union(MEANINGLESS).contains(bind.access);
        region.inside(pd, bind.addr, bind.length, needed)?;
        let good = window.pd == pd && window.bound.is_none() && own_key && known && bind.length > 0;
        let WindowBind { lkey, addr, length, access, .. } = *bind;
        good.then_some((id, Bound { qp: number, region: lkey, addr, len: length, access }))
    }

    /// LOCAL_INV.
    pub fn local_invalidate(&mut self, number: Id, rkey: u32) -> Execution {
        let was_bound = self.invalidate(number, rkey);
        was_bound.then(Done::default).ok_or(Stop::Fault(Fault::Window))
    }

    /// Invalidates the key of a window that is bound to this queue pair; false if there is none.
    pub fn invalidate(&mut self, number: Id, rkey: u32) -> bool {
        let mut windows = self.windows.values_mut();
        let its = windows.find(|window| window.is_bound(number) && window.rkey == rkey);
        its.is_some_and(|window| window.bound.take().is_some())
    }

    /// The place of a remote range of a window, for a request that this queue pair executes for its peer.
    pub fn through_window(&self, to: Id, at: RemoteAddr, len: u64, right: Access) -> Option<Place> {
        let bound = self.bound(to, at.rkey, right)?;
        let start = at.addr.checked_sub(bound.addr)?;
        let inside = start.checked_add(len)? <= bound.len;
        let region = &self.regions[&bound.region];
        let pd = self.qps[&to].pd;
        let range = region.inside(pd, at.addr, len, Access::empty()).filter(|_| inside)?;
        Some((bound.region, range))
    }

    /// The binding of this key for the peer of this queue pair, if it has the right.
    pub fn bound(&self, number: Id, rkey: u32, right: Access) -> Option<Bound> {
        let mut windows = self.windows.values();
        let its = windows.find(|window| window.is_bound(number) && window.rkey == rkey);
        its?.bound.filter(|bound| bound.access.contains(right))
    }

    /// Unbinds these windows.
    pub fn unbind(&mut self, which: impl Fn(&Bound) -> bool) {
        for window in self.windows.values_mut() {
            window.bound = window.bound.filter(|bound| !which(bound));
        }
    }
}

impl Window {
    fn is_bound(&self, number: Id) -> bool {
        self.bound.is_some_and(|bound| bound.qp == number)
    }
}
