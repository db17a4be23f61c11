use super::*;
use crate::inside::prelude::*;

/// Two queue pairs that are connected, and memory of each.
struct Pair {
    fixture: Fixture,
    qps: [QueuePair; 2],
    regions: [OwnedRegion; 2],
}

impl Pair {
    fn new() -> Self {
        let fixture = Fixture::new();
        let (qps, regions) = (fixture.pair(), [(); 2].map(|()| fixture.region(64)));
        Self { fixture, qps, regions }
    }

    fn slots(&self) -> [&'static QpSlot; 2] {
        self.qps.each_ref().map(|qp| self.fixture.slot(qp))
    }

    /// Eight bytes of each region.
    fn sges(&self) -> [Sge; 2] {
        self.regions.each_ref().map(|region| region.sge(..8).unwrap())
    }

    /// The second posts a receive, and the first a request.
    fn send(&mut self, request: SendWr<'_>) {
        let target = [self.sges()[1]];
        self.qps[1].post_recv(&[RecvWr::new(1, &target)]).unwrap();
        self.qps[0].post_send(&[request]).unwrap();
    }

    /// Sends eight bytes, and writes as many elsewhere; both arrive.
    fn exchange(&mut self, bytes: [u8; 8]) {
        self.regions[0].write(0, &bytes).unwrap();
        self.regions[1].write(0, &[0; 64]).unwrap();
        let (source, target) = ([self.sges()[0]], self.regions[1].remote(32).unwrap());
        self.send(SendWr::send(2, &source));
        self.qps[0].post_send(&[SendWr::write(3, &source, target)]).unwrap();
        assert_eq!(self.fixture.polled(), [1, 2, 3].map(|id| (id, WcStatus::SUCCESS)));
        let mut came = [0; 64];
        self.regions[1].read(0, &mut came).unwrap();
        assert_eq!((&came[..8], &came[32..40]), (&bytes[..], &bytes[..]));
        assert!(came[8..32].iter().chain(&came[40..]).all(|&byte| byte == 0));
    }
}

/// Numbers that some word can't have: too small for a request of one SGE, too large for the arena.
const NONSENSE: [u32; 7] = [0, 1, 4, 5, 7, 1 << 16, u32::MAX];

/// What the table says of a queue pair, its type first, but for its identity, its peer and its queues' positions.
fn described(slot: &QpSlot) -> [&AtomicU32; 13] {
    let (sends, recvs) = (&slot.send_ring, &slot.recv_ring);
    [
        &slot.qp_type,
        &slot.access,
        &slot.pd,
        &slot.recv_cq,
        &slot.send_cq,
        &slot.max_dest_rd_atomic,
        &slot.srq,
        &sends.offset,
        &sends.log2,
        &sends.stride,
        &recvs.offset,
        &recvs.log2,
        &recvs.stride,
    ]
}

#[test]
fn x04_what_is_scribbled_over_a_validated_connection_leads_nowhere() {
    for nonsense in NONSENSE {
        let mut pair = Pair::new();
        pair.exchange([1; 8]);
        let slots = pair.slots();
        for word in slots.iter().flat_map(|slot| described(slot).into_iter().skip(1)) {
            sync::store(word, nonsense);
        }
        pair.exchange([2; 8]);
        pair.exchange([3; 8]);
    }
}

#[test]
fn x04_nonsense_that_is_validated_is_refused_or_in_range() {
    for nonsense in NONSENSE {
        for nth in 0..13 {
            let mut pair = Pair::new();
            pair.slots().iter().for_each(|slot| sync::store(described(slot)[nth], nonsense));
            let source = [pair.sges()[0]];
            pair.qps[1].post_recv(&[RecvWr::new(1, &[])]).unwrap();
            // What becomes of it is open: it may arrive, fail, or wait.
            pair.qps[0].post_send(&[SendWr::send(2, &source)]).unwrap();
            pair.qps
                .iter_mut()
                .for_each(|qp| qp.modify(&QpAttr::new().state(QpState::RESET)).unwrap());
        }
    }
}

/// A queue pair that is reset or fails waits for the messages of the peer that the table names. A sender that was
/// scribbled away from there is not accepted.
#[test]
fn x04_who_would_not_be_waited_for_is_not_accepted() {
    let scribbles: [fn(&Pair); 3] = [
        |pair| sync::store(pair.fixture.device.engine.dest(pair.qps[1].index()), 0x7001f0),
        |pair| sync::store(pair.fixture.device.engine.dest(pair.qps[0].index()), 0x7001f0),
        |pair| sync::store(&pair.slots()[1].qp_type, QpType::UD.0),
    ];
    for scribble in scribbles {
        let mut pair = Pair::new();
        pair.exchange([1; 8]);
        scribble(&pair);
        let source = [pair.sges()[0]];
        pair.send(SendWr::send(2, &source));
        assert_eq!(pair.fixture.polled(), [], "it waits");
    }
}

/// What a request does on a connection over which a message went before.
fn status_after_a_message(pair: &mut Pair, read: bool) -> WcStatus {
    let (source, remote) = ([pair.sges()[0]], pair.regions[1].remote(0).unwrap());
    pair.send(SendWr::send(2, &source));
    let request =
        if read { SendWr::read(3, &source, remote) } else { SendWr::write(3, &source, remote) };
    pair.qps[0].post_send(&[request]).unwrap();
    let [received, sent, (3, status)] = pair.fixture.polled()[..] else { panic!("all complete") };
    assert_eq!([received, sent], [1, 2].map(|id| (id, WcStatus::SUCCESS)));
    status
}

#[test]
fn q07_a_right_that_the_peer_does_not_grant_is_missed_after_messages_that_need_none() {
    let (ok, refused) = (WcStatus::SUCCESS, WcStatus::REM_INV_REQ_ERR);
    let (write, reads) = (Access::REMOTE_WRITE, Access::REMOTE_READ);
    for (read, access, at_once, status) in [
        (false, write | reads, 1, ok),
        (false, write, 0, ok),
        (false, reads, 1, refused),
        (true, write | reads, 1, ok),
        (true, reads, 1, ok),
        (true, write, 1, refused),
        (true, reads, 0, refused),
    ] {
        let mut pair = Pair::new();
        let number = pair.qps[0].number();
        let rtr = QpAttr::rtr(&Port::new(1), &Endpoint::new(number)).max_dest_rd_atomic(at_once);
        let init = QpAttr::init(&Port::new(1), access);
        for step in [QpAttr::new().state(QpState::RESET), init, rtr, QpAttr::rts()] {
            pair.qps[1].modify(&step).unwrap();
        }
        let found = status_after_a_message(&mut pair, read);
        assert_eq!(found, status, "{read} {access:?} {at_once}");
    }
    let mut pair = Pair::new();
    pair.exchange([1; 8]);
    pair.qps[1].modify(&QpAttr::new().state(QpState::RTS).access(Access::empty())).unwrap();
    assert_eq!(status_after_a_message(&mut pair, false), refused, "it is taken back in RTS");
}

#[test]
fn c07_each_send_completes_as_on_soft_roce_where_that_is_imitated() {
    let mut fixture = Fixture::of(OpenOptions::new().imitate_rxe());
    let (mut qp, region) = (fixture.own_peer(), fixture.region(64));
    let source = [region.sge(..8).unwrap()];
    for _ in 0..3 {
        qp.post_send(&[SendWr::write(1, &source, region.remote(32).unwrap())]).unwrap();
        let mut wcs = [Wc::default()];
        assert_eq!(fixture.cq.poll_into(&mut wcs), Ok(1));
        assert_eq!(wcs[0].result().unwrap().byte_len(), 8, "the device says 0");
    }
}
