use super::*;

const CAPS: QpCaps =
    QpCaps { max_send_wr: 1, max_recv_wr: 1, max_send_sge: 1, max_recv_sge: 1, max_inline: 4 };

fn why(errno: Errno, wr: SendWr<'_>) -> Refused {
    let failure = Failure { posted: 1, why: Why::Device(errno.raw_os_error()) };
    let PostError { posted, why } =
        of_send(&failure, &[SendWr::send(0, &[]), wr], &CAPS, Some(100));
    assert_eq!(posted, 1);
    why
}

#[test]
fn q04_each_errno_has_its_reason() {
    let fine = SendWr::send(1, &[]);
    assert_eq!(why(Errno::NOMEM, fine), Refused::QueueFull);
    assert_eq!(why(Errno::OPNOTSUPP, fine), Refused::Unsupported);
    assert_eq!(why(Errno::NOSYS, fine), Refused::Unsupported);
    assert_eq!(why(Errno::INVAL, fine), Refused::Device(22));
    for foreign in [1, 4096, 5000, 0x1_000c, i32::MAX, i32::MIN] {
        let failure = Failure { posted: 0, why: Why::Device(foreign) };
        assert_eq!(of_recv(&failure, &[], 1).why, Refused::Device(foreign));
    }
    // Some drivers return it negative.
    let negative = Failure { posted: 0, why: Why::Device(-12) };
    assert_eq!(of_recv(&negative, &[RecvWr::new(1, &[])], 1).why, Refused::QueueFull);
}

/// Whatever errno a driver has for it.
#[test]
fn q04_what_is_wrong_with_the_request_is_told_apart() {
    let sge = cq_core::wr::Sge { addr: 0, length: 101, lkey: 0 };
    for errno in [Errno::INVAL, Errno::NOMEM, Errno::MSGSIZE] {
        let two = [sge; 2];
        assert_eq!(why(errno, SendWr::send(1, &two)), Refused::TooManySges { max: 1 });
        assert_eq!(why(errno, SendWr::send(1, &[sge])), Refused::TooLong { max: 100 });
        let failure = Failure { posted: 0, why: Why::Device(errno.raw_os_error()) };
        let recv = of_recv(&failure, &[RecvWr::new(1, &two)], 1);
        assert_eq!(recv, PostError { posted: 0, why: Refused::TooManySges { max: 1 } });
    }
}

#[test]
fn q04_what_did_not_get_to_the_device_keeps_its_reason() {
    let failure = Failure { posted: 0, why: Why::Refused(Refused::NoReadAtomic) };
    let list = [SendWr::send(0, &[])];
    assert_eq!(of_send(&failure, &list, &CAPS, None).why, Refused::NoReadAtomic);
}

/// Also those lengths that a driver would take for something else.
#[test]
fn q04_too_many_inline_bytes_do_not_get_to_the_device() {
    assert_eq!([0, 4].map(|length| of_inline(length, &CAPS)), [Ok(()); 2]);
    for length in [5, 1 << 31, u32::MAX as usize, 1 << 32, usize::MAX] {
        assert_eq!(of_inline(length, &CAPS), Err(Refused::InlineTooLong { max: 4 }));
    }
}
