use super::*;
use crate::inside::prelude::*;

/// Two queue pairs that are connected, their completion queues, and memory of each.
struct Pair {
    device: &'static Device,
    _context: Context,
    qps: [QueuePair; 2],
    cqs: [Cq; 2],
    regions: [OwnedRegion; 2],
}

impl Pair {
    fn new() -> Self {
        let (context, device) = OpenOptions::new().alone();
        let pd = context.alloc_pd().unwrap();
        let cqs = [(); 2].map(|()| context.create_cq(8, None).unwrap());
        let mut qps = cqs.each_ref().map(|cq| pd.create_qp(&QpInit::new(cq)).unwrap());
        let numbers = qps.each_ref().map(QueuePair::number);
        qps[0].connect_to(numbers[1]).unwrap();
        qps[1].connect_to(numbers[0]).unwrap();
        let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ;
        let regions = [(); 2].map(|()| pd.allocate(64, access).unwrap());
        Self { device, _context: context, qps, cqs, regions }
    }

    /// Sends eight bytes, and writes as many elsewhere; both arrive.
    fn exchange(&mut self, bytes: [u8; 8]) {
        let Self { qps: [one, other], cqs, regions: [from, to], .. } = self;
        from.write(0, &bytes).unwrap();
        to.write(0, &[0; 64]).unwrap();
        let (source, target) = ([from.sge(0, 8).unwrap()], [to.sge(0, 8).unwrap()]);
        other.post_recv(&[RecvWr::new(1, &target)]).unwrap();
        let write = SendWr::write(3, &source, to.remote(32).unwrap());
        one.post_send(&[SendWr::send(2, &source), write]).unwrap();
        let mut wcs = [Wc::default(); 4];
        assert_eq!(cqs[1].poll(&mut wcs), Ok(1));
        assert_eq!((wcs[0].wr_id(), wcs[0].status()), (1, WcStatus::SUCCESS));
        assert_eq!(cqs[0].poll(&mut wcs), Ok(2));
        assert!(wcs[..2].iter().all(|wc| wc.status() == WcStatus::SUCCESS));
        let mut came = [0; 64];
        to.read(0, &mut came).unwrap();
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
        let slots = pair.qps.each_ref().map(|qp| pair.device.engine.qp(qp.qpn()));
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
            let slots = pair.qps.each_ref().map(|qp| pair.device.engine.qp(qp.qpn()));
            slots.iter().for_each(|slot| sync::store(described(slot)[nth], nonsense));
            let source = [pair.regions[0].sge(0, 8).unwrap()];
            pair.qps[1].post_recv(&[RecvWr::new(1, &[])]).unwrap();
            // What becomes of it is open: it may arrive, fail, or wait.
            pair.qps[0].post_send(&[SendWr::send(2, &source)]).unwrap();
            pair.qps.iter_mut().for_each(|qp| qp.modify(&QpAttr::to(QpState::RESET)).unwrap());
        }
    }
}

/// A queue pair that is reset or fails waits for the messages of the peer that the table names. A sender that was
/// scribbled away from there is not accepted.
#[test]
fn x04_who_would_not_be_waited_for_is_not_accepted() {
    let scribbles: [fn(&Pair); 3] = [
        |pair| sync::store(pair.device.engine.dest(pair.qps[1].index()), 0x7001f0),
        |pair| sync::store(pair.device.engine.dest(pair.qps[0].index()), 0x7001f0),
        |pair| {
            let slot = pair.device.engine.qp(pair.qps[1].qpn());
            sync::store(&slot.qp_type, QpType::Ud as u32);
        },
    ];
    for scribble in scribbles {
        let mut pair = Pair::new();
        pair.exchange([1; 8]);
        let target = [pair.regions[1].sge(0, 8).unwrap()];
        pair.qps[1].post_recv(&[RecvWr::new(1, &target)]).unwrap();
        scribble(&pair);
        let source = [pair.regions[0].sge(0, 8).unwrap()];
        pair.qps[0].post_send(&[SendWr::send(2, &source)]).unwrap();
        let mut wcs = [Wc::default(); 4];
        assert_eq!(pair.cqs[0].poll(&mut wcs), Ok(0), "it waits");
        assert_eq!(pair.cqs[1].poll(&mut wcs), Ok(0));
    }
}

#[test]
fn q07_rights_that_the_peer_takes_back_in_rts_are_missed_by_the_next_message() {
    let mut pair = Pair::new();
    pair.exchange([1; 8]);
    pair.qps[1].modify(&QpAttr::to(QpState::RTS).access(Access::empty())).unwrap();
    let source = [pair.regions[0].sge(0, 8).unwrap()];
    let write = SendWr::write(3, &source, pair.regions[1].remote(0).unwrap());
    pair.qps[0].post_send(&[write]).unwrap();
    let mut wcs = [Wc::default(); 4];
    assert_eq!(pair.cqs[0].poll(&mut wcs), Ok(1));
    assert_eq!(wcs[0].status(), WcStatus::REM_INV_REQ_ERR);
}

/// What a request does on a connection over which a message went before, whose peer grants this.
fn status_of(read: bool, access: Access, reads: u8) -> WcStatus {
    let mut pair = Pair::new();
    let number = pair.qps[0].number();
    let other = &mut pair.qps[1];
    other.modify(&QpAttr::to(QpState::RESET)).unwrap();
    let rtr = QpAttr::rtr(&Port::new(1), &Endpoint::new(number)).max_dest_rd_atomic(reads);
    for step in [QpAttr::init(&Port::new(1), access), rtr, QpAttr::rts()] {
        other.modify(&step).unwrap();
    }
    let source = [pair.regions[0].sge(0, 8).unwrap()];
    let target = [pair.regions[1].sge(0, 8).unwrap()];
    other.post_recv(&[RecvWr::new(1, &target)]).unwrap();
    let remote = pair.regions[1].remote(0).unwrap();
    let request =
        if read { SendWr::read(3, &source, remote) } else { SendWr::write(3, &source, remote) };
    pair.qps[0].post_send(&[SendWr::send(2, &source)]).unwrap();
    pair.qps[0].post_send(&[request]).unwrap();
    let mut wcs = [Wc::default(); 4];
    assert_eq!(pair.cqs[0].poll(&mut wcs), Ok(2));
    assert_eq!(wcs[0].status(), WcStatus::SUCCESS);
    wcs[1].status()
}

#[test]
fn q07_a_right_that_the_peer_does_not_grant_is_missed_after_messages_that_need_none() {
    let (ok, refused) = (WcStatus::SUCCESS, WcStatus::REM_INV_REQ_ERR);
    let (all, write, reads) =
        (Access::REMOTE_WRITE | Access::REMOTE_READ, Access::REMOTE_WRITE, Access::REMOTE_READ);
    assert_eq!([status_of(false, all, 1), status_of(false, write, 0)], [ok; 2]);
    assert_eq!(status_of(false, reads, 1), refused);
    assert_eq!([status_of(true, all, 1), status_of(true, reads, 1)], [ok; 2]);
    assert_eq!([status_of(true, write, 1), status_of(true, reads, 0)], [refused; 2]);
}

#[test]
fn c07_each_send_completes_as_on_soft_roce_where_that_is_imitated() {
    let (context, _fabric) = OpenOptions::new().imitate_rxe().alone();
    let (pd, mut cq) = (context.alloc_pd().unwrap(), context.create_cq(8, None).unwrap());
    let mut qp = pd.create_qp(&QpInit::new(&cq)).unwrap();
    qp.connect_to(qp.number()).unwrap();
    let region = pd.allocate(64, Access::LOCAL_WRITE | Access::REMOTE_WRITE).unwrap();
    let source = [region.sge(0, 8).unwrap()];
    for _ in 0..3 {
        qp.post_send(&[SendWr::write(1, &source, region.remote(32).unwrap())]).unwrap();
        let mut wcs = [Wc::default()];
        assert_eq!(cq.poll(&mut wcs), Ok(1));
        assert_eq!(wcs[0].result().unwrap().byte_len(), 8, "the device says 0");
    }
}
