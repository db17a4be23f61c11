//! What each operation does, asked for as C programs do (Q6, Q7).

use crate::exports::*;
use std::ptr;

use cq_core::setup::Access;
use cq_core::wc::{WcFlags, WcOpcode, WcStatus as S};

use crate::sys::*;
use crate::test::ends::{End, QKEY, pair, recv, send};

/// To bytes of this end's memory.
fn at(end: &End, offset: usize, wr: ibv_send_wr, opcode: ibv_wr_opcode) -> ibv_send_wr {
    let mut wr = ibv_send_wr { opcode, ..wr };
    wr.wr.rdma = ibv_send_wr_rdma { remote_addr: end.addr(offset), rkey: end.rkey() };
    wr
}

#[test]
fn q06_an_atomic_write_takes_eight_bytes_of_an_sge() {
    let (a, b) = pair(IBV_QPT_RC);
    a.write(16, &99_u64.to_ne_bytes());
    let word = [a.sge(16, 8)];
    let mut list = [at(&b, 72, send(1, &word), IBV_WR_ATOMIC_WRITE)];
    assert_eq!(a.post_send(&mut list), Ok(()));
    a.expect(&[(1, S::SUCCESS)]);
    assert_eq!(b.read(64, 16), [0, 99].map(u64::to_ne_bytes).concat());
}

fn datagram(ah: *mut ibv_ah, remote_qpn: u32, wr: ibv_send_wr) -> ibv_send_wr {
    let mut wr = wr;
    wr.wr.ud = ibv_send_wr_ud { ah, remote_qpn, remote_qkey: QKEY };
    wr
}

#[test]
fn q06_datagrams_of_a_list_go_where_each_says() {
    let ((a, b), (c, _d)) = (pair(IBV_QPT_UD), pair(IBV_QPT_UD));
    let ah = a.address();
    (0..2).for_each(|wr_id| b.recv(wr_id, 0, 100));
    c.recv(9, 0, 100);
    let sges = [a.sge(200, 8)];
    let mut list = [
        datagram(ah, b.number(), send(1, &sges)),
        datagram(ah, c.number(), send(2, &sges)),
        datagram(ah, b.number(), send(3, &sges)),
    ];
    assert_eq!(a.post_send(&mut list), Ok(()));
    b.expect(&[(0, S::SUCCESS), (1, S::SUCCESS)]);
    c.expect(&[(9, S::SUCCESS)]);
    a.expect(&[(1, S::SUCCESS), (2, S::SUCCESS), (3, S::SUCCESS)]);
    // SAFETY: any pointer may be handed in.
    assert_eq!(unsafe { ibv_destroy_ah(ah) }, 0);
}

#[test]
fn q11_an_address_that_is_none_is_told() {
    let (a, b) = pair(IBV_QPT_UD);
    let post = |ah| a.post_send(&mut [datagram(ah, b.number(), send(1, &[]))]);
    assert_eq!(post(ptr::null_mut()), Err((libc::EINVAL, 0)));
    assert_eq!(post(a.pd.cast()), Err((libc::ENOENT, 0)));
    let ah = a.address();
    // What C wrote into it is not looked at here. SAFETY: nobody else uses it.
    unsafe { (*ah).handle ^= 0xdead_beef };
    assert_eq!(post(ah), Ok(()));
    // SAFETY: as above.
    unsafe {
        (*ah).handle ^= 0xdead_beef;
        assert_eq!(ibv_destroy_ah(ah), 0);
    }
    assert_eq!(post(ah), Err((libc::ENOENT, 0)));
    let elsewhere = b.address();
    assert_eq!(post(elsewhere), Err((libc::EINVAL, 0)));
    // SAFETY: as above.
    assert_eq!(unsafe { ibv_destroy_ah(elsewhere) }, 0);
    a.expect(&[(1, S::SUCCESS)]);
}

#[test]
fn q06_other_operations_are_no_datagrams() {
    let (a, b) = pair(IBV_QPT_UD);
    // Where an address would be, there is none.
    let mut list = [at(&b, 0, send(1, &[]), IBV_WR_RDMA_WRITE)];
    assert_eq!(a.post_send(&mut list), Err((libc::EINVAL, 0)));
}

fn key(mw: *mut ibv_mw) -> u32 {
    // SAFETY: a window, or what was one.
    unsafe { (*mw).rkey }
}

/// Opens a window on 64 bytes at 1024 of a region.
fn binding(end: &End, mw: *mut ibv_mw, rkey: u32, mr: *mut ibv_mr) -> ibv_send_wr {
    let mw_access_flags = Access::REMOTE_WRITE.bits();
    let bind_info = ibv_mw_bind_info { mr, addr: end.addr(1024), length: 64, mw_access_flags };
    let bind_mw = ibv_send_wr_bind_mw { mw, rkey, bind_info };
    ibv_send_wr { opcode: IBV_WR_BIND_MW, anon_2: ibv_send_wr_of_mw { bind_mw }, ..send(7, &[]) }
}

fn invalidating(rkey: u32) -> ibv_send_wr {
    ibv_send_wr {
        opcode: IBV_WR_LOCAL_INV,
        anon_1: ibv_send_wr_imm { invalidate_rkey: rkey },
        ..send(8, &[])
    }
}

#[test]
fn q06_a_window_has_its_own_key_with_the_low_byte_that_was_asked_for() {
    let (a, b) = pair(IBV_QPT_RC);
    let mw = b.window();
    let before = key(mw);
    for low in [0, 17, 0xff] {
        let mut list = [binding(&b, mw, 0x1234_5600 | low, b.mr)];
        assert_eq!(b.post_send(&mut list), Ok(()));
        b.expect(&[(7, S::SUCCESS)]);
        assert_eq!(key(mw), before & !0xff | low);

        let mut write = at(&b, 1024, send(1, &[]), IBV_WR_RDMA_WRITE);
        write.wr.rdma.rkey = key(mw);
        assert_eq!(a.post_send(&mut [write]), Ok(()));
        a.expect(&[(1, S::SUCCESS)]);
        assert_eq!(b.post_send(&mut [invalidating(key(mw))]), Ok(()));
        b.expect(&[(8, S::SUCCESS)]);
    }
    // SAFETY: any pointer may be handed in.
    assert_eq!(unsafe { ibv_dealloc_mw(mw) }, 0);
}

#[test]
fn q06_a_list_binds_a_window_again_and_again() {
    let (_a, b) = pair(IBV_QPT_RC);
    let mw = b.window();
    let keys = [1, 2].map(|low| key(mw) & !0xff | low);
    let mut list = [
        binding(&b, mw, keys[0], b.mr),
        invalidating(keys[0]),
        binding(&b, mw, keys[1], b.mr),
        invalidating(keys[1]),
    ];
    assert_eq!(b.post_send(&mut list), Ok(()));
    b.expect(&[(7, S::SUCCESS), (8, S::SUCCESS), (7, S::SUCCESS), (8, S::SUCCESS)]);
    assert_eq!(key(mw), keys[1]);
}

#[test]
fn q06_a_window_that_waits_to_be_bound_can_be_asked_to_be_bound_again_behind_that() {
    let (_a, b) = pair(IBV_QPT_RC);
    let mw = b.window();
    b.to(IBV_QPS_SQD);
    for low in [0x71, 0x72] {
        let key = key(mw) & !0xff | low;
        assert_eq!(b.post_send(&mut [binding(&b, mw, key, b.mr)]), Ok(()));
        assert_eq!(b.post_send(&mut [invalidating(key)]), Ok(()));
    }
    b.to(IBV_QPS_RTS);
    b.expect(&[(7, S::SUCCESS), (8, S::SUCCESS), (7, S::SUCCESS), (8, S::SUCCESS)]);
}

#[test]
fn q07_a_window_is_not_bound_twice_whenever_that_is_asked_for() {
    for waits in [false, true] {
        // Unreliable, so that it can go on after that.
        let (_a, b) = pair(IBV_QPT_UC);
        let mw = b.window();
        let first = key(mw) & !0xff | 0x71;
        if waits {
            b.to(IBV_QPS_SQD);
        }
        for low in [0x71, 0x72] {
            assert_eq!(b.post_send(&mut [binding(&b, mw, low, b.mr)]), Ok(()));
        }
        if waits {
            b.to(IBV_QPS_RTS);
        }
        b.expect(&[(7, S::SUCCESS), (7, S::MW_BIND_ERR)]);
        // Its key is the one that it was bound by, whatever was promised since.
        b.to(IBV_QPS_RTS);
        if waits {
            b.to(IBV_QPS_SQD);
        }
        assert_eq!(b.post_send(&mut [invalidating(first), binding(&b, mw, 0x73, b.mr)]), Ok(()));
        if waits {
            b.to(IBV_QPS_RTS);
        }
        b.expect(&[(8, S::SUCCESS), (7, S::SUCCESS)]);
        assert_eq!(key(mw), first + 2);
    }
}

#[test]
fn q11_a_window_or_region_that_is_none_is_told() {
    let (_a, b) = pair(IBV_QPT_RC);
    let mw = b.window();
    let before = key(mw);
    for (window, region, errno) in [
        (ptr::null_mut(), b.mr, libc::EINVAL),
        (b.pd.cast(), b.mr, libc::ENOENT),
        (mw, b.pd.cast(), libc::ENOENT),
    ] {
        let mut list = [binding(&b, window, 1, region)];
        assert_eq!(b.post_send(&mut list), Err((errno, 0)));
    }
    assert_eq!(key(mw), before);
    // What C wrote into them is not looked at here.
    let garble = || {
        // SAFETY: nobody else uses them.
        unsafe {
            (*mw).handle ^= 0xdead_beef;
            (*b.mr).handle ^= 0xdead_beef;
        }
    };
    garble();
    assert_eq!(b.post_send(&mut [binding(&b, mw, 1, b.mr)]), Ok(()));
    b.expect(&[(7, S::SUCCESS)]);
    garble();
}

#[test]
fn q07_a_window_without_a_region_can_not_be_bound() {
    let (_a, b) = pair(IBV_QPT_RC);
    assert_eq!(b.post_send(&mut [binding(&b, b.window(), 1, ptr::null_mut())]), Ok(()));
    b.expect(&[(7, S::MW_BIND_ERR)]);
}

#[test]
fn q06_a_send_takes_the_key_of_a_window_away() {
    let (a, b) = pair(IBV_QPT_RC);
    let mw = b.window();
    assert_eq!(b.post_send(&mut [binding(&b, mw, 3, b.mr)]), Ok(()));
    assert_eq!(b.post_recv(&mut [recv(4, &[])]), Ok(()));
    let taking = ibv_send_wr {
        opcode: IBV_WR_SEND_WITH_INV,
        anon_1: ibv_send_wr_imm { invalidate_rkey: key(mw) },
        ..send(1, &[])
    };
    assert_eq!(a.post_send(&mut [taking]), Ok(()));
    a.expect(&[(1, S::SUCCESS)]);
    let came = b.expect(&[(7, S::SUCCESS), (4, S::SUCCESS)]);
    let done = came[1].result().unwrap();
    assert_eq!((done.opcode(), done.flags()), (WcOpcode::RECV, WcFlags::WITH_INV));
    assert_eq!(done.invalidated_rkey(), Some(key(mw)));
}

#[test]
fn q11_a_queue_pair_goes_with_windows_bound() {
    let (_a, mut b) = pair(IBV_QPT_RC);
    let mw = b.window();
    assert_eq!(b.post_send(&mut [binding(&b, mw, 3, b.mr)]), Ok(()));
    assert_eq!(b.destroy_qp(), 0);
    // SAFETY: any pointer may be handed in.
    assert_eq!(unsafe { ibv_dealloc_mw(mw) }, 0);
}
