//! All objects that a process can have in a fabric, and what it does with them.

use std::error::Error;
use std::ffi::c_void;

use arbitrary::Arbitrary;
use cq_core::transport::{Arm, Events, Notify, PollCq};
use cq_core::wc::Wc;
use cq_verbs::async_event::AsyncEvents;

use cq_verbs::setup::inc_rkey;
use cq_verbs::wr::{RecvWr, RemoteAddr, SendWr, Sge, WindowBind};
use transport_rxe_loop::{
    Access, AddressHandle, AddressVector, CompletionChannel, Context, Cq, Destination, Endpoint,
    GlobalRoute, MemoryRegion, MemoryWindow, OwnedRegion, Port, ProtectionDomain, QpAttr, QpCaps,
    QpState, QpType, QueuePair, RegisterError, SharedReceiveQueue, SrqInit,
};

/// The bytes of a region: a message of all of them is usual, so one byte more is one too many.
const BYTES: usize = 256;
const MARK: u64 = 0xc0ff_ee00_c0ff_ee00;
const CAPS: QpCaps =
    QpCaps::USUAL.max_send_wr(4).max_recv_wr(4).max_send_sge(2).max_recv_sge(2).max_inline(64);
const OPEN: Access = Access::EVERY.union(Access::MW_BIND);
const QKEY: u32 = 0x1111;

/// What a process does. The numbers choose.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Act {
    /// A queue pair posts a request, from one of the regions, to some place.
    Send { by: u8, what: u8, to: u8 },
    /// A queue pair, or the shared receive queue, posts two receives.
    Receive(u8),
    /// Sends a datagram.
    Datagram(u8),
    /// Takes completions and events.
    Poll,
    /// Arms a queue.
    Arm(bool),
    /// Connects two of its queue pairs with each other, or one with another process.
    Connect(u8, u8),
    /// Changes a queue pair's state.
    Modify(u8, u8),
    /// Resizes a queue.
    Resize(u8),
    /// Moderates a queue.
    Moderate(u8, u8),
    /// Arms the limit of the shared receive queue.
    Limit(u8),
    /// Creates an object anew.
    Renew(u8),
}

/// Memory of a process that others may reach.
#[derive(Clone, Copy, Debug)]
pub struct Place(RemoteAddr);

impl Place {
    /// The length of its encoding.
    pub const BYTES: usize = 12;

    /// Its encoding.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.0.addr.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.0.rkey.to_ne_bytes());
        bytes
    }

    /// Decodes it.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let (addr, rkey) = bytes.split_at(8);
        let addr = u64::from_ne_bytes(addr.try_into().expect("8 bytes"));
        Self(RemoteAddr { addr, rkey: u32::from_ne_bytes(rkey.try_into().expect("4 bytes")) })
    }
}

/// Memory with two registered regions. Nothing else of it may be written: this type finds that. Nor may it be read, which
/// AddressSanitizer finds, unless the system does it.
pub struct Canary(Box<[u64]>);

unsafe extern "C" {
    fn __asan_poison_memory_region(at: *const c_void, len: usize);
    fn __asan_unpoison_memory_region(at: *const c_void, len: usize);
}

impl Canary {
    const WORDS: usize = BYTES / 8;

    /// Nothing is registered yet.
    pub fn new() -> Self {
        let it = Self(vec![MARK; 5 * Self::WORDS].into());
        for around in it.around() {
            // SAFETY: nobody uses these bytes before `check`.
            unsafe { __asan_poison_memory_region(around.as_ptr().cast(), size_of_val(around)) };
        }
        it
    }

    fn around(&self) -> impl Iterator<Item = &[u64]> {
        self.0.chunks(Self::WORDS).step_by(2)
    }

    fn register(&mut self, pd: &ProtectionDomain) -> Result<[MemoryRegion; 2], RegisterError> {
        let mut register = |nth| {
            let at = self.0[nth * Self::WORDS..].as_mut_ptr().cast();
            // SAFETY: the memory outlives the region: it is looked at again once that is gone.
            unsafe { pd.register(at, BYTES, OPEN) }
        };
        Ok([register(1)?, register(3)?])
    }

    /// Nobody has written beside the region, which is gone.
    pub fn check(&self) {
        for around in self.around() {
            // SAFETY: they are this box's.
            unsafe { __asan_unpoison_memory_region(around.as_ptr().cast(), size_of_val(around)) };
            assert!(around.iter().all(|&word| word == MARK), "it was not registered");
        }
    }
}

impl Default for Canary {
    fn default() -> Self {
        Self::new()
    }
}

/// The objects, in the order in which they can be dropped.
pub struct Objects {
    /// Two connections; the third takes its receives from the shared receive queue.
    qps: [QueuePair; 3],
    datagrams: QueuePair,
    ah: AddressHandle,
    shared: SharedReceiveQueue,
    cq: Cq,
    other: Cq,
    channel: CompletionChannel,
    owned: OwnedRegion,
    heap: [MemoryRegion; 2],
    window: MemoryWindow,
    pd: ProtectionDomain,
    port: Port,
    pub context: Context,
}

impl Objects {
    /// Creates them; an error if one is refused.
    pub fn new(context: Context, canary: &mut Canary) -> Result<Self, Box<dyn Error>> {
        let (port, pd) = (context.port(1)?, context.alloc_pd()?);
        let channel = context.create_channel()?;
        let cq = context.cq(8).channel(&channel).create()?;
        let other = context.cq(4).ignore_overrun().create()?;
        let shared = pd.create_srq(&SrqInit::new(4).max_sge(2))?;
        let init = pd.qp(&cq).recv_cq(&other).caps(CAPS);
        // Soft-RoCE has none of these with datagrams.
        let sharing = init.srq(&shared).create().or_else(|_| init.create())?;
        let mut qps = [init.create()?, init.create()?, sharing];
        let mut datagrams = init.qp_type(QpType::UD).create()?;
        datagrams.activate(&port, QKEY)?;
        let [a, b, _] = &mut qps;
        let (to_a, to_b) = (a.endpoint(&port), b.endpoint(&port));
        a.connect(&port, &to_b).and_then(|()| b.connect(&port, &to_a))?;
        let route = Some(GlobalRoute::default().gid(port.gid));
        let ah = pd.create_ah(&AddressVector::new(&port, port.gid, port.lid).route(route))?;
        let (owned, heap) = (pd.allocate(BYTES, OPEN)?, canary.register(&pd)?);
        let window = pd.alloc_mw()?;
        Ok(Self {
            qps,
            datagrams,
            ah,
            shared,
            cq,
            other,
            channel,
            owned,
            heap,
            window,
            pd,
            port,
            context,
        })
    }

    /// What another process has to know to send something.
    pub fn end(&self) -> (Endpoint, Place) {
        let place = self.heap[1].remote(0).expect("it is not empty");
        (self.qps[2].endpoint(&self.port), Place(place))
    }

    /// Does something, whatever comes of it.
    pub fn act(&mut self, act: &Act, peer: Option<&(Endpoint, Place)>) {
        match *act {
            Act::Send { by, what, to } => self.send(by, by, what, self.place(to, peer)),
            Act::Receive(by) => self.receive(by, by),
            Act::Datagram(to) => self.datagram(to, to, peer),
            Act::Poll => self.poll(),
            Act::Arm(next) => {
                let on = if next { Notify::Next } else { Notify::Solicited };
                let _ = (self.cq.arm(on), self.other.arm(on));
            }
            Act::Connect(by, to) => self.connect(by, to, peer),
            Act::Modify(by, to) => self.modify(by, to),
            Act::Resize(to) => drop((self.cq.resize(to.into()), self.other.resize(to.into()))),
            Act::Moderate(count, micros) => drop(self.cq.moderate(count.into(), micros.into())),
            Act::Limit(limit) => drop(self.shared.arm_limit(limit.into())),
            Act::Renew(which) => drop(self.renew(which)),
        }
    }

    fn place(&self, to: u8, peer: Option<&(Endpoint, Place)>) -> RemoteAddr {
        let at = usize::from(to >> 2 & 3) * 64;
        let own = |found: Result<RemoteAddr, _>| found.expect("it is inside");
        match (to & 3, peer) {
            (0, _) => own(self.owned.remote(at)),
            (1, _) => own(self.heap[1].remote(at)),
            (2, Some((_, Place(there)))) => *there,
            _ => RemoteAddr { rkey: self.window.rkey(), ..own(self.owned.remote(at)) },
        }
    }

    /// Elements of either kind of memory, to send or to receive. Both end where memory does.
    fn sges(&self, of: u8, receives: bool) -> [Sge; 2] {
        let at = 8 + 8 * usize::from(of & 15);
        let sges = match of & 0x80 {
            0 => [(at, BYTES - at), (0, 8)]
                .map(|(at, len)| self.heap[usize::from(receives)].sge(at..at + len)),
            _ => [(at, BYTES - at), (0, 8)].map(|(at, len)| self.owned.sge(at..at + len)),
        };
        sges.map(|sge| sge.expect("it is inside"))
    }

    fn send(&mut self, by: u8, of: u8, what: u8, there: RemoteAddr) {
        let (sges, key) = (self.sges(of, false), self.window.rkey());
        let bind = || WindowBind {
            window: key,
            rkey: inc_rkey(key),
            lkey: sges[1].lkey,
            addr: sges[1].addr,
            length: 8,
            access: Access::REMOTE,
        };
        let wr = match what % 14 {
            0 => SendWr::send(0, &sges),
            1 => SendWr::write(1, &sges, there),
            2 => SendWr::read(2, &sges, there),
            3 => SendWr::fetch_add(3, &sges[1..], there, 1),
            4 => SendWr::compare_swap(4, &sges[1..], there, 0, 1),
            5 => SendWr::bind_window(5, bind()),
            6 => SendWr::local_invalidate(6, key),
            7 => SendWr::send_with_inv(7, &sges[..1], there.rkey),
            8 => SendWr::write(8, &sges, there).with_imm([1; 4]),
            9 => SendWr::send_inline(9, b"inline").solicited(),
            10 => SendWr::write_inline(10, b"inline", there),
            11 => SendWr::write(11, &sges[..1], there),
            12 => SendWr::read(12, &sges[..1], there),
            _ => SendWr::send(13, &sges[..1]).unsignaled(),
        };
        let _ = self.qps[usize::from(by) % 3].post_send(&[wr, wr]);
    }

    fn receive(&mut self, by: u8, of: u8) {
        let sges = self.sges(of, true);
        let list = [RecvWr::new(20, &sges), RecvWr::new(21, &sges[..1])];
        let _ = match by & 3 {
            0 | 1 => self.qps[usize::from(by & 3)].post_recv(&list),
            2 => self.shared.post_recv(&list),
            _ => self.datagrams.post_recv(&list),
        };
    }

    fn datagram(&mut self, to: u8, of: u8, peer: Option<&(Endpoint, Place)>) {
        let number = match (to & 1, peer) {
            (1, Some((end, _))) => end.qp_num,
            _ => self.datagrams.number(),
        };
        let sges = self.sges(of, false);
        let to = Destination::new(&self.ah, number, QKEY);
        let _ = self.datagrams.to(&to).post_send(&[SendWr::send(30, &sges)]);
    }

    /// Exchanges messages of whole regions, which the bits of a number describe.
    pub fn exchange(&mut self, what: u8) {
        let (by, to) = match what >> 6 {
            0 | 1 => (0, 1),
            2 => (2, 2),
            _ => (3, 3),
        };
        let (is_late, of) = (what & 0x10 != 0, (what & 0x20) << 2);
        for is_receive in [!is_late, is_late] {
            match is_receive {
                true => self.receive(to, of),
                false if by == 3 => self.datagram(0, of, None),
                false => self.send(by, of, what & 15, self.place(1, None)),
            }
        }
        self.poll();
    }

    /// Connects all again; `None` if that would need new objects.
    pub fn mend(&mut self) -> Option<()> {
        self.datagrams.modify(&QpAttr::new().state(QpState::RESET)).ok()?;
        self.datagrams.activate(&self.port, QKEY).ok()?;
        for (by, to) in [(0, 1), (1, 0), (2, 2)] {
            let end = self.qps[to].endpoint(&self.port);
            self.qps[by].modify(&QpAttr::new().state(QpState::RESET)).ok()?;
            self.qps[by].connect(&self.port, &end).ok()?;
        }
        while self.cq.pop().ok()?.is_some() || self.other.pop().ok()?.is_some() {}
        Some(())
    }

    fn poll(&mut self) {
        let mut wcs = [Wc::default(); 8];
        for cq in [&mut self.cq, &mut self.other] {
            assert!(cq.poll_into(&mut wcs).unwrap_or(0) <= wcs.len());
        }
        let _ = (self.channel.take_event(), self.context.take_async_event());
        let _ = self.qps.each_ref().map(|qp| (qp.state(), qp.attributes()));
    }

    fn connect(&mut self, by: u8, to: u8, peer: Option<&(Endpoint, Place)>) {
        let (by, to) = (usize::from(by) % 3, usize::from(to) % 4);
        let end = match (self.qps.get(to), peer) {
            (Some(qp), _) => qp.endpoint(&self.port),
            (None, Some((end, _))) => *end,
            (None, None) => Endpoint::new(7),
        };
        let _ = self.qps[by].modify(&QpAttr::new().state(QpState::RESET));
        let _ = self.qps[by].connect(&self.port, &end);
    }

    fn modify(&mut self, by: u8, to: u8) {
        let qp = match usize::from(by) % 4 {
            3 => &mut self.datagrams,
            nth => &mut self.qps[nth],
        };
        let state = [QpState::RESET, QpState::ERR, QpState::SQD, QpState::RTS][usize::from(to) % 4];
        let _ = qp.modify(&QpAttr::new().state(state).en_sqd_async_notify(to & 4 != 0));
        let _ = qp.activate(&self.port, QKEY);
    }

    fn renew(&mut self, which: u8) -> Option<()> {
        let init = self.pd.qp(&self.cq).recv_cq(&self.other).caps(CAPS);
        match which % 6 {
            nth @ (0 | 1) => self.qps[usize::from(nth)] = init.create().ok()?,
            2 => self.window = self.pd.alloc_mw().ok()?,
            3 => self.owned = self.pd.allocate(BYTES, OPEN).ok()?,
            4 => self.channel = self.context.create_channel().ok()?,
            _ => drop(self.context.cq(64).channel(&self.channel).create().ok()?),
        }
        Some(())
    }
}
