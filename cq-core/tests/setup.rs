//! The words that transports have in common for setting up.

use cq_core::setup::{Access, Destination, Gid, QpAttrMask, RangeError, Registered};
use cq_core::wr::{RemoteAddr, Sge};

const REGION: Registered = Registered { addr: u64::MAX - 64, len: 64, lkey: 1, rkey: 2 };

#[test]
fn a_piece_is_inside_to_the_last_byte() {
    let whole = REGION.sge(0, 64).unwrap();
    assert_eq!((whole.addr, whole.length, whole.lkey), (REGION.addr, 64, 1));
    let end = REGION.remote(64).unwrap();
    assert_eq!((end.addr, end.rkey), (u64::MAX, 2));
}

#[test]
fn what_is_not_inside_is_refused_without_overflow() {
    for (offset, len) in [(0, 65), (64, 1), (65, 0), (usize::MAX, 1), (1, usize::MAX)] {
        let outside = RangeError { offset, len, available: 64 };
        assert_eq!(REGION.sge(offset, len), Err(outside));
        assert_eq!(REGION.address(offset, len), Err(outside));
    }
    assert!(REGION.remote(65).is_err());
}

#[test]
#[cfg(target_pointer_width = "64")]
fn a_piece_has_no_more_bytes_than_its_length_can_say() {
    let large = Registered { addr: 0, len: 1 << 33, ..REGION };
    assert_eq!(large.sge(0, u32::MAX as usize).unwrap().length, u32::MAX);
    for (offset, len) in [(0, 1 << 32), (7, (1 << 33) - 7)] {
        let too_long = RangeError { offset, len, available: u32::MAX as usize };
        assert_eq!(large.sge(offset, len), Err(too_long));
    }
}

#[test]
fn a_piece_counts_from_the_regions_first_byte() {
    let region = Registered { addr: 0x1000, len: 64, lkey: 1, rkey: 2 };
    assert_eq!(region.sge(16, 8), Ok(Sge { addr: 0x1010, length: 8, lkey: 1 }));
    assert_eq!(region.remote(24), Ok(RemoteAddr { addr: 0x1018, rkey: 2 }));
    assert_eq!(region.address(32, 32), Ok(0x1020));
    assert_eq!(region.remote(65), Err(RangeError { offset: 65, len: 0, available: 64 }));
}

/// A memory region as a transport has one.
mod transport {
    use std::cell::Cell;
    use std::rc::Rc;

    use cq_core::setup::Registered;

    pub struct Registration {
        pub region: Registered,
        pub ended: Rc<Cell<bool>>,
    }

    impl Drop for Registration {
        fn drop(&mut self) {
            self.ended.set(true);
        }
    }

    pub struct Region {
        pub registration: Registration,
    }

    cq_core::region_methods!(Region);
}

#[test]
fn q10_the_methods_of_a_region_are_those_of_its_registration() {
    let ended = std::rc::Rc::default();
    let region = Registered { addr: 0x1000, len: 64, lkey: 1, rkey: 2 };
    let registration = transport::Registration { region, ended: std::rc::Rc::clone(&ended) };
    let mr = transport::Region { registration };
    assert_eq!((mr.addr(), mr.len(), mr.lkey(), mr.rkey()), (0x1000, 64, 1, 2));
    assert_eq!((mr.sge(16, 8), mr.remote(24)), (region.sge(16, 8), region.remote(24)));
    assert_eq!((mr.sge(60, 8), mr.remote(65)), (region.sge(60, 8), region.remote(65)));
    assert!(!ended.get());
    mr.deregister();
    assert!(ended.get());
}

#[test]
fn a_port_is_named_by_sixteen_bytes_in_network_order() {
    let gid = Gid(core::array::from_fn(|nth| nth as u8));
    let text = "1:203:405:607:809:a0b:c0d:e0f";
    assert_eq!(gid.to_string(), text);
    assert_eq!(text.parse(), Ok(gid));
    assert!("10.0.0.1".parse::<Gid>().is_err() && "".parse::<Gid>().is_err());
    assert_eq!(Gid::default(), Gid([0; 16]));
}

#[test]
fn a_destination_is_copied_whatever_its_handle_is() {
    struct Handle;
    let (ah, same) = (&Handle, |a: Destination<'_, Handle>, b: Destination<'_, Handle>| {
        std::ptr::eq(a.ah, b.ah) && (a.qp_num, a.qkey) == (b.qp_num, b.qkey)
    });
    let destination = Destination { ah, qp_num: 5, qkey: 6 };
    let (copy, clone) = (destination, Clone::clone(&destination));
    assert!(same(destination, copy) && same(destination, clone));
}

#[test]
fn q10_peers_write_only_where_this_side_may() {
    for by_peers in [Access::REMOTE_WRITE, Access::REMOTE_ATOMIC, Access::REMOTE] {
        assert!(by_peers.lacks_local_write());
        assert!(!(by_peers | Access::LOCAL_WRITE).lacks_local_write());
    }
    assert!(!Access::REMOTE_READ.lacks_local_write() && !Access::empty().lacks_local_write());
}

#[test]
fn a_mask_is_shown_by_its_names() {
    assert_eq!((QpAttrMask::STATE | QpAttrMask::AV).to_string(), "STATE | AV");
}

/// Attributes of queue pairs, paths, and the errors of set-up.
mod attributes {
    use cq_core::setup::{
        Access, AddressError, AddressVector, ArmLimitError, CreateError, DeviceError, Endpoint,
        Errno, Gid, Limit, ModerateError, ModifyError, Port, QpAttr, QpAttrMask as M, QpState as S,
        QpType, RegisterError, ResizeError,
    };

    const GID: Gid = Gid([7; 16]);
    const REFUSED: DeviceError = DeviceError { attempt: "try", errno: Errno(4000) };

    fn port() -> Port {
        let mut port = Port::new(1);
        port.mtu = 1024;
        port
    }

    fn rtr() -> QpAttr {
        QpAttr::rtr(&port(), &Endpoint { mtu: 2048, psn: 5, ..Endpoint::new(9) })
    }

    #[test]
    fn the_usual_transitions_are_complete_for_every_type() {
        let init = QpAttr::init(&port(), Access::REMOTE);
        for of in [QpType::Rc, QpType::Uc] {
            let steps = [init, rtr(), QpAttr::rts()].map(|step| step.of_type(of));
            for (step, way) in steps.iter().zip([S::RESET, S::INIT, S::RTR, S::RTS].windows(2)) {
                assert_eq!(step.check(way[0], of), Ok(way[1]), "{of:?}");
                let illegal = ModifyError::Illegal { from: S::ERR, to: way[1] };
                assert_eq!(step.check(S::ERR, of), Err(illegal));
                for missing in step.mask().difference(M::STATE).iter() {
                    let refused = step.without(missing).check(way[0], of);
                    assert_eq!(
                        refused,
                        Err(ModifyError::Missing { from: way[0], to: way[1], missing })
                    );
                }
            }
        }
        let superfluous =
            ModifyError::Superfluous { from: S::RTR, to: S::RTS, superfluous: M::QKEY };
        assert_eq!(QpAttr::rts().qkey(1).check(S::RTR, QpType::Rc), Err(superfluous));
        assert_eq!(
            (rtr().path_mtu, rtr().rq_psn, rtr().dest_qp_num),
            (Some(1024), Some(5), Some(9))
        );
    }

    #[test]
    fn the_state_that_the_caller_expects_is_checked() {
        let attr = QpAttr::rts().cur_state(S::RTR);
        assert_eq!(attr.check(S::RTR, QpType::Rc), Ok(S::RTS));
        let wrong = ModifyError::NotIn { is: S::RTR, claimed: S::INIT };
        assert_eq!(attr.cur_state(S::INIT).check(S::RTR, QpType::Rc), Err(wrong));
    }

    #[test]
    fn values_past_their_range_are_named() {
        type Set = fn(QpAttr, u32) -> QpAttr;
        const BITS24: u32 = (1 << 24) - 1;
        let judged: [(M, u32, Set); 7] = [
            (M::DEST_QPN, BITS24, |attr, n| attr.dest_qp_num(n)),
            (M::RQ_PSN, BITS24, |attr, n| attr.rq_psn(n)),
            (M::MIN_RNR_TIMER, 31, |attr, n| attr.min_rnr_timer(n as u8)),
            (M::SQ_PSN, BITS24, |attr, n| attr.sq_psn(n)),
            (M::TIMEOUT, 31, |attr, n| attr.timeout(n as u8)),
            (M::RETRY_CNT, 7, |attr, n| attr.retry_cnt(n as u8)),
            (M::RNR_RETRY, 7, |attr, n| attr.rnr_retry(n as u8)),
        ];
        for (i, (attr, max, set)) in judged.into_iter().enumerate() {
            let (step, from) = if i < 3 { (rtr(), S::INIT) } else { (QpAttr::rts(), S::RTR) };
            assert!(set(step, max).check(from, QpType::Rc).is_ok(), "{attr}");
            match set(step, max + 1).check(from, QpType::Rc) {
                Err(ModifyError::BadValue { attr: named, value, .. }) => {
                    assert_eq!((named, value), (attr, max + 1));
                }
                other => panic!("{attr}: {other:?}"),
            }
        }
        for mtu in [0, 128, 1000, 8192] {
            let refused = rtr().path_mtu(mtu).check(S::INIT, QpType::Rc);
            assert!(
                matches!(refused, Err(ModifyError::BadValue { attr: M::PATH_MTU, value, .. }) if value == mtu)
            );
        }
    }

    #[test]
    fn attributes_lie_over_earlier_ones() {
        let (new, old) = (QpAttr::new().timeout(3), QpAttr::rts());
        let both = new.over(old);
        assert_eq!((both.timeout, both.retry_cnt, both.state), (Some(3), Some(7), Some(S::RTS)));
        assert_eq!(both.mask(), old.mask());
        assert_eq!(both.without(M::all()), QpAttr::new());
        assert_eq!(QpAttr::new().mask(), M::empty());
    }

    #[test]
    fn a_path_is_global_on_ethernet_and_where_there_is_no_lid() {
        for (is_ethernet, lid, global) in
            [(false, 3, false), (false, 0, true), (true, 3, true), (true, 0, true)]
        {
            let mut port = port();
            (port.is_ethernet, port.gid_index) = (is_ethernet, 4);
            let path = AddressVector::of(&port, GID, lid);
            assert_eq!((path.port, path.lid, path.sl), (1, lid, 0));
            let route = path.route.map(|route| (route.gid, route.sgid_index));
            assert_eq!(route, global.then_some((GID, 4)), "{is_ethernet} {lid}");
        }
    }

    /// Each error tells the number that C gets.
    #[test]
    fn errors_tell_their_number() {
        let what = Limit::QueuePairs;
        let created = [
            (CreateError::Zero(what), Errno::EINVAL),
            (CreateError::TooMany { what, asked: 2, max: 1 }, Errno::EINVAL),
            (CreateError::OtherContext, Errno::EINVAL),
            (CreateError::TableFull { what, max: 1 }, Errno::ENOMEM),
            (CreateError::NoMemory { bytes: 1 }, Errno::ENOMEM),
            (CreateError::Stuck, Errno::EBUSY),
            (CreateError::Forked, Errno::ENODEV),
            (CreateError::OwnReceives, Errno::EOPNOTSUPP),
            (CreateError::NoDescriptor { errno: Errno::EMFILE }, Errno::EMFILE),
            (REFUSED.into(), Errno(4000)),
        ];
        for (error, errno) in created {
            assert_eq!(error.errno(), errno, "{error}");
            assert_eq!(ResizeError::from(error).errno(), errno);
            assert_eq!(ResizeError::from(error).to_string(), error.to_string());
        }
        assert_eq!(ResizeError::TooFew { unpolled: 2, asked: 1 }.errno(), Errno::EINVAL);
        assert_eq!(ResizeError::Overrun.errno(), Errno::EINVAL);
        for (error, errno) in [
            (RegisterError::Empty, Errno::EINVAL),
            (RegisterError::NeedsLocalWrite, Errno::EINVAL),
            (RegisterError::UnknownAccess { bits: 64 }, Errno::EINVAL),
            (RegisterError::OutOfRange { addr: 1, len: 2 }, Errno::EFAULT),
            (RegisterError::TableFull { max: 1 }, Errno::ENOMEM),
            (RegisterError::SharedMemoryFull { len: 1 }, Errno::ENOMEM),
            (RegisterError::FileSizeLimit { len: 1, limit: 0 }, Errno::EFBIG),
            (RegisterError::NoMemory { len: 1, errno: Errno::EAGAIN }, Errno::EAGAIN),
            (RegisterError::Forked, Errno::ENODEV),
            (REFUSED.into(), Errno(4000)),
        ] {
            assert_eq!(error.errno(), errno, "{error}");
        }
        for (errno, told) in [
            (ModerateError::Unsupported.errno(), Errno::EOPNOTSUPP),
            (ModerateError::Forked.errno(), Errno::ENODEV),
            (ModerateError::Stuck.errno(), Errno::EBUSY),
            (ModerateError::NoThread { errno: Errno::EAGAIN }.errno(), Errno::EAGAIN),
            (ModerateError::Refused(REFUSED).errno(), Errno(4000)),
            (ArmLimitError::TooMany { asked: 2, max: 1 }.errno(), Errno::EINVAL),
            (ArmLimitError::Forked.errno(), Errno::ENODEV),
            (ArmLimitError::Stuck.errno(), Errno::EBUSY),
            (ArmLimitError::Refused(REFUSED).errno(), Errno(4000)),
            (AddressError::NoDatagram.errno(), Errno::EINVAL),
            (AddressError::from(REFUSED).errno(), Errno(4000)),
            (ModifyError::PeerSuspended.errno(), Errno::EBUSY),
            (ModifyError::Forked.errno(), Errno::ENODEV),
            (ModifyError::Illegal { from: S::RTS, to: S::INIT }.errno(), Errno::EINVAL),
        ] {
            assert_eq!(errno, told);
        }
        let (from, to, mask, errno) = (S::INIT, S::RTR, M::AV, Errno::ETIMEDOUT);
        let refused = ModifyError::Refused { from, to, mask, errno };
        assert_eq!(refused.errno(), errno);
        assert_eq!(
            refused.to_string(),
            "the device refused to take the queue pair from INIT to RTR with AV: timed out (ETIMEDOUT, errno 110); see ibv_modify_qp(3)"
        );
        assert_eq!(REFUSED.to_string(), "cannot try: errno 4000");
    }

    /// What travels is the same on the other side.
    #[test]
    fn attributes_and_endpoints_travel_by_serde() {
        let attr = rtr().access(Access::REMOTE | Access::from_bits_retain(1 << 20));
        let text = serde_json::to_string(&attr).unwrap();
        assert_eq!(serde_json::from_str::<QpAttr>(&text).unwrap(), attr);
        let end = Endpoint { gid: GID, ..Endpoint::new(3) };
        let text = serde_json::to_string(&end).unwrap();
        assert_eq!(serde_json::from_str::<Endpoint>(&text).unwrap(), end);
    }
}
