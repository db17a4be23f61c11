//! What goes wrong, how both sides see it, and in which states that leaves them: Q7.

mod common;

use common::{ALL, End, S, connect, connect_by, impatient, pair, patient, wait_for};
use cq_core::transport::Post;
use cq_core::wc::WcStatus;
use cq_core::wr::{RecvWr, RemoteAddr, SendWr, Sge};
use transport_rxe_loop::{Access, MemoryRegion, OwnedRegion, ProtectionDomain, QpAttr, QpState};

use QpState::{Err as Failed, Rts};

/// Both ends after a failure, and that what is behind it is flushed, once, on both sides.
#[track_caller]
fn expect_failure(
    (a, b): (&mut End, &mut End),
    (ours, our_state): (WcStatus, QpState),
    (theirs, their_state): (Option<WcStatus>, QpState),
) {
    a.expect(&[(1, ours), (2, S::WR_FLUSH_ERR)]);
    let mut wanted: Vec<_> = theirs.iter().map(|status| (100, *status)).collect();
    if their_state == Failed {
        let first = 100 + wanted.len() as u64;
        wanted.extend((first..103).map(|id| (id, S::WR_FLUSH_ERR)));
    }
    b.expect(&wanted);
    assert_eq!((a.qp.state(), b.qp.state()), (our_state, their_state));
}

/// A pair, three receives into `sge` at the target, and the request with another one behind it.
fn run(sge: impl Fn(&End) -> Sge, wr: impl FnOnce(&mut End, &End)) -> (End, End) {
    let (mut a, mut b) = pair();
    let sge = [sge(&b)];
    for wr_id in 100..103 {
        b.qp.post_recv(&[RecvWr::new(wr_id, &sge)]).unwrap();
    }
    a.qp.modify(&QpAttr::to(QpState::Sqd)).unwrap();
    wr(&mut a, &b);
    a.send(2, 0, 8);
    a.qp.modify(&QpAttr::to(QpState::Rts)).unwrap();
    (a, b)
}

fn good(b: &End) -> Sge {
    b.region.sge(4096, 64).unwrap()
}

fn send_into(sge: impl Fn(&End) -> Sge) -> (End, End) {
    run(sge, |a, _| a.send(1, 0, 16))
}

fn write_to(remote: impl FnOnce(&End) -> RemoteAddr) -> (End, End) {
    run(good, |a, b| {
        let sge = [a.region.sge(0, 16).unwrap()];
        a.region.write(0, &[0xee; 16]).unwrap();
        a.qp.post_send(&[SendWr::write(1, &sge, remote(b))]).unwrap();
    })
}

fn send_from(sge: Sge) -> (End, End) {
    run(good, |a, _| a.qp.post_send(&[SendWr::send(1, &[sge])]).unwrap())
}

#[test]
fn q07_a_receive_that_is_too_small() {
    let (mut a, mut b) = send_into(|b| b.region.sge(0, 15).unwrap());
    let ends = (&mut a, &mut b);
    expect_failure(ends, (S::REM_INV_REQ_ERR, Failed), (Some(S::LOC_LEN_ERR), Failed));
    assert_eq!(b.bytes(0, 16), [0; 16]);
}

#[test]
fn q07_a_bad_receive_buffer() {
    let bad: [fn(&End) -> Sge; 4] = [
        |b| Sge { lkey: b.region.lkey() ^ 1, ..good(b) },
        |b| Sge { addr: b.region.addr() + 8192 - 15, ..good(b) },
        |b| Sge { addr: b.region.addr() - 1, ..good(b) },
        |b| Sge { addr: u64::MAX - 3, ..good(b) },
    ];
    for sge in bad {
        let (mut a, mut b) = send_into(sge);
        let ends = (&mut a, &mut b);
        expect_failure(ends, (S::REM_OP_ERR, Failed), (Some(S::LOC_PROT_ERR), Failed));
    }
}

#[test]
fn q07_a_receive_buffer_without_local_write_or_of_another_domain() {
    type Kept = (ProtectionDomain, OwnedRegion);
    let regions: [fn(&End) -> Kept; 2] = [
        |b| {
            let read_only = b.pd.allocate(64, Access::REMOTE_READ).unwrap();
            (common::open().alloc_pd(), read_only)
        },
        |_| {
            let pd = common::open().alloc_pd();
            let elsewhere = pd.allocate(64, ALL).unwrap();
            (pd, elsewhere)
        },
    ];
    for region in regions {
        let kept = std::cell::OnceCell::new();
        let (mut a, mut b) = send_into(|b| kept.get_or_init(|| region(b)).1.sge(0, 64).unwrap());
        let ends = (&mut a, &mut b);
        expect_failure(ends, (S::REM_OP_ERR, Failed), (Some(S::LOC_PROT_ERR), Failed));
    }
}

#[test]
fn q07_a_bad_remote_key_or_range_leaves_memory_as_it_is() {
    let bad: [fn(&End) -> RemoteAddr; 6] = [
        |b| RemoteAddr { rkey: b.region.rkey() ^ 1, ..b.region.remote(0).unwrap() },
        |b| RemoteAddr { rkey: 0, ..b.region.remote(0).unwrap() },
        |b| RemoteAddr { rkey: u32::MAX, ..b.region.remote(0).unwrap() },
        |b| b.region.remote(8192 - 15).unwrap(),
        |b| RemoteAddr { addr: b.region.addr() - 1, rkey: b.region.rkey() },
        |b| RemoteAddr { addr: u64::MAX - 7, rkey: b.region.rkey() },
    ];
    for remote in bad {
        let (mut a, mut b) = write_to(remote);
        expect_failure((&mut a, &mut b), (S::REM_ACCESS_ERR, Failed), (None, Failed));
        assert_eq!(b.bytes(0, 8192), [0; 8192]);
    }
}

#[test]
fn q07_a_region_without_remote_write() {
    let kept = std::cell::OnceCell::new();
    let (mut a, mut b) = write_to(|b| {
        let region = b.pd.allocate(64, Access::LOCAL_WRITE | Access::REMOTE_READ).unwrap();
        kept.get_or_init(|| region).remote(0).unwrap()
    });
    expect_failure((&mut a, &mut b), (S::REM_ACCESS_ERR, Failed), (None, Failed));
}

#[test]
fn q07_a_queue_pair_without_the_right() {
    let (mut a, mut b) = (End::new(), End::new());
    a.qp.connect(b.qp.number()).unwrap();
    b.qp.modify(&QpAttr::init(Access::REMOTE_READ)).unwrap();
    b.qp.modify(&QpAttr::rtr(a.qp.number())).unwrap();
    b.qp.modify(&QpAttr::rts()).unwrap();
    let write = SendWr::write_inline(1, b"x", b.region.remote(0).unwrap());
    a.qp.post_send(&[write]).unwrap();
    a.expect(&[(1, S::REM_INV_REQ_ERR)]);
    assert_eq!((a.qp.state(), b.qp.state()), (Failed, Failed));
    assert_eq!(b.bytes(0, 1), [0]);
}

#[test]
fn q07_a_bad_local_key_or_range_fails_here_only() {
    let own = common::open().alloc_pd();
    let elsewhere = own.allocate(64, ALL).unwrap();
    let bad = [
        Sge { lkey: 0, ..elsewhere.sge(0, 8).unwrap() },
        elsewhere.sge(0, 8).unwrap(), // of another domain
        Sge { addr: u64::MAX, length: 2, lkey: elsewhere.lkey() },
    ];
    for sge in bad {
        let (mut a, mut b) = send_from(sge);
        expect_failure((&mut a, &mut b), (S::LOC_PROT_ERR, Failed), (None, Rts));
    }
    let (mut a, mut b) = run(good, |a, _| {
        let past = Sge { length: 17, ..a.region.sge(8192 - 16, 16).unwrap() };
        a.qp.post_send(&[SendWr::send(1, &[past])]).unwrap();
    });
    expect_failure((&mut a, &mut b), (S::LOC_PROT_ERR, Failed), (None, Rts));
}

#[test]
fn q07_a_write_judges_the_local_key_first() {
    let (mut a, mut b) = run(good, |a, _| {
        let bad = [Sge { lkey: 0, ..a.region.sge(0, 8).unwrap() }];
        let wr = SendWr::write(1, &bad, RemoteAddr { addr: 0, rkey: 0 });
        a.qp.post_send(&[wr]).unwrap();
    });
    expect_failure((&mut a, &mut b), (S::LOC_PROT_ERR, Failed), (None, Rts));
}

#[test]
fn q07_no_receive_with_rnr_retry_0() {
    let (mut a, mut b) = (End::new(), End::new());
    b.qp.connect(a.qp.number()).unwrap();
    connect_by(&mut a.qp, &QpAttr::rtr(b.qp.number()), &QpAttr::rts().rnr_retry(0));
    a.send(1, 0, 8);
    a.expect(&[(1, S::RNR_RETRY_EXC_ERR)]);
    assert_eq!((a.qp.state(), b.qp.state()), (Failed, Rts));
}

#[test]
fn q07_no_receive_with_rnr_retry_7_waits_for_one() {
    let (mut a, mut b) = pair();
    for wr_id in 0..4 {
        a.send(wr_id, 0, 8);
    }
    a.expect_nothing();
    b.recv(10, 0, 8);
    a.expect(&[(0, S::SUCCESS)]);
    b.recv(11, 0, 8);
    a.expect(&[(1, S::SUCCESS)]);
    b.expect(&[(10, S::SUCCESS), (11, S::SUCCESS)]);
}

#[test]
fn q07_a_peer_that_is_gone() {
    let (mut a, b) = pair();
    b.qp.destroy();
    a.send(1, 0, 8);
    a.send(2, 0, 8);
    a.expect(&[(1, S::RETRY_EXC_ERR), (2, S::WR_FLUSH_ERR)]);
    assert_eq!(a.qp.state(), Failed);
}

#[test]
fn q07_a_peer_that_goes_while_a_request_waits() {
    let (mut a, b) = pair();
    a.send(1, 0, 8);
    a.expect_nothing();
    b.qp.destroy();
    a.expect(&[(1, S::RETRY_EXC_ERR)]);
}

#[test]
fn q07_a_peer_that_goes_before_it_was_connected() {
    let (mut a, b) = (End::new(), End::new());
    connect_by(&mut a.qp, &QpAttr::rtr(b.qp.number()), &patient());
    a.send(1, 0, 8);
    a.expect_nothing();
    b.qp.destroy();
    a.expect(&[(1, S::RETRY_EXC_ERR)]);
}

#[test]
fn q07_a_peer_that_connects_to_another() {
    let (mut a, mut b, c) = (End::new(), End::new(), End::new());
    connect_by(&mut a.qp, &QpAttr::rtr(b.qp.number()), &impatient());
    b.qp.connect(c.qp.number()).unwrap();
    a.send(1, 0, 8);
    a.expect(&[(1, S::RETRY_EXC_ERR)]);
}

#[test]
fn q07_a_peer_that_has_failed() {
    let (mut a, mut b) = (End::new(), End::new());
    connect_by(&mut a.qp, &QpAttr::rtr(b.qp.number()), &impatient());
    b.qp.connect(a.qp.number()).unwrap();
    b.qp.modify(&QpAttr::to(Failed)).unwrap();
    a.send(1, 0, 8);
    a.expect(&[(1, S::RETRY_EXC_ERR)]);
    assert_eq!(a.qp.state(), Failed);
}

#[test]
fn q07_a_peer_that_is_connected_to_another() {
    let (mut a, mut b) = pair();
    let mut stranger = End::new();
    connect_by(&mut stranger.qp, &QpAttr::rtr(b.qp.number()), &impatient());
    b.recv(1, 0, 8);
    stranger.send(2, 0, 8);
    stranger.expect(&[(2, S::RETRY_EXC_ERR)]);
    a.send(3, 0, 8);
    b.expect(&[(1, S::SUCCESS)]);
}

#[test]
fn q07_a_number_that_nobody_has() {
    let mut a = End::new();
    a.qp.connect(0).unwrap();
    a.send(1, 0, 8);
    a.expect(&[(1, S::RETRY_EXC_ERR)]);
}

#[test]
fn q07_a_pair_works_again_after_a_failure() {
    let (mut a, mut b) = send_into(|b| b.region.sge(0, 15).unwrap());
    common::settle(&mut a.cq, 2);
    common::settle(&mut b.cq, 3);
    for end in [&mut a, &mut b] {
        end.qp.modify(&QpAttr::to(QpState::Reset)).unwrap();
    }
    connect(&mut a, &mut b);
    b.recv(1, 0, 16);
    a.send(2, 0, 16);
    a.expect(&[(2, S::SUCCESS)]);
    b.expect(&[(1, S::SUCCESS)]);
}

#[test]
fn q10_rights_that_do_not_go_together_are_refused() {
    use transport_rxe_loop::RegisterError::{Empty, NeedsLocalWrite, UnknownAccess};
    let pd = common::open().alloc_pd();
    let refused = |access| pd.allocate(64, access).unwrap_err();
    assert_eq!(refused(Access::REMOTE_WRITE), NeedsLocalWrite);
    assert_eq!(refused(Access::REMOTE_ATOMIC | Access::REMOTE_READ), NeedsLocalWrite);
    let unknown = 1 << 10;
    let access = Access::LOCAL_WRITE | Access::from_bits_retain(unknown);
    assert_eq!(refused(access), UnknownAccess { bits: unknown });
    for optional in 20..30 {
        pd.allocate(64, Access::LOCAL_WRITE | Access::from_bits_retain(1 << optional)).unwrap();
    }
    assert_eq!(pd.allocate(0, ALL).unwrap_err(), Empty);
    pd.allocate(1, Access::empty()).unwrap();
}

#[test]
fn q10_a_deregistered_key_is_dead() {
    let (mut a, b) = pair();
    let region = b.pd.allocate(64, ALL).unwrap();
    let remote = region.remote(0).unwrap();
    a.qp.post_send(&[SendWr::write_inline(1, b"alive", remote)]).unwrap();
    a.expect(&[(1, S::SUCCESS)]);
    region.deregister();
    // Its place may be another's now.
    let _others: Vec<_> = (0..4).map(|_| b.pd.allocate(64, ALL).unwrap()).collect();
    a.qp.post_send(&[SendWr::write_inline(2, b"dead", remote)]).unwrap();
    a.expect(&[(2, S::REM_ACCESS_ERR)]);
}

#[test]
fn q10_memory_of_the_callers() {
    let (mut a, mut b) = pair();
    let mut words = Box::new([0u64; 16]);
    let ptr = words.as_mut_ptr().cast::<u8>();
    // SAFETY: the box outlives the region, and is looked at when no request is outstanding.
    let region: MemoryRegion = unsafe { b.pd.register(ptr, 128, ALL) }.unwrap();
    assert_eq!((region.addr(), region.len()), (ptr as u64, 128));
    a.qp.post_send(&[SendWr::write_inline(1, &[1; 8], region.remote(8).unwrap())]).unwrap();
    b.qp.post_recv(&[RecvWr::new(2, &[region.sge(120, 8).unwrap()])]).unwrap();
    a.qp.post_send(&[SendWr::send_inline(3, &[2; 8])]).unwrap();
    a.expect(&[(1, S::SUCCESS), (3, S::SUCCESS)]);
    b.expect(&[(2, S::SUCCESS)]);
    region.deregister();
    let ones = u64::from_ne_bytes([1; 8]);
    assert_eq!((words[0], words[1], words[15]), (0, ones, ones * 2));
}

#[test]
fn regions_judge_their_own_ranges() {
    let region = common::open().alloc_pd().allocate(100, ALL).unwrap();
    assert!(region.sge(0, 100).is_ok());
    assert!(region.sge(100, 0).is_ok());
    for (offset, len) in [(0, 101), (100, 1), (usize::MAX, 2), (2, usize::MAX)] {
        let error = region.sge(offset, len).unwrap_err();
        assert_eq!((error.offset, error.len, error.available), (offset, len, 100));
    }
    assert!(region.remote(101).is_err());
    for offset in 0..20 {
        for len in 0..40 {
            let bytes: Vec<u8> = (0..len as u8).map(|i| i + 1).collect();
            region.write(0, &[0xff; 100]).unwrap();
            region.write(offset, &bytes).unwrap();
            let mut back = [0; 100];
            region.read(0, &mut back).unwrap();
            assert_eq!(back[offset..offset + len], bytes);
            assert!(back[..offset].iter().chain(&back[offset + len..]).all(|b| *b == 0xff));
        }
    }
    assert!(region.write(99, b"xy").is_err() && region.read(101, &mut []).is_err());
}

#[test]
fn q10_deregistering_waits_for_copies_under_way() {
    let (mut a, b) = pair();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let mut memory = vec![0u64; 1 << 17];
    let (ptr, len) = (memory.as_mut_ptr().cast::<u8>() as usize, memory.len() * 8);
    let source = a.pd.allocate(len, ALL).unwrap();
    source.write(0, &vec![0xff; len]).unwrap();
    std::thread::scope(|scope| {
        // SAFETY: the memory outlives the region, and is looked at when the region is gone.
        let region = unsafe { b.pd.register(ptr as *mut u8, len, ALL) }.unwrap();
        let remote = region.remote(0).unwrap();
        let stop = &stop;
        let writer = scope.spawn(move || {
            let sge = [source.sge(0, len).unwrap()];
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                a.qp.post_send(&[SendWr::write(1, &sge, remote)]).unwrap();
                if common::settle(&mut a.cq, 1)[0].status() != S::SUCCESS {
                    return;
                }
            }
        });
        let first = ptr as *const u64;
        // SAFETY: mapped, and looked at in the way that `register` asks for.
        wait_for(|| unsafe { first.read_volatile() } != 0);
        region.deregister();
        memory.fill(7);
        assert!(memory.iter().all(|word| *word == 7), "written after deregistering");
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        writer.join().unwrap();
        assert!(memory.iter().all(|word| *word == 7), "written after deregistering");
    });
}
