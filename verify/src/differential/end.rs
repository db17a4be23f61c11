//! One end of the connections: its memory, its window, its channel and its queues.

use super::dialect::{Dialect, Omission};
use super::program::{MAIN, Region, SMALL, Shape};
use crate::device::{Access, Address, Device, Mr, Mw, QpCaps, QpType, SrqInit};

/// More than a program can leave unpolled, so that nothing overruns: when that happens is not defined to
/// the entry (O1).
pub const CQE: u32 = 512;
/// Bytes of a global route.
pub const GRH: u32 = 40;

/// What one end is made of.
pub struct End<D: Device> {
    // Before what they refer to.
    window: Option<D::Mw>,
    /// The first key of the window.
    first_key: u32,
    /// Its own port, without a global route and with one.
    pub handles: Option<[D::Ah; 2]>,
    pub srq: Option<D::Srq>,
    pub main: D::Mr,
    local: Option<D::Mr>,
    fixed: Option<D::Mr>,
    /// Where the global routes of datagrams go: what they say is up to the device.
    pub routes: D::Mr,
    /// Those that are gone, too, so that their keys can be used.
    pub keys: [(u64, u32, u32); 2],
    pub channel: D::Channel,
    /// Of sends, and of receives if that is another one.
    pub cqs: Vec<D::Cq>,
}

impl<D: Device> End<D> {
    /// Makes it.
    pub fn new(
        device: &D,
        pd: &D::Pd,
        (shape, end): (&Shape, usize),
        caps: &QpCaps,
        dialect: &Dialect,
    ) -> Self {
        let region = |len, access| device.register(pd, len, access).expect("a region");
        let extended = !dialect.lacks(Omission::Newer);
        let window = extended.then(|| device.alloc_mw(pd).expect("a window"));
        let more = Access::MW_BIND | Access::FLUSH_GLOBAL | Access::FLUSH_PERSISTENT;
        let main = region(MAIN, Access::EVERY | if extended { more } else { Access::empty() });
        let (local, fixed) = (region(SMALL, Access::LOCAL_WRITE), region(SMALL, Access::empty()));
        let keys = [names(&local), names(&fixed)];
        let channel = device.create_channel();
        let cqs = (0..1 + usize::from(shape.separate_cqs))
            .map(|_| device.create_cq(CQE, Some(&channel)).expect("a completion queue"))
            .collect();
        let handle = |global| device.create_ah(pd, Address { port: 1, global }).expect("a handle");
        let init = SrqInit { max_wr: caps.max_recv_wr, max_sge: caps.max_recv_sge };
        let srq = || device.create_srq(pd, &init).expect("a shared receive queue");
        Self {
            first_key: window.as_ref().map_or(0, Mw::rkey),
            window,
            handles: (shape.qp_type == QpType::Ud).then(|| [false, true].map(handle)),
            srq: shape.ends[end].shares_receives.then(srq),
            main,
            local: Some(local),
            fixed: Some(fixed),
            routes: region(GRH as usize, Access::LOCAL_WRITE),
            keys,
            channel,
            cqs,
        }
    }

    /// A key of its window: the one that it has now, or so many behind it. Without a window, the one that nothing
    /// has.
    pub fn key(&self, nth: u8) -> u32 {
        const LOW: u32 = 0xff;
        let Some(present) = self.window.as_ref().map(Mw::rkey) else { return 0 };
        present & !LOW | present.wrapping_add(nth.into()) & LOW
    }

    /// Which of its keys the window has.
    pub fn nth_key(&self) -> u8 {
        self.key(0).wrapping_sub(self.first_key) as u8
    }

    /// Deregisters one of its regions. Whether it was still there.
    pub fn deregister(&mut self, region: Region) -> bool {
        let region = if region == Region::Local { &mut self.local } else { &mut self.fixed };
        region.take().is_some()
    }
}

/// Address, local key and remote key.
pub fn names(region: &impl Mr) -> (u64, u32, u32) {
    (region.addr(), region.lkey(), region.rkey())
}
