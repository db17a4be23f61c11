use super::*;
use crate::api::open::OpenError;
use crate::inside::prelude::*;

/// A device, the access paths of a process that has just begun, and this process.
fn fresh() -> (&'static Device, AccessPaths, AttachmentId) {
    let device = Fixture::new().device;
    let paths = AccessPaths::new(device.shm.shape().processes, false);
    (device, paths, device.shm.attachment())
}

#[test]
fn q10_whose_memory_the_system_does_not_move_is_asked_itself() {
    let (Device { memory, .. }, paths, here) = fresh();
    let AccessPath::Direct(it) = paths.of(memory, here) else { panic!("this process lives") };
    // One that has got another number since is tried under that.
    let before = Process { pid: it.pid + 1, ..it };
    for (tried, errno, outcome, path) in [
        (it, Errno::FAULT, Err(Trouble::Fault), AccessPath::Direct(it)),
        (it, Errno::PERM, Ok(()), AccessPath::Service),
        (before, Errno::SRCH, Ok(()), AccessPath::Direct(it)),
        (it, Errno::SRCH, Ok(()), AccessPath::Service),
    ] {
        *paths.seen(here).unwrap() = Some(Seen { at: now(), path: AccessPath::Direct(tried) });
        assert_eq!(paths.learn(memory, here, tried, errno), outcome);
        assert_eq!(paths.of(memory, here), path, "{errno} of {tried:?}");
    }
}

#[test]
fn x04_where_a_guard_page_is_said_to_be_that_is_none_the_process_is_asked_itself() {
    let (device, _, here) = fresh();
    let word = device.shm.guard_word(here);
    let (page, path) = (sync::load(word), || AccessPaths::new(64, false).of(device.memory, here));
    assert!(matches!(path(), AccessPath::Direct(_)));
    // Memory of this process that is none, the page but for a word, and what no process has.
    let other = Box::new([0u64; 4]);
    let other = other.as_ptr() as u64;
    for said in [0, other, page + 8, page - 8, u64::MAX, u64::MAX - 8] {
        sync::store(word, said);
        assert_eq!(path(), AccessPath::Service, "{said:#x}");
    }
    sync::store(word, page);
    assert!(matches!(path(), AccessPath::Direct(_)));
}

#[test]
fn x04_who_has_the_number_of_another_is_not_taken_for_it() {
    let (Device { memory, .. }, _, here) = fresh();
    let pid = std::process::id() as i32;
    assert!(Process::of(memory, here, pid).is_some());
    for other in [std::os::unix::process::parent_id() as i32, 0, -1, i32::MAX] {
        assert_eq!(Process::of(memory, here, other), None, "{other}");
    }
    assert_eq!(Process::of(memory, ANOTHER, pid), None, "nobody lives there");
}

#[test]
fn x03_a_process_that_is_found_dead_is_recovered() {
    let (device, paths, _) = fresh();
    let dead = device.shm.die_at(ANOTHER);
    assert!(device.shm.others().any(|other| other == dead), "nobody looks for the dead");
    assert_eq!(paths.of(device.memory, ANOTHER), AccessPath::None);
    until("it is swept up after", || device.shm.others().all(|other| other != dead));
}

#[test]
fn x03_what_is_found_out_of_the_living_is_kept_and_of_the_dead_is_not() {
    let (Device { memory, .. }, paths, here) = fresh();
    let kept = |place| paths.seen(place).unwrap().map(|seen| seen.path);
    let found = paths.of(memory, here);
    assert_eq!(kept(here), Some(found));
    assert_eq!(paths.of(memory, ANOTHER), AccessPath::None);
    assert_eq!(kept(ANOTHER), None, "somebody may come to live there");
}

fn by_service(wanted: OpenOptions) -> bool {
    let (_context, device) = wanted.alone();
    device.memory.paths.of(device.memory, device.shm.attachment()) == AccessPath::Service
}

#[test]
fn q10_the_service_moves_all_bytes_where_that_is_asked_for() {
    assert!(!by_service(OpenOptions::new()));
    assert!(by_service(OpenOptions::new().copying_by_service()));
    for (how, outcome) in [("direct", "false"), ("service", "true"), ("else", "unknown")] {
        let other = Actor::start("memory::paths::tests::opens", &[("RXE_LOOP_COPY", how)]);
        assert_eq!(other.hear(), outcome);
        assert!(other.ended().success());
    }
}

#[test]
#[ignore = "a process of another test"]
fn opens() {
    die_with_parent();
    match Context::open("loop0") {
        Ok(_) => say(by_service(OpenOptions::new())),
        Err(OpenError::UnknownCopying { .. }) => say("unknown"),
        Err(error) => say(error),
    }
}
