//! Processes that share the loopback's memory (X1–X7). One end of every connection is in this process, the other one
//! where `D` is. A case that kills processes or corrupts a fabric creates its own.
//!
//! Some parts of X7 are only in the loopback's tests, because they disturb the process: forked children, shared memory
//! that is missing, read-only or full, and names that are not UTF-8.

#![expect(clippy::extra_unused_type_parameters, reason = "every case is of a transport")]

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, symlink};
use std::path::PathBuf;
use std::thread;
use std::time::Instant;

use cq_core::cq::CompletionQueue;
use cq_verbs::causes::Causes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::geteuid;
use transport_rxe_loop::OpenOptions;

use super::stand::*;
use crate::far::Far;
use crate::heap::Heap;
use crate::loopback::{Loopback, fabric};

include!(concat!(env!("OUT_DIR"), "/processes.rs"));

/// An end in this process and one on `b`, connected, in RTS.
fn couple<D: Device>(b: D, plan: &Plan) -> (End<Loopback>, End<D>) {
    let (mut a, mut b) = (End::<Loopback>::near(plan), End::on(b, plan));
    a.bring_to(QpState::RTS, b.qp.number());
    b.bring_to(QpState::RTS, a.qp.number());
    (a, b)
}

/// Exchanges a message in each direction.
#[track_caller]
fn talk<A: Device, B: Device>(a: &mut End<A>, b: &mut End<B>) {
    say(a, b);
    say(b, a);
}

#[track_caller]
fn say<A: Device, B: Device>(a: &mut End<A>, b: &mut End<B>) {
    b.recv(70, 0, 64);
    a.send(71);
    a.expect_sent(&[(71, S::SUCCESS)]);
    b.expect_received(&[(70, S::SUCCESS)]);
}

/// The name of a new fabric.
fn named(name: &str) -> String {
    format!("{}-{name}", fabric())
}

/// The file of a fabric.
fn file(fabric: &str) -> PathBuf {
    format!("/dev/shm/rxe-loop.{}.{fabric}", geteuid().as_raw()).into()
}

/// The files of a fabric.
fn files(fabric: &str) -> Vec<PathBuf> {
    let (file, all) = (file(fabric), fs::read_dir("/dev/shm").expect("there is shared memory"));
    let paths = all.filter_map(|entry| Some(entry.ok()?.path()));
    let own =
        |path: &PathBuf| path.to_str().is_some_and(|path| path.starts_with(file.to_str().unwrap()));
    paths.filter(own).collect()
}

fn x01_the_same_fabric_is_one_device_and_another_sees_nothing_of_it<D: Device>() {
    let (mut a, mut b) = couple(D::open(), &Plan::default());
    talk(&mut a, &mut b);
    // The infinite timeout shows that the failure is due to the death.
    let rts = attr::rts().timeout(AckTimeout::UNLIMITED);
    let mut other = End::on(Loopback::open_in(&named("x01")), &Plan { rts, ..Plan::default() });
    let known = [a.qp.number(), b.qp.number()];
    let there =
        known.into_iter().find(|number| *number != other.qp.number()).expect("they are two");
    other.bring_to(QpState::RTS, there);
    a.recv(1, 0, 64);
    b.recv(1, 0, 64);
    other.send(2);
    other.expect_sent(&[(2, S::RETRY_EXC_ERR)]);
    a.expect_nothing();
    b.expect_nothing();
    talk_on(&mut a, &mut b);
}

/// Posts a receive, and sends a message.
#[track_caller]
fn talk_on<B: Device>(a: &mut End<Loopback>, b: &mut End<B>) {
    a.send(3);
    a.expect_sent(&[(3, S::SUCCESS)]);
    b.expect_received(&[(1, S::SUCCESS)]);
}

fn x02_files_are_their_users_alone_and_gone_with_the_last_process<D: Device>() {
    let name = named("x02-alone");
    let (one, other) = (Far::open_in(&name), Far::open_in(&name));
    let first = End::on(one, &Plan::with_channel());
    let files_of_it = files(&name);
    assert!(files_of_it.contains(&file(&name)), "{files_of_it:?}");
    for path in files_of_it {
        let meta = fs::metadata(&path).expect("it stays");
        let (mode, owner) = (meta.mode() & 0o777, meta.uid());
        assert_eq!((mode, owner), (0o600, geteuid().as_raw()), "{path:?}");
    }
    drop(first);
    assert!(file(&name).exists(), "another process has it");
    drop(other);
    wait_for("the last process takes everything away", || {
        thread::yield_now();
        files(&name).is_empty()
    });
}

fn x02_what_a_killed_process_leaves_does_not_keep_the_next_from_beginning<D: Device>() {
    let name = named("x02-killed");
    let start = Instant::now();
    // Another process that creates a fabric meanwhile may remove the files (X2): retry.
    let killed = loop {
        let mut killed = End::on(Far::open_in(&name), &Plan::with_channel());
        killed.bring_to(QpState::RTS, killed.qp.number());
        killed.device.kill();
        if file(&name).exists() {
            break killed;
        }
        assert!(start.elapsed() < patience(), "a killed process leaves nothing");
    };
    let mut next = End::on(Far::open_in(&name), &Plan::with_channel());
    next.bring_to(QpState::RTS, next.qp.number());
    message_to_itself(&mut next);
    drop((killed, next));
    wait_for("what was left is gone with the next one", || {
        thread::yield_now();
        files(&name).is_empty()
    });
}

#[track_caller]
fn message_to_itself<D: Device>(end: &mut End<D>) {
    end.recv(1, 0, 64);
    end.send(2);
    end.expect_sent(&[(2, S::SUCCESS)]);
    end.expect_received(&[(1, S::SUCCESS)]);
}

fn x03_a_killed_process_ends_what_it_took_part_in_and_nothing_else<D: Device>() {
    let (mut a, mut b) = couple(D::open(), &Plan::default());
    let (mut widow, mut killed) = couple(Far::open_in(&fabric()), &Plan::default());
    talk(&mut widow, &mut killed);
    widow.recv(1, 0, 64);
    // The first one waits for a receive while its peer lives.
    widow.send(2);
    widow.send(3);
    widow.expect_nothing();
    killed.device.kill();
    widow.expect_sent(&[(2, S::RETRY_EXC_ERR), (3, S::WR_FLUSH_ERR)]);
    widow.send(4);
    widow.expect_sent(&[(4, S::WR_FLUSH_ERR)]);
    widow.expect_received(&[(1, S::WR_FLUSH_ERR)]);
    widow.expect_state(QpState::ERR);
    talk(&mut a, &mut b);
    // The same queue pair with another peer.
    let mut next = End::on(Far::open_in(&fabric()), &Plan::default());
    widow.to(QpState::RESET);
    widow.bring_to(QpState::RTS, next.qp.number());
    next.bring_to(QpState::RTS, widow.qp.number());
    talk(&mut widow, &mut next);
}

/// Corrupts a fabric's file wherever it is not zero.
struct Scribbler {
    file: File,
    used: Vec<u64>,
    chance: u64,
}

impl Scribbler {
    /// The length of the file that is corrupted.
    const LOOKED_AT: usize = 4 << 20;

    fn new(fabric: &str) -> Self {
        let file = File::options().read(true).write(true).open(file(fabric)).expect("it is ours");
        let mut bytes = vec![0; Self::LOOKED_AT];
        let read = file.read_at(&mut bytes, 0).expect("it can be read");
        let words = bytes[..read].chunks_exact(4).enumerate();
        let used = words.filter(|(_, word)| *word != [0; 4]).map(|(index, _)| index as u64 * 4);
        Self { file, used: used.collect(), chance: 0x9e37_79b9_7f4a_7c15 }
    }

    fn next(&mut self) -> u64 {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        self.chance
    }

    fn scribble(&mut self) {
        let next = self.next() as usize % self.used.len();
        // The adjacent memory may be in use by now.
        let at = self.used[next] + self.next() % 4 * 4;
        let word = match self.next() % 3 {
            0 => 0,
            1 => self.next() as u32,
            _ => self.next() as u32 % 16,
        };
        self.file.write_all_at(&word.to_ne_bytes(), at).expect("it can be written");
    }
}

fn x04_what_is_scribbled_into_the_fabric_harms_nobody<D: Device>() {
    let name = named("x04");
    let mut ends = [(); 2].map(|()| End::on(Far::open_in(&name), &Plan::with_channel()));
    let [a, b] = &mut ends;
    a.bring_to(QpState::RTS, b.qp.number());
    b.bring_to(QpState::RTS, a.qp.number());
    talk(a, b);
    let mut scribbler = Scribbler::new(&name);
    assert!(scribbler.used.len() > 100, "a fabric has more than that: {}", scribbler.used.len());
    let mut buffer = [Wc::default(); 8];
    let mut failed = 0;
    for id in 0..200 {
        scribbler.scribble();
        for (mine, theirs) in [(0, 1), (1, 0)] {
            let (sge, there) = ([ends[mine].sge(0, 64)], ends[theirs].remote(64));
            let End { qp, sent, received, channel, .. } = &mut ends[mine];
            // Any result is allowed, except a crash or a hang, on which the call panics.
            failed += usize::from(qp.post_recv(&[RecvWr::new(id, &sge)]).is_err());
            let list = [SendWr::send(id, &sge), SendWr::write(id, &sge, there)];
            failed += usize::from(qp.post_send(&list).is_err());
            failed += usize::from(sent.arm(Notify::Next).is_err());
            failed += usize::from(sent.poll_into(&mut buffer).is_err());
            failed += usize::from(received.poll_into(&mut buffer).is_err());
            failed += usize::from(channel.as_mut().expect("it has one").take_event().is_err());
        }
    }
    assert!(failed > 0, "nothing was hit");
    for end in &ends {
        let _whatever_it_says = end.device.limits();
        // Its destructors would access the corrupted fabric.
        end.device.kill();
    }
    // A new fabric of the same name works.
    let mut next = End::on(Far::open_in(&name), &Plan::default());
    next.bring_to(QpState::RTS, next.qp.number());
    message_to_itself(&mut next);
}

fn x05_memory_of_the_heap_is_reached_with_every_operation<D: Device>() {
    let (mut a, mut b) = couple(D::open(), &Plan::default());
    let heap = Heap::new(&a.pd, 64, Access::EVERY);
    let mut ids = 0..;
    let mut done = |b: &mut End<D>, wr: &dyn Fn(u64) -> SendWr<'static>| {
        let id = ids.next().unwrap();
        b.post(wr(id));
        b.expect_sent(&[(id, S::SUCCESS)]);
    };
    done(&mut b, &|id| SendWr::write_inline(id, b"8 bytes!", heap.remote(1)));
    assert_eq!([0, 1, 2].map(|at| heap.get(at)), [0, u64::from_ne_bytes(*b"8 bytes!"), 0]);
    heap.set(2, 40);
    let word = [b.sge(0, 8)];
    let ops = [
        (SendWr::fetch_add(50, &word, heap.remote(2), 2), 40, 42),
        (SendWr::compare_swap(51, &word, heap.remote(2), 42, 7), 42, 7),
        (SendWr::read(52, &word, heap.remote(2)), 7, 7),
    ];
    for (wr, there_before, then) in ops {
        b.post(wr);
        b.expect_sent(&[(wr.wr_id, S::SUCCESS)]);
        assert_eq!(b.bytes(0, 8), u64::to_ne_bytes(there_before), "request {}", wr.wr_id);
        assert_eq!(heap.get(2), then, "after request {}", wr.wr_id);
    }
    // As a receive buffer, and as an SGE of the end's own requests.
    let sge = [heap.sge(8, 4)];
    a.qp.post_recv(&[RecvWr::new(60, &sge)]).unwrap();
    b.mr.write(0, &[9; 32]);
    b.post(SendWr::send(61, &[b.sge(0, 32)]));
    b.expect_sent(&[(61, S::SUCCESS)]);
    a.expect_received(&[(60, S::SUCCESS)]);
    assert_eq!(
        [7, 8, 11, 12].map(|at| heap.get(at).to_ne_bytes()),
        [[0; 8], [9; 8], [9; 8], [0; 8]]
    );
    a.post(SendWr::write(62, &sge, b.remote(512)));
    a.expect_sent(&[(62, S::SUCCESS)]);
    assert_eq!(b.bytes(504, 48), [[0; 8].as_slice(), &[9; 32], &[0; 8]].concat());
}

fn x06_a_descriptor_wakes_by_what_another_process_does<D: Device>() {
    let (mut a, mut b) = couple(Far::open_in(&fabric()), &Plan::with_channel());
    a.recv(1, 0, 64);
    arm(&mut a.received, Notify::Next);
    let channel = a.channel.as_ref().expect("it was made with one");
    let long = Timespec::try_from(patience()).expect("it is some seconds");
    let woken = thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            let mut descriptors = [PollFd::new(channel, PollFlags::IN)];
            poll(&mut descriptors, Some(&long)).expect("it can be slept on")
        });
        b.send(2);
        sleeper.join().unwrap()
    });
    assert_eq!(woken, 1, "it slept over the message");
    a.expect_received(&[(1, S::SUCCESS)]);
    b.expect_sent(&[(2, S::SUCCESS)]);
    // The other direction: it waits in its process while this one sends.
    b.recv(3, 0, 64);
    let End { received, channel, qp: _qp, mr: _mr, .. } = b;
    let ids = thread::scope(|scope| {
        let sleeper = scope.spawn(move || {
            let (mut cq, mut buffer) = (CompletionQueue::new(received), [Wc::default(); 4]);
            let deadline = Instant::now() + patience();
            let got = cq.wait(&mut buffer, &mut channel.unwrap(), Some(deadline)).unwrap();
            got.iter().map(Wc::wr_id).collect::<Vec<_>>()
        });
        a.send(4);
        a.expect_sent(&[(4, S::SUCCESS)]);
        sleeper.join().unwrap()
    });
    assert_eq!(ids, [3]);
}

/// The error of opening this fabric.
#[track_caller]
fn refused(fabric: &str) -> String {
    let opened = OpenOptions::new().fabric(fabric).open("loop0");
    let error = opened.err().unwrap_or_else(|| panic!("{fabric:?} was opened"));
    Causes(&error).to_string()
}

fn x07_names_that_cannot_be_a_fabrics_are_refused_with_a_reason<D: Device>() {
    let long = "a".repeat(65);
    let names = [
        ("", "is empty"),
        (long.as_str(), "is too long"),
        ("..", "starts with a dot"),
        ("a/b", "'/'"),
        ("../a", "starts with a dot"),
        ("a\0b", "'\\0'"),
        ("ä", "'ä'"),
        ("a.mem.1.2", "reserved for a fabric's other files"),
    ];
    for (name, reason) in names {
        let said = refused(name);
        assert!(said.contains(reason), "{name:?}: {said}");
    }
    let (mut a, mut b) = couple(D::open(), &Plan::default());
    talk(&mut a, &mut b);
}

/// Removes the files that block the fabric.
struct InTheWay(PathBuf);

impl Drop for InTheWay {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0).or_else(|_| fs::remove_file(&self.0));
    }
}

fn x07_what_else_has_the_name_is_refused_and_left_alone<D: Device>() {
    let name = named("x07");
    let path = file(&name);
    let in_the_way = || InTheWay(path.clone());
    let is = |what: fn(&fs::FileType) -> bool| {
        let said = refused(&name);
        assert!(said.contains("remove it"), "{said}");
        assert!(what(&fs::symlink_metadata(&path).expect("it is there").file_type()), "it stays");
    };
    {
        let _link = in_the_way();
        symlink("/dev/null", &path).unwrap();
        is(fs::FileType::is_symlink);
    }
    {
        let _fifo = in_the_way();
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        is(FileTypeExt::is_fifo);
    }
    {
        let _directory = in_the_way();
        fs::create_dir(&path).unwrap();
        is(fs::FileType::is_dir);
    }
    let mut end = End::on(Loopback::open_in(&name), &Plan::default());
    end.bring_to(QpState::RTS, end.qp.number());
    message_to_itself(&mut end);
}
