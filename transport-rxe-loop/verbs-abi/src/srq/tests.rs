//! Shared receive queues, as C programs use them (Q9, Q11).

use std::ptr;
use std::thread;

use super::*;
use crate::exports::*;
use crate::test::domain;
use crate::test::ends::{End, link, named, recv};

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

fn query(srq: *mut ibv_srq) -> ibv_srq_attr {
    let mut attr = ibv_srq_attr::ZEROED;
    // SAFETY: a buffer for attributes.
    assert_eq!(unsafe { ibv_query_srq(srq, &raw mut attr) }, 0);
    attr
}

fn set_limit(srq: *mut ibv_srq, srq_limit: u32) -> c_int {
    let mut attr = ibv_srq_attr { srq_limit, max_wr: 7, ..ibv_srq_attr::ZEROED };
    // SAFETY: attributes.
    unsafe { ibv_modify_srq(srq, &raw mut attr, LIMIT) }
}

fn post(srq: *mut ibv_srq, list: &mut [ibv_recv_wr]) -> Result<(), (c_int, usize)> {
    link(list, |wr, next| wr.next = next);
    let mut bad = ptr::null_mut();
    // SAFETY: a list, and a buffer for a pointer.
    let status = unsafe { ibv_post_srq_recv(srq, list.as_mut_ptr(), &raw mut bad) };
    named(status, bad, list)
}

/// An end whose receives come from a shared queue, and that queue.
fn sharing() -> (End, *mut ibv_srq) {
    let mut srq = ptr::null_mut();
    let end = End::with(|mut init, _| {
        srq = create(init.qp_context.cast(), MAX_WR, 2).unwrap();
        init.srq = srq;
        // SAFETY: what it is made of.
        unsafe { ibv_create_qp(init.qp_context.cast(), &raw mut init) }
    });
    end.connect(end.number());
    (end, srq)
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
    let attr = query(srq);
    assert_eq!((attr.max_wr, attr.max_sge, attr.srq_limit), (MAX_WR, 2, 0));
}

#[test]
fn capacities_past_the_limits_are_refused() {
    let pd = domain();
    for (max_wr, max_sge) in [(0, 1), (u32::MAX, 1), (1, u32::MAX)] {
        assert_eq!(create(pd, max_wr, max_sge), Err(Errno::INVAL));
    }
    assert_eq!(create(ptr::null_mut(), 1, 1), Err(Errno::INVAL));
}

#[test]
fn q11_what_is_destroyed_is_gone() {
    let pd = domain();
    let srq = create(pd, 1, 1).unwrap();
    // SAFETY: any pointer may be handed in; nobody else uses the handle.
    unsafe {
        assert_eq!(ibv_dealloc_pd(pd), libc::EBUSY);
        (*srq).handle ^= 0xdead_beef;
        assert_eq!(ibv_destroy_srq(srq), libc::ENOENT);
        assert_eq!(post(srq, &mut [recv(1, &[])]), Err((libc::ENOENT, 0)));
        (*srq).handle ^= 0xdead_beef;
        assert_eq!(ibv_destroy_srq(srq), 0);
        assert_eq!(ibv_destroy_srq(srq), libc::ENOENT);
        assert_eq!(ibv_destroy_srq(ptr::null_mut()), libc::EINVAL);
        assert_eq!(ibv_dealloc_pd(pd), 0);
    }
}

#[test]
fn q11_what_a_queue_pair_takes_from_stays() {
    let (mut end, srq) = sharing();
    // SAFETY: any pointer may be handed in.
    unsafe {
        assert_eq!(ibv_destroy_srq(srq), libc::EBUSY);
        assert_eq!(post(srq, &mut [recv(1, &[])]), Ok(()));
        assert_eq!(end.destroy_qp(), 0);
        assert_eq!(ibv_destroy_srq(srq), 0);
    }
}

#[test]
fn n07_a_queue_goes_once_its_events_are_acknowledged() {
    let srq = create(domain(), 1, 1).unwrap();
    let slot = SHARED.find(srq).unwrap();
    slot.side().reports.take();
    thread::scope(|scope| {
        // SAFETY: any pointer may be handed in.
        let destroying = scope.spawn(|| unsafe { ibv_destroy_srq(slot.face()) });
        while slot.with(|_| ()).is_ok() {
            thread::yield_now();
        }
        assert!(!destroying.is_finished());
        slot.side().reports.acknowledge(1);
        assert_eq!(destroying.join().unwrap(), 0);
    });
}

#[test]
fn q09_a_queue_pair_of_a_shared_queue_has_no_receives_of_its_own() {
    let (end, srq) = sharing();
    assert_eq!(end.post_recv(&mut [recv(1, &[])]), Err((libc::EINVAL, 0)));
    let (attr, init) = end.query();
    assert_eq!((attr.cap.max_recv_wr, init.srq), (0, srq));
}

#[test]
fn q04_a_list_stops_at_the_first_bad_receive_and_names_it() {
    let (end, srq) = sharing();
    let (two, three) = ([end.sge(0, 8); 2], [end.sge(0, 8); 3]);
    let mut list: Vec<_> = (0..19).map(|wr_id| recv(wr_id, &two)).collect();
    list[17] = recv(17, &three);
    assert_eq!(post(srq, &mut list), Err((libc::EINVAL, 17)));
    let mut list: Vec<_> = (0..5).map(|wr_id| recv(wr_id, &two)).collect();
    assert_eq!(post(srq, &mut list), Err((libc::ENOMEM, MAX_WR as usize - 17)));
    let mut around = [recv(1, &[])];
    around[0].next = around.as_mut_ptr();
    assert_eq!(post(srq, &mut around), Err((libc::ENOMEM, 0)));
}

#[test]
fn what_can_not_be_modified_changes_nothing() {
    let (_end, srq) = sharing();
    assert_eq!(set_limit(srq, 1), 0);
    assert_eq!(set_limit(srq, MAX_WR + 1), libc::EINVAL);
    let mut attr = ibv_srq_attr { srq_limit: 2, max_wr: 2, max_sge: 2 };
    // SAFETY: attributes, or null.
    unsafe {
        for mask in [IBV_SRQ_MAX_WR as c_int, IBV_SRQ_MAX_WR as c_int | LIMIT] {
            assert_eq!(ibv_modify_srq(srq, &raw mut attr, mask), libc::EOPNOTSUPP);
        }
        assert_eq!(ibv_modify_srq(srq, &raw mut attr, LIMIT | 1 << 5), libc::EINVAL);
        assert_eq!(ibv_modify_srq(srq, ptr::null_mut(), LIMIT), libc::EINVAL);
        assert_eq!(ibv_modify_srq(srq, &raw mut attr, 0), 0);
    }
    let now = query(srq);
    assert_eq!((now.srq_limit, now.max_wr), (1, MAX_WR));
}

#[test]
fn q09_unreliable_connections_have_receives_of_their_own() {
    let pd = domain();
    let srq = create(pd, 1, 1).unwrap();
    let end = End::new(IBV_QPT_RC);
    let (cq, cap) = (end.cq, crate::test::ends::CAP);
    let mut init = ibv_qp_init_attr {
        send_cq: cq,
        recv_cq: cq,
        srq,
        cap,
        qp_type: IBV_QPT_UC,
        ..ibv_qp_init_attr::ZEROED
    };
    // SAFETY: what it is made of.
    assert!(unsafe { ibv_create_qp(pd, &raw mut init) }.is_null());
    assert_eq!(Errno::last(), Errno::OPNOTSUPP);
}
