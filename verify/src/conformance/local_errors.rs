//! Local failures of unreliable queue pairs, and the state SQE that follows (Q1–Q3, Q7).

use super::line::*;
use super::stand::*;
use super::way::*;

include!(concat!(env!("OUT_DIR"), "/local_errors.rs"));

/// A UC or UD pair, and the path from the first end to the second.
struct Loose<D: Device> {
    a: End<D>,
    b: End<D>,
    way: Option<Way<D>>,
}

/// One of each type.
fn each<D: Device>() -> [Loose<D>; 2] {
    let (a, b) = pair_with(&Plan::of(QpType::UC), &Plan::of(QpType::UC));
    let (c, d, way) = strangers();
    [Loose { a, b, way: None }, Loose { a: c, b: d, way: Some(way) }]
}

impl<D: Device> Loose<D> {
    #[track_caller]
    fn post(&mut self, list: &[SendWr<'_>]) {
        posted(self.try_post(list));
    }

    fn try_post(&mut self, list: &[SendWr<'_>]) -> Result<(), cq_verbs::post::PostError> {
        match &self.way {
            Some(way) => self.a.try_post_to(way, list),
            None => self.a.qp.post_send(list),
        }
    }

    /// Posts a request that fails locally.
    #[track_caller]
    fn fail(&mut self) {
        let outside = [self.a.sge(REGION as u64 - 7, 8)];
        self.post(&[SendWr::send(1, &outside).unsignaled()]);
        self.a.expect_sent(&[(1, S::LOC_PROT_ERR)]);
        self.a.expect_state(QpState::SQE);
    }

    /// Sends a message, and expects it to arrive.
    #[track_caller]
    fn works(&mut self) {
        self.b.recv(80, 0, 64);
        self.post(&[SendWr::send_inline(81, b"works")]);
        self.a.expect_sent(&[(81, S::SUCCESS)]);
        self.b.expect_received(&[(80, S::SUCCESS)]);
    }
}

fn q01_a_send_queue_in_error_can_be_brought_back<D: Device>() {
    for mut pair in each::<D>() {
        // More often than it has slots: they come back.
        for _ in 0..pair.a.qp.caps().max_send_wr {
            pair.fail();
            pair.a.to(QpState::RTS);
            pair.works();
        }
    }
}

fn q01_a_send_queue_in_error_takes_what_running_ones_take<D: Device>() {
    for (mut pair, access) in each::<D>().into_iter().zip([Some(Access::EVERY), None]) {
        pair.fail();
        let qkey = if access.is_none() { Some(QKEY) } else { None };
        let mut back = QpAttr::new().state(QpState::RTS).cur_state(QpState::SQE);
        (back.access, back.qkey) = (access, qkey);
        let wrong = back.sq_psn(0);
        assert_eq!(pair.a.qp.modify(&wrong), Err(Errno::EINVAL));
        assert_eq!(pair.a.qp.state(), QpState::SQE);
        assert_eq!(pair.a.qp.modify(&back), Ok(()));
        pair.works();
    }
}

fn q01_no_other_change_leads_out_of_sqe<D: Device>() {
    for mut pair in each::<D>() {
        pair.fail();
        for state in [QpState::INIT, QpState::RTR, QpState::SQD, QpState::SQE] {
            assert_eq!(
                pair.a.qp.modify(&QpAttr::new().state(state)),
                Err(Errno::EINVAL),
                "{state:?}"
            );
            assert_eq!(pair.a.qp.state(), QpState::SQE);
        }
    }
}

fn q02_what_is_behind_a_failure_is_flushed_in_sqe<D: Device>() {
    for mut pair in each::<D>() {
        let outside = [pair.a.sge(REGION as u64 - 7, 8)];
        pair.b.recv(10, 0, 64);
        pair.a.recv(20, 0, 64);
        pair.post(&[
            SendWr::send_inline(1, b"before"),
            SendWr::send(2, &outside),
            SendWr::send_inline(3, b"behind").unsignaled(),
            SendWr::send_inline(4, b"behind"),
        ]);
        let flushed = S::WR_FLUSH_ERR;
        let wanted = [(1, S::SUCCESS), (2, S::LOC_PROT_ERR), (3, flushed), (4, flushed)];
        pair.a.expect_sent(&wanted);
        pair.b.expect_received(&[(10, S::SUCCESS)]);
        pair.a.expect_state(QpState::SQE);
        pair.a.expect_received(&[]); // its receives stay
    }
}

fn q02_err_flushes_the_receives_of_sqe<D: Device>() {
    for mut pair in each::<D>() {
        pair.fail();
        pair.a.recv(1, 0, 64);
        pair.a.to(QpState::ERR);
        pair.a.expect_received(&[(1, S::WR_FLUSH_ERR)]);
        pair.post(&[SendWr::send_inline(2, b"x")]);
        pair.a.expect_sent(&[(2, S::WR_FLUSH_ERR)]);
    }
}

fn q02_reset_leaves_sqe_in_silence<D: Device>() {
    for mut pair in each::<D>() {
        pair.fail();
        pair.a.recv(1, 0, 64);
        pair.a.to(QpState::RESET);
        pair.a.expect_silence();
        pair.b.to(QpState::RESET);
        pair.a.connect(&pair.b.qp);
        pair.b.connect(&pair.a.qp);
        pair.works();
    }
}

fn q03_sends_are_refused_in_sqe<D: Device>() {
    for mut pair in each::<D>() {
        pair.fail();
        pair.b.recv(80, 0, 64);
        let error = pair.try_post(&[SendWr::send_inline(2, b"x")]).unwrap_err();
        assert_eq!((error.posted, error.why), (0, WrError::WrongState));
        pair.a.to(QpState::RTS);
        pair.a.expect_silence(); // it never runs later
        pair.b.expect_nothing();
    }
}

fn q03_receives_go_on_in_sqe<D: Device>() {
    for mut pair in each::<D>() {
        pair.a.recv(1, 0, 64);
        pair.fail();
        pair.a.recv(2, 0, 64);
        for id in 1..3 {
            match &pair.way {
                Some(_) => {
                    let back = way(&pair.b, &pair.a);
                    pair.b.post_to(&back, SendWr::send_inline(id, b"x"));
                }
                None => pair.b.send(id),
            }
        }
        pair.a.expect_received(&all(1..3, S::SUCCESS));
        pair.b.expect_sent(&all(1..3, S::SUCCESS));
        assert_eq!(pair.a.qp.state(), QpState::SQE);
    }
}

/// Requests of memory that they may not read fail, with `status` if that is tested, and change the queue pair's state.
fn bad_local<D: Device>(status: Option<S>) {
    for sge in 0..3 {
        for mut pair in each::<D>() {
            let end = &pair.a;
            let dead = end.device.register(&end.pd, 64, Access::EVERY).unwrap().sge(0, 8);
            let nobodys = Sge { lkey: NO_KEY, ..end.sge(0, 8) };
            let sges = [end.sge(0, 8), [dead, nobodys, end.sge(REGION as u64 - 7, 8)][sge]];
            pair.post(&[SendWr::send(1, &sges)]);
            let got = pair.a.sent(1);
            assert_eq!((got.len(), got[0].0), (1, 1));
            match status {
                Some(status) => assert_eq!(got[0].1, status),
                None => {
                    assert!(got[0].1 != S::SUCCESS);
                    pair.a.expect_state(QpState::SQE);
                }
            }
        }
    }
}

fn q07_unreliable_local_memory_that_is_bad_is_told_as_that<D: Device>() {
    bad_local::<D>(Some(S::LOC_PROT_ERR));
}

fn q07_unreliable_local_memory_that_is_bad_ends_the_send_queue<D: Device>() {
    bad_local::<D>(None);
}

fn q07_nothing_of_a_failure_reaches_the_peer<D: Device>() {
    for mut pair in each::<D>() {
        pair.b.recv(80, 0, 64);
        let sges = [pair.a.sge(0, 8), Sge { lkey: NO_KEY, ..pair.a.sge(8, 8) }];
        pair.post(&[SendWr::send(1, &sges)]);
        assert_eq!(pair.a.sent(1).len(), 1);
        rest(&pair.b.device);
        pair.b.expect_nothing();
        pair.b.expect_async(&[]);
        pair.a.expect_async(&[]);
        assert_eq!(pair.b.qp.state(), QpState::RTS);
    }
}
