//! What the tests share: two connected ends on the device that VERBS_DEVICE names, and waiting for
//! conditions with a deadline.
#![allow(dead_code)]

pub use std::time::{Duration, Instant};

pub use cq_core::transport::*;
pub use cq_core::wc::{Wc, WcStatus as S};
pub use cq_verbs::post::*;
pub use cq_verbs::wr::*;
pub use transport_verbs::*;

/// Longer than anything here takes, on any machine.
pub const DEADLINE: Duration = Duration::from_secs(60);

pub const ALL: Access = Access::LOCAL_WRITE.union(Access::REMOTE);

pub const CAPS: QpCaps =
    QpCaps::USUAL.max_send_wr(63).max_recv_wr(63).max_send_sge(4).max_recv_sge(4).max_inline(64);

/// The device to test on.
#[track_caller]
pub fn device() -> Context {
    Context::open(&std::env::var("VERBS_DEVICE").expect("VERBS_DEVICE names a device")).unwrap()
}

/// A queue pair with a completion queue and a region of its own.
pub struct End {
    pub qp: QueuePair,
    pub cq: Cq,
    pub region: OwnedRegion,
    pub pd: ProtectionDomain,
    pub port: Port,
}

impl End {
    pub fn new(context: &Context, qp_type: QpType) -> Self {
        let (pd, port) = (context.alloc_pd().unwrap(), context.port(1).unwrap());
        let cq = context.cq(255).create().unwrap();
        let qp = pd.qp(&cq).qp_type(qp_type).caps(CAPS).create().unwrap();
        let region = pd.allocate(8192, ALL).unwrap();
        Self { qp, cq, region, pd, port }
    }

    /// Posts a receive of `len` bytes at `offset`.
    pub fn recv(&mut self, wr_id: u64, offset: usize, len: usize) {
        let sge = self.region.sge(offset..offset + len).unwrap();
        self.qp.post_recv(&[RecvWr::new(wr_id, &[sge])]).unwrap();
    }

    pub fn bytes(&self, offset: usize, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.region.read(offset, &mut bytes).unwrap();
        bytes
    }

    /// What it completed: exactly these, in this order.
    #[track_caller]
    pub fn expect(&mut self, wanted: &[(u64, S)]) -> Vec<Wc> {
        let got = settle(&mut self.cq, wanted.len());
        let seen: Vec<_> = got.iter().map(|wc| (wc.wr_id(), wc.status())).collect();
        assert_eq!(seen, wanted);
        assert!(got.iter().all(|wc| wc.qp_num() == self.qp.number()));
        got
    }

    #[track_caller]
    pub fn expect_nothing(&mut self) {
        assert_eq!(take(&mut self.cq), []);
    }
}

/// Two ends of reliable connections, in RESET.
pub fn ends() -> (End, End) {
    let context = device();
    (End::new(&context, QpType::RC), End::new(&context, QpType::RC))
}

/// Two ends, connected both ways so that what waits for a peer ends soon.
pub fn pair() -> (End, End) {
    let (mut a, mut b) = ends();
    connect_by(&mut a, &b, &impatient());
    connect_by(&mut b, &a, &impatient());
    (a, b)
}

/// Connects one end to another with these attributes.
#[track_caller]
pub fn connect_by(end: &mut End, peer: &End, rts: &QpAttr) {
    let rtr = QpAttr::rtr(&end.port, &peer.qp.endpoint(&peer.port));
    for attr in [&QpAttr::init(&end.port, Access::REMOTE), &rtr, &rts.sq_psn(end.qp.psn())] {
        end.qp.modify(attr).unwrap();
    }
}

/// How to send so that waiting is over soon, whatever for. (Soft-RoCE takes 7 for ever.)
pub fn impatient() -> QpAttr {
    QpAttr::rts().timeout(AckTimeout::from_number(8).unwrap()).retry_cnt(2).rnr_retry(1)
}

/// Everything that is there now.
pub fn take(cq: &mut Cq) -> Vec<Wc> {
    let mut all = Vec::new();
    let mut buffer = [Wc::default(); 16];
    loop {
        match cq.poll_into(&mut buffer).unwrap() {
            0 => return all,
            count => all.extend_from_slice(&buffer[..count]),
        }
    }
}

/// Polls until `count` completions have come.
#[track_caller]
pub fn settle(cq: &mut Cq, count: usize) -> Vec<Wc> {
    let mut all = Vec::new();
    wait_for(|| {
        all.extend(take(cq));
        all.len() >= count
    });
    all
}

/// Lets the device run until `done`.
#[track_caller]
pub fn wait_for(mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < DEADLINE, "the condition never came true");
        std::thread::yield_now();
    }
}

/// Asserts that something is so in a forked child, which ends then.
#[track_caller]
pub fn in_child(is_so: impl FnOnce() -> bool) {
    // SAFETY: the child has this thread alone; the C library lets it allocate, and it runs no destructor when it ends.
    match unsafe { libc::fork() } {
        0 => {
            let is_so = std::panic::catch_unwind(std::panic::AssertUnwindSafe(is_so));
            // SAFETY: always sound.
            unsafe { libc::_exit(i32::from(!is_so.unwrap_or(false))) }
        }
        child => {
            let mut status = -1;
            // SAFETY: the status is alive.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            assert_eq!(status, 0);
        }
    }
}
