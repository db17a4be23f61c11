//! Work requests: that each builder makes the request that its name says, with each argument in its place (Q6).

use cq_verbs::setup::Access;

use super::*;

const REMOTE: RemoteAddr = RemoteAddr { addr: 0x9000, rkey: 11 };
const SGES: [Sge; 2] =
    [Sge { addr: 0x1000, length: 48, lkey: 7 }, Sge { addr: 0x2000, length: u32::MAX, lkey: 8 }];
const BIND: WindowBind =
    WindowBind { window: 1, rkey: 2, lkey: 3, addr: 4, length: 5, access: Access::REMOTE_READ };

/// Every request that a builder makes.
fn requests() -> [SendWr<'static>; 13] {
    let (placement, selectivity) = (Placement::PERSISTENT, Selectivity::Range);
    [
        SendWr::send(9, &SGES),
        SendWr::send_inline(9, b"ping"),
        SendWr::write(9, &SGES, REMOTE),
        SendWr::write_inline(9, b"ping", REMOTE),
        SendWr::read(9, &SGES, REMOTE),
        SendWr::compare_swap(9, &SGES, REMOTE, 5, 6),
        SendWr::fetch_add(9, &SGES, REMOTE, 5),
        SendWr::send_with_inv(9, &SGES, 4),
        SendWr::atomic_write(9, &SGES, REMOTE),
        SendWr::atomic_write_inline(9, b"8 bytes.", REMOTE),
        SendWr::flush(9, REMOTE, 64, placement, selectivity),
        SendWr::bind_window(9, BIND),
        SendWr::local_invalidate(9, 4),
    ]
}

#[test]
fn q06_a_probe_needs_nothing() {
    let probe = SendWr::probe(7);
    assert_eq!((probe.wr_id, probe.data, probe.flags), (7, Data::Sges(&[]), SendFlags::SIGNALED));
    let nowhere = RemoteAddr { addr: 0, rkey: 0 };
    assert_eq!(probe.op, SendOp::Write { remote: nowhere, imm: None });
}

#[test]
fn q06_each_builder_makes_its_request_signaled() {
    let said = requests().map(|wr| {
        assert_eq!(wr, SendWr::new(9, wr.op, wr.data));
        let (returns, carries) = (wr.op.returns_data(), wr.op.carries_data());
        format!("{wr:?}, returns data: {returns}, carries data: {carries}\n")
    });
    assert_eq!(said.concat(), include_str!("wr.txt"));
}

#[test]
fn q06_flags_are_set_and_taken_away_one_by_one() {
    for wr in requests() {
        let flags = [
            (wr.fenced(), SendFlags::SIGNALED | SendFlags::FENCE),
            (wr.solicited(), SendFlags::SIGNALED | SendFlags::SOLICITED),
            (wr.unsignaled(), SendFlags::empty()),
            (wr.fenced().fenced().solicited(), SendFlags::all()),
            (wr.solicited().unsignaled().fenced(), SendFlags::SOLICITED | SendFlags::FENCE),
            (wr.fenced().unsignaled().unsignaled(), SendFlags::FENCE),
        ];
        for (changed, flags) in flags {
            assert_eq!(changed, SendWr { flags, ..wr });
        }
    }
}

#[test]
fn c05_immediate_data_goes_with_send_and_write_only() {
    for wr in requests() {
        let imm = Some([1, 2, 3, 4]);
        let op = match wr.op {
            SendOp::Send { .. } => SendOp::Send { imm },
            SendOp::Write { remote, .. } => SendOp::Write { remote, imm },
            other => other,
        };
        assert_eq!(wr.with_imm([1, 2, 3, 4]), SendWr { op, ..wr });
        let fenced = wr.fenced().with_imm([1, 2, 3, 4]);
        assert_eq!(fenced, SendWr { op, ..wr.fenced() }, "the flags stay");
    }
}

#[test]
fn q06_the_bytes_of_a_request_are_those_of_all_its_pieces() {
    assert_eq!(Data::Sges(&SGES).len(), 48 + u64::from(u32::MAX), "more than 32 bits can say");
    assert_eq!(Data::Inline(b"ping").len(), 4);
    let empty = Sge { length: 0, ..SGES[0] };
    for none in [Data::Sges(&[]), Data::Sges(&[empty, empty]), Data::Inline(b"")] {
        assert_eq!((none.len(), none.is_empty()), (0, true));
    }
    for some in [Data::Sges(&[empty, SGES[0]]), Data::Inline(b"1")] {
        assert!(!some.is_empty());
    }
    let receive = RecvWr::new(9, &SGES);
    assert_eq!((receive.wr_id, receive.sges), (9, &SGES[..]));
}
