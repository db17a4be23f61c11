//! The words that transports have in common for setting up.

use cq_core::setup::{Access, InUse, QpAttrMask, RangeError, Registered};

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
    assert!(large.sge(0, 1 << 32).is_err());
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
