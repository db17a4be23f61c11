//! What each function reads of completions that came by the way that programs take, with a value of its own in
//! every field.

use std::ffi::c_uint;

use cq_core::wc::{WcFlags, WcOpcode, WcStatus};

use super::*;
use crate::exports::*;
use crate::test::ends::{End, QKEY, lid, pair, send};

/// All that can be read of one.
#[derive(Debug, PartialEq)]
struct Read {
    wr_id: u64,
    status: WcStatus,
    opcode: ibv_wc_opcode,
    vendor_err: u32,
    byte_len: u32,
    imm_data: [u8; 4],
    qp_num: u32,
    src_qp: u32,
    wc_flags: c_uint,
    slid: u32,
    sl: u8,
    dlid_path_bits: u8,
}

/// Reads what was polled last.
fn read(cq: *mut ibv_cq_ex) -> Read {
    // SAFETY: a queue, whose gate this thread has.
    unsafe {
        let q = &*cq;
        Read {
            wr_id: q.wr_id,
            status: q.status,
            opcode: q.read_opcode.unwrap()(cq),
            vendor_err: q.read_vendor_err.unwrap()(cq),
            byte_len: q.read_byte_len.unwrap()(cq),
            imm_data: q.read_imm_data.unwrap()(cq).to_ne_bytes(),
            qp_num: q.read_qp_num.unwrap()(cq),
            src_qp: q.read_src_qp.unwrap()(cq),
            wc_flags: q.read_wc_flags.unwrap()(cq),
            slid: q.read_slid.unwrap()(cq),
            sl: q.read_sl.unwrap()(cq),
            dlid_path_bits: q.read_dlid_path_bits.unwrap()(cq),
        }
    }
}

/// Polls all that is there, in one batch.
fn read_all(end: &End) -> Vec<Read> {
    let (cq, mut attr) = (end.cq.cast::<ibv_cq_ex>(), ibv_poll_cq_attr { comp_mask: 0 });
    let mut all = Vec::new();
    // SAFETY: a queue, which has all its functions.
    unsafe {
        let (start, next) = ((*cq).start_poll.unwrap(), (*cq).next_poll.unwrap());
        let mut more = start(cq, &raw mut attr);
        assert_eq!(more, 0, "something has come");
        while more == 0 {
            all.push(read(cq));
            more = next(cq);
        }
        assert_eq!(more, libc::ENOENT);
        (*cq).end_poll.unwrap()(cq);
    }
    all
}

/// A handle of the only port's address, by this service level.
fn address(end: &End, sl: u8) -> *mut ibv_ah {
    let mut to = ibv_ah_attr { dlid: lid(), port_num: 1, sl, ..ibv_ah_attr::ZEROED };
    // SAFETY: attributes.
    let ah = unsafe { ibv_create_ah(end.pd, &raw mut to) };
    assert!(!ah.is_null());
    ah
}

#[test]
fn c7_every_field_of_a_datagram_is_read_as_itself() {
    let ((a, b), (c, _)) = (pair(IBV_QPT_UD), pair(IBV_QPT_UD));
    let came = |wr_id, from: &End, sl, bytes: u32, imm: Option<[u8; 4]>| Read {
        wr_id,
        status: WcStatus::SUCCESS,
        opcode: WcOpcode::RECV,
        vendor_err: 0,
        byte_len: 40 + bytes,
        imm_data: imm.unwrap_or_default(),
        qp_num: b.number(),
        src_qp: from.number(),
        wc_flags: imm.map_or(0, |_| WcFlags::WITH_IMM.bits()),
        slid: lid().into(),
        sl,
        dlid_path_bits: 0,
    };
    let mut expected = Vec::new();
    for (wr_id, from, sl, bytes, imm) in [
        (70, &a, 5, 17, Some([1, 2, 3, 0xfe])),
        (80, &c, 9, 33, None),
        (90, &a, 3, 8, Some([7; 4])),
    ] {
        b.recv(wr_id, 0, 100);
        let sges = [from.sge(0, bytes)];
        let mut wr = send(wr_id + 1, &sges);
        if let Some(imm) = imm {
            wr = ibv_send_wr {
                opcode: IBV_WR_SEND_WITH_IMM,
                anon_1: ibv_send_wr_imm { imm_data: u32::from_ne_bytes(imm) },
                ..wr
            };
        }
        let (ah, remote_qpn) = (address(from, sl), b.number());
        wr.wr.ud = ibv_send_wr_ud { ah, remote_qpn, remote_qkey: QKEY };
        assert_eq!(from.post_send(&mut [wr]), Ok(()));
        from.expect(&[(wr_id + 1, WcStatus::SUCCESS)]);
        expected.push(came(wr_id, from, sl, bytes, imm));
    }
    let mut all = read_all(&b);
    for (read, wanted) in all.iter_mut().zip(&expected) {
        if wanted.wc_flags == 0 {
            // Without the flag it means nothing.
            read.imm_data = [0; 4];
        }
    }
    assert_eq!(all, expected);
}

#[test]
fn c7_every_operation_is_read_as_itself() {
    use crate::sys::*;
    let (a, b) = pair(IBV_QPT_RC);
    let (some, more) = ([a.sge(0, 8)], [a.sge(0, 24)]);
    let to_memory = |opcode, wr| {
        let mut wr = ibv_send_wr { opcode, ..wr };
        wr.wr.rdma = ibv_send_wr_rdma { remote_addr: b.addr(0), rkey: b.rkey() };
        wr
    };
    b.recv(1, 0, 64);
    let mut list = [
        send(5, &some),
        to_memory(IBV_WR_RDMA_READ, send(6, &more)),
        to_memory(IBV_WR_RDMA_WRITE, send(7, &some)),
        to_memory(IBV_WR_RDMA_READ, send(8, &some)),
    ];
    assert_eq!(a.post_send(&mut list), Ok(()));
    let done = read_all(&a);
    let seen: Vec<_> = done.iter().map(|read| (read.wr_id, read.opcode, read.qp_num)).collect();
    let (me, read) = (a.number(), WcOpcode::RDMA_READ);
    let wanted =
        [(5, WcOpcode::SEND, me), (6, read, me), (7, WcOpcode::RDMA_WRITE, me), (8, read, me)];
    assert_eq!(seen, wanted);
    assert_eq!((done[1].byte_len, done[3].byte_len), (24, 8));
}
