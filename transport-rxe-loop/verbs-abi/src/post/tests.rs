//! Posting lists, as C programs do (Q4, Q6).

use transport_rxe_loop::Context;

use super::*;
use crate::raw::MAX_INLINE;
use crate::test::*;

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
    let (_a, b) = pair(IBV_QPT_RC);
    let (good, bad) = ([b.sge(0, 8)], [b.sge(0, 8); 5]);
    let at = CHUNK + 3;
    let wr = |wr_id| recv(wr_id as u64, if wr_id == at { &bad } else { &good });
    let mut list = (0..at + 2).map(wr).collect::<std::vec::Vec<_>>();
    assert_eq!(b.post_recv(&mut list), Err((libc::EINVAL, at)));
    let left = CAP.max_recv_wr as usize - at;
    let mut list = vec![recv(at as u64, &good); left + 2];
    assert_eq!(b.post_recv(&mut list), Err((libc::ENOMEM, left)));
}

#[test]
fn q04_a_list_that_leads_to_itself_ends_with_the_queue() {
    let (a, b) = pair(IBV_QPT_RC);
    let mut receives = [recv(1, &[])];
    receives[0].next = receives.as_mut_ptr();
    assert_eq!(b.post_recv(&mut receives), Err((libc::ENOMEM, 0)));
    let mut sends = [send(2, &[])];
    sends[0].next = sends.as_mut_ptr();
    assert_eq!(a.post_send(&mut sends), Err((libc::ENOMEM, 0)));
    // Where they are flushed at once the queue is never full.
    b.change(IBV_QPS_ERR);
    assert_eq!(b.post_recv(&mut receives), Err((libc::ENOMEM, 0)));
}

#[test]
fn q04_no_queue_takes_more_than_is_taken_here() {
    let _sets_the_fabric = crate::test::open();
    let most = Context::open("loop0").unwrap().attributes();
    assert_eq!((most.max_qp_wr, most.max_srq_wr), (MAX_LIST as u32, MAX_LIST as u32));
    assert_eq!(most.max_inline, Some(MAX_INLINE as u32));
}

#[test]
fn q11_null_pointers_are_told() {
    let a = End::new(IBV_QPT_RC);
    let (mut wr, mut recv) = (send(1, &[]), recv(1, &[]));
    let (mut bad, mut bad_recv) = (&raw mut wr, &raw mut recv);
    // SAFETY: each pointer is null, or to what it should be.
    unsafe {
        assert_eq!(ibv_post_send(a.qp, &raw mut wr, ptr::null_mut()), libc::EINVAL);
        assert_eq!(ibv_post_send(a.qp, ptr::null_mut(), &raw mut bad), libc::EINVAL);
        assert_eq!(ibv_post_recv(a.qp, &raw mut recv, ptr::null_mut()), libc::EINVAL);
        assert_eq!(ibv_post_recv(a.qp, ptr::null_mut(), &raw mut bad_recv), libc::EINVAL);
    }
    assert_eq!((bad, bad_recv), (ptr::null_mut(), ptr::null_mut()));
}

#[test]
fn q04_what_a_send_can_not_be_made_of_is_refused() {
    let (a, _b) = pair(IBV_QPT_RC);
    let refused = |wr| assert_eq!(a.post_send(&mut [wr]), Err((libc::EINVAL, 0)));
    for opcode in [10, 11, 12, 13, 14, 16, 99, u32::MAX] {
        refused(ibv_send_wr { opcode, ..send(1, &[]) });
    }
    for send_flags in [IBV_SEND_IP_CSUM, 1 << 5, 1 << 31] {
        refused(ibv_send_wr { send_flags, ..send(1, &[]) });
    }
    let sge = [a.sge(0, 8)];
    for (sg_list, num_sge) in [(sge.as_ptr(), -1), (sge.as_ptr(), i32::MIN), (ptr::null(), 1)] {
        let sg_list = sg_list.cast_mut();
        for wr in [send(1, &[]), inline(send(1, &[]))] {
            refused(ibv_send_wr { sg_list, num_sge, ..wr });
        }
        let wr = ibv_recv_wr { sg_list, num_sge, ..recv(1, &[]) };
        assert_eq!(a.post_recv(&mut [wr]), Err((libc::EINVAL, 0)), "{num_sge}");
    }
    refused(inline(send(1, &[ibv_sge { addr: 0, length: 8, lkey: 0 }])));
    // Neither more inline bytes than this queue pair takes, nor more than the buffer holds anywhere.
    for length in [TOO_LONG, MAX_INLINE as u32 + 1, MEMORY as u32] {
        refused(inline(send(3, &[a.sge(0, length - 1), a.sge(0, 1)])));
    }
    a.expect(&[]);
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
}
