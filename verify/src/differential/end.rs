//! One end of the connections: its memory, window, channel and queues.

use super::dialect::{Dialect, Omission};
use super::program::{MAIN, Region, SMALL, Shape};
use crate::device::{Access, Address, Device, Mr, Mw, QpCaps, QpType, SrqInit};

/// More completions than a program can leave unpolled, so that no queue overruns.
pub const CQE: u32 = 512;
/// The size of a GRH, in bytes.
pub const GRH: u32 = 40;

/// The objects of one end.
pub struct End<D: Device> {
    // Declared before the objects that they use, so that they are dropped first.
    window: Option<D::Mw>,
    /// The initial key of the window.
    first_key: u32,
    /// Address handles of its own port, without and with a global route.
    pub handles: Option<[D::Ah; 2]>,
    pub srq: Option<D::Srq>,
    pub main: D::Mr,
    local: Option<D::Mr>,
    fixed: Option<D::Mr>,
    /// The memory that receives the GRHs, which are not compared.
    pub routes: D::Mr,
    /// The regions, also deregistered ones, whose keys are used.
    pub keys: [(u64, u32, u32); 2],
    pub channel: D::Channel,
    /// The completion queue of sends, and that of receives if it is another one.
    pub cqs: Vec<D::Cq>,
}

impl<D: Device> End<D> {
    /// Creates the objects.
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
        let init = SrqInit::new(caps.max_recv_wr).max_sge(caps.max_recv_sge);
        let srq = || device.create_srq(pd, &init).expect("a shared receive queue");
        Self {
            first_key: window.as_ref().map_or(0, Mw::rkey),
            window,
            handles: (shape.qp_type == QpType::UD).then(|| [false, true].map(handle)),
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

    /// A key of its window: the current one, or the one `behind` increments later. Without a window, a key of no object.
    pub fn key(&self, nth: u8) -> u32 {
        const LOW: u32 = 0xff;
        let Some(present) = self.window.as_ref().map(Mw::rkey) else { return 0 };
        present & !LOW | present.wrapping_add(nth.into()) & LOW
    }

    /// How often the key of the window was incremented.
    pub fn nth_key(&self) -> u8 {
        self.key(0).wrapping_sub(self.first_key) as u8
    }

    /// Deregisters a region; false if it was deregistered before.
    pub fn deregister(&mut self, region: Region) -> bool {
        let region = if region == Region::Local { &mut self.local } else { &mut self.fixed };
        region.take().is_some()
    }
}

/// Address, local key and remote key.
pub fn names(region: &impl Mr) -> (u64, u32, u32) {
    (region.addr(), region.lkey(), region.rkey())
}
