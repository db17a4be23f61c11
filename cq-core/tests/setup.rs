//! The words that transports have in common for setting up.

use cq_core::setup::{Access, Destination, Gid, InUse, QpAttrMask, RangeError, Registered};
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
fn q11_what_is_in_use_says_what_to_destroy_first_and_gives_the_handle_back() {
    let refused = InUse::new(7, "completion queue", "its queue pairs");
    let said = "the completion queue is still in use: destroy its queue pairs first";
    assert_eq!((refused.to_string().as_str(), refused.handle), (said, 7));
}

#[test]
fn a_mask_is_shown_by_its_names() {
    assert_eq!((QpAttrMask::STATE | QpAttrMask::AV).to_string(), "STATE | AV");
}
