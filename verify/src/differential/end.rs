//! One end of the connections: its memory, its channel and its completion queues.

use super::program::{MAIN, Region, SMALL};
use crate::device::{Access, Device, Mr};

/// More than a program can leave unpolled, so that nothing overruns: when that happens is not defined to
/// the entry (O1).
pub const CQE: u32 = 512;

/// What one end is made of.
pub struct End<D: Device> {
    pub main: D::Mr,
    local: Option<D::Mr>,
    fixed: Option<D::Mr>,
    /// Those that are gone, too, so that their keys can be used.
    pub keys: [(u64, u32, u32); 2],
    pub channel: D::Channel,
    /// Of sends, and of receives if that is another one.
    pub cqs: Vec<D::Cq>,
}

impl<D: Device> End<D> {
    /// Makes it.
    pub fn new(device: &D, pd: &D::Pd, separate_cqs: bool) -> Self {
        let region = |len, access| device.register(pd, len, access).expect("a region");
        let main = region(MAIN, Access::EVERY);
        let (local, fixed) = (region(SMALL, Access::LOCAL_WRITE), region(SMALL, Access::empty()));
        let keys = [names(&local), names(&fixed)];
        let channel = device.create_channel();
        let cqs = (0..1 + usize::from(separate_cqs))
            .map(|_| device.create_cq(CQE, Some(&channel)).expect("a completion queue"))
            .collect();
        Self { main, local: Some(local), fixed: Some(fixed), keys, channel, cqs }
    }

    /// Deregisters one of its regions. Whether it was still there.
    pub fn deregister(&mut self, region: Region) -> bool {
        match region {
            Region::Local => self.local.take().is_some(),
            _ => self.fixed.take().is_some(),
        }
    }
}

/// Address, local key and remote key.
pub fn names(region: &impl Mr) -> (u64, u32, u32) {
    (region.addr(), region.lkey(), region.rkey())
}
