//! A process that uses everything, with any outcome: within itself, and with any process that it finds.

#![allow(unsafe_code)]

use super::{LIMITS, ROUND, SEED, fabric, number};
use crate::api::mw::MemoryWindow;
use crate::inside::prelude::*;

const PAGE: usize = 4096;
const OPEN: Access = Access::EVERY.union(Access::MW_BIND);
const MARK: u64 = 0xc0ff_ee00_c0ff_ee00;

/// Memory whose middle is registered; the rest must not be written.
struct Canary(Box<[AtomicU64]>);

impl Canary {
    const WORDS: usize = PAGE / 8;

    fn new() -> Self {
        Self((0..3 * Self::WORDS).map(|_| AtomicU64::new(MARK)).collect())
    }

    fn register(&self, pd: &ProtectionDomain) -> Option<MemoryRegion> {
        let at = self.0[Self::WORDS..].as_ptr() as *mut u8;
        // SAFETY: atomics, which outlive the region: they are checked once it is gone.
        unsafe { pd.register(at, PAGE, OPEN) }.ok()
    }

    fn check(&self) {
        let around = self.0[..Self::WORDS].iter().chain(&self.0[2 * Self::WORDS..]);
        around.for_each(|word| assert_eq!(sync::load(word), MARK, "it was not registered"));
    }
}

/// All objects that a process can have.
struct Things {
    a: QueuePair,
    b: QueuePair,
    cq: Cq,
    other: Cq,
    /// Takes its receives from the shared receive queue.
    c: QueuePair,
    shared: SharedReceiveQueue,
    channel: CompletionChannel,
    owned: OwnedRegion,
    heap: MemoryRegion,
    window: MemoryWindow,
    second: MemoryWindow,
    context: Context,
}

impl Things {
    fn new(canary: &Canary) -> Option<Self> {
        let context = OpenOptions::new().fabric(&fabric()).limits(LIMITS).open("loop0").ok()?;
        let (channel, pd) = (context.create_channel().ok()?, context.alloc_pd().unwrap());
        let cq = context.cq(16).channel(&channel).create().ok()?;
        let other = context.cq(4).ignore_overrun().create().ok()?;
        let init = pd.qp(&cq).recv_cq(&other);
        let (a, b) = (init.create().ok()?, init.create().ok()?);
        let shared = pd.create_srq(&SrqInit::new(4).max_sge(2)).ok()?;
        let c = pd.create_qp(&init.srq(&shared)).ok()?;
        let owned = pd.allocate(PAGE, OPEN).ok()?;
        let heap = canary.register(&pd)?;
        let (window, second) = (pd.alloc_mw().ok()?, pd.alloc_mw().ok()?);
        Some(Self { a, b, c, shared, cq, other, channel, owned, heap, window, second, context })
    }

    /// The number of any queue pair in the table.
    fn anybody(&self, chance: &mut Chance) -> u32 {
        let qps = &self.context.device.engine.qps;
        let some = chance.below(qps.len() as usize);
        let from = qps.all().skip(some).chain(qps.all().take(some));
        let found = from.map(|(_, slot)| identity::read(&slot.identity).number().get());
        found.into_iter().find(|&number| number != 0).unwrap_or(0)
    }

    /// The memory of any region in the table.
    fn anywhere(&self, chance: &mut Chance) -> RemoteAddr {
        let mrs = &self.context.device.memory.mrs;
        let some = chance.below(mrs.len() as usize);
        let mut found = mrs.all().skip(some).chain(mrs.all().take(some));
        let found = found.find(|(_, slot)| sync::load(&slot.key) != 0);
        found.map_or(RemoteAddr { addr: 0, rkey: 0 }, |(_, slot)| RemoteAddr {
            addr: sync::load(&slot.base),
            rkey: sync::load(&slot.key),
        })
    }

    fn post(&mut self, chance: &mut Chance) {
        let sge = |region: &dyn Fn(usize, usize) -> Sge, len| [region(0, len), region(64, 8)];
        let owned = |at, len| self.owned.sge(at..at + len).unwrap();
        let heap = |at, len| self.heap.sge(at..at + len).unwrap();
        let len = 8 * chance.below(8);
        let sges = if chance.one_in(2) { sge(&owned, len) } else { sge(&heap, len) };
        let there = self.anywhere(chance);
        let (key, other) = (self.window.rkey(), self.second.rkey());
        let any = [key, other, there.rkey, sges[0].lkey][chance.below(4)];
        let bind = |window, of: &dyn Fn(usize, usize) -> Sge| {
            let Sge { addr, lkey, .. } = of(64, 8);
            let (rkey, access) = (inc_rkey(window), Access::REMOTE);
            WindowBind { window, rkey, lkey, addr, length: 64, access }
        };
        let wr = match chance.below(10) {
            0 => SendWr::send(1, &sges[..1]),
            1 => SendWr::write(2, &sges, there),
            2 => SendWr::read(3, &sges, there),
            3 => SendWr::fetch_add(4, &sges[1..], there, 1),
            4 => SendWr::compare_swap(5, &sges[1..], there, 0, 1),
            5 => SendWr::bind_window(6, bind(any, &owned)),
            6 => SendWr::bind_window(6, bind(any, &heap)),
            7 => SendWr::local_invalidate(7, any),
            8 => SendWr::send_with_inv(8, &sges[..1], any),
            _ => SendWr::send_inline(6, b"inline").solicited(),
        };
        let _ = self.a.post_send(&[wr]);
        let _ = self.c.post_send(&[wr]);
        let _ = self.shared.post_recv(&[RecvWr::new(10, &sges), RecvWr::new(11, &sges)]);
        let _ = self.shared.arm_limit(chance.below(5) as u32);
        let _ = self.b.post_send(&[wr]);
        let _ = self.b.post_recv(&[RecvWr::new(7, &sges), RecvWr::new(8, &sges)]);
        let _ = self.a.post_recv(&[RecvWr::new(9, &sges[..1])]);
    }

    fn look(&mut self) {
        let mut wcs = [Wc::default(); 8];
        let _ = (
            self.cq.poll_into(&mut wcs),
            self.other.poll_into(&mut wcs),
            self.cq.arm(Notify::Next),
        );
        let _ = (self.channel.take_event(), self.context.take_async_event());
    }

    fn change(&mut self, chance: &mut Chance) {
        let (a, b, peer) = (self.a.number(), self.b.number(), self.anybody(chance));
        let c = self.c.number();
        match chance.below(18) {
            0 => drop(self.a.modify(&QpAttr::new().state(QpState::ERR))),
            1 => drop(self.b.modify(&QpAttr::new().state(QpState::SQD).en_sqd_async_notify(true))),
            2 => drop(self.cq.resize(1 + chance.below(40) as u32)),
            3 => drop(self.a.modify(&QpAttr::new().state(QpState::RESET))),
            4 | 5 => drop((self.a.connect_to(b), self.b.connect_to(a))),
            6 | 7 => drop(self.a.connect_to(peer)),
            8 => drop(self.b.connect_to(peer)),
            15 => drop(self.cq.moderate(chance.below(5) as u16, chance.below(2_000) as u16)),
            10 => drop(self.c.modify(&QpAttr::new().state(QpState::ERR))),
            11 => drop(self.c.modify(&QpAttr::new().state(QpState::RESET))),
            12 | 13 => drop((self.a.connect_to(c), self.c.connect_to(a))),
            14 => drop(self.c.connect_to(peer)),
            9 => drop(self.channel.block(Some(Instant::now() + Duration::from_millis(1)))),
            _ => {}
        }
    }
}

fn use_device(seed: u64, end: Instant) {
    let mut chance = Chance::new(seed);
    while Instant::now() < end {
        let canary = Canary::new();
        let Some(mut things) = Things::new(&canary) else { continue };
        let numbers = (things.a.number(), things.b.number());
        let _ = (things.a.connect_to(numbers.1), things.b.connect_to(numbers.0));
        for _ in 0..chance.below(200) {
            things.post(&mut chance);
            things.look();
            things.change(&mut chance);
            if Instant::now() > end {
                break;
            }
        }
        drop(things);
        canary.check();
    }
}

#[test]
#[ignore = "a process of another test"]
fn uses() {
    die_with_parent();
    let (seed, end) = (number(SEED, 0) ^ u64::from(std::process::id()), Instant::now() + ROUND);
    let outcomes = thread::scope(|scope| {
        let users = [1, 2].map(|user| scope.spawn(move || use_device(seed + user, end)));
        users.map(|user| user.join().is_ok())
    });
    assert_eq!(outcomes, [true; 2]);
}
