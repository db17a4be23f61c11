//! Messages of a gibibyte, and of as much as there can be: Q6, C7. Their memory is a few MiB, mapped over and
//! over again; where many run at once, under CI, they are a fraction of that.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::common::actor::COPY;
use crate::common::process::{Actor, order, say};
use crate::common::*;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous};

/// As many SGEs as there can be.
const WIDE: QpCaps = CAPS.max_send_sge(16).max_recv_sge(16);

/// The most that a message can be.
const MOST: usize = 1 << 31;

/// Tells the other process how long messages are.
const LEN: &str = "TEST_LEN";

fn is_ci() -> bool {
    std::env::var_os("CI").is_some()
}

/// How long messages are between processes, and under CI.
fn long() -> usize {
    if is_ci() { 1 << 26 } else { 1 << 30 }
}

/// Bytes that are mapped again and again.
const FOLD: usize = 4 << 20;
/// What differs: what comes first, in between, last, and behind it.
const PARTS: usize = 4;

/// Registered memory of many bytes. Those between the first and the last few MiB are the same again and again,
/// so that it does not matter in which order they are written.
struct Folded {
    region: MemoryRegion,
    words: &'static [AtomicU64],
}

impl Folded {
    /// For messages of `len` bytes, with some more behind.
    fn new(pd: &ProtectionDomain, len: usize) -> Self {
        let file = memfd_create("folded", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, (PARTS * FOLD) as u64).unwrap();
        let folds = len / FOLD;
        let part = |nth| match nth {
            0 => 0,
            nth if nth + 1 < folds => 1,
            nth => 2 + nth + 1 - folds,
        };
        let (none, all) = (ProtFlags::empty(), ProtFlags::READ | ProtFlags::WRITE);
        let (nowhere, len) = (std::ptr::null_mut(), len + FOLD);
        // SAFETY: new memory, wherever there is room.
        let first = unsafe { mmap_anonymous(nowhere, len, none, MapFlags::PRIVATE) }.unwrap();
        let how = MapFlags::SHARED | MapFlags::POPULATE;
        for nth in 0..=folds {
            let (at, offset) = (first.wrapping_byte_add(nth * FOLD), (part(nth) * FOLD) as u64);
            // SAFETY: over what was mapped just now, and nobody knows of.
            unsafe { mmap(at, FOLD, all, how | MapFlags::FIXED, &file, offset) }.unwrap();
        }
        // SAFETY: once more, wherever there is room; for ever, and looked at as atomics only.
        let words = unsafe {
            let first = mmap(nowhere, PARTS * FOLD, all, how, &file, 0).unwrap();
            std::slice::from_raw_parts(first.cast(), PARTS * FOLD / 8)
        };
        // SAFETY: mapped for ever, and writable; looked at as atomics.
        let region = unsafe { pd.register(first.cast(), len, ALL) }.unwrap();
        Self { region, words }
    }

    /// Bytes that differ by their places, behind the message too.
    fn fill(&self) {
        for (word, index) in self.words.iter().zip(0..) {
            word.store(value(index), Relaxed);
        }
    }

    fn clear(&self) {
        self.words.iter().for_each(|word| word.store(0, Relaxed));
    }

    /// `len` bytes in so many SGEs of different lengths.
    fn sges(&self, len: usize, count: usize) -> Vec<Sge> {
        let mut from = 0;
        let sge = |nth| {
            let end = if nth + 1 == count { len } else { (nth + 1) * (len / count) - nth * 9 - 1 };
            let sge = self.region.sge(from..from + end - from).unwrap();
            from = end;
            sge
        };
        (0..count).map(sge).collect()
    }

    /// That a whole message came here, and nothing behind it.
    #[track_caller]
    fn expect_message(&self) {
        let (message, behind) = self.words.split_at((PARTS - 1) * FOLD / 8);
        for (word, index) in message.iter().zip(0..) {
            assert_eq!(word.load(Relaxed), value(index), "word {index}");
        }
        assert!(behind.iter().all(|word| word.load(Relaxed) == 0));
    }
}

/// What the word at an index holds.
const fn value(index: u64) -> u64 {
    (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[test]
fn q06_the_longest_message_within_a_process() {
    let (mut a, mut b) = pair_with(WIDE);
    assert_eq!(open().port(1).unwrap().max_msg_size, MOST as u64);
    let len = if is_ci() { long() } else { MOST };
    let (source, target) = (Folded::new(&a.pd, len), Folded::new(&b.pd, len));
    source.fill();
    let (from, to) = (source.sges(len, 16), target.sges(len, 13));
    b.qp.post_recv(&[RecvWr::new(10, &to), RecvWr::new(11, &[])]).unwrap();
    let write = SendWr::write(1, &from, target.region.remote(0).unwrap()).with_imm([1; 4]);
    for (wr_id, wr) in [(10, SendWr::send(1, &from)), (11, write)] {
        a.post(wr);
        a.expect(&[(1, S::SUCCESS)]);
        let told = b.expect(&[(wr_id, S::SUCCESS)])[0];
        assert_eq!(told.result().unwrap().byte_len() as usize, len);
        target.expect_message();
        target.clear();
    }
    b.post(SendWr::read(2, &to, source.region.remote(0).unwrap()));
    let read = b.expect(&[(2, S::SUCCESS)])[0];
    assert_eq!(read.result().unwrap().byte_len() as usize, len);
    target.expect_message();
}

#[test]
#[ignore = "a process of the other tests"]
fn peer() {
    let context = open();
    let (pd, mut cq) = (context.alloc_pd().unwrap(), context.cq(16).create().unwrap());
    let mut qp = pd.qp(&cq).caps(WIDE).create().unwrap();
    let len: usize = std::env::var(LEN).unwrap().parse().unwrap();
    let memory = Folded::new(&pd, len);
    let RemoteAddr { addr, rkey } = memory.region.remote(0).unwrap();
    say(qp.number());
    say(addr);
    say(rkey);
    qp.connect_to(order().parse().unwrap()).unwrap();
    for told in [true, false] {
        let sges = if told { Vec::new() } else { memory.sges(len, 13) };
        qp.post_recv(&[RecvWr::new(1, &sges)]).unwrap();
        say("ready");
        let wc = settle(&mut cq, 1)[0];
        say(wc.result().unwrap().byte_len());
        memory.expect_message();
        memory.clear();
    }
    memory.fill();
    say("filled");
    order();
}

/// Messages to another process and back, which are moved in a way.
fn there_and_back(len: usize, way: &str) {
    let fabric = format!("large-{}-{way}", std::process::id());
    let options = OpenOptions::new().fabric(&fabric);
    let options = if way == "service" { options.copying_by_service() } else { options };
    let context = options.open("loop0").unwrap();
    let mut peer =
        Actor::start("large::peer", &[(FABRIC, &fabric), (COPY, way), (LEN, &len.to_string())]);
    let (number, addr, rkey) = (peer.number() as u32, peer.number(), peer.number() as u32);
    let (pd, mut cq) = (context.alloc_pd().unwrap(), context.cq(16).create().unwrap());
    let mut qp = pd.qp(&cq).caps(WIDE).create().unwrap();
    qp.connect_to(number).unwrap();
    peer.order(qp.number());

    let remote = RemoteAddr { addr, rkey };
    let memory = Folded::new(&pd, len);
    memory.fill();
    let from = memory.sges(len, 16);
    let mut done = |wr| {
        qp.post_send(&[wr]).unwrap();
        settle(&mut cq, 1)[0].result().unwrap().byte_len() as usize
    };
    for wr in [SendWr::write(1, &from, remote).with_imm([1; 4]), SendWr::send(2, &from)] {
        assert_eq!(peer.hear(), "ready");
        done(wr);
        assert_eq!(peer.number() as usize, len);
    }
    assert_eq!(peer.hear(), "filled");
    memory.clear();
    assert_eq!(done(SendWr::read(3, &from, remote)), len);
    memory.expect_message();
    peer.finish();
}

#[test]
fn q06_a_gibibyte_between_processes() {
    there_and_back(long(), "direct");
}

#[test]
fn q06_many_mebibytes_between_processes_by_the_service_thread() {
    // So long that there are bytes between the first and the last few MiB.
    there_and_back((long() / 8).max(PARTS * FOLD), "service");
}
