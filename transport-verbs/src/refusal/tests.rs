use super::*;

const CAPS: QpCaps =
    QpCaps::USUAL.max_send_wr(1).max_recv_wr(1).max_send_sge(1).max_recv_sge(1).max_inline(4);

/// What is wrong with the request is told apart whatever errno a driver has for it; some return it negative.
#[test]
fn q04_each_errno_and_each_request_has_its_reason() {
    let sge = cq_verbs::wr::Sge { addr: 0, length: 101, lkey: 0 };
    let (none, one, two) = (&[][..], &[sge][..], &[sge; 2][..]);
    let mut table = vec![
        (Errno::OPNOTSUPP.raw_os_error(), none, WrError::Unsupported),
        (Errno::NOSYS.raw_os_error(), none, WrError::Unsupported),
        (22, none, WrError::Device(22)),
        (12, none, WrError::QueueFull),
        (-12, none, WrError::QueueFull),
    ];
    let foreign = [1, 4096, 5000, 0x1_000c, i32::MAX, i32::MIN];
    table.extend(foreign.map(|errno| (errno, none, WrError::Device(errno))));
    for errno in [Errno::INVAL, Errno::NOMEM, Errno::MSGSIZE].map(Errno::raw_os_error) {
        table.push((errno, two, WrError::TooManySges { max: 1 }));
        table.push((errno, one, WrError::TooLong { max: 100 }));
    }
    for (errno, sges, why) in table {
        let failure = Failure { posted: 1, why: Why::Device(errno) };
        let sends = [SendWr::send(0, &[]), SendWr::send(1, sges)];
        assert_eq!(of_send(&failure, &sends, &CAPS, Some(100)), PostError { posted: 1, why });
        if sges.len() != 1 {
            let receives = [RecvWr::new(0, &[]), RecvWr::new(1, sges)];
            assert_eq!(of_recv(&failure, &receives, 1), PostError { posted: 1, why });
        }
    }
    assert_eq!(
        of_recv(&Failure { posted: 0, why: Why::Device(22) }, &[], 1).why,
        WrError::Device(22)
    );
    let failure = Failure { posted: 0, why: Why::Refused(WrError::NoReadAtomic) };
    let list = [SendWr::send(0, &[])];
    assert_eq!(
        of_send(&failure, &list, &CAPS, None).why,
        WrError::NoReadAtomic,
        "not the device's"
    );
}

/// Also those lengths that a driver would take for something else.
#[test]
fn q04_too_many_inline_bytes_do_not_get_to_the_device() {
    assert_eq!([0, 4].map(|length| of_inline(length, &CAPS)), [Ok(()); 2]);
    for length in [5, 1 << 31, u32::MAX as usize, 1 << 32, usize::MAX] {
        assert_eq!(of_inline(length, &CAPS), Err(WrError::InlineTooLong { max: 4 }));
    }
}
