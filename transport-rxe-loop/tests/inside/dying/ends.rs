//! One end of a connection that keeps count: every request completes once, in order (C8, C10), and what is received
//! is what the other end sent. Each message bears its number as immediate data.

#![allow(unsafe_code)]

use std::collections::VecDeque;

use super::*;
use crate::engine::remote_requests;
use crate::engine::responder::Responder;

/// Not a power of two, so that slots of the ring and slots of the queue are told apart.
pub const DEPTH: usize = 7;
const CAPS: QpCaps = QpCaps::USUAL
    .max_send_wr(DEPTH as u32)
    .max_recv_wr(DEPTH as u32)
    .max_send_sge(1)
    .max_recv_sge(1)
    .max_inline(0);

/// The most completions that one end has outstanding.
pub const OUTSTANDING: u32 = 2 * DEPTH as u32;

/// The memory of an end for its messages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// None: messages have no bytes.
    No,
    Fabric,
    Heap,
}

const BYTES: usize = 4096;
const RIGHTS: Access = Access::LOCAL_WRITE.union(Access::REMOTE);

pub enum Region {
    No,
    Fabric(OwnedRegion),
    Heap(MemoryRegion),
}

impl Region {
    pub fn new(pd: &ProtectionDomain, memory: Memory) -> Outcome<Self> {
        Ok(match memory {
            Memory::No => Self::No,
            Memory::Fabric => Self::Fabric(pd.allocate(BYTES, RIGHTS)?),
            Memory::Heap => {
                let words: Vec<_> = (0..BYTES / 8).map(|_| AtomicU64::new(0)).collect();
                let at = Vec::leak(words).as_ptr() as *mut u8;
                // SAFETY: atomics, there for ever.
                Self::Heap(unsafe { pd.register(at, BYTES, RIGHTS) }?)
            }
        })
    }

    /// SGEs of the memory; none if there is no memory.
    pub fn sges(&self, offset: usize, len: usize) -> Vec<Sge> {
        match self {
            Self::No => Vec::new(),
            Self::Fabric(region) => vec![region.sge(offset..offset + len).unwrap()],
            Self::Heap(region) => vec![region.sge(offset..offset + len).unwrap()],
        }
    }

    fn remote(&self) -> RemoteAddr {
        match self {
            Self::No => RemoteAddr { addr: 0, rkey: 0 },
            Self::Fabric(region) => region.remote(0).unwrap(),
            Self::Heap(region) => region.remote(0).unwrap(),
        }
    }
}

/// A queue pair and what it has posted.
pub struct End {
    pub qp: QueuePair,
    region: Region,
    /// The number of the peer.
    remote: RemoteAddr,
    /// Identifies requests posted since the last connection.
    life: u64,
    next: u64,
    /// The shared receive queue, if it has no receives of its own.
    commons: Option<Rc<RefCell<Commons>>>,
    /// Posted and not completed, and whether each is signaled.
    sends: VecDeque<(u64, bool)>,
    recvs: VecDeque<u64>,
    sent: u32,
    received: u32,
    /// Sends that completed successfully.
    pub arrived: u32,
    /// The status of the first send that failed.
    pub failure: Option<WcStatus>,
    flushes: bool,
}

const RECV: u64 = 1;
const LIFE_AT: u32 = 32;

impl End {
    pub fn new(pd: &ProtectionDomain, cq: &Cq, memory: Memory) -> Outcome<Self> {
        Self::with_queues(pd, [cq; 2], memory)
    }

    /// An end that completes its sends and its receives in different queues.
    pub fn with_queues(
        pd: &ProtectionDomain,
        [sends, recv_cq]: [&Cq; 2],
        memory: Memory,
    ) -> Outcome<Self> {
        let qp = pd.qp(sends).caps(CAPS).recv_cq(recv_cq).create()?;
        Self::of(qp, pd, memory, None)
    }

    /// An end whose receives come from a shared receive queue.
    pub fn sharing(
        pd: &ProtectionDomain,
        cq: &Cq,
        memory: Memory,
        commons: &Rc<RefCell<Commons>>,
    ) -> Outcome<Self> {
        let init = pd.qp(cq).caps(CAPS);
        let qp = pd.create_qp(&init.srq(&commons.borrow().srq))?;
        Self::of(qp, pd, memory, Some(Rc::clone(commons)))
    }

    fn of(
        qp: QueuePair,
        pd: &ProtectionDomain,
        memory: Memory,
        commons: Option<Rc<RefCell<Commons>>>,
    ) -> Outcome<Self> {
        let region = Region::new(pd, memory)?;
        Ok(Self {
            qp,
            region,
            remote: RemoteAddr { addr: 0, rkey: 0 },
            life: 0,
            next: 0,
            commons,
            sends: VecDeque::new(),
            recvs: VecDeque::new(),
            sent: 0,
            received: 0,
            arrived: 0,
            failure: None,
            flushes: false,
        })
    }

    pub fn number(&self) -> u32 {
        self.qp.number()
    }

    pub fn address(&self) -> Address {
        Address { number: self.number(), memory: self.region.remote() }
    }

    /// Connects again, to this peer; what was outstanding is dropped. A dead peer is given up, any other waited for
    /// without limit.
    pub fn connect_to(&mut self, peer: Address) -> Outcome<()> {
        if self.qp.state().unwrap() != QpState::RESET {
            self.qp.modify(&QpAttr::new().state(QpState::RESET))?;
        }
        let port = self.qp.claimed.queue.engine.port.attributes();
        let to = Endpoint::new(peer.number).lid(port.lid).gid(port.gid);
        let rts = QpAttr::rts().timeout(AckTimeout::UNLIMITED).rnr_retry(7);
        let steps = [QpAttr::init(&port, Access::REMOTE), QpAttr::rtr(&port, &to), rts];
        steps.iter().try_for_each(|step| self.qp.modify(step))?;
        (self.life, self.sent, self.received, self.arrived) = (self.life + 1, 0, 0, 0);
        (self.failure, self.flushes, self.remote) = (None, false, peer.memory);
        self.sends.clear();
        self.recvs.clear();
        Ok(())
    }

    pub fn is_connected(&self) -> bool {
        self.life > 0
    }

    fn wr_id(&mut self, kind: u64) -> u64 {
        self.next += 1;
        self.life << LIFE_AT | (self.next << 1 & ((1 << LIFE_AT) - 1)) | kind
    }

    /// Posts up to `count` receives, as far as they fit.
    pub fn post_recvs(&mut self, most: usize) -> Outcome<()> {
        if let Some(commons) = &self.commons {
            return commons.borrow_mut().post_recvs(most);
        }
        for _ in 0..most.min(DEPTH - self.recvs.len()) {
            let wr_id = self.wr_id(RECV);
            self.qp.post_recv(&[RecvWr::new(wr_id, &self.region.sges(2048, 64))])?;
            self.recvs.push_back(wr_id);
        }
        Ok(())
    }

    /// Posts a send, if it fits. The last that fits is signaled.
    pub fn post_send(&mut self, signaled: bool, solicited: bool) -> Outcome<()> {
        if self.sends.len() == DEPTH {
            return Ok(());
        }
        let signaled = signaled || self.sends.len() == DEPTH - 1;
        let wr_id = self.wr_id(0);
        let has_memory = self.remote.rkey != 0 && !matches!(self.region, Region::No);
        let sges = if has_memory { self.region.sges(0, 64) } else { Vec::new() };
        let mut wr = SendWr::send(wr_id, &sges).with_imm(self.sent.to_be_bytes());
        if solicited {
            wr = wr.solicited();
        }
        self.post(wr, signaled)?;
        self.sent += 1;
        Ok(())
    }

    /// Posts a request to the peer's memory, if there is any, and if it fits.
    fn post_onesided(&mut self, chance: &mut Chance) -> Outcome<()> {
        let (far, wr_id) = (self.remote, self.wr_id(0));
        let len = [8, 64, 1024][chance.below(3)];
        let (sges, word) = (self.region.sges(0, len), self.region.sges(0, 8));
        if far.rkey == 0 || sges.is_empty() || self.sends.len() >= DEPTH - 1 {
            return Ok(());
        }
        let wr = match chance.below(4) {
            0 => SendWr::write(wr_id, &sges, far),
            1 => SendWr::read(wr_id, &sges, far),
            2 => SendWr::fetch_add(wr_id, &word, far, 1),
            _ => SendWr::compare_swap(wr_id, &word, far, 0, 1),
        };
        self.post(wr, chance.one_in(2))
    }

    fn post(&mut self, wr: SendWr<'_>, signaled: bool) -> Outcome<()> {
        self.qp.post_send(&[if signaled { wr } else { wr.unsignaled() }])?;
        self.sends.push_back((wr.wr_id, signaled));
        Ok(())
    }

    /// Messages received.
    pub const fn received(&self) -> u32 {
        self.received
    }

    /// Posts requests of each kind.
    pub fn work(&mut self, chance: &mut Chance) -> Outcome<()> {
        if !self.is_connected() || self.failure.is_some() {
            return Ok(());
        }
        self.post_recvs(chance.below(DEPTH + 1))?;
        for _ in 0..chance.below(DEPTH + 1) {
            self.post_onesided(chance)?;
            self.post_send(chance.one_in(2), chance.one_in(4))?;
        }
        if chance.one_in(4) {
            self.hesitate();
        }
        Ok(())
    }

    /// Takes the peer's next receive, and gives it back unused: as if the peer did not answer.
    fn hesitate(&mut self) {
        let (engine, number, index) =
            (self.qp.claimed.queue.engine, self.qp.qpn(), self.qp.index());
        let (slot, ownership) = (engine.qp(number), engine.ownership(index));
        ownership.seize();
        let target = QpNumber::new(sync::load(engine.dest(index)));
        let mut peer = Responder::new(engine, target, number, slot.qp_type());
        {
            let _guard = engine.copy_guard(slot, index);
            if let Ok(receive) = peer.receive(0) {
                peer.give_back(&receive);
            }
        }
        if peer.has_failed() {
            remote_requests::submit(engine, engine.index(peer.number));
        }
        ownership.abandon();
        // A thread that rescheduled meanwhile found the send queue owned.
        send_queue::run(engine, index);
    }

    /// Whether everything that was posted has completed.
    pub fn is_done(&self) -> bool {
        self.sends.is_empty() && self.recvs.is_empty()
    }

    /// Handles a completion of this queue pair.
    #[track_caller]
    pub fn completed(&mut self, wc: &Wc) {
        if self.is_shared_receive(wc) {
            return self.shared_completed(wc);
        }
        if wc.wr_id() >> LIFE_AT != self.life {
            return;
        }
        if wc.wr_id() & RECV != 0 {
            self.recv_completed(wc);
        } else {
            self.send_completed(wc);
        }
    }

    /// Whether it is a receive of a shared receive queue, which belongs to no life of the queue pair.
    fn is_shared_receive(&self, wc: &Wc) -> bool {
        self.commons.is_some() && wc.wr_id() >> LIFE_AT == 0
    }

    fn shared_completed(&mut self, wc: &Wc) {
        if let Some(commons) = &self.commons {
            commons.borrow_mut().completed(wc.wr_id());
        }
        let received = wc.result().unwrap_or_else(|failed| panic!("{failed}: {self:?}"));
        assert_eq!(received.imm(), Some(self.received.to_be_bytes()), "{self:?} {wc:?}");
        self.received += 1;
    }

    fn recv_completed(&mut self, wc: &Wc) {
        assert_eq!(self.recvs.pop_front(), Some(wc.wr_id()), "{self:?} {wc:?}");
        if let Ok(received) = wc.result() {
            assert!(!self.flushes, "a success after a flush: {self:?} {wc:?}");
            assert_eq!(received.imm(), Some(self.received.to_be_bytes()), "{self:?} {wc:?}");
            self.received += 1;
        } else {
            assert_eq!(wc.status(), WcStatus::WR_FLUSH_ERR, "{self:?}");
            self.flushes = true;
        }
    }

    fn send_completed(&mut self, wc: &Wc) {
        // A success also stands for the unsignaled sends before it (C9).
        loop {
            let (wr_id, signaled) =
                self.sends.pop_front().expect("it was posted, and not completed");
            if wr_id == wc.wr_id() {
                break;
            }
            assert!(!signaled, "out of order: {wr_id:#x} {self:?} {wc:?}");
            self.arrived += 1;
        }
        let status = wc.status();
        match self.failure {
            None if status == WcStatus::SUCCESS => self.arrived += 1,
            None => self.failure = Some(status),
            Some(_) => assert_eq!(status, WcStatus::WR_FLUSH_ERR, "{self:?} {wc:?}"),
        }
    }
}

impl std::fmt::Debug for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("End")
            .field("number", &self.number())
            .field("state", &self.qp.state())
            .field("sends", &self.sends)
            .field("recvs", &self.recvs)
            .field("received", &self.received)
            .field("failure", &self.failure)
            .finish_non_exhaustive()
    }
}
