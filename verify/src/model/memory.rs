//! Memory: keys, ranges and rights (Q7, Q10), and copying.
//!
//! A key is valid for queue pairs of the region's protection domain, for ranges inside the region, and for the rights
//! that it was registered with. The key of a window is valid for the range and rights that it was bound with, and through
//! one queue pair only. For zero bytes, no key is checked (Q6).

use std::ops::Range;

use cq_verbs::wr::{RemoteAddr, Sge};

use super::execute::Stop;
use super::failures::Fault;
use super::world::{Id, Region, World};
use crate::device::{Access, Errno};

/// Bytes of a region: its local key, and their range.
pub type Place = (Id, Range<usize>);

/// The largest region.
const MAX_REGION: usize = 1 << 30;

/// Q10: whether this device supports these flags. The optional ones, from bit 20 to bit 29
/// (`IBV_ACCESS_OPTIONAL_RANGE`), are accepted.
pub fn access_is_known(access: Access) -> bool {
    const OTHERS: Access =
        Access::MW_BIND.union(Access::FLUSH_GLOBAL).union(Access::FLUSH_PERSISTENT);
    Access::EVERY.union(OTHERS).union(Access::OPTIONAL).contains(access)
}

/// Q10: remote writes and atomics require LOCAL_WRITE.
fn access_is_legal(access: Access) -> bool {
    let writes = access.intersects(Access::REMOTE_WRITE | Access::REMOTE_ATOMIC);
    access_is_known(access) && (!writes || access.contains(Access::LOCAL_WRITE))
}

impl World {
    /// Registers zeroed memory; returns the local key.
    pub fn register(&mut self, pd: Id, len: usize, access: Access) -> Result<Id, Errno> {
        if len == 0 || !access_is_legal(access) {
            return Err(Errno::EINVAL);
        }
        if len > MAX_REGION {
            return Err(Errno::ENOMEM);
        }
        let (lkey, rkey, addr) = (self.fresh(), self.fresh(), self.place(len));
        self.regions.insert(lkey, Region { pd, rkey, addr, bytes: vec![0; len], access });
        Ok(lkey)
    }

    /// The bytes of local SGEs, in order. Reading local memory needs no right.
    pub fn gather(&self, pd: Id, sges: &[Sge]) -> Result<Vec<u8>, Stop> {
        let places = self.places(pd, sges, u64::MAX, Access::empty());
        let places = places.ok_or(Stop::Fault(Fault::LocalMemory))?;
        let bytes = places.into_iter().map(|(lkey, range)| &self.regions[&lkey].bytes[range]);
        Ok(bytes.collect::<Vec<_>>().concat())
    }

    /// The places of `len` bytes in local SGEs; `None` if one of them may not be accessed so. Only SGEs that bytes
    /// reach are checked, each as a whole.
    pub fn places(&self, pd: Id, sges: &[Sge], mut len: u64, right: Access) -> Option<Vec<Place>> {
        let mut places = Vec::new();
        for sge in sges.iter().filter(|sge| sge.length > 0) {
            if len > 0 {
                let region = self.regions.get(&sge.lkey)?;
                let range = region.inside(pd, sge.addr, sge.length.into(), right)?;
                let reached = len.min(sge.length.into());
                places.push((sge.lkey, range.start..range.start + reached as usize));
                len -= reached;
            }
        }
        Some(places)
    }

    /// The place of `len` bytes at a remote address; `None` if the peer has no right to this access. `to` is the responder's
    /// queue pair.
    pub fn remote(&self, to: Id, at: RemoteAddr, len: u64, right: Access) -> Option<Place> {
        match self.region_of_peers(at.rkey) {
            Some((lkey, region)) => {
                Some((lkey, region.inside(self.qps[&to].pd, at.addr, len, right)?))
            }
            None => self.through_window(to, at, len, right),
        }
    }

    /// Whether a peer has this right to the region or window of the key.
    pub fn key_allows(&self, to: Id, rkey: u32, right: Access) -> bool {
        match self.region_of_peers(rkey) {
            Some((_, region)) => region.inside(self.qps[&to].pd, region.addr, 0, right).is_some(),
            None => self.bound(to, rkey, right).is_some(),
        }
    }

    fn region_of_peers(&self, rkey: u32) -> Option<(Id, &Region)> {
        let mut regions = self.regions.iter();
        regions.find(|(_, region)| region.rkey == rkey).map(|(lkey, region)| (*lkey, region))
    }

    /// Writes to places.
    pub fn write(&mut self, places: &[Place], mut bytes: &[u8]) {
        for (lkey, range) in places {
            let (now, later) = bytes.split_at(range.len());
            let region = self.regions.get_mut(lkey).expect("places are of regions that exist");
            region.bytes[range.clone()].copy_from_slice(now);
            bytes = later;
        }
    }
}

impl Region {
    /// The range in this region, if it is inside, and domain and rights are valid.
    pub fn inside(&self, pd: Id, addr: u64, len: u64, right: Access) -> Option<Range<usize>> {
        let start = addr.checked_sub(self.addr)?;
        let end = start.checked_add(len)?;
        let good = self.pd == pd && self.access.contains(right) && end <= self.bytes.len() as u64;
        good.then_some(start as usize..end as usize)
    }
}
