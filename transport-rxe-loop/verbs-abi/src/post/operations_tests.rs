//! Operations whose requests name objects of C's, and one that real libibverbs is not asked for (Q6, Q7, Q11).

use crate::test::*;

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

#[test]
fn q11_an_address_that_is_none_is_told() {
    let (a, b) = pair(IBV_QPT_UD);
    let post = |ah| {
        let mut wr = send(1, &[]);
        wr.wr.ud = ibv_send_wr_ud { ah, remote_qpn: b.number(), remote_qkey: QKEY };
        a.post_send(&mut [wr])
    };
    let (ah, elsewhere) = (a.address(), b.address());
    assert_eq!(post(ptr::null_mut()), Err((libc::EINVAL, 0)));
    assert_eq!(post(a.pd.cast()), Err((libc::ENOENT, 0)));
    assert_eq!(post(elsewhere), Err((libc::EINVAL, 0)));
    // What C wrote into it is not looked at here. SAFETY: nobody else uses it.
    let garble = || unsafe { (*ah).handle ^= 0xdead_beef };
    garble();
    assert_eq!(post(ah), Ok(()));
    garble();
    // SAFETY: any pointer may be handed in.
    assert_eq!(unsafe { [ibv_destroy_ah(ah), ibv_destroy_ah(elsewhere)] }, [0; 2]);
    assert_eq!(post(ah), Err((libc::ENOENT, 0)));
    // Where an address would be, other operations have none.
    let mut list = [at(&b, 0, send(1, &[]), IBV_WR_RDMA_WRITE)];
    assert_eq!(a.post_send(&mut list), Err((libc::EINVAL, 0)));
    a.expect(&[(1, S::SUCCESS)]);
}

fn key(mw: *mut ibv_mw) -> u32 {
    // SAFETY: a window, or what was one.
    unsafe { (*mw).rkey }
}

/// Opens a window on 64 bytes at 1024 of a region.
fn binding(end: &End, mw: *mut ibv_mw, rkey: u32, mr: *mut ibv_mr) -> ibv_send_wr {
    let (addr, mw_access_flags) = (end.addr(1024), Access::REMOTE_WRITE.bits());
    let bind_info = ibv_mw_bind_info { mr, addr, length: 64, mw_access_flags };
    let bind_mw = ibv_send_wr_bind_mw { mw, rkey, bind_info };
    ibv_send_wr { opcode: IBV_WR_BIND_MW, anon_2: ibv_send_wr_of_mw { bind_mw }, ..send(7, &[]) }
}

fn invalidating(invalidate_rkey: u32) -> ibv_send_wr {
    let anon_1 = ibv_send_wr_imm { invalidate_rkey };
    ibv_send_wr { opcode: IBV_WR_LOCAL_INV, anon_1, ..send(8, &[]) }
}

const BOUND: (u64, S) = (7, S::SUCCESS);
const INVALIDATED: (u64, S) = (8, S::SUCCESS);

#[test]
fn q06_a_window_has_its_own_key_with_the_low_byte_that_was_asked_for() {
    let (_a, mut b) = pair(IBV_QPT_RC);
    let mw = b.window();
    let before = key(mw);
    for low in [0, 17, 0xff] {
        let mut list = [binding(&b, mw, 0x1234_5600 | low, b.mr)];
        assert_eq!(b.post_send(&mut list), Ok(()));
        b.expect(&[BOUND]);
        assert_eq!(key(mw), before & !0xff | low);

        assert_eq!(b.post_send(&mut [invalidating(key(mw))]), Ok(()));
        b.expect(&[INVALIDATED]);
    }
    // A window keeps its region, and nothing else.
    assert_eq!(b.post_send(&mut [binding(&b, mw, 3, b.mr)]), Ok(()));
    // SAFETY: any pointer may be handed in.
    unsafe {
        assert_eq!(ibv_dereg_mr(b.mr), libc::EBUSY);
        assert_eq!(b.destroy_qp(), 0);
        assert_eq!([ibv_dealloc_mw(mw), ibv_dereg_mr(b.mr)], [0; 2]);
    }
}

#[test]
fn q06_a_window_can_be_bound_again_behind_what_invalidates_it() {
    let (_a, b) = pair(IBV_QPT_RC);
    let mw = b.window();
    for waits in [false, true] {
        if waits {
            b.change(IBV_QPS_SQD);
        }
        let keys = [0x71, 0x72].map(|low| key(mw) & !0xff | low);
        let [mut first, mut second] =
            keys.map(|key| [binding(&b, mw, key, b.mr), invalidating(key)]);
        let mut all = [first, second].concat();
        // As one list, or as two while the first waits.
        let posted = match waits {
            false => b.post_send(&mut all),
            true => b.post_send(&mut first).and_then(|()| b.post_send(&mut second)),
        };
        assert_eq!(posted, Ok(()));
        b.change(IBV_QPS_RTS);
        b.expect(&[BOUND, INVALIDATED, BOUND, INVALIDATED]);
        assert_eq!(key(mw), keys[1]);
    }
}

#[test]
fn q07_a_window_is_not_bound_twice_whenever_that_is_asked_for() {
    for waits in [false, true] {
        // Unreliable, so that it can go on after that.
        let (_a, b) = pair(IBV_QPT_UC);
        let mw = b.window();
        let first = key(mw) & !0xff | 0x71;
        let post = |list: &mut [ibv_send_wr]| {
            // Its key is the one that it was bound by, whatever was promised since.
            b.change(IBV_QPS_RTS);
            if waits {
                b.change(IBV_QPS_SQD);
            }
            for wr in list {
                assert_eq!(b.post_send(&mut [*wr]), Ok(()));
            }
            if waits {
                b.change(IBV_QPS_RTS);
            }
        };
        post(&mut [binding(&b, mw, 0x71, b.mr), binding(&b, mw, 0x72, b.mr)]);
        b.expect(&[BOUND, (7, S::MW_BIND_ERR)]);
        post(&mut [invalidating(first), binding(&b, mw, 0x73, b.mr)]);
        b.expect(&[INVALIDATED, BOUND]);
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
    // What C wrote into them is not looked at here. SAFETY: nobody else uses them.
    let garble = || unsafe {
        (*mw).handle ^= 0xdead_beef;
        (*b.mr).handle ^= 0xdead_beef;
    };
    garble();
    assert_eq!(b.post_send(&mut [binding(&b, mw, 1, b.mr)]), Ok(()));
    garble();
    b.expect(&[BOUND]);
    // Without a region, the device says so.
    assert_eq!(b.post_send(&mut [binding(&b, b.window(), 1, ptr::null_mut())]), Ok(()));
    b.expect(&[(7, S::MW_BIND_ERR)]);
}
