//! Registered memory: bytes in and out at any offset, and copies that have ended when a key has: Q6, Q10.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

use transport_rxe_loop::conditions::shared_memory_full;
use transport_rxe_loop::{MemoryOptions, RegisterError};

use crate::common::*;

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
fn memory_is_the_same_with_every_option() {
    const LEN: usize = (2 << 20) + 5;
    let pd = open().alloc_pd().unwrap();
    let none = MemoryOptions::new();
    for options in [none, none.prefault(), none.huge_pages(), none.huge_pages().prefault()] {
        let allocate = |len, access| pd.allocate_with(len, access, &options);
        let region = allocate(LEN, Access::LOCAL_WRITE).unwrap();
        let mut all = vec![1; LEN];
        region.read(0, &mut all).unwrap();
        assert!(all.iter().all(|byte| *byte == 0), "{options:?}");
        region.write(LEN - 3, b"end").unwrap();
        region.read(LEN - 3, &mut all[..3]).unwrap();
        assert_eq!(all[..3], *b"end");

        let refused = |result: Result<OwnedRegion, _>| result.err();
        assert_eq!(refused(allocate(0, Access::LOCAL_WRITE)), Some(RegisterError::Empty));
        let remote = allocate(LEN, Access::REMOTE_WRITE);
        assert_eq!(refused(remote), Some(RegisterError::NeedsLocalWrite));
        let (len, access) = (usize::MAX, Access::LOCAL_WRITE);
        assert_eq!(
            refused(allocate(len, access)),
            Some(shared_memory_full(len).into()),
            "before a page is asked for"
        );
    }
    pd.destroy().expect("nothing is left");
}

/// Has memory of the caller's written to by large requests, ends what lets them in, and looks that it stays as it is
/// from then on.
fn nothing_comes_after(ending: &str) {
    let (mut a, mut b) = pair();
    let memory: Vec<_> = (0..1 << 16).map(|_| AtomicU64::new(0)).collect();
    let (first, len) = (memory.as_ptr() as usize, memory.len() * 8);
    // It belongs to who asks for the bytes, or else to the peer.
    let asks = ending == "deregistering what is read to";
    let (owner, other) = if asks { (&a.pd, &b.pd) } else { (&b.pd, &a.pd) };
    let source = other.allocate(len, ALL).unwrap();
    source.write(0, &vec![0xff; len]).unwrap();
    let access = ALL | Access::MW_BIND;
    // SAFETY: the memory outlives the region, and is atomics.
    let region = unsafe { owner.register(first as *mut u8, len, access) }.unwrap();
    let window = b.pd.alloc_mw().unwrap();
    let mut at = region.remote(0).unwrap();
    if !ending.starts_with("deregistering") {
        let bind = WindowBind {
            window: window.rkey(),
            rkey: inc_rkey(window.rkey()),
            lkey: region.lkey(),
            addr: at.addr,
            length: len as u64,
            access: Access::REMOTE_WRITE,
        };
        b.request(SendWr::bind_window(1, bind), S::SUCCESS);
        at.rkey = bind.rkey;
    }
    let stop = &AtomicBool::new(false);
    let untouched = || memory.iter().all(|word| word.load(Relaxed) == 7);
    thread::scope(|scope| {
        let (ours, theirs) = match asks {
            true => ([region.sge(..len).unwrap()], source.remote(0).unwrap()),
            false => ([source.sge(..len).unwrap()], at),
        };
        let busy = scope.spawn(move || {
            while !stop.load(Relaxed) {
                a.post(match asks {
                    true => SendWr::read(1, &ours, theirs),
                    false => SendWr::write(1, &ours, theirs),
                });
                if settle(&mut a.cq, 1)[0].status() != S::SUCCESS {
                    return;
                }
            }
        });
        wait_for(|| memory[0].load(Relaxed) != 0);
        match ending {
            "LOCAL_INV" => b.request(SendWr::local_invalidate(1, at.rkey), S::SUCCESS),
            "RESET" => b.to(QpState::RESET),
            "deallocating" => drop(window),
            _ => region.deregister(),
        }
        memory.iter().for_each(|word| word.store(7, Relaxed));
        assert!(untouched(), "written after {ending}");
        stop.store(true, Relaxed);
        busy.join().unwrap();
        assert!(untouched(), "written after {ending}");
    });
}

#[test]
fn q06_q10_nothing_comes_through_a_key_once_it_is_dead() {
    for (ending, times) in [
        ("deregistering", 1),
        ("deregistering what is read to", 1),
        ("LOCAL_INV", 20),
        ("deallocating", 20),
        ("RESET", 3),
    ] {
        (0..times).for_each(|_| nothing_comes_after(ending));
    }
}
