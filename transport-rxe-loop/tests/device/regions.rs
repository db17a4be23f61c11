//! Registered memory: bytes in and out at any offset, rights that are refused, and copies that have ended when
//! deregistering returns: Q10.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

use crate::common::{self, ALL, S, open, pair, wait_for};
use cq_core::transport::Post;
use cq_core::wr::{RecvWr, SendWr};
use transport_rxe_loop::{Access, MemoryRegion, RegisterError};

#[test]
fn every_range_inside_is_copied_and_none_outside() {
    const LEN: usize = 26;
    let pd = open().alloc_pd().unwrap();
    let region = pd.allocate(LEN, Access::LOCAL_WRITE).unwrap();
    let mut expected = [0; LEN];
    let mut next = 0_u8;
    for offset in 0..=LEN + 2 {
        for len in 0..=LEN + 2 {
            let bytes: Vec<u8> = (0..len).map(|_| (next, next = next.wrapping_add(1)).0).collect();
            let inside = offset + len <= LEN;
            assert_eq!(region.write(offset, &bytes).is_ok(), inside, "{len} bytes at {offset}");
            if inside {
                expected[offset..offset + len].copy_from_slice(&bytes);
            }
            let mut all = [0; LEN];
            region.read(0, &mut all).unwrap();
            assert_eq!(all, expected, "{len} bytes written at {offset}");
            let mut back = vec![0; len];
            assert_eq!(region.read(offset, &mut back).is_ok(), inside, "{len} bytes at {offset}");
            assert!(!inside || back == bytes);
        }
    }
}

#[test]
fn a_piece_lies_inside_its_region() {
    let region = common::open().alloc_pd().unwrap().allocate(100, ALL).unwrap();
    assert!(region.sge(0, 100).is_ok());
    assert!(region.sge(100, 0).is_ok());
    for (offset, len) in [(0, 101), (100, 1), (usize::MAX, 2), (2, usize::MAX)] {
        let error = region.sge(offset, len).unwrap_err();
        assert_eq!((error.offset, error.len, error.available), (offset, len, 100));
        if len <= 101 {
            assert_eq!(region.write(offset, &[0; 101][..len]), Err(error));
        }
    }
    assert!(region.remote(100).is_ok() && region.remote(101).is_err());
}

#[test]
fn q10_rights_that_do_not_go_together_are_refused() {
    use transport_rxe_loop::RegisterError::{Empty, NeedsLocalWrite, UnknownAccess};
    let pd = common::open().alloc_pd().unwrap();
    let refused = |access| {
        let mut own = [0u64; 8];
        // SAFETY: nothing is registered: the rights are judged before the memory is looked at.
        let registered = unsafe { pd.register(own.as_mut_ptr().cast(), 64, access) };
        let allocated = pd.allocate(64, access).unwrap_err();
        assert_eq!(registered.unwrap_err(), allocated);
        allocated
    };
    assert_eq!(refused(Access::REMOTE_WRITE), NeedsLocalWrite);
    assert_eq!(refused(Access::REMOTE_ATOMIC | Access::REMOTE_READ), NeedsLocalWrite);
    let unknown = 1 << 10;
    let access = Access::LOCAL_WRITE | Access::from_bits_retain(unknown);
    assert_eq!(refused(access), UnknownAccess { bits: unknown });
    assert_eq!(pd.allocate(0, ALL).unwrap_err(), Empty);
    pd.allocate(1, Access::empty()).unwrap();
}

#[test]
fn x07_more_memory_than_there_is_is_refused_with_a_reason() {
    let pd = common::open().alloc_pd().unwrap();
    let len = 1 << 46;
    let error = pd.allocate(len, ALL).unwrap_err();
    assert_eq!(error, RegisterError::SharedMemoryFull { len });
    assert!(error.to_string().contains("/dev/shm"));
    // The place in the table was given back.
    let max = common::open().attributes().max_mr;
    assert!((0..max).all(|_| pd.allocate(len, ALL).unwrap_err() == error));
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

/// Has memory of the caller's written to by large requests, deregisters it, and looks that it stays as it
/// is from then on. The memory belongs to `a` if it asks for the bytes, else to `b`.
fn deregister_while_written(asks: bool) {
    let (mut a, b) = pair();
    let stop = AtomicBool::new(false);
    let memory: Vec<_> = (0..1 << 17).map(|_| AtomicU64::new(0)).collect();
    let (first, len) = (memory.as_ptr() as usize, memory.len() * 8);
    let (owner, other) = if asks { (&a.pd, &b.pd) } else { (&b.pd, &a.pd) };
    let source = other.allocate(len, ALL).unwrap();
    source.write(0, &vec![0xff; len]).unwrap();
    // SAFETY: the memory outlives the region, and is atomics.
    let region = unsafe { owner.register(first as *mut u8, len, ALL) }.unwrap();
    let (ours, theirs) = if asks {
        (region.sge(0, len).unwrap(), source.remote(0).unwrap())
    } else {
        (source.sge(0, len).unwrap(), region.remote(0).unwrap())
    };
    let (stop, sge) = (&stop, [ours]);
    let wr = if asks { SendWr::read(1, &sge, theirs) } else { SendWr::write(1, &sge, theirs) };
    thread::scope(|scope| {
        let busy = scope.spawn(move || {
            while !stop.load(Relaxed) {
                a.post(wr);
                if common::settle(&mut a.cq, 1)[0].status() != S::SUCCESS {
                    return;
                }
            }
        });
        wait_for(|| memory[0].load(Relaxed) != 0);
        region.deregister();
        memory.iter().for_each(|word| word.store(7, Relaxed));
        let untouched = || memory.iter().all(|word| word.load(Relaxed) == 7);
        assert!(untouched(), "written after deregistering");
        stop.store(true, Relaxed);
        busy.join().unwrap();
        assert!(untouched(), "written after deregistering");
    });
}

#[test]
fn q10_deregistering_waits_for_copies_under_way() {
    deregister_while_written(false);
    deregister_while_written(true);
}
