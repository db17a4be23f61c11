//! Memory windows: an end that lets its peer in by one.

use transport_rxe_loop::MemoryWindow;

use super::*;

/// What a region needs so that any window can be bound to it.
pub const OPEN: Access = Access::LOCAL_WRITE.union(Access::MW_BIND);

/// A window on a region.
pub struct Opening {
    pub region: OwnedRegion,
    pub window: MemoryWindow,
}

impl Opening {
    /// A window on memory of an end, which is not bound.
    pub fn of(end: &End) -> Self {
        Self { region: end.pd.allocate(8192, OPEN).unwrap(), window: end.pd.alloc_mw().unwrap() }
    }

    /// How it is bound next, if nothing is wrong.
    pub fn bind(&self, access: Access) -> WindowBind {
        WindowBind {
            window: self.window.rkey(),
            rkey: inc_rkey(self.window.rkey()),
            lkey: self.region.lkey(),
            addr: self.region.addr(),
            length: 512,
            access,
        }
    }

    /// What it opens, by the key that it has.
    pub fn at(&self) -> RemoteAddr {
        RemoteAddr { addr: self.region.addr(), rkey: self.window.rkey() }
    }
}

impl End {
    /// Has its queue pair bind a window for its peer.
    #[track_caller]
    pub fn bind(&mut self, opening: &Opening, access: Access) {
        self.post(SendWr::bind_window(70, opening.bind(access)));
        self.expect(&[(70, S::SUCCESS)]);
    }

    /// Has its queue pair do this, of which nothing can come but this.
    #[track_caller]
    pub fn request(&mut self, wr: SendWr<'_>, status: S) {
        self.qp.post_send(&[SendWr { wr_id: 71, ..wr }]).unwrap();
        self.expect(&[(71, status)]);
    }
}

/// Two ends, the second of which has a window for the first.
pub fn opened(access: Access) -> (End, End, Opening) {
    let (a, mut b) = pair();
    let opening = Opening::of(&b);
    b.bind(&opening, access);
    (a, b, opening)
}
