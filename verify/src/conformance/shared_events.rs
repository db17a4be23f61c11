//! Asynchronous events of shared receive queues: SRQ_LIMIT_REACHED and QP_LAST_WQE_REACHED (Q9).

use super::shared::*;
use super::stand::*;

include!(concat!(env!("OUT_DIR"), "/shared_events.rs"));

/// Posts receives 0 to `count`.
fn with_receives<D: Device>(count: u64) -> Shared<D> {
    let mut shared = shared::<D>();
    (0..count).for_each(|id| shared.b.recv(id, 0, 8));
    shared
}

impl<D: Device> Shared<D> {
    /// Consumes a receive, by the first queue pair or the second.
    #[track_caller]
    fn take(&mut self, nth: usize) {
        self.sender(nth).send(1);
        self.sender(nth).expect_sent(&[(1, S::SUCCESS)]);
        assert_eq!(self.received(1).len(), 1);
    }

    fn srq(&mut self) -> &mut D::Srq {
        self.b.srq.as_mut().unwrap()
    }

    fn limit(&self) -> (AsyncEventType, Element) {
        let number = self.b.srq.as_ref().unwrap().number();
        (AsyncEventType::SRQ_LIMIT_REACHED, Element::Srq(number))
    }
}

fn q09_the_limit_is_told_once_below_it<D: Device>() {
    let mut shared = with_receives::<D>(6);
    shared.srq().arm_limit(4).unwrap();
    assert_eq!(shared.srq().limit(), 4);
    shared.take(0);
    shared.take(1);
    rest(&shared.b.device);
    shared.b.expect_async(&[]); // four are left
    assert_eq!(shared.srq().limit(), 4);
    shared.take(0);
    let reached = shared.limit();
    shared.b.expect_async(&[reached]);
    assert_eq!(shared.srq().limit(), 0, "it is told once");
    shared.take(1);
    shared.take(0);
    rest(&shared.b.device);
    shared.b.expect_async(&[]);
}

fn q09_a_limit_can_be_set_again<D: Device>() {
    let mut shared = with_receives::<D>(4);
    let reached = shared.limit();
    for limit in [4, 3, 2, 1] {
        shared.srq().arm_limit(limit).unwrap();
        shared.take(limit as usize % 2);
        shared.b.expect_async(&[reached]);
    }
}

fn q09_a_limit_above_what_is_left_is_told_when_one_is_taken<D: Device>() {
    let mut shared = with_receives::<D>(2);
    shared.srq().arm_limit(5).unwrap();
    rest(&shared.b.device);
    shared.b.expect_async(&[]);
    assert_eq!(shared.srq().limit(), 5, "nothing was taken yet");
    shared.take(1);
    let reached = shared.limit();
    shared.b.expect_async(&[reached]);
    assert_eq!(shared.srq().limit(), 0);
}

fn q09_a_limit_can_be_taken_back<D: Device>() {
    let mut shared = with_receives::<D>(3);
    shared.srq().arm_limit(3).unwrap();
    shared.srq().arm_limit(0).unwrap();
    assert_eq!(shared.srq().limit(), 0);
    (0..3).for_each(|nth| shared.take(nth % 2));
    rest(&shared.b.device);
    shared.b.expect_async(&[]);
}

fn q09_a_limit_of_more_than_it_takes_is_refused<D: Device>() {
    let mut shared = with_receives::<D>(3);
    let most = shared.srq().caps().max_wr;
    shared.srq().arm_limit(2).unwrap();
    for limit in [most + 1, u32::MAX] {
        assert_eq!(shared.srq().arm_limit(limit), Err(Errno::EINVAL), "{limit}");
        assert_eq!(shared.srq().limit(), 2, "it stays");
    }
    assert_eq!(shared.srq().arm_limit(most), Ok(()));
}

fn last(number: u32) -> (AsyncEventType, Element) {
    (AsyncEventType::QP_LAST_WQE_REACHED, Element::Qp(number))
}

fn q09_the_last_receive_is_told_when_a_queue_pair_goes_to_err<D: Device>() {
    let mut shared = with_receives::<D>(3);
    shared.b.expect_async(&[]);
    let number = shared.b.qp.number();
    shared.b.to(QpState::ERR);
    shared.b.expect_async(&[last(number)]);
    shared.take(1); // the other one goes on
    shared.b.expect_async(&[]);
}

fn q09_the_last_receive_is_told_when_a_queue_pair_fails<D: Device>() {
    let mut shared = with_receives::<D>(3);
    let number = shared.b.qp.number();
    shared.b.post(SendWr::write_inline(1, b"x", RemoteAddr { rkey: 0, ..shared.a.remote(0) }));
    shared.b.expect_sent(&[(1, S::REM_ACCESS_ERR)]);
    shared.b.expect_async(&[last(number)]);
}

fn q09_the_last_receive_is_told_once_each_time<D: Device>() {
    let mut shared = with_receives::<D>(3);
    let number = shared.b.qp.number();
    for _ in 0..3 {
        shared.b.to(QpState::ERR);
        shared.b.to(QpState::ERR);
        shared.b.expect_async(&[last(number)]);
        shared.b.to(QpState::RESET);
        shared.b.connect(&shared.a.qp);
        rest(&shared.b.device);
        shared.b.expect_async(&[]);
    }
}

fn q09_the_last_receive_is_told_of_datagrams_too<D: Device>() {
    let plan = Plan { srq: sharing().srq, ..Plan::of(QpType::UD) };
    let (_a, mut b) = pair_with::<D>(&Plan::of(QpType::UD), &plan);
    b.recv(1, 0, 64);
    b.to(QpState::ERR);
    let number = b.qp.number();
    b.expect_async(&[last(number)]);
    b.expect_nothing();
}

fn q09_the_last_receive_is_told_of_shared_receives_only<D: Device>() {
    let (_a, mut b) = pair::<D>();
    b.recv(1, 0, 8);
    b.to(QpState::ERR);
    b.expect_received(&[(1, S::WR_FLUSH_ERR)]);
    b.expect_async(&[]);
}
