//! Memory windows, beyond what the conformance suite asks: what is judged of a binding (Q7), who has windows, and how
//! their keys end while others are taken away (Q6).

use std::thread;

use crate::common::windows::{Opening, opened};
use crate::common::*;

#[test]
fn q06_queue_pair_and_region_have_windows_until_the_key_ends() {
    type Way = fn(&mut End, &mut End, &mut Opening);
    let ways: [Way; 6] = [
        |_, b, opening| b.request(SendWr::local_invalidate(1, opening.window.rkey()), S::SUCCESS),
        |a, b, opening| {
            b.recv(9, 0, 64);
            a.request(SendWr::send_with_inv(1, &[], opening.window.rkey()), S::SUCCESS);
            b.expect(&[(9, S::SUCCESS)]);
        },
        |_, b, opening| opening.window = b.pd.alloc_mw().unwrap(),
        |_, b, opening| *opening = Opening::of(b),
        |_, b, _| b.to(QpState::RESET),
        |_, b, _| b.destroy_qp(),
    ];
    for end in ways {
        // The optional flags say nothing of a window.
        let (mut a, mut b, mut opening) = opened(Access::REMOTE | Access::OPTIONAL);
        assert!(b.qp.has_windows() && opening.region.has_windows());
        end(&mut a, &mut b, &mut opening);
        assert!(!b.qp.has_windows() && !opening.region.has_windows());
    }
}

#[test]
fn q02_an_invalidation_that_is_flushed_takes_nothing_away() {
    let (_a, mut b, opening) = opened(Access::REMOTE);
    let invalidate = SendWr::local_invalidate(2, opening.window.rkey());
    b.qp.post_send(&[SendWr::send(1, &[BAD]), invalidate]).unwrap();
    b.expect(&[(1, S::LOC_PROT_ERR), (2, S::WR_FLUSH_ERR)]);
    assert!(b.qp.has_windows() && opening.region.has_windows());
    b.request(invalidate, S::WR_FLUSH_ERR);
    assert!(b.qp.has_windows() && opening.region.has_windows());
}

#[test]
fn q06_a_queue_pair_that_is_its_own_peer_does_not_wait_for_itself() {
    let mut a = End::to_itself();
    let opening = Opening::of(&a);
    a.bind(&opening, Access::REMOTE_WRITE);
    let rkey = opening.window.rkey();
    a.request(SendWr::write_inline(1, b"mine", opening.at()), S::SUCCESS);
    a.request(SendWr::local_invalidate(1, rkey), S::SUCCESS);
    a.bind(&opening, Access::REMOTE_WRITE);
    a.recv(2, 0, 8);
    a.post(SendWr::send_with_inv(1, &[], opening.window.rkey()));
    let done = a.expect(&[(2, S::SUCCESS), (1, S::SUCCESS)]);
    assert_eq!(done[0].result().unwrap().invalidated_rkey(), Some(opening.window.rkey()));
    a.request(SendWr::write_inline(1, b"x", opening.at()), S::REM_ACCESS_ERR);
}

/// Opens a window and takes its key away, again and again, while it writes to its peer.
fn open_and_shut(end: &mut End, opening: &Opening, there: RemoteAddr) {
    let sge = [end.region.sge(..8192).unwrap()];
    for round in 0..2000 {
        let bind = opening.bind(Access::REMOTE_WRITE);
        end.qp
            .post_send(&[
                SendWr::bind_window(1, bind).unsignaled(),
                SendWr::write(2, &sge, there).unsignaled(),
                SendWr::local_invalidate(3, bind.rkey),
            ])
            .unwrap();
        let done = settle(&mut end.cq, 1)[0];
        assert_eq!((done.wr_id(), done.status()), (3, S::SUCCESS), "in round {round}");
    }
}

#[test]
fn q06_two_who_take_keys_away_from_each_other_do_not_wait_for_each_other() {
    let (a, b) = pair();
    let openings = [Opening::of(&a), Opening::of(&b)];
    let there = [b.region.remote(0).unwrap(), a.region.remote(0).unwrap()];
    let mut ends = [a, b];
    thread::scope(|scope| {
        for ((end, opening), there) in ends.iter_mut().zip(&openings).zip(there) {
            scope.spawn(move || open_and_shut(end, opening, there));
        }
    });
}

#[test]
fn q06_of_two_who_bind_a_window_at_once_one_does() {
    for _ in 0..200 {
        let (_a, mut b) = pair();
        let mut d = End::new();
        d.qp = b.pd.qp(&d.cq).create().unwrap();
        d.qp.connect_to(d.qp.number()).unwrap();
        let opening = Opening::of(&b);
        let bind = opening.bind(Access::REMOTE);
        let other = WindowBind { rkey: inc_rkey(bind.rkey), ..bind };
        let statuses = thread::scope(|scope| {
            let both = [(&mut b, bind), (&mut d, other)].map(|(end, bind)| {
                scope.spawn(move || {
                    end.post(SendWr::bind_window(1, bind));
                    settle(&mut end.cq, 1)[0].status()
                })
            });
            both.map(|one| one.join().unwrap())
        });
        assert!(
            statuses.contains(&S::SUCCESS) && statuses.contains(&S::MW_BIND_ERR),
            "{statuses:?}"
        );
    }
}
