//! Shared receive queues, as C programs use them (Q9).

use super::*;
use crate::test::*;

const MAX_WR: u32 = 20;
const LIMIT: c_int = IBV_SRQ_LIMIT as c_int;

fn create(pd: *mut ibv_pd, max_wr: u32, max_sge: u32) -> Result<*mut ibv_srq, Errno> {
    let attr = ibv_srq_attr { max_wr, max_sge, srq_limit: 0xdead };
    let mut init = ibv_srq_init_attr { srq_context: pd.cast(), attr };
    // SAFETY: attributes.
    let srq = unsafe { ibv_create_srq(pd, &raw mut init) };
    if srq.is_null() {
        return Err(Errno::last());
    }
    assert!(init.attr.max_wr >= max_wr && init.attr.max_sge >= max_sge);
    Ok(srq)
}

fn query(srq: *mut ibv_srq) -> (u32, u32, u32) {
    let mut attr = ibv_srq_attr { max_wr: 0, max_sge: 0, srq_limit: 77 };
    // SAFETY: a buffer for attributes.
    assert_eq!(unsafe { ibv_query_srq(srq, &raw mut attr) }, 0);
    (attr.max_wr, attr.max_sge, attr.srq_limit)
}

#[test]
fn a_queue_says_what_it_is() {
    let pd = domain();
    let srq = create(pd, MAX_WR, 2).unwrap();
    let (mut number, null) = (0, ptr::null_mut());
    // SAFETY: a queue, which stays; a buffer for a number, or null.
    unsafe {
        assert_eq!(((*srq).pd, (*srq).context), (pd, (*pd).context));
        assert_eq!((*srq).srq_context, pd.cast());
        assert_eq!(ibv_get_srq_num(srq, &raw mut number), 0);
        assert_eq!(ibv_get_srq_num(srq, ptr::null_mut()), libc::EINVAL);
        assert_eq!(ibv_query_srq(srq, ptr::null_mut()), libc::EINVAL);
        assert_eq!(ibv_create_srq(pd, ptr::null_mut()), null);
    }
    assert_ne!(number, 0);
    assert_eq!(query(srq), (MAX_WR, 2, 0));
    assert_eq!(create(pd, 0, 1), Err(Errno::INVAL));
}

#[test]
fn what_can_not_be_modified_changes_nothing() {
    let srq = create(domain(), MAX_WR, 2).unwrap();
    let modify = |srq_limit, mask| {
        let mut attr = ibv_srq_attr { srq_limit, max_wr: 7, max_sge: 2 };
        // SAFETY: attributes.
        unsafe { ibv_modify_srq(srq, &raw mut attr, mask) }
    };
    let size = IBV_SRQ_MAX_WR as c_int;
    for (srq_limit, mask, answer) in [
        (1, LIMIT, 0),
        (MAX_WR + 1, LIMIT, libc::EINVAL),
        (2, size, libc::EOPNOTSUPP),
        (2, size | LIMIT, libc::EOPNOTSUPP),
        (2, LIMIT | 1 << 5, libc::EINVAL),
        (2, 0, 0),
    ] {
        assert_eq!(modify(srq_limit, mask), answer, "{srq_limit} {mask:#x}");
        assert_eq!(query(srq), (MAX_WR, 2, 1));
    }
    // SAFETY: null is no attributes.
    assert_eq!(unsafe { ibv_modify_srq(srq, ptr::null_mut(), LIMIT) }, libc::EINVAL);
}
