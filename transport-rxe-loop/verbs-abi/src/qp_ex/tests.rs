//! Posting through the functions of a queue pair, as C programs do (Q6).

mod failures;

use std::ffi::c_int;

use cq_core::setup::Access;
use cq_core::wc::WcStatus as S;
use cq_core::wr::SendFlags;

use super::*;
use crate::exports::*;
use crate::test::allocations;
use crate::test::ends::{CAP, End, QKEY, send};

/// An end with functions for these operations, in RESET.
fn end_in_reset(qp_type: ibv_qp_type, ops: u32, max_inline_data: u32) -> End {
    End::with(|init, context| {
        let ibv_qp_init_attr { qp_context, send_cq, recv_cq, mut cap, .. } = init;
        cap.max_inline_data = max_inline_data;
        let mut init = ibv_qp_init_attr_ex {
            send_cq,
            recv_cq,
            cap,
            qp_type,
            comp_mask: IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
            pd: qp_context.cast(),
            send_ops_flags: ops.into(),
            ..ibv_qp_init_attr_ex::ZEROED
        };
        // SAFETY: what it is made of.
        unsafe { ibv_create_qp_ex(context, &raw mut init) }
    })
}

/// Two of them, each connected to the other.
fn pair(qp_type: ibv_qp_type, ops: u32) -> (End, End) {
    let [a, b] = [(); 2].map(|()| end_in_reset(qp_type, ops, CAP.max_inline_data));
    a.connect(b.number());
    b.connect(a.number());
    (a, b)
}

/// The functions of an end's queue pair, as C finds them.
struct Functions(*mut ibv_qp_ex);

impl Functions {
    fn of(end: &End) -> Self {
        // SAFETY: any pointer may be handed in.
        let qp = unsafe { ibv_qp_to_qp_ex(end.qp) };
        assert!(!qp.is_null());
        Self(qp)
    }

    /// Begins a signaled request: the work calls its operation and its setters.
    fn request(&self, wr_id: u64, work: impl FnOnce(&ibv_qp_ex)) {
        // SAFETY: a queue pair, of which this thread has the functions.
        unsafe {
            (*self.0).wr_id = wr_id;
            (*self.0).wr_flags = SendFlags::SIGNALED.bits();
            work(&*self.0);
        }
    }

    fn send(&self, wr_id: u64, sge: ibv_sge) {
        let ibv_sge { addr, length, lkey } = sge;
        // SAFETY: as above.
        self.request(wr_id, |qp| unsafe {
            qp.wr_send.unwrap()(self.0);
            qp.wr_set_sge.unwrap()(self.0, lkey, addr, length);
        });
    }

    fn start(&self) {
        // SAFETY: any pointer may be handed in.
        unsafe { (*self.0).wr_start.unwrap()(self.0) };
    }

    fn complete(&self) -> c_int {
        // SAFETY: as above.
        unsafe { (*self.0).wr_complete.unwrap()(self.0) }
    }

    fn abort(&self) {
        // SAFETY: as above.
        unsafe { (*self.0).wr_abort.unwrap()(self.0) };
    }
}

const SEND: u32 = IBV_QP_EX_WITH_SEND;
/// Those that reach memory of the peer.
const ONE_SIDED: u32 = IBV_QP_EX_WITH_RDMA_WRITE
    | IBV_QP_EX_WITH_RDMA_READ
    | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP
    | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD
    | IBV_QP_EX_WITH_ATOMIC_WRITE;

#[test]
fn q06_nothing_is_posted_before_it_is_completed() {
    let (a, b) = pair(IBV_QPT_RC, SEND);
    let f = Functions::of(&a);
    (0..2).for_each(|wr_id| b.recv(wr_id, 0, 8));
    f.start();
    f.send(1, a.sge(0, 8));
    f.send(2, a.sge(0, 8));
    b.expect(&[]);
    assert_eq!(f.complete(), 0);
    a.expect(&[(1, S::SUCCESS), (2, S::SUCCESS)]);
    b.expect(&[(0, S::SUCCESS), (1, S::SUCCESS)]);
}

#[test]
fn q06_memory_of_the_peer_is_reached_in_every_way() {
    let (a, b) = pair(IBV_QPT_RC, ONE_SIDED);
    let (f, q, rkey) = (Functions::of(&a), a.qp.cast::<ibv_qp_ex>(), b.rkey());
    let set = |at, length| {
        let ibv_sge { addr, length, lkey } = a.sge(at, length);
        // SAFETY: a queue pair with functions.
        unsafe { (*q).wr_set_sge.unwrap()(q, lkey, addr, length) };
    };
    a.write(0, b"written!");
    b.write(64, &5_u64.to_ne_bytes());
    f.start();
    // SAFETY: as above; eight bytes.
    unsafe {
        f.request(1, |qp| qp.wr_rdma_write.unwrap()(q, rkey, b.addr(0)));
        set(0, 8);
        f.request(2, |qp| qp.wr_rdma_read.unwrap()(q, rkey, b.addr(0)));
        set(100, 8);
        f.request(3, |qp| qp.wr_atomic_fetch_add.unwrap()(q, rkey, b.addr(64), 2));
        set(200, 8);
        f.request(4, |qp| qp.wr_atomic_cmp_swp.unwrap()(q, rkey, b.addr(64), 7, 9));
        set(208, 8);
        let mut word = *b"atomicly";
        f.request(5, |qp| {
            qp.wr_atomic_write.unwrap()(q, rkey, b.addr(72), word.as_ptr().cast());
        });
        word.fill(0);
    }
    assert_eq!(f.complete(), 0);
    a.expect(&[1, 2, 3, 4, 5].map(|wr_id| (wr_id, S::SUCCESS)));
    assert_eq!((b.read(0, 8), a.read(100, 8)), (b"written!".to_vec(), b"written!".to_vec()));
    assert_eq!(a.read(200, 16), [5_u64.to_ne_bytes(), 7_u64.to_ne_bytes()].concat());
    assert_eq!(b.read(64, 16), [9_u64.to_ne_bytes(), *b"atomicly"].concat());
}

#[test]
fn c05_immediate_data_arrives_byte_by_byte() {
    let ops = IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
    let (a, b) = pair(IBV_QPT_RC, ops);
    let (f, q) = (Functions::of(&a), a.qp.cast::<ibv_qp_ex>());
    let imm = u32::from_ne_bytes([0, 0, 1, 2]);
    (0..2).for_each(|wr_id| b.recv(wr_id, 0, 8));
    f.start();
    // SAFETY: a queue pair with functions.
    unsafe {
        f.request(1, |qp| qp.wr_send_imm.unwrap()(q, imm));
        f.request(2, |qp| qp.wr_rdma_write_imm.unwrap()(q, b.rkey(), b.addr(0), imm));
    }
    assert_eq!(f.complete(), 0);
    a.expect(&[(1, S::SUCCESS), (2, S::SUCCESS)]);
    for wc in b.expect(&[(0, S::SUCCESS), (1, S::SUCCESS)]) {
        assert_eq!(wc.result().unwrap().imm(), Some([0, 0, 1, 2]));
    }
}

/// Binds a window to the first eight bytes of an end's region, for READs.
fn readable(end: &End) -> ibv_mw_bind_info {
    let mw_access_flags = Access::REMOTE_READ.bits();
    let (mr, addr) = (end.mr, end.addr(0));
    ibv_mw_bind_info { mr, addr, length: 8, mw_access_flags }
}

#[test]
fn q06_windows_are_bound_and_lose_their_keys() {
    let ops = IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV;
    let (a, b) = pair(IBV_QPT_RC, ops);
    let (f, q, mw) = (Functions::of(&a), a.qp.cast::<ibv_qp_ex>(), a.window());
    let info = readable(&a);
    // SAFETY: a window.
    let key = || unsafe { (*mw).rkey };
    // SAFETY: a queue pair with functions.
    let bind = |low| unsafe { (*q).wr_bind_mw.unwrap()(q, mw, low, &raw const info) };
    // SAFETY: as above.
    let forget = |rkey| unsafe { (*q).wr_local_inv.unwrap()(q, rkey) };
    f.start();
    f.request(1, |_| bind(5));
    f.request(2, |_| forget(key() & !0xff | 5));
    f.request(3, |_| bind(6));
    assert_eq!(f.complete(), 0);
    a.expect(&[(1, S::SUCCESS), (2, S::SUCCESS), (3, S::SUCCESS)]);
    assert_eq!(key() & 0xff, 6);

    a.recv(4, 0, 8);
    let (g, p) = (Functions::of(&b), b.qp.cast::<ibv_qp_ex>());
    g.start();
    // SAFETY: as above.
    g.request(5, |qp| unsafe { qp.wr_send_inv.unwrap()(p, key()) });
    assert_eq!(g.complete(), 0);
    b.expect(&[(5, S::SUCCESS)]);
    assert_eq!(a.expect(&[(4, S::SUCCESS)])[0].result().unwrap().invalidated_rkey(), Some(key()));
    // SAFETY: any pointer may be handed in.
    assert_eq!(unsafe { ibv_dealloc_mw(mw) }, 0);
}

#[test]
fn q06_a_window_that_waits_to_be_bound_can_be_asked_to_be_bound_again_behind_that() {
    let (a, _b) = pair(IBV_QPT_RC, IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV);
    let (f, mw) = (Functions::of(&a), a.window());
    let info = readable(&a);
    a.to(IBV_QPS_SQD);
    for rkey in [0x71, 0x72] {
        f.start();
        // SAFETY: a queue pair with functions, and a window.
        f.request(1, |qp| unsafe { qp.wr_bind_mw.unwrap()(f.0, mw, rkey, &raw const info) });
        assert_eq!(f.complete(), 0);
        f.start();
        // SAFETY: as above.
        f.request(2, |qp| unsafe { qp.wr_local_inv.unwrap()(f.0, (*mw).rkey) });
        assert_eq!(f.complete(), 0);
    }
    a.to(IBV_QPS_RTS);
    a.expect(&[(1, S::SUCCESS), (2, S::SUCCESS), (1, S::SUCCESS), (2, S::SUCCESS)]);
}

#[test]
fn q06_data_comes_from_lists_and_from_copies() {
    let (a, b) = pair(IBV_QPT_RC, SEND);
    let (f, q) = (Functions::of(&a), a.qp.cast::<ibv_qp_ex>());
    (0..3).for_each(|wr_id| b.recv(wr_id, 100 * wr_id as usize, 64));
    a.write(0, b"onetwo");
    let sges = [a.sge(0, 3), a.sge(3, 3)];
    let (mut three, mut four) = (*b"three", *b"four");
    f.start();
    // SAFETY: a queue pair with functions; SGEs and bytes.
    unsafe {
        f.request(1, |qp| qp.wr_send.unwrap()(q));
        (*q).wr_set_sge_list.unwrap()(q, 2, sges.as_ptr());
        f.request(2, |qp| qp.wr_send.unwrap()(q));
        (*q).wr_set_inline_data.unwrap()(q, three.as_mut_ptr().cast(), 5);
        let places = [&mut three[..], &mut [], &mut four[..]]
            .map(|bytes| ibv_data_buf { length: bytes.len(), addr: bytes.as_mut_ptr().cast() });
        f.request(3, |qp| qp.wr_send.unwrap()(q));
        (*q).wr_set_inline_data_list.unwrap()(q, 3, places.as_ptr());
    }
    (three, four) = ([0; 5], [0; 4]);
    assert_eq!(f.complete(), 0);
    a.expect(&[(1, S::SUCCESS), (2, S::SUCCESS), (3, S::SUCCESS)]);
    b.expect(&[(0, S::SUCCESS), (1, S::SUCCESS), (2, S::SUCCESS)]);
    let read = [b.read(0, 6), b.read(100, 5), b.read(200, 9)];
    assert_eq!(read, [b"onetwo".to_vec(), b"three".to_vec(), b"threefour".to_vec()]);
    assert_eq!((three, four), ([0; 5], [0; 4]));
}

#[test]
fn q06_a_flush_says_what_it_is_about() {
    let (a, b) = pair(IBV_QPT_RC, IBV_QP_EX_WITH_FLUSH);
    let (f, q) = (Functions::of(&a), a.qp.cast::<ibv_qp_ex>());
    let flush = |length, placement, level| {
        f.start();
        f.request(1, |_| {
            let (rkey, addr) = (b.rkey(), b.addr(0));
            // SAFETY: a queue pair with functions.
            unsafe {
                (*q.cast::<ibv_qp_ex_and_flush>()).wr_flush.unwrap()(
                    q, rkey, addr, length, placement, level,
                )
            };
        });
        f.complete()
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
    let (f, q) = (Functions::of(&a), a.qp.cast::<ibv_qp_ex>());
    b.recv(1, 0, 100);
    let ah = a.address();
    f.start();
    f.send(2, a.sge(0, 8));
    assert_eq!(f.complete(), libc::EINVAL);
    f.start();
    f.send(3, a.sge(0, 8));
    // SAFETY: a queue pair with functions.
    unsafe { (*q).wr_set_ud_addr.unwrap()(q, ah, b.number(), QKEY) };
    assert_eq!(f.complete(), 0);
    a.expect(&[(3, S::SUCCESS)]);
    b.expect(&[(1, S::SUCCESS)]);
    // SAFETY: any pointer may be handed in.
    assert_eq!(unsafe { ibv_destroy_ah(ah) }, 0);
}

#[test]
fn q06_an_atomic_write_needs_no_inline_bytes() {
    let a = end_in_reset(IBV_QPT_RC, IBV_QP_EX_WITH_ATOMIC_WRITE, 0);
    assert_eq!(a.query().0.cap.max_inline_data, 8);
}

#[test]
fn p05_posting_allocates_nothing_once_there_is_room() {
    let (a, b) = pair(IBV_QPT_RC, SEND);
    let f = Functions::of(&a);
    let work = || {
        for wr_id in 0..4 {
            b.recv(wr_id, 0, 8);
        }
        f.start();
        f.send(1, a.sge(0, 8));
        f.request(2, |qp| {
            let mut bytes = *b"bytes";
            // SAFETY: a queue pair with functions; bytes.
            unsafe {
                qp.wr_send.unwrap()(f.0);
                qp.wr_set_inline_data.unwrap()(f.0, bytes.as_mut_ptr().cast(), 5);
            }
        });
        assert_eq!(f.complete(), 0);
        let sges = [a.sge(0, 4), a.sge(4, 4)];
        let mut list = [send(3, &sges), send(4, &sges)];
        list[1].send_flags |= crate::sys::IBV_SEND_INLINE;
        assert_eq!(a.post_send(&mut list), Ok(()));
    };
    let taking = || (a.completions(4), b.completions(4));
    work();
    taking();
    assert_eq!(allocations::during(work), 0);
    taking();
}

#[test]
fn q06_a_length_that_nothing_has_is_told() {
    let (a, _b) = pair(IBV_QPT_RC, SEND);
    let f = Functions::of(&a);
    let mut byte = 0_u8;
    f.start();
    f.request(1, |qp| {
        // SAFETY: a queue pair with functions; so much is refused before any of it is looked at.
        unsafe {
            qp.wr_send.unwrap()(f.0);
            qp.wr_set_inline_data.unwrap()(f.0, (&raw mut byte).cast(), usize::MAX);
        }
    });
    assert_eq!(f.complete(), libc::EINVAL);
}
