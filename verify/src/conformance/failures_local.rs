//! Requests that fail at the requester (Q7).

use super::line::*;
use super::stand::*;

include!(concat!(env!("OUT_DIR"), "/failures_local.rs"));

fn q07_a_local_key_of_another_domain<D: Device>() {
    for operation in 0..2 {
        let (mut a, mut b) = pair::<D>();
        let other = a.device.alloc_pd();
        let foreign = a.device.register(&other, 64, Access::EVERY).unwrap();
        let (word, at) = ([foreign.sge(0, 8)], b.remote(0));
        // Another case tests which status a wrong key gets.
        fails(&mut a, &mut b, on_memory(&word, at)[operation], LOCAL.whatever_it_is_called());
    }
}

/// SGEs of eight bytes that can be neither read nor written: two with a wrong key, one of a deregistered region, one
/// out of range.
fn unusable<D: Device>(a: &End<D>) -> [Sge; 4] {
    let dead = a.device.register(&a.pd, 64, Access::EVERY).unwrap().sge(0, 8);
    [
        Sge { lkey: NO_KEY, ..a.sge(0, 8) },
        Sge { lkey: a.mr.lkey() ^ 0x55, ..a.sge(0, 8) },
        dead,
        a.sge(REGION as u64 - 7, 8),
    ]
}

/// Requests with an unusable local SGE.
fn bad_local<D: Device>(sges: std::ops::Range<usize>, line: Line) {
    for sge in sges {
        for operation in 0..2 {
            let (mut a, mut b) = pair::<D>();
            let (list, at) = ([a.sge(0, 8), unusable(&a)[sge]], b.remote(0));
            let wr = [SendWr::send(1, &list), SendWr::write(1, &list, at).unsignaled()][operation];
            fails(&mut a, &mut b, wr, line);
        }
    }
}

fn q07_local_memory_that_is_bad_ends_the_requester<D: Device>() {
    bad_local::<D>(0..4, LOCAL.whatever_it_is_called());
}

fn q07_a_local_range_that_is_wrong<D: Device>() {
    bad_local::<D>(3..4, LOCAL);
}

fn q07_a_local_key_that_is_wrong_is_told_as_that<D: Device>() {
    bad_local::<D>(0..3, LOCAL);
}

fn q07_local_memory_that_no_result_can_be_written_to<D: Device>() {
    for sge in 0..4 {
        let (mut a, mut b) = pair::<D>();
        let (word, at) = ([unusable(&a)[sge]], b.remote(0));
        fails(&mut a, &mut b, SendWr::read(1, &word, at), LOCAL);
    }
    let (mut a, mut b) = pair::<D>();
    let unwritable = a.device.register(&a.pd, 64, Access::REMOTE_READ).unwrap();
    let (word, at) = ([unwritable.sge(0, 8)], b.remote(0));
    fails(&mut a, &mut b, SendWr::read(1, &word, at), LOCAL);
    // An atomic may have been executed before its result can't be stored.
    for (operation, sge) in (2..4).flat_map(|operation| (0..5).map(move |sge| (operation, sge))) {
        let (mut a, b) = pair::<D>();
        let unwritable = a.device.register(&a.pd, 64, Access::REMOTE_READ).unwrap();
        let sges = [unusable(&a).as_slice(), &[unwritable.sge(0, 8)]].concat();
        let (word, at) = ([sges[sge]], b.remote(0));
        a.post(on_memory(&word, at)[operation]);
        a.expect_sent(&[(1, S::LOC_PROT_ERR)]);
        a.expect_state(QpState::ERR);
        assert_eq!(b.qp.state(), QpState::RTS);
    }
}

fn q07_a_write_judges_the_local_key_first<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    let (word, at) = ([unusable(&a)[0]], RemoteAddr { rkey: NO_KEY, ..b.remote(0) });
    // The responder stays in RTS: no request reached it.
    fails(&mut a, &mut b, SendWr::write(1, &word, at), LOCAL.whatever_it_is_called());
}

fn q07_reads_and_atomics_judge_the_remote_key_first<D: Device>() {
    for operation in 1..4 {
        let (mut a, mut b) = pair::<D>();
        let (word, at) = ([unusable(&a)[0]], RemoteAddr { rkey: NO_KEY, ..b.remote(0) });
        fails(&mut a, &mut b, on_memory(&word, at)[operation], ACCESS);
    }
}

fn q07_an_atomic_whose_result_is_shorter_than_eight_bytes<D: Device>() {
    for operation in 2..4 {
        for length in [0, 4, 7] {
            let (mut a, mut b) = pair::<D>();
            // Validated before anything else.
            let (short, at) = ([a.sge(0, length)], RemoteAddr { rkey: NO_KEY, ..b.remote(1) });
            fails(&mut a, &mut b, on_memory(&short, at)[operation], ODD);
        }
    }
}

fn q07_an_atomic_whose_result_is_longer_than_eight_bytes<D: Device>() {
    for operation in 2..4 {
        for lengths in [&[9][..], &[16], &[8, 1]] {
            let (mut a, mut b) = pair::<D>();
            let long: Vec<_> = lengths.iter().map(|length| a.sge(0, *length)).collect();
            let at = b.remote(8);
            fails(&mut a, &mut b, on_memory(&long, at)[operation], ODD);
        }
    }
}

fn q07_an_atomic_whose_result_is_eight_bytes_in_sges<D: Device>() {
    let (mut a, b) = pair::<D>();
    b.mr.write(0, &[1, 2, 3, 4, 5, 6, 7, 8]);
    a.post(SendWr::fetch_add(1, &[a.sge(0, 3), a.sge(16, 5)], b.remote(0), 0));
    a.expect_sent(&[(1, S::SUCCESS)]);
    assert_eq!([a.bytes(0, 3), a.bytes(16, 5)].concat(), [1, 2, 3, 4, 5, 6, 7, 8]);
}
