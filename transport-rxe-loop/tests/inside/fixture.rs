//! A device with what most tests of its inside need, and what they do with it.

use std::sync::mpsc::channel;

use super::prelude::*;
use crate::engine::entry::QpSlot;

/// An attachment that no process has.
pub const ANOTHER: AttachmentId = AttachmentId::new(40);
/// The owner of a lock that died, of that attachment.
pub const DEAD: AttachmentKey = AttachmentKey::new(ANOTHER.get(), 1);

/// The device in a fabric of its own, without a service thread, with a protection domain and a completion queue.
pub struct Fixture {
    pub context: Context,
    pub device: &'static Device,
    pub pd: ProtectionDomain,
    pub cq: Cq,
}

impl Fixture {
    pub fn new() -> Self {
        Self::of(OpenOptions::new())
    }

    pub fn of(options: OpenOptions) -> Self {
        Self::with(options.alone().0)
    }

    pub fn with(context: Context) -> Self {
        let device = context.device;
        let (pd, cq) = (context.alloc_pd().unwrap(), context.cq(16).create().unwrap());
        Self { context, device, pd, cq }
    }

    /// The attributes of a queue pair of this type.
    pub fn init(&self, qp_type: QpType) -> QpBuilder<'_, ProtectionDomain> {
        self.pd.qp(&self.cq).qp_type(qp_type)
    }

    /// A new RC queue pair.
    pub fn qp(&self) -> QueuePair {
        self.create(&self.init(QpType::RC))
    }

    pub fn create(&self, init: &QpBuilder<'_, ProtectionDomain>) -> QueuePair {
        self.pd.create_qp(init).unwrap()
    }

    /// An RC queue pair that is its own peer.
    pub fn own_peer(&self) -> QueuePair {
        self.own_peer_of(&self.init(QpType::RC))
    }

    pub fn own_peer_of(&self, init: &QpBuilder<'_, ProtectionDomain>) -> QueuePair {
        let mut qp = self.create(init);
        qp.connect_to(qp.number()).unwrap();
        qp
    }

    /// Two RC queue pairs that are connected.
    pub fn pair(&self) -> [QueuePair; 2] {
        let mut pair = [(); 2].map(|()| self.qp());
        let numbers = pair.each_ref().map(QueuePair::number);
        pair[0].connect_to(numbers[1]).unwrap();
        pair[1].connect_to(numbers[0]).unwrap();
        pair
    }

    /// A UD queue pair that receives with queue key 1.
    pub fn datagrams(&self) -> QueuePair {
        self.datagrams_of(&self.init(QpType::UD))
    }

    pub fn datagrams_of(&self, init: &QpBuilder<'_, ProtectionDomain>) -> QueuePair {
        let mut qp = self.create(init);
        qp.activate(&Port::new(1), 1).unwrap();
        qp
    }

    /// A shared receive queue.
    pub fn srq(&self, max_wr: u32) -> SharedReceiveQueue {
        self.pd.create_srq(&SrqInit::new(max_wr)).unwrap()
    }

    /// Memory that may be written to and read from, by the peer too.
    pub fn region(&self, len: usize) -> OwnedRegion {
        self.pd.allocate(len, Access::LOCAL_WRITE | Access::REMOTE).unwrap()
    }

    /// How datagrams reach this port.
    pub fn ah(&self) -> AddressHandle {
        let here = self.context.port(1).unwrap();
        self.pd.create_ah(&AddressVector::new(&here, here.gid, here.lid)).unwrap()
    }

    /// Another completion queue.
    pub fn another_cq(&self) -> Cq {
        self.context.cq(16).create().unwrap()
    }

    /// The table entry of a queue pair.
    pub fn slot(&self, qp: &QueuePair) -> &'static QpSlot {
        self.device.engine.qp(qp.qpn())
    }

    /// A process pushes a completion to the queue, and dies before it has settled it.
    pub fn dies_pushing(&self, wc: &Wc, tag: u32) {
        push::die_pushing(self.device.completions, self.cq.handle.queue.index, DEAD, wc, tag);
    }

    /// The completions that are there.
    #[track_caller]
    pub fn polled(&mut self) -> Vec<(u64, WcStatus)> {
        polled(&mut self.cq)
    }

    /// The completion that is there, or comes.
    #[track_caller]
    pub fn next_wc(&mut self) -> (u64, WcStatus) {
        next_wc(&mut self.cq)
    }

    /// The type of the next asynchronous event.
    pub fn told(&mut self) -> Option<AsyncEventType> {
        told(&mut self.context)
    }
}

/// Words of the heap that are there for ever, registered with these rights.
#[allow(unsafe_code)]
pub fn heap(
    pd: &ProtectionDomain,
    count: usize,
    access: Access,
) -> (&'static [AtomicU64], MemoryRegion) {
    let words: &[AtomicU64] = Vec::leak((0..count).map(|_| AtomicU64::new(0)).collect());
    // SAFETY: atomics, there for ever.
    let region = unsafe { pd.register(words.as_ptr() as *mut u8, 8 * count, access) };
    (words, region.unwrap())
}

/// The completions in a queue: their requests and statuses.
#[track_caller]
pub fn polled(cq: &mut Cq) -> Vec<(u64, WcStatus)> {
    let mut wcs = [Wc::default(); 32];
    let count = cq.poll_into(&mut wcs).unwrap();
    wcs[..count].iter().map(|wc| (wc.wr_id(), wc.status())).collect()
}

/// The next completion of a queue.
#[track_caller]
pub fn next_wc(cq: &mut Cq) -> (u64, WcStatus) {
    let mut wcs = [Wc::default()];
    until("it completes", || cq.poll_into(&mut wcs).unwrap() == 1);
    (wcs[0].wr_id(), wcs[0].status())
}

/// The type of the next asynchronous event of a context.
pub fn told(context: &mut Context) -> Option<AsyncEventType> {
    context.take_async_event().unwrap().map(|event| event.event_type)
}

/// A copy that is in flight by the marker, of the queue pair at an index.
pub fn copy_guard<'a>(
    device: &'static Device,
    in_flight: &'a InFlight,
    index: u32,
) -> CopyGuard<'a> {
    let ownership = device.memory.ownership(QpIndex::new(index));
    CopyGuard::open(device.memory, in_flight, ownership)
}

/// The result of `what`, if it ends before `free` is called, which is after a long time.
pub fn before<T: Send>(free: impl FnOnce(), what: impl FnOnce() -> T + Send) -> Option<T> {
    let (teller, told) = channel();
    thread::scope(|scope| {
        scope.spawn(move || teller.send(what()));
        let told = told.recv_timeout(Duration::from_secs(10)).ok();
        free();
        told
    })
}

/// Connects to the queue pair with this number, with these attributes of the last step.
pub fn connect_with(qp: &mut QueuePair, peer: u32, rts: QpAttr) {
    let port = qp.claimed.queue.engine.port.attributes();
    let to = Endpoint::new(peer).lid(port.lid).gid(port.gid);
    for step in [QpAttr::init(&port, Access::REMOTE), QpAttr::rtr(&port, &to), rts] {
        qp.modify(&step).unwrap();
    }
}

/// Cleans up after dead processes until none is left.
pub fn recover_all(device: &'static Device) {
    until("nothing is left of the dead", || {
        deaths::look(device);
        device.shm.others().count() == 0
    });
}

/// Words that count from a number on.
pub fn words<const N: usize>(from: u64) -> [AtomicU64; N] {
    std::array::from_fn(|i| AtomicU64::new(from + i as u64))
}

/// What is in words that others may have written.
pub fn values(words: &[AtomicU64]) -> Vec<u64> {
    std::hint::black_box(words).iter().map(sync::load).collect()
}
