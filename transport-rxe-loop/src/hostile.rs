//! Whatever somebody writes into the device's memory, whoever uses it neither crashes nor hangs (X4). Not
//! written to here is what only a lock that is stolen could repair: locks, turns, the marks of what is under
//! way, which entries are taken, and registered memory.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use cq_core::setup::Access;
use cq_core::transport::{Arm, AsyncEvents, Events, Notify, Poll, Post};
use cq_core::wc::Wc;
use cq_core::wr::{RecvWr, SendWr};

use crate::attr::QpAttr;
use crate::chance::Chance;
use crate::device::Context;
use crate::fabric::Fabric;
use crate::qp::QpInit;
use crate::state::QpState;
use crate::sync::{self, AtomicU32};

/// A number as a stranger might write it: any, a small one, the highest, or close to `seen`.
fn number(chance: &mut Chance, seen: u32) -> u32 {
    match chance.below(6) {
        0 => chance.next() as u32,
        1 => chance.below(4) as u32,
        2 => u32::MAX - chance.below(2) as u32,
        3 => 1 << chance.below(32),
        4 => seen.wrapping_add(1),
        _ => seen.wrapping_sub(1),
    }
}

/// Writes into the tables and what is taken of the arena, most often where something is.
fn scribble(fabric: &'static Fabric, seed: u64, stop: &AtomicBool) {
    let mut chance = Chance::new(seed);
    let arena = fabric.tables().arena.offset();
    let words = fabric.memory().slice::<AtomicU32>(0, (arena + (1 << 18)) / 4).unwrap();
    let start = fabric.memory().addr();
    let tables = fabric.tables();
    let used = [
        std::ptr::from_ref(tables.common) as usize,
        std::ptr::from_ref(tables.qps.at(0)) as usize,
        std::ptr::from_ref(tables.cqs.at(0)) as usize,
        std::ptr::from_ref(tables.mrs.at(0)) as usize,
        tables.stages.as_ptr() as usize,
        std::ptr::from_ref(tables.channels.at(0)) as usize,
        start + arena,
    ]
    .map(|address| (address - start) / 4);
    while !stop.load(Relaxed) {
        let from = used[chance.below(used.len())];
        let index = from + chance.below(2048);
        sync::store_u32(&words[index], number(&mut chance, sync::load_u32(&words[index])));
        for _ in 0..chance.below(200) {
            std::hint::spin_loop();
        }
    }
}

/// Uses everything, whatever comes of it.
fn use_device(seed: u64, end: Instant) {
    let mut chance = Chance::new(seed);
    let mut room = [Wc::default(); 8];
    while Instant::now() < end {
        let mut context = Context::open("loop0").unwrap();
        let (Ok(mut channel), pd) = (context.create_channel(), context.alloc_pd()) else {
            continue;
        };
        let (Ok(mut cq), Ok(mut other)) =
            (context.create_cq(16, Some(&channel)), context.create_cq(16, None))
        else {
            continue;
        };
        let init = QpInit { recv_cq: &other, ..QpInit::new(&cq) };
        let (Ok(mut a), Ok(mut b)) = (pd.create_qp(&init), pd.create_qp(&init)) else { continue };
        let all = Access::LOCAL_WRITE | Access::REMOTE;
        let region = pd.allocate(4096, all).unwrap();
        let sges = [region.sge(0, 64).unwrap(), region.sge(128, 8).unwrap()];
        let there = region.remote(256).unwrap();
        for _ in 0..2 {
            let _ = (a.connect(b.number()), b.connect(a.number()));
            for _ in 0..40 {
                let wr = match chance.below(5) {
                    0 => SendWr::send(1, &sges[..1]),
                    1 => SendWr::write(2, &sges, there),
                    2 => SendWr::read(3, &sges, there),
                    3 => SendWr::fetch_add(4, &sges[1..], there, 1),
                    _ => SendWr::send_inline(5, b"inline"),
                };
                let _ = a.post_send(&[wr]);
                let _ = b.post_send(&[wr]);
                let _ = b.post_recv(&[RecvWr::new(6, &sges), RecvWr::new(7, &sges)]);
                let _ = (cq.poll(&mut room), other.poll(&mut room), cq.arm(Notify::Next));
                let _ = (channel.next(), context.next_async());
                match chance.below(12) {
                    0 => drop(a.modify(&QpAttr::to(QpState::Err))),
                    1 => drop(b.modify(&QpAttr::to(QpState::Sqd).en_sqd_async_notify(true))),
                    2 => drop(cq.resize(1 + chance.below(40) as u32)),
                    3 => drop(a.modify(&QpAttr::to(QpState::Reset))),
                    4 => drop(a.connect(b.number())),
                    _ => {}
                }
            }
        }
    }
}

#[test]
fn x04_what_is_scribbled_into_the_tables_harms_nobody() {
    const ALONE: &str = "HOSTILE_ALONE";
    let time = Duration::from_secs(2);
    if std::env::var_os(ALONE).is_none() {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let test = "hostile::x04_what_is_scribbled_into_the_tables_harms_nobody";
        command.args(["--exact", test, "--test-threads=1"]).env(ALONE, "");
        command.env("RXE_LOOP_FABRIC", format!("hostile-{}", std::process::id()));
        let mut child = command.spawn().unwrap();
        let deadline = Instant::now() + 30 * time;
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if Instant::now() > deadline {
                child.kill().unwrap();
                break None;
            }
            thread::sleep(Duration::from_millis(10));
        };
        assert!(status.expect("nobody hangs").success());
        return;
    }
    let fabric = Fabric::of_tests();
    let seed = std::process::id().into();
    let (stop, end) = (AtomicBool::new(false), Instant::now() + time);
    thread::scope(|scope| {
        scope.spawn(|| scribble(fabric, seed, &stop));
        let users = [1, 2].map(|user| scope.spawn(move || use_device(seed + user, end)));
        let outcomes = users.map(|user| user.join());
        stop.store(true, Relaxed);
        assert!(outcomes.iter().all(Result::is_ok));
    });
}
