//! Posting lists, as C programs do (Q3–Q6, Q11).

use crate::exports::*;
use std::ffi::c_int;
use std::ptr;
use std::thread;

use cq_core::wc::WcStatus as S;
use transport_rxe_loop::Context;

use super::{CHUNK, MAX_LIST};
use crate::raw::arg::MAX_INLINE;
use crate::sys::*;
use crate::test::ends::{CAP, End, MEMORY, pair, recv, send};

const TOO_LONG: u32 = CAP.max_inline_data + 1;

fn inline(wr: ibv_send_wr) -> ibv_send_wr {
    ibv_send_wr { send_flags: wr.send_flags | IBV_SEND_INLINE, ..wr }
}

#[test]
fn q04_a_list_stops_at_the_first_bad_send_and_names_it() {
    let (a, b) = pair(IBV_QPT_RC);
    (0..3).for_each(|wr_id| b.recv(wr_id, 0, 64));
    let (good, bad) = ([a.sge(0, 8)], [a.sge(0, TOO_LONG)]);
    let mut list =
        [inline(send(10, &good)), send(11, &good), inline(send(12, &bad)), send(13, &good)];
    assert_eq!(a.post_send(&mut list), Err((libc::EINVAL, 2)));
    a.expect(&[(10, S::SUCCESS), (11, S::SUCCESS)]);
    b.expect(&[(0, S::SUCCESS), (1, S::SUCCESS)]);
}

#[test]
fn q04_a_list_stops_at_the_first_bad_receive_and_names_it() {
    let (a, b) = pair(IBV_QPT_RC);
    let (good, bad) = ([b.sge(0, 8)], [b.sge(0, 8); 5]);
    let at = CHUNK + 3;
    let wr = |wr_id| recv(wr_id as u64, if wr_id == at { &bad } else { &good });
    let mut list: Vec<_> = (0..at + 2).map(wr).collect();
    assert_eq!(b.post_recv(&mut list), Err((libc::EINVAL, at)));
    for wr_id in 0..at as u64 {
        assert_eq!(a.post_send(&mut [send(wr_id, &[a.sge(0, 8)])]), Ok(()));
        a.expect(&[(wr_id, S::SUCCESS)]);
        b.expect(&[(wr_id, S::SUCCESS)]);
    }
}

#[test]
fn q04_a_list_longer_than_the_queue_stops_at_its_end() {
    let (a, b) = pair(IBV_QPT_RC);
    let most = CAP.max_send_wr as usize;
    let mut recvs = vec![recv(1, &[]); most + 2];
    assert_eq!(b.post_recv(&mut recvs), Err((libc::ENOMEM, most)));
    let mut sends = vec![send(2, &[]); most + 2];
    assert_eq!(a.post_send(&mut sends), Err((libc::ENOMEM, most)));
    a.expect(&vec![(2, S::SUCCESS); most]);
    b.expect(&vec![(1, S::SUCCESS); most]);
}

#[test]
fn q04_a_list_that_leads_to_itself_ends_with_the_queue() {
    let (a, b) = pair(IBV_QPT_RC);
    let mut around = [recv(1, &[])];
    around[0].next = around.as_mut_ptr();
    assert_eq!(b.post_recv(&mut around), Err((libc::ENOMEM, 0)));
    let mut around = [send(2, &[])];
    around[0].next = around.as_mut_ptr();
    assert_eq!(a.post_send(&mut around), Err((libc::ENOMEM, 0)));
}

#[test]
fn q04_a_list_that_leads_to_itself_ends_where_receives_are_flushed_at_once() {
    let (_a, b) = pair(IBV_QPT_RC);
    b.to(IBV_QPS_ERR);
    let mut around = [recv(1, &[])];
    around[0].next = around.as_mut_ptr();
    assert_eq!(b.post_recv(&mut around), Err((libc::ENOMEM, 0)));
}

#[test]
fn q04_no_queue_is_longer_than_a_list_may_be() {
    let _sets_the_fabric = crate::test::open();
    let most = Context::open("loop0").unwrap().attributes();
    assert_eq!((most.max_qp_wr, most.max_srq_wr), (MAX_LIST as u32, MAX_LIST as u32));
}

#[test]
fn q11_null_pointers_are_told() {
    let a = End::new(IBV_QPT_RC);
    let (mut wr, mut recv) = (send(1, &[]), recv(1, &[]));
    let (mut bad, mut bad_recv) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: any pointer may be handed in; these are null or what they should be.
    unsafe {
        assert_eq!(ibv_post_send(ptr::null_mut(), &raw mut wr, &raw mut bad), libc::EINVAL);
        assert_eq!(bad, &raw mut wr);
        assert_eq!(ibv_post_send(a.qp, &raw mut wr, ptr::null_mut()), libc::EINVAL);
        assert_eq!(ibv_post_send(a.qp, ptr::null_mut(), &raw mut bad), libc::EINVAL);
        assert_eq!(bad, ptr::null_mut());
        assert_eq!(ibv_post_recv(ptr::null_mut(), &raw mut recv, &raw mut bad_recv), libc::EINVAL);
        assert_eq!(bad_recv, &raw mut recv);
        assert_eq!(ibv_post_recv(a.qp, &raw mut recv, ptr::null_mut()), libc::EINVAL);
        assert_eq!(ibv_post_recv(a.qp, ptr::null_mut(), &raw mut bad_recv), libc::EINVAL);
    }
}

#[test]
fn q11_a_garbled_handle_is_told() {
    let (a, b) = pair(IBV_QPT_RC);
    let garble = || {
        // SAFETY: the handle of a queue pair that nobody else uses.
        unsafe { (*a.qp).handle ^= 0xdead_beef };
    };
    garble();
    assert_eq!(a.post_send(&mut [send(1, &[])]), Err((libc::ENOENT, 0)));
    assert_eq!(a.post_recv(&mut [recv(1, &[])]), Err((libc::ENOENT, 0)));
    garble();
    b.recv(2, 0, 8);
    assert_eq!(a.post_send(&mut [send(1, &[])]), Ok(()));
    a.expect(&[(1, S::SUCCESS)]);
}

#[test]
fn q03_what_is_posted_too_early_is_refused() {
    let a = End::new(IBV_QPT_RC);
    assert_eq!(a.post_recv(&mut [recv(1, &[])]), Err((libc::EINVAL, 0)));
    assert_eq!(a.post_send(&mut [send(1, &[])]), Err((libc::EINVAL, 0)));
    a.connect(a.number());
    a.recv(2, 0, 8);
    a.expect(&[]);
}

#[test]
fn q04_numbers_that_nobody_knows_are_refused() {
    let (a, _b) = pair(IBV_QPT_RC);
    for opcode in [10, 11, 12, 13, 14, 16, 99, u32::MAX] {
        let wr = ibv_send_wr { opcode, ..send(1, &[]) };
        assert_eq!(a.post_send(&mut [wr]), Err((libc::EINVAL, 0)), "{opcode}");
    }
    for flag in [IBV_SEND_IP_CSUM, 1 << 5, 1 << 31] {
        let wr = ibv_send_wr { send_flags: flag, ..send(1, &[]) };
        assert_eq!(a.post_send(&mut [wr]), Err((libc::EINVAL, 0)), "{flag:#x}");
    }
    a.expect(&[]);
}

#[test]
fn q04_lists_of_sges_that_are_none_are_refused() {
    let (a, _b) = pair(IBV_QPT_RC);
    let sge = [a.sge(0, 8)];
    for (sg_list, num_sge) in [(sge.as_ptr(), -1), (sge.as_ptr(), c_int::MIN), (ptr::null(), 1)] {
        let sg_list = sg_list.cast_mut();
        for wr in [send(1, &[]), inline(send(1, &[]))] {
            let wr = ibv_send_wr { sg_list, num_sge, ..wr };
            assert_eq!(a.post_send(&mut [wr]), Err((libc::EINVAL, 0)), "{num_sge}");
        }
        let wr = ibv_recv_wr { sg_list, num_sge, ..recv(1, &[]) };
        assert_eq!(a.post_recv(&mut [wr]), Err((libc::EINVAL, 0)), "{num_sge}");
    }
    let nowhere = [ibv_sge { addr: 0, length: 8, lkey: 0 }];
    assert_eq!(a.post_send(&mut [inline(send(1, &nowhere))]), Err((libc::EINVAL, 0)));
    // No list is as good as an empty one.
    let none = ibv_recv_wr { sg_list: ptr::null_mut(), ..recv(2, &[]) };
    assert_eq!(a.post_recv(&mut [none]), Ok(()));
}

#[test]
fn q06_inline_bytes_of_many_sges_are_copied_at_once() {
    let (a, b) = pair(IBV_QPT_RC);
    b.recv(1, 100, 64);
    let mut bytes = *b"one, two, three";
    let sge = |at: usize, length| {
        let addr = bytes.as_ptr().wrapping_add(at).expose_provenance() as u64;
        ibv_sge { addr, length, lkey: 0xbad }
    };
    let sges = [sge(0, 5), sge(5, 0), sge(5, 5), sge(10, 5)];
    assert_eq!(a.post_send(&mut [inline(send(2, &sges))]), Ok(()));
    bytes.fill(0);
    a.expect(&[(2, S::SUCCESS)]);
    assert_eq!(b.expect(&[(1, S::SUCCESS)])[0].result().unwrap().byte_len(), 15);
    assert_eq!(b.read(100, 15), b"one, two, three");

    // Neither more than this queue pair takes, nor more than the buffer holds anywhere.
    for length in [TOO_LONG, MAX_INLINE as u32 + 1, MEMORY as u32] {
        let sges = [a.sge(0, length - 1), a.sge(0, 1)];
        assert_eq!(a.post_send(&mut [inline(send(3, &sges))]), Err((libc::EINVAL, 0)));
    }
}

#[test]
fn q06_what_can_be_gathered_is_what_the_device_takes() {
    let _sets_the_fabric = crate::test::open();
    let most = Context::open("loop0").unwrap().attributes().max_inline;
    assert_eq!(most, Some(MAX_INLINE as u32));
}

#[test]
fn q06_a_read_can_not_be_inline() {
    let (a, b) = pair(IBV_QPT_RC);
    let mut wr = ibv_send_wr { opcode: IBV_WR_RDMA_READ, ..inline(send(1, &[a.sge(0, 8)])) };
    wr.wr.rdma.remote_addr = b.addr(0);
    wr.wr.rdma.rkey = b.rkey();
    assert_eq!(a.post_send(&mut [wr]), Err((libc::EINVAL, 0)));
}

#[test]
fn q11_threads_post_to_one_queue_pair_at_a_time() {
    const EACH: u64 = 200;
    let (a, b) = pair(IBV_QPT_RC);
    thread::scope(|scope| {
        for thread in 0..4 {
            let (a, b) = (&a, &b);
            scope.spawn(move || {
                for nth in 0..EACH {
                    let sges = [a.sge(0, 8)];
                    let mut wr = ibv_send_wr {
                        opcode: IBV_WR_RDMA_WRITE,
                        ..inline(send(thread * EACH + nth, &sges))
                    };
                    wr.wr.rdma = ibv_send_wr_rdma { remote_addr: b.addr(0), rkey: b.rkey() };
                    while a.post_send(&mut [wr]) == Err((libc::ENOMEM, 0)) {
                        thread::yield_now();
                    }
                }
            });
        }
        let done = a.completions(4 * EACH as usize);
        let mut all: Vec<_> = done.iter().map(|wc| (wc.wr_id(), wc.status())).collect();
        all.sort_unstable();
        assert_eq!(all, (0..4 * EACH).map(|wr_id| (wr_id, S::SUCCESS)).collect::<Vec<_>>());
    });
}
