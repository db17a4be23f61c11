//! Posting through the functions of a queue pair, as C programs do (Q6).

mod failures;

use cq_verbs::wr::SendFlags;

use super::*;
use crate::test::*;

/// An end with functions for these operations, in RESET.
fn end_in_reset(qp_type: ibv_qp_type, ops: u32, max_inline_data: u32) -> End {
    let end = End::of(|init| {
        (init.qp_type, init.cap.max_inline_data) = (qp_type, max_inline_data);
        (init.comp_mask, init.send_ops_flags) = (KNOWN, ops.into());
    });
    end.unwrap()
}

/// Two of them, each connected to the other.
fn pair(qp_type: ibv_qp_type, ops: u32) -> (End, End) {
    connected(|| end_in_reset(qp_type, ops, CAP.max_inline_data))
}

/// An end's queue pair, as C finds the functions there.
fn functions(end: &End) -> Qp {
    // SAFETY: any pointer may be handed in.
    let qp = unsafe { ibv_qp_to_qp_ex(end.qp) };
    assert!(!qp.is_null());
    qp
}

/// What begins next is a signaled request of this name.
fn named(qp: Qp, wr_id: u64) -> Qp {
    // SAFETY: a queue pair, of which this thread has the functions.
    unsafe { ((*qp).wr_id, (*qp).wr_flags) = (wr_id, SendFlags::SIGNALED.bits()) };
    qp
}

fn set_sge(qp: Qp, ibv_sge { addr, length, lkey }: ibv_sge) {
    call!(qp, wr_set_sge(lkey, addr, length));
}

/// A SEND of this.
fn put_send(qp: Qp, wr_id: u64, sge: ibv_sge) {
    call!(named(qp, wr_id), wr_send());
    set_sge(qp, sge);
}

/// Such a SEND, posted alone.
fn post_send(qp: Qp, wr_id: u64, sge: ibv_sge) -> c_int {
    call!(qp, wr_start());
    put_send(qp, wr_id, sge);
    call!(qp, wr_complete())
}

/// Completions without a fault.
fn succeeded<const N: usize>(wr_ids: [u64; N]) -> [(u64, S); N] {
    wr_ids.map(|wr_id| (wr_id, S::SUCCESS))
}

const SEND: u32 = IBV_QP_EX_WITH_SEND;
/// Others that carry data.
const DATA: u32 = IBV_QP_EX_WITH_RDMA_WRITE
    | IBV_QP_EX_WITH_SEND_WITH_IMM
    | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM
    | IBV_QP_EX_WITH_RDMA_READ
    | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP
    | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD
    | IBV_QP_EX_WITH_ATOMIC_WRITE;

#[test]
fn q06_nothing_is_posted_before_it_is_completed_or_if_it_is_aborted() {
    let (a, b) = pair(IBV_QPT_RC, SEND);
    let q = functions(&a);
    (0..2).for_each(|wr_id| b.recv(wr_id, 0, 8));
    call!(q, wr_start());
    put_send(q, 9, a.sge(0, 8));
    call!(q, wr_abort());
    call!(q, wr_start());
    put_send(q, 1, a.sge(0, 8));
    put_send(q, 2, a.sge(0, 8));
    b.expect(&[]);
    assert_eq!(call!(q, wr_complete()), 0);
    a.expect(&succeeded([1, 2]));
    b.expect(&succeeded([0, 1]));
}

#[test]
fn q06_c05_data_reaches_the_peer_in_every_way() {
    let (a, b) = pair(IBV_QPT_RC, DATA);
    let (q, rkey, imm) = (functions(&a), b.rkey(), u32::from_ne_bytes([0, 0, 1, 2]));
    (0..2).for_each(|wr_id| b.recv(wr_id, 0, 0));
    a.write(0, b"written!");
    b.write(64, &5_u64.to_ne_bytes());
    let mut word = *b"atomicly";
    call!(q, wr_start());
    call!(named(q, 1), wr_rdma_write(rkey, b.addr(0)));
    set_sge(q, a.sge(0, 8));
    call!(named(q, 2), wr_rdma_read(rkey, b.addr(0)));
    set_sge(q, a.sge(100, 8));
    call!(named(q, 3), wr_atomic_fetch_add(rkey, b.addr(64), 2));
    set_sge(q, a.sge(200, 8));
    call!(named(q, 4), wr_atomic_cmp_swp(rkey, b.addr(64), 7, 9));
    set_sge(q, a.sge(208, 8));
    call!(named(q, 5), wr_atomic_write(rkey, b.addr(72), word.as_ptr().cast()));
    word.fill(0);
    call!(named(q, 6), wr_send_imm(imm));
    call!(named(q, 7), wr_rdma_write_imm(rkey, b.addr(0), imm));
    assert_eq!((call!(q, wr_complete()), word), (0, [0; 8]));
    a.expect(&succeeded([1, 2, 3, 4, 5, 6, 7]));
    for wc in b.expect(&succeeded([0, 1])) {
        assert_eq!(wc.result().unwrap().imm(), Some([0, 0, 1, 2]));
    }
    assert_eq!((b.read(0, 8), a.read(100, 8)), (b"written!".to_vec(), b"written!".to_vec()));
    assert_eq!(a.read(200, 16), [5_u64.to_ne_bytes(), 7_u64.to_ne_bytes()].concat());
    assert_eq!(b.read(64, 16), [9_u64.to_ne_bytes(), *b"atomicly"].concat());
    // Its bytes are in the request, so it needs room for them there.
    let none_inline = end_in_reset(IBV_QPT_RC, IBV_QP_EX_WITH_ATOMIC_WRITE, 0);
    assert_eq!(none_inline.query().0.cap.max_inline_data, 8);
}

#[test]
fn q06_windows_are_bound_and_lose_their_keys() {
    let ops = IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV;
    let (a, b) = pair(IBV_QPT_RC, ops);
    let (q, mw) = (functions(&a), a.window());
    let (mr, addr, mw_access_flags) = (a.mr, a.addr(0), Access::REMOTE_READ.bits());
    let info = ibv_mw_bind_info { mr, addr, length: 8, mw_access_flags };
    // SAFETY: a window.
    let key = || unsafe { (*mw).rkey };
    let bind = |wr_id, low| call!(named(q, wr_id), wr_bind_mw(mw, low, &raw const info));
    let forget = |wr_id, rkey| call!(named(q, wr_id), wr_local_inv(rkey));
    call!(q, wr_start());
    bind(1, 5);
    forget(2, key() & !0xff | 5);
    bind(3, 6);
    assert_eq!(call!(q, wr_complete()), 0);
    a.expect(&succeeded([1, 2, 3]));
    assert_eq!(key() & 0xff, 6);

    let p = functions(&b);
    a.recv(4, 0, 8);
    call!(p, wr_start());
    call!(named(p, 5), wr_send_inv(key()));
    assert_eq!(call!(p, wr_complete()), 0);
    b.expect(&succeeded([5]));
    assert_eq!(a.expect(&succeeded([4]))[0].result().unwrap().invalidated_rkey(), Some(key()));

    // One that waits to be bound can be asked to be bound again behind that.
    a.change(IBV_QPS_SQD);
    for low in [0x71, 0x72] {
        call!(q, wr_start());
        bind(1, low);
        assert_eq!(call!(q, wr_complete()), 0);
        call!(q, wr_start());
        forget(2, key());
        assert_eq!(call!(q, wr_complete()), 0);
    }
    a.change(IBV_QPS_RTS);
    a.expect(&succeeded([1, 2, 1, 2]));
    // SAFETY: any pointer may be handed in.
    assert_eq!(unsafe { ibv_dealloc_mw(mw) }, 0);
}

#[test]
fn q06_data_comes_from_lists_and_from_copies() {
    let (a, b) = pair(IBV_QPT_RC, SEND);
    let q = functions(&a);
    (0..3).for_each(|wr_id| b.recv(wr_id, 100 * wr_id as usize, 64));
    a.write(0, b"onetwo");
    let sges = [a.sge(0, 3), a.sge(3, 3)];
    let (mut three, mut four) = (*b"three", *b"four");
    call!(q, wr_start());
    call!(named(q, 1), wr_send());
    call!(q, wr_set_sge_list(2, sges.as_ptr()));
    call!(named(q, 2), wr_send());
    call!(q, wr_set_inline_data(three.as_mut_ptr().cast(), 5));
    call!(named(q, 3), wr_send());
    let places = [&mut three[..], &mut [], &mut four[..]]
        .map(|bytes| ibv_data_buf { length: bytes.len(), addr: bytes.as_mut_ptr().cast() });
    call!(q, wr_set_inline_data_list(3, places.as_ptr()));
    (three, four) = ([0; 5], [0; 4]);
    assert_eq!(call!(q, wr_complete()), 0);
    a.expect(&succeeded([1, 2, 3]));
    b.expect(&succeeded([0, 1, 2]));
    let read = [b.read(0, 6), b.read(100, 5), b.read(200, 9)];
    assert_eq!(read, [b"onetwo".to_vec(), b"three".to_vec(), b"threefour".to_vec()]);
    assert_eq!((three, four), ([0; 5], [0; 4]));
}

#[test]
fn q06_a_flush_says_what_it_is_about() {
    let (a, b) = pair(IBV_QPT_RC, IBV_QP_EX_WITH_FLUSH);
    let q = functions(&a);
    let flush = |length, placement, level| {
        call!(q, wr_start());
        let longer = named(q, 1).cast::<ibv_qp_ex_and_flush>();
        let (rkey, addr) = (b.rkey(), b.addr(0));
        // SAFETY: a queue pair with functions.
        unsafe { (*longer).wr_flush.unwrap()(q, rkey, addr, length, placement, level) };
        call!(q, wr_complete())
    };
    for (length, placement, level) in [(8, 1, 2), (8, 0, 0), (8, 4, 0), (1 << 32, 1, 0)] {
        assert_eq!(flush(length, placement, level), libc::EINVAL, "{placement}, {level}");
    }
    a.expect(&[]);
    // The region does not let the peer flush.
    assert_eq!(flush(8, 1, 0), 0);
    assert_ne!(a.completions(1)[0].status(), S::SUCCESS);
}

#[test]
fn q06_datagrams_need_a_destination() {
    let (a, b) = pair(IBV_QPT_UD, SEND);
    let (q, ah) = (functions(&a), a.address());
    b.recv(1, 0, 100);
    assert_eq!(post_send(q, 2, a.sge(0, 8)), libc::EINVAL);
    call!(q, wr_start());
    put_send(q, 3, a.sge(0, 8));
    call!(q, wr_set_ud_addr(ah, b.number(), QKEY));
    assert_eq!(call!(q, wr_complete()), 0);
    a.expect(&succeeded([3]));
    b.expect(&succeeded([1]));
    // SAFETY: any pointer may be handed in.
    assert_eq!(unsafe { ibv_destroy_ah(ah) }, 0);
}

#[test]
fn p05_posting_allocates_nothing_once_there_is_room() {
    let (a, b) = pair(IBV_QPT_RC, SEND);
    let q = functions(&a);
    let work = || {
        (0..4).for_each(|wr_id| b.recv(wr_id, 0, 8));
        call!(q, wr_start());
        put_send(q, 1, a.sge(0, 8));
        let mut bytes = *b"bytes";
        call!(named(q, 2), wr_send());
        call!(q, wr_set_inline_data(bytes.as_mut_ptr().cast(), 5));
        assert_eq!(call!(q, wr_complete()), 0);
        let sges = [a.sge(0, 4), a.sge(4, 4)];
        let mut list = [send(3, &sges), send(4, &sges)];
        list[1].send_flags |= IBV_SEND_INLINE;
        assert_eq!(a.post_send(&mut list), Ok(()));
    };
    let taking = || (a.completions(4), b.completions(4));
    work();
    taking();
    assert_eq!(allocation_counter::measure(work).count_total, 0);
    taking();
}
