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
    for (max_wr, max_sge) in [(0, 1), (u32::MAX, 1), (1, u32::MAX)] {
        assert_eq!(create(pd, max_wr, max_sge), Err(Errno::INVAL));
    }
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

#[test]
fn q09_a_queue_pair_of_a_shared_queue_has_no_receives_of_its_own() {
    let mut srq = ptr::null_mut();
    let mut sharing = |qp_type| {
        End::of(|init| {
            srq = create(init.pd, MAX_WR, 2).unwrap();
            (init.srq, init.qp_type) = (srq, qp_type);
        })
    };
    assert_eq!(sharing(IBV_QPT_UC).err(), Some(Errno::OPNOTSUPP));
    let end = sharing(IBV_QPT_RC).unwrap();
    assert_eq!(end.post_recv(&mut [recv(1, &[])]), Err((libc::EINVAL, 0)));
    let (attr, init) = end.query();
    assert_eq!((attr.cap.max_recv_wr, init.srq), (0, srq));
}
