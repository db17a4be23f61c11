//! Rows of the table of failures (Q7), and checking all that a row says.

use super::stand::*;

/// One row of the table.
#[derive(Clone, Copy)]
pub struct Line {
    /// The status of the request; `None` if another case tests which failure it is.
    pub requester: Option<S>,
    /// The status of the receive that is consumed, if one is; `Some(None)` as above.
    pub receive: Option<Option<S>>,
    /// The responder's state afterwards.
    pub responder: QpState,
    /// The asynchronous event that the responder may get; other cases test that it does.
    pub told: Option<AsyncEventType>,
}

pub const ACCESS: Line = Line {
    requester: Some(S::REM_ACCESS_ERR),
    receive: None,
    responder: QpState::ERR,
    told: Some(AsyncEventType::QP_ACCESS_ERR),
};
pub const INVALID: Line =
    Line { requester: Some(S::REM_INV_REQ_ERR), told: Some(AsyncEventType::QP_REQ_ERR), ..ACCESS };
pub const LOCAL: Line =
    Line { requester: Some(S::LOC_PROT_ERR), responder: QpState::RTS, told: None, ..ACCESS };

impl Line {
    /// The same row for any status of failure.
    pub fn whatever_it_is_called(self) -> Self {
        Self { requester: None, receive: self.receive.map(|_| None), ..self }
    }
}

/// A key of no region.
pub const NO_KEY: u32 = 0;

/// Removes the first completion, which must be of `id` and have failed with `status`.
#[track_caller]
fn failed(done: &mut Vec<(u64, S)>, id: u64, status: Option<S>) {
    assert!(!done.is_empty(), "{id} does not complete");
    let (of, is) = done.remove(0);
    assert_eq!(of, id, "which of them failed");
    assert!(status.map_or(is != S::SUCCESS, |status| is == status), "{id} is {is}, not {status:?}");
}

/// Posts a request that fails, and others after it, and checks all that the row says. If the request consumes a receive,
/// that is number 10, which the caller has posted.
#[track_caller]
pub fn fails<D: Device>(a: &mut End<D>, b: &mut End<D>, bad: SendWr<'_>, line: Line) {
    let (mine, theirs) = (a.bytes(0, REGION), b.bytes(0, REGION));
    for id in 11..13 {
        a.recv(id, 0, 8);
        b.recv(id, 0, 64);
    }
    let behind = SendWr::write_inline(3, b"never", b.remote(0));
    let list = [bad, SendWr::send_inline(2, b"never").unsignaled(), behind];
    a.post_all(&list);
    let mut sent = a.sent(3);
    failed(&mut sent, bad.wr_id, line.requester);
    assert_eq!(sent, all([2, 3], S::WR_FLUSH_ERR), "what was behind it");
    a.expect_received(&all(11..13, S::WR_FLUSH_ERR));
    a.expect_state(QpState::ERR);
    b.expect_state(line.responder);
    let flushed = if line.responder == QpState::ERR { 11..13 } else { 11..11 };
    let mut received = b.received(flushed.clone().count() + usize::from(line.receive.is_some()));
    if let Some(status) = line.receive {
        failed(&mut received, 10, status);
    }
    assert_eq!(received, all(flushed, S::WR_FLUSH_ERR), "the responder's other receives");
    b.expect_sent(&[]);
    if line.responder == QpState::RTS {
        b.to(QpState::ERR);
        b.expect_received(&all(11..13, S::WR_FLUSH_ERR)); // it took none of them
    }
    a.expect_async(&[]);
    let told = b.take_async();
    assert!(told.len() <= 1 && told.iter().all(|(kind, _)| Some(*kind) == line.told), "{told:?}");
    assert!(a.bytes(0, REGION) == mine, "the requester's memory is unchanged");
    assert!(b.bytes(0, REGION) == theirs, "the responder's memory is unchanged");
}

/// Every operation on the peer's memory.
pub fn on_memory<'a>(sges: &'a [Sge], at: RemoteAddr) -> [SendWr<'a>; 4] {
    [
        SendWr::write(1, sges, at),
        SendWr::read(1, sges, at),
        SendWr::compare_swap(1, sges, at, 0, 1),
        SendWr::fetch_add(1, sges, at, 1),
    ]
}

/// The access flag that each of these operations requires.
pub const RIGHTS: [Access; 4] =
    [Access::REMOTE_WRITE, Access::REMOTE_READ, Access::REMOTE_ATOMIC, Access::REMOTE_ATOMIC];

/// An atomic whose result buffer does not have eight bytes.
pub const ODD: Line = Line { requester: Some(S::LOC_LEN_ERR), ..LOCAL };

/// Sends a SEND_WITH_INV with a key that can't be invalidated: the message was received, and the requester succeeds.
#[track_caller]
pub fn invalidates_nothing<D: Device>(a: &mut End<D>, b: &mut End<D>, rkey: u32) {
    b.recv(1, 0, 64);
    b.recv(2, 0, 64);
    a.post(SendWr::send_with_inv(3, &[], rkey));
    a.expect_sent(&[(3, S::SUCCESS)]);
    b.expect_received(&[(1, S::REM_INV_REQ_ERR), (2, S::WR_FLUSH_ERR)]);
    b.expect_state(QpState::ERR);
    assert_eq!(a.qp.state(), QpState::RTS, "it was answered");
}
