//! Limits (Q4, Q7, Q9): the largest values that work, and the next ones.

use super::line::*;
use super::stand::*;
use crate::device::Limits;

include!(concat!(env!("OUT_DIR"), "/limits.rs"));

/// Changes to `state` with more outstanding READs than the device's limit, which is refused, and with as many.
#[track_caller]
fn beyond_is_refused<D: Device>(state: QpState, with: fn(u32, u8) -> QpAttr) {
    let (mut end, peer) = two::<D>();
    let (most, peer) = (end.device.limits().max_rd_atomic, peer.qp.number());
    let before = [QpState::INIT, QpState::RTR][usize::from(state == QpState::RTS)];
    end.bring_to(before, peer);
    for beyond in [most.saturating_add(1), u8::MAX].into_iter().filter(|beyond| *beyond > most) {
        assert_eq!(end.qp.modify(&with(peer, beyond)), Err(Errno::EINVAL), "{beyond}");
        assert_eq!(end.qp.state(), before);
    }
    assert_eq!(end.qp.modify(&with(peer, most)), Ok(()));
}

fn q01_more_reads_of_its_own_than_the_device_has_are_refused<D: Device>() {
    let own = |_, count| attr::rts().max_rd_atomic(count);
    beyond_is_refused::<D>(QpState::RTS, own);
}

fn q01_more_reads_of_the_peer_than_the_device_has_are_refused<D: Device>() {
    let peers = |peer, count| attr::rtr(peer).max_dest_rd_atomic(count);
    beyond_is_refused::<D>(QpState::RTR, peers);
}

/// A capacity: its name, how it is set, and its limit.
type Capacity = (&'static str, fn(&mut QpCaps, u32), u32);

/// Every capacity of a queue pair. The limit of inline bytes is that of the device, or a small one.
fn capacities(most: &Limits) -> [Capacity; 5] {
    [
        ("max_send_wr", |caps, value| caps.max_send_wr = value, most.max_qp_wr),
        ("max_recv_wr", |caps, value| caps.max_recv_wr = value, most.max_qp_wr),
        ("max_send_sge", |caps, value| caps.max_send_sge = value, most.max_sge),
        ("max_recv_sge", |caps, value| caps.max_recv_sge = value, most.max_sge),
        ("max_inline", |caps, value| caps.max_inline = value, most.max_inline),
    ]
}

/// Tries to create a queue pair with one capacity of this value.
#[track_caller]
fn try_capacity<D: Device>((name, set, _): Capacity, value: u32, wanted: Result<(), Errno>) {
    let device = D::open();
    let (pd, cq) = (device.alloc_pd(), device.create_cq(16, None).unwrap());
    let mut caps = CAPS.max_send_wr(4).max_recv_wr(4);
    set(&mut caps, value);
    let said = device.create_qp(&pd, &QpInit { caps, ..small(&cq) });
    assert_eq!(said.map(drop), wanted, "{name} {value}");
}

fn q04_each_capacity_of_a_queue_pair_has_its_edges<D: Device>() {
    for capacity in capacities(&D::open().limits()) {
        let (name, _, most) = capacity;
        try_capacity::<D>(capacity, 0, Ok(()));
        try_capacity::<D>(capacity, 1, Ok(()));
        try_capacity::<D>(capacity, u32::MAX, Err(Errno::EINVAL));
        if name != "max_inline" {
            try_capacity::<D>(capacity, most + 1, Err(Errno::EINVAL)); // not every device tells that one
        }
    }
}

fn q04_a_queue_pair_may_have_as_much_as_the_device_tells<D: Device>() {
    for capacity in capacities(&D::open().limits()) {
        try_capacity::<D>(capacity, capacity.2, Ok(()));
    }
}

fn q04_a_queue_of_none_takes_none<D: Device>() {
    let caps =
        QpCaps::USUAL.max_send_wr(0).max_recv_wr(0).max_send_sge(0).max_recv_sge(0).max_inline(0);
    let (mut a, _b) = pair_with::<D>(&Plan { caps, ..Plan::default() }, &Plan::default());
    let refused =
        (0..=a.qp.caps().max_send_wr).find_map(|_| a.try_post(SendWr::send(1, &[])).err());
    assert_eq!(refused.map(|error| error.why), Some(WrError::QueueFull));
    let many = vec![RecvWr::new(1, &[]); a.qp.caps().max_recv_wr as usize + 1];
    let error = a.qp.post_recv(&many).unwrap_err();
    assert_eq!((error.posted + 1, error.why), (many.len(), WrError::QueueFull));
}

fn q04_each_capacity_of_a_shared_queue_has_its_edges<D: Device>() {
    let device = D::open();
    let pd = device.alloc_pd();
    let most = device.limits();
    drop(offered(device.create_srq(&pd, &SrqInit::new(1))));
    let one = SrqInit::new(1);
    for (init, fits) in [
        (SrqInit::new(0), false),
        (SrqInit::new(most.max_srq_wr), true),
        (SrqInit::new(most.max_srq_wr + 1), false),
        (SrqInit::new(u32::MAX), false),
        (one.max_sge(most.max_srq_sge), true),
        (one.max_sge(most.max_srq_sge + 1), false),
        (one.max_sge(u32::MAX), false),
    ] {
        let wanted = if fits { Ok(()) } else { Err(Errno::EINVAL) };
        assert_eq!(device.create_srq(&pd, &init).map(drop), wanted, "{init:?}");
    }
}

/// Each operation that moves the bytes of these SGEs.
fn movers<'a>(sges: &'a [Sge], at: RemoteAddr) -> [SendWr<'a>; 4] {
    [
        SendWr::send(1, sges),
        SendWr::write(1, sges, at),
        SendWr::write(1, sges, at).with_imm([9; 4]),
        SendWr::read(1, sges, at),
    ]
}

fn q04_a_message_of_more_than_two_gibibytes_is_refused<D: Device>() {
    for lengths in [[1 << 30, 1 << 30, 1, 0], [u32::MAX; 4], [1 << 31, 1, 0, 0], [1 << 30; 4]] {
        let (mut a, b) = pair::<D>();
        let sges = lengths.map(|length| a.sge(0, length));
        for wr in movers(&sges, b.remote(0)) {
            let list = [SendWr::write_inline(2, b"x", b.remote(0)), wr];
            let error = a.qp.post_send(&list).unwrap_err();
            assert!(matches!(error.why, WrError::TooLong { max } if max <= 1 << 31), "{error}");
            assert_eq!(error.posted, 1);
            a.expect_sent(&[(2, S::SUCCESS)]);
        }
        assert_eq!(a.qp.state(), QpState::RTS);
    }
}

fn q04_a_message_of_two_gibibytes_is_judged_by_its_memory<D: Device>() {
    for operation in 0..2 {
        let (mut a, mut b) = pair::<D>();
        let sges = [a.sge(0, 1 << 30), a.sge(0, 1 << 30)];
        let wr = movers(&sges, b.remote(0))[operation];
        // The region is shorter; other cases test the status.
        fails(&mut a, &mut b, wr, LOCAL.whatever_it_is_called());
    }
}

fn q06_a_long_message_of_as_many_sges_as_there_may_be<D: Device>() {
    const LONG: usize = 1 << 20;
    let device = D::open();
    let count = device.limits().max_sge.min(16);
    let caps = CAPS.max_send_sge(count).max_recv_sge(count);
    let plan = Plan { caps, ..Plan::default() };
    let (mut a, mut b) = pair_with::<D>(&plan, &plan);
    let from = a.device.register(&a.pd, LONG, Access::EVERY).unwrap();
    let to = b.device.register(&b.pd, LONG, Access::EVERY).unwrap();
    let sent: Vec<u8> = (0..LONG).map(|at| (at * 7 + (at >> 12)) as u8).collect();
    from.write(0, &sent);
    // SGEs of different odd lengths.
    let cuts: Vec<_> = (0..=u64::from(count))
        .map(|nth| if nth == u64::from(count) { LONG as u64 } else { nth * (60_001 + nth) })
        .collect();
    let sges = |mr: &D::Mr| -> Vec<Sge> {
        cuts.windows(2).map(|cut| mr.sge(cut[0], (cut[1] - cut[0]) as u32)).collect()
    };
    let (gathered, mut scattered) = (sges(&from), sges(&to));
    scattered.reverse();
    b.qp.post_recv(&[RecvWr::new(1, &scattered)]).unwrap();
    a.post(SendWr::send(2, &gathered));
    b.expect_received(&[(1, S::SUCCESS)]);
    a.expect_sent(&[(2, S::SUCCESS)]);
    let (mut got, mut next) = (vec![0; LONG], 0);
    to.read(0, &mut got);
    for sge in &scattered {
        let (at, length) = ((sge.addr - to.addr()) as usize, sge.length as usize);
        assert!(got[at..][..length] == sent[next..][..length], "{length} bytes at {at}");
        next += length;
    }
    a.post(SendWr::write(3, &gathered, to.remote(0)));
    a.expect_sent(&[(3, S::SUCCESS)]);
    to.read(0, &mut got);
    assert!(got == sent, "a WRITE of {count} SGEs");
    from.write(0, &vec![0; LONG]);
    a.post(SendWr::read(4, &gathered, to.remote(0)));
    a.expect_sent(&[(4, S::SUCCESS)]);
    from.read(0, &mut got);
    assert!(got == sent, "a READ of {count} SGEs");
}

fn q06_no_sges_at_all<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    let at = RemoteAddr { addr: 1, rkey: NO_KEY };
    b.qp.post_recv(&[RecvWr::new(1, &[]), RecvWr::new(2, &[])]).unwrap();
    for wr in movers(&[], at) {
        a.post(wr);
        a.expect_sent(&[(1, S::SUCCESS)]);
    }
    b.expect_received(&all(1..3, S::SUCCESS));
}

fn q07_an_sge_that_wraps_around<D: Device>() {
    for (addr, length) in [(u64::MAX - 3, 8), (u64::MAX, 1), (u64::MAX - 7, 16)] {
        for operation in [0, 1, 3] {
            let (mut a, mut b) = pair::<D>();
            let sges = [Sge { addr, length, ..a.sge(0, 8) }];
            let wr = movers(&sges, b.remote(0))[operation];
            fails(&mut a, &mut b, wr, LOCAL);
        }
    }
}

fn q07_an_atomic_without_an_sge<D: Device>() {
    for operation in 2..4 {
        let (mut a, mut b) = pair::<D>();
        let at = b.remote(8);
        fails(&mut a, &mut b, on_memory(&[], at)[operation], ODD);
    }
}

fn q07_more_reads_than_may_be_under_way_take_turns<D: Device>() {
    let rts = attr::rts().max_rd_atomic(1);
    let rtr = attr::rtr(0).max_dest_rd_atomic(1);
    let plan = Plan { rtr, rts, ..Plan::default() };
    let (mut a, b) = pair_with::<D>(&plan, &plan);
    let (at, word) = (b.remote(0), [a.sge(0, 8)]);
    for round in 0..5 {
        let list: Vec<_> = (0..15)
            .map(|id| match id % 3 {
                0 => SendWr::read(id, &word, at),
                1 => SendWr::fetch_add(id, &word, at, 1),
                _ => SendWr::compare_swap(id, &word, at, u64::MAX, 0),
            })
            .collect();
        a.post_all(&list);
        a.expect_sent(&all(0..15, S::SUCCESS));
        assert_eq!(b.bytes(0, 8), (5 * (round + 1) as u64).to_ne_bytes());
    }
}
