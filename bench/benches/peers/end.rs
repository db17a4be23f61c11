//! One end of a connection: a queue pair with its completion queue, memory of the fabric's, and memory of this
//! process' alone.

use std::thread;

use bench::delivery::Patience;
use cq_core::transport::PollCq;
use cq_core::wc::{Wc, WcOpcode};
use cq_verbs::wr::{RecvWr, RemoteAddr, SendWr, Sge};
use serde::{Deserialize, Serialize};
use transport_rxe_loop::{
    Access, Context, Cq, MemoryRegion, OpenOptions, OwnedRegion, ProtectionDomain, QpCaps,
    QueuePair,
};

/// Receives that are posted at a time.
pub const DEPTH: usize = 256;
/// What posting by one call comes to.
pub const BATCH: usize = 32;
/// Bytes of the memory of this process' alone.
pub const HEAP: usize = 1 << 20;
/// The other process has died.
const SILENT: &str = "the other process says something";
/// Bytes that a send or a receive may have.
const MESSAGE_LEN: usize = 64;
/// Where the peer writes how many of the messages it has taken; receives begin behind it.
const CREDIT: usize = 0;
const RECEIVES: usize = 64;
const SENDS: usize = RECEIVES + DEPTH * MESSAGE_LEN;
const BYTES: usize = SENDS + MESSAGE_LEN;

/// What the other side has to know.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Address {
    number: u32,
    fabric: (u64, u32),
    heap: (u64, u32),
}

impl Address {
    /// Where its memory begins that is not the fabric's.
    pub const fn heap(&self) -> u64 {
        self.heap.0
    }
}

/// Which way an end transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the other process.
    Write,
    /// From the other process.
    Read,
}

/// One end.
pub struct End {
    qp: QueuePair,
    cq: Cq,
    region: OwnedRegion,
    heap: MemoryRegion,
    peer: Option<Address>,
    /// Receives posted, and messages sent, ever.
    posted: usize,
    sent: usize,
    /// How many bytes a receive has.
    size: usize,
    yields: bool,
}

/// The device, in the fabric of this name.
pub fn open(fabric: &str) -> Context {
    OpenOptions::new().fabric(fabric).open("loop0").expect("the device opens")
}

impl End {
    /// Whose receives have so many bytes, and which, if it yields, lets others run while it waits for a message.
    pub fn new(context: &Context, pd: &ProtectionDomain, size: usize, yields: bool) -> Self {
        let cq = context.cq(2 * DEPTH as u32).create().expect("a completion queue");
        let caps = QpCaps::USUAL
            .max_send_wr(DEPTH as u32)
            .max_recv_wr(DEPTH as u32)
            .max_send_sge(1)
            .max_recv_sge(1)
            .max_inline(16);
        let qp = pd.qp(&cq).caps(caps).create().expect("a queue pair");
        let access = Access::LOCAL_WRITE | Access::REMOTE;
        let region = pd.allocate(BYTES, access).expect("memory of the fabric's");
        // Touched now, so that no page faults come later.
        let memory: &'static mut [u8] = vec![1; HEAP].leak();
        // SAFETY: leaked, so it stays; nobody else has it.
        let heap = unsafe { pd.register(memory.as_mut_ptr(), HEAP, access) };
        let heap = heap.expect("memory is registered");
        Self { qp, cq, region, heap, peer: None, posted: 0, sent: 0, size, yields }
    }

    /// Where its memory begins that is this process' alone, [`HEAP`] bytes, and stays.
    pub const fn heap(&self) -> u64 {
        self.heap.addr()
    }

    /// How the other side reaches it.
    pub fn address(&self) -> Address {
        let whole = |at: RemoteAddr| (at.addr, at.rkey);
        let fabric = whole(self.region.remote(0).expect("it is inside"));
        let heap = whole(self.heap.remote(0).expect("it is inside"));
        Address { number: self.qp.number(), fabric, heap }
    }

    /// Connects it, and posts all its receives.
    pub fn connect(&mut self, peer: Address) {
        self.peer = Some(peer);
        self.qp.connect_to(peer.number).expect("it connects");
        for _ in 0..DEPTH / BATCH {
            self.post_receives::<BATCH>();
        }
    }

    /// Sends so many messages, each when the answer to the last one has come, or answers so many if it does not begin.
    pub fn ping(&mut self, count: u64, begins: bool) {
        for _ in 0..count {
            if begins {
                self.send();
            }
            self.take_one(WcOpcode::RECV);
            if !begins {
                self.send();
            }
            self.post_receives::<1>();
        }
    }

    /// Writes 8 bytes to the other side so often, each when the answer to the last has come; `begins` the one that does not
    /// wait first.
    pub fn exchange(&mut self, count: u64, begins: bool) {
        let mut buffer = [Wc::default(); 4];
        for number in 1..=count {
            if begins {
                self.tell(number);
            }
            let mut limit = Patience::default();
            while self.credit() != number {
                limit.look().expect(SILENT);
            }
            if !begins {
                self.tell(number);
            }
            if self.sent.is_multiple_of(BATCH) {
                self.poll(&mut buffer, WcOpcode::RDMA_WRITE);
            }
        }
        // The other side has seen it, and begins anew.
        self.set_credit(0);
    }

    /// Sends so many messages of 8 bytes, [`BATCH`] by each call, and waits until all were taken.
    pub fn stream(&mut self, count: u64) {
        self.set_credit(0);
        let list: [SendWr<'_>; BATCH] = std::array::from_fn(|nth| {
            let wr = SendWr::send_inline(nth as u64, b"8 bytes!");
            if nth + 1 == BATCH { wr } else { wr.unsignaled() }
        });
        let mut buffer = [Wc::default(); BATCH];
        let (mut taken, mut limit) = (0, Patience::default());
        for sent in (0..count).step_by(BATCH) {
            while sent + BATCH as u64 > taken + DEPTH as u64 {
                taken = self.credit();
                limit.look().expect(SILENT);
            }
            limit = Patience::default();
            self.qp.post_send(&list).expect("the queue is not full");
            self.poll(&mut buffer, WcOpcode::SEND);
        }
        while self.credit() < count {
            limit.look().expect(SILENT);
        }
        self.poll(&mut buffer, WcOpcode::SEND);
    }

    /// Takes so many messages, and says so from time to time.
    pub fn drain(&mut self, count: u64) {
        const OFTEN: u64 = 2 * BATCH as u64;
        let mut buffer = [Wc::default(); BATCH];
        let (mut taken, mut posted, mut told) = (0, 0, 0);
        let mut limit = Patience::default();
        while told < count {
            let now = self.poll(&mut buffer, WcOpcode::RECV) as u64;
            if now == 0 {
                limit.look().expect(SILENT);
                continue;
            }
            limit = Patience::default();
            taken += now;
            while taken - posted >= BATCH as u64 {
                self.post_receives::<BATCH>();
                posted += BATCH as u64;
            }
            if posted - told >= OFTEN || posted == count {
                told = posted;
                self.tell(told);
            }
        }
    }

    /// Writes, or reads, so many bytes of the peer's own memory.
    pub fn transfer(&mut self, len: usize, direction: Direction) {
        let sges = [self.heap.sge(..len).expect("it is inside")];
        let (addr, rkey) = self.peer().heap;
        let remote = RemoteAddr { addr, rkey };
        let (wr, what) = match direction {
            Direction::Read => (SendWr::read(1, &sges, remote), WcOpcode::RDMA_READ),
            Direction::Write => (SendWr::write(1, &sges, remote), WcOpcode::RDMA_WRITE),
        };
        self.qp.post_send(&[wr]).expect("the queue is not full");
        self.take_one(what);
    }

    fn peer(&self) -> Address {
        self.peer.expect("it is connected")
    }

    /// Posts `N` receives by one call.
    fn post_receives<const N: usize>(&mut self) {
        let mut sges = [[Sge::default()]; N];
        for sge in &mut sges {
            let at = RECEIVES + self.posted % DEPTH * self.size;
            sge[0] = self.region.sge(at..at + self.size).expect("it is inside");
            self.posted += 1;
        }
        let list: [RecvWr<'_>; N] = std::array::from_fn(|nth| RecvWr::new(nth as u64, &sges[nth]));
        self.qp.post_recv(&list).expect("the queue is not full");
    }

    fn send(&mut self) {
        let sges = [self.region.sge(SENDS..SENDS + self.size).expect("it is inside")];
        self.post(SendWr::send(1, &sges));
    }

    /// Posts a request, signaled where a batch of them ends.
    fn post(&mut self, wr: SendWr<'_>) {
        self.sent += 1;
        let wr = if self.sent.is_multiple_of(BATCH) { wr } else { wr.unsignaled() };
        self.qp.post_send(&[wr]).expect("the queue is not full");
    }

    /// Waits for one that is done.
    fn take_one(&mut self, what: WcOpcode) {
        let mut buffer = [Wc::default(); 4];
        let mut limit = Patience::default();
        while self.poll(&mut buffer, what) == 0 {
            limit.look().expect(SILENT);
            if self.yields {
                thread::yield_now();
            }
        }
    }

    /// How many of these are done, of all that is.
    fn poll(&mut self, buffer: &mut [Wc], what: WcOpcode) -> usize {
        let count = self.cq.poll_into(buffer).expect("the queue works");
        let done = buffer[..count].iter().map(|wc| wc.result().expect("all goes well"));
        done.filter(|done| done.opcode() == what).count()
    }

    /// Tells the peer how many messages were taken.
    fn tell(&mut self, taken: u64) {
        let (addr, rkey) = self.peer().fabric;
        let remote = RemoteAddr { addr: addr + CREDIT as u64, rkey };
        let bytes = taken.to_ne_bytes();
        self.post(SendWr::write_inline(1, &bytes, remote));
    }

    fn credit(&self) -> u64 {
        let mut bytes = [0; 8];
        self.region.read(CREDIT, &mut bytes).expect("it is inside");
        u64::from_ne_bytes(bytes)
    }

    fn set_credit(&self, credit: u64) {
        self.region.write(CREDIT, &credit.to_ne_bytes()).expect("it is inside");
    }
}
