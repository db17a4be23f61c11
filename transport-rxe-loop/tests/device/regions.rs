//! Registered memory: bytes in and out at any offset, and copies that have ended when deregistering returns: Q10.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

use crate::common::{ALL, S, open, pair, settle, wait_for};
use cq_core::wr::SendWr;
use transport_rxe_loop::Access;

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
    let region = open().alloc_pd().unwrap().allocate(100, ALL).unwrap();
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
                if settle(&mut a.cq, 1)[0].status() != S::SUCCESS {
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
