use super::*;
use crate::Limits;
use crate::observe::{CopyRequest, Process};

fn process(attachment: u16, is_alive: bool) -> Process {
    Process {
        attachment,
        generation: 0,
        is_alive,
        is_leaving: false,
        pid: None,
        calls: 0,
        arena_bytes: 0,
    }
}

#[test]
fn a_dead_process_waits_for_its_recovery_and_for_no_copy() {
    let copy = |client, server| CopyRequest {
        stage: 0,
        client,
        server,
        state: CopyState::Asked,
        round: 1,
    };
    let empty = Snapshot::empty("x".to_owned(), Limits::default(), 0, 0, true);
    let seen = Snapshot {
        processes: vec![process(0, true), process(2, false)],
        copies: vec![copy(2, 0), copy(0, 2)],
        ..empty
    };
    let waits: Vec<_> = seen.waits().iter().map(|wait| (wait.owner, wait.reason)).collect();
    let expected = [(0, Reason::Copy { state: CopyState::Asked }), (2, Reason::Recovery)];
    assert_eq!(waits, expected);
}
