//! Observers of files that are no fabrics, are truncated, or are corrupted while they are looked at; and what an observer
//! leaves of its own process' locks.

use std::os::unix::fs::{FileExt, PermissionsExt};

use crate::inside::actor::few_or;
use crate::inside::attaching;
use crate::inside::hostile::LIMITS;
use crate::inside::prelude::*;
use crate::lifecycle::device::FORMAT;
use crate::observe::{FabricObserver, ObserveError, Snapshot};
use crate::shm::error::AttachError;
use crate::shm::file;
use crate::shm::header::{self, ForeignFileError};
use crate::shm::liveness::{Gate, Liveness};
use crate::shm::name::FabricPath;
use crate::shm::plan::Plan;
use crate::shm::reader::Reader;

/// Longer than any snapshot takes, on any machine.
const LONG: Duration = Duration::from_secs(20);

/// A copy of the file of a fabric that was used, which no process has open.
struct Copy {
    directory: Directory,
    file: File,
}

impl Copy {
    fn new() -> Self {
        let fixture = Fixture::of(OpenOptions::new().limits(LIMITS));
        let channel = fixture.context.create_channel().unwrap();
        let mut armed = fixture.context.cq(8).channel(&channel).create().unwrap();
        assert_eq!(armed.arm(Notify::Next), Ok(Armed::Armed));
        let (mut qps, srq) = (fixture.pair(), fixture.srq(4));
        let region = fixture.region(64);
        let send = || SendWr::send_inline(1, b"x");
        qps[1].post_recv(&[RecvWr::new(1, &[region.sge(..8).unwrap()])]).unwrap();
        // The second one waits.
        qps[0].post_send(&[send(), send()]).unwrap();
        let of_srq = fixture.create(&fixture.pd.qp(&fixture.cq).srq(&srq));
        let (directory, from) = (Directory::new(), fixture.device.shm.path().file());
        std::fs::copy(from, directory.path().file()).unwrap();
        let file = File::options().read(true).write(true).open(directory.path().file()).unwrap();
        file.set_permissions(std::fs::Permissions::from_mode(0o600)).unwrap();
        drop(of_srq);
        Self { directory, file }
    }

    fn path(&self) -> FabricPath {
        self.directory.path()
    }

    fn observer(&self) -> FabricObserver {
        FabricObserver::at(self.path()).unwrap()
    }
}

/// A snapshot, with all that is made of it. It comes in time.
#[track_caller]
fn look(observer: &mut FabricObserver) -> Snapshot {
    let start = Instant::now();
    let seen = observer.snapshot();
    let waits = seen.waits();
    assert!(!format!("{seen:?} {waits:?}").is_empty());
    waits.iter().for_each(|wait| drop(format!("{} {}", wait.subject, wait.reason)));
    seen.locks.iter().for_each(|held| drop((seen.is_alive(held.holder), held.lock.to_string())));
    for qp in &seen.queue_pairs {
        assert!(qp.sends.outstanding <= qp.sends.capacity, "{qp:?}");
        let _ = seen.queue_pair(qp.peer);
    }
    assert!(start.elapsed() < LONG, "it takes {:?}", start.elapsed());
    seen
}

#[test]
fn the_fabric_of_dead_processes_shows_what_they_left() {
    let seen = look(&mut Copy::new().observer());
    let [process] = &seen.processes[..] else { panic!("{:?}", seen.processes) };
    assert!(!process.is_alive && process.pid.is_none());
    assert_eq!((seen.queue_pairs.len(), seen.shared_receive_queues.len()), (3, 1));
    let waits = seen.queue_pairs.iter().filter(|qp| qp.waits.is_some()).count();
    assert_eq!(waits, 1);
    let reasons: Vec<_> = seen.waits().iter().map(|wait| wait.reason.to_string()).collect();
    assert_eq!(reasons, ["is dead, and nobody has recovered from that"]);
}

#[test]
fn x04_what_is_scribbled_into_the_fabric_harms_no_observer() {
    let seed = u64::from(std::process::id()) << 8;
    let tables = Plan::measure(&LIMITS.shape(), &FORMAT).end();
    for seed in seed..seed + few_or(12, 400) {
        let copy = Copy::new();
        let (mut observer, mut chance) = (copy.observer(), Chance::new(seed));
        eprintln!("seed {seed}");
        for round in 0..40 {
            for _ in 0..=chance.below(1 << (round / 4)) {
                let end = if chance.one_in(4) { LIMITS.bytes as usize } else { tables };
                let word = match chance.below(4) {
                    0 => chance.next(),
                    1 => u64::MAX - chance.next() % 3,
                    2 => 1 << chance.below(64),
                    _ => chance.next() % 300,
                };
                let len = 1 + chance.below(8);
                let at = chance.below(end - 8) as u64;
                copy.file.write_all_at(&word.to_ne_bytes()[..len], at).unwrap();
            }
            look(&mut observer);
        }
        // Another observer may find the header damaged, or not.
        if let Ok(mut another) = FabricObserver::at(copy.path()) {
            look(&mut another);
        }
    }
}

#[test]
fn a_fabric_that_is_truncated_while_it_is_observed_reads_as_zeros() {
    let copy = Copy::new();
    let mut observer = copy.observer();
    assert_eq!(look(&mut observer).missing_bytes, 0);
    let tables = Plan::measure(&LIMITS.shape(), &FORMAT).end() as u64;
    for len in [tables, tables / 2, 4096, 100, 0] {
        copy.file.set_len(len).unwrap();
        let seen = look(&mut observer);
        assert!(seen.missing_bytes >= tables - len, "{len}: {}", seen.missing_bytes);
        assert_eq!(seen.queue_pairs.len(), if len == tables { 3 } else { 0 }, "{len}");
        let again = FabricObserver::at(copy.path()).unwrap_err();
        let why =
            if len == 0 { ForeignFileError::Magic } else { ForeignFileError::Truncated { len } };
        assert!(
            matches!(again, ObserveError::NotOurs { why: found, .. } if found == why),
            "{len}: {again}"
        );
    }
}

#[test]
fn what_is_no_fabric_is_refused() {
    let directory = Directory::new();
    let open = || FabricObserver::at(directory.path()).map(drop).unwrap_err();
    assert!(matches!(open(), ObserveError::NoSuchFabric { name } if name == "x"));
    let file = directory.path().file();
    let version = *b"rxe-loop\x63\0\0\0\0\0\0\0";
    for (content, why) in [
        (&b""[..], ForeignFileError::Magic),
        (&[7; 9000], ForeignFileError::Magic),
        (&version, ForeignFileError::Version { found: 0x63 }),
    ] {
        std::fs::write(&file, content).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let refused = open();
        assert!(
            matches!(refused, ObserveError::NotOurs { why: found, .. } if found == why),
            "{refused}"
        );
    }
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(matches!(open(), ObserveError::Unusable(AttachError::Mode { mode: 0o644, .. })));
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
    assert!(matches!(open(), ObserveError::Unusable(AttachError::NotAFile { .. })));
}

#[test]
fn an_observer_of_its_own_process_leaves_the_lock_of_its_name() {
    let me = Liveness::Alive { pid: Some(std::process::id() as i32) };
    let (directory, here) = attaching::attached();
    let named = || here.alive(here.owner);
    assert_eq!(named(), me);
    for _ in 0..3 {
        drop(Reader::open(directory.path(), &attaching::FORMAT).unwrap());
        assert_eq!(named(), me);
    }
    // As any other descriptor of the file does not.
    drop(File::open(directory.path().file()).unwrap());
    assert_eq!(named(), Liveness::Alive { pid: None });
}

#[test]
fn an_observer_that_came_before_its_process_attached_leaves_the_lock_as_well() {
    let directory = Directory::new();
    let (other, _) = directory.user();
    let reader = Reader::open(directory.path(), &attaching::FORMAT).unwrap();
    let here = directory.attach();
    drop(reader);
    let me = Liveness::Alive { pid: Some(std::process::id() as i32) };
    assert_eq!(here.alive(here.owner), me);
    other.finish();
}

#[test]
fn an_observer_waits_for_a_fabric_that_is_being_made() {
    let directory = Directory::new();
    let (path, bytes) = (directory.path(), LIMITS.shape().bytes);
    let file = file::make(&path, bytes).unwrap();
    let shape = LIMITS.shape().in_force(&FORMAT).unwrap();
    header::write(file.as_fd(), &shape, &FORMAT).unwrap();
    let gate = Gate::pass(file.as_fd(), Instant::now()).unwrap().unwrap();
    assert!(file::link(file.as_fd(), &path).unwrap());
    let observes = || Reader::open(path.clone(), &FORMAT).map(|reader| reader.shape);
    let goes_on = || {
        file::reserve(file.as_fd(), &path, bytes).unwrap();
        drop(gate);
    };
    assert_eq!(waits(observes, goes_on), Ok(shape));
}
