use std::cell::RefCell;

use proptest::prelude::*;
use rdma_sys::ibv_ah;

use super::*;

/// What a device saw: the wr_ids of each chain. It stops at request `stop` of all, and names it by `bad`.
struct Device {
    seen: RefCell<Vec<Vec<u64>>>,
    stop: usize,
    bad: fn(*mut ibv_recv_wr) -> *mut ibv_recv_wr,
}

impl Device {
    fn take(&self, first: *mut ibv_recv_wr, bad: &mut *mut ibv_recv_wr) -> c_int {
        let before: usize = self.seen.borrow().iter().map(Vec::len).sum();
        let (mut chain, mut at) = (Vec::new(), first);
        let mut errno = 0;
        while !at.is_null() {
            if before + chain.len() == self.stop {
                (*bad, errno) = ((self.bad)(at), 12);
                break;
            }
            // SAFETY: `post` links requests that it has made, the last of them to none.
            let wr = unsafe { &*at };
            chain.push(wr.wr_id);
            at = wr.next;
        }
        self.seen.borrow_mut().push(chain);
        errno
    }

    /// Posts a list whose request `refused` is not handed over.
    fn post(&self, list: &[RecvWr<'_>], refused: usize) -> Result<(), Failure> {
        let make = |wr: &RecvWr<'_>, _: &mut MaybeUninit<_>| match wr.wr_id == refused as u64 {
            true => Err(Refused::WrongState),
            false => Ok(recv_wr(wr)),
        };
        // SAFETY: `take` reads the chain and keeps nothing.
        unsafe { post(list, make, |first, bad| self.take(first, bad)) }
    }
}

fn list(len: usize) -> Vec<RecvWr<'static>> {
    (0..len as u64).map(|id| RecvWr::new(id, &[])).collect()
}

proptest! {
    #[test]
    fn q04_what_came_before_the_first_bad_request_is_posted(
        len in 0..70_usize,
        stop in 0..100_usize,
        refused in 0..100_usize,
    ) {
        let device = Device { seen: RefCell::default(), stop, bad: |at| at };
        let result = device.post(&list(len), refused);
        let posted = len.min(stop).min(refused);
        let seen = device.seen.into_inner();
        prop_assert!(seen.iter().all(|chain| chain.len() <= CHAIN));
        prop_assert_eq!(seen.concat(), (0..posted as u64).collect::<Vec<_>>());
        match result {
            Ok(()) => prop_assert_eq!(posted, len),
            Err(failure) => {
                prop_assert_eq!(failure.posted, posted);
                let by_device = matches!(failure.why, Why::Device(12));
                prop_assert_eq!(by_device, stop < refused);
            }
        }
    }

    /// A device that names none of the requests, or a place between them, is not believed.
    #[test]
    fn q04_a_foreign_bad_request_is_taken_for_the_first_of_its_chain(len in 1..70_usize, stop in 0..70_usize) {
        let bads: [fn(*mut ibv_recv_wr) -> *mut ibv_recv_wr; 4] = [
            |_| ptr::null_mut(),
            |at| at.wrapping_add(CHAIN),
            |at| at.wrapping_sub(CHAIN),
            |at| at.wrapping_byte_add(1),
        ];
        for bad in bads {
            let device = Device { seen: RefCell::default(), stop, bad };
            let result = device.post(&list(len), usize::MAX);
            let posted = result.map_or_else(|failure| failure.posted, |()| len);
            prop_assert_eq!(posted, if stop < len { stop / CHAIN * CHAIN } else { len });
        }
    }
}

fn made(wr: SendWr<'_>, to: Option<ud_t>) -> ibv_send_wr {
    let mut piece = MaybeUninit::uninit();
    let raw = send_wr(&wr, to, &mut piece).unwrap();
    assert_eq!(raw.wr_id, wr.wr_id);
    assert!(raw.next.is_null());
    if let Data::Inline(bytes) = wr.data {
        assert_eq!((raw.sg_list, raw.num_sge), (piece.as_mut_ptr(), 1));
        // SAFETY: inline data is an SGE, which has been written.
        let sge = unsafe { piece.assume_init() };
        assert_eq!((sge.addr, sge.length as usize), (bytes.as_ptr().addr() as u64, bytes.len()));
    }
    raw
}

const REMOTE: RemoteAddr = RemoteAddr { addr: 0x1234_5678_9abc, rkey: 77 };

#[test]
fn q06_a_request_is_what_libibverbs_takes() {
    use ibv_wr_opcode as o;
    let sges = [Sge::default(); 3];
    for (wr, opcode) in [
        (SendWr::send(1, &sges), o::IBV_WR_SEND),
        (SendWr::send_inline(2, b"abc").with_imm([1, 2, 3, 4]), o::IBV_WR_SEND_WITH_IMM),
        (SendWr::write(3, &sges, REMOTE).fenced(), o::IBV_WR_RDMA_WRITE),
        (
            SendWr::write_inline(4, b"", REMOTE).with_imm([1, 2, 3, 4]).solicited(),
            o::IBV_WR_RDMA_WRITE_WITH_IMM,
        ),
        (SendWr::read(5, &sges, REMOTE).unsignaled(), o::IBV_WR_RDMA_READ),
    ] {
        let raw = made(wr, None);
        assert_eq!(raw.opcode, opcode);
        let inline = if matches!(wr.data, Data::Inline(_)) { 8 } else { 0 };
        assert_eq!(raw.send_flags, wr.flags.bits() | inline);
        if inline == 0 {
            assert_eq!((raw.sg_list.addr(), raw.num_sge), (sges.as_ptr().addr(), 3));
        }
        // SAFETY: every request has these, as they stand in memory.
        let (imm, rdma) = unsafe { (raw.imm_data_invalidated_rkey_union.imm_data, raw.wr.rdma) };
        if matches!(opcode, o::IBV_WR_SEND_WITH_IMM | o::IBV_WR_RDMA_WRITE_WITH_IMM) {
            assert_eq!(imm.to_ne_bytes(), [1, 2, 3, 4]);
        }
        if !matches!(opcode, o::IBV_WR_SEND | o::IBV_WR_SEND_WITH_IMM) {
            assert_eq!((rdma.remote_addr, rdma.rkey), (REMOTE.addr, REMOTE.rkey));
        }
    }
}

#[test]
fn q06_an_atomic_is_what_libibverbs_takes() {
    let sges = [Sge::default()];
    let swap = made(SendWr::compare_swap(1, &sges, REMOTE, 5, 6), None);
    let add = made(SendWr::fetch_add(1, &sges, REMOTE, 7), None);
    assert_eq!(swap.opcode, ibv_wr_opcode::IBV_WR_ATOMIC_CMP_AND_SWP);
    assert_eq!(add.opcode, ibv_wr_opcode::IBV_WR_ATOMIC_FETCH_AND_ADD);
    for (raw, compare_add, swap) in [(swap, 5, 6), (add, 7, 0)] {
        // SAFETY: atomics have these.
        let atomic = unsafe { raw.wr.atomic };
        assert_eq!((atomic.remote_addr, atomic.rkey), (REMOTE.addr, REMOTE.rkey));
        assert_eq!((atomic.compare_add, atomic.swap), (compare_add, swap));
    }
}

#[test]
fn q06_a_datagram_has_its_destination() {
    let ah = ptr::without_provenance_mut::<ibv_ah>(64);
    let to = ud_t { ah, remote_qpn: 3, remote_qkey: 4 };
    // SAFETY: datagrams have these.
    let ud = unsafe { made(SendWr::send_inline(1, b"x"), Some(to)).wr.ud };
    assert_eq!((ud.ah, ud.remote_qpn, ud.remote_qkey), (ah, 3, 4));
}

/// With the bit of "inline" a device would read the memory of the SGEs.
#[test]
fn q06_only_flags_with_a_name_reach_the_device() {
    let wr = SendWr { flags: SendFlags::from_bits_retain(!0), ..SendWr::send(1, &[]) };
    assert_eq!(made(wr, None).send_flags, SendFlags::all().bits());
}

#[test]
fn q06_a_key_to_invalidate_stands_where_immediate_data_would() {
    const RKEY: u32 = 0x1234_5678;
    for (wr, opcode) in [
        (SendWr::send_with_inv(1, &[], RKEY), ibv_wr_opcode::IBV_WR_SEND_WITH_INV),
        (SendWr::local_invalidate(1, RKEY), ibv_wr_opcode::IBV_WR_LOCAL_INV),
    ] {
        let raw = send_wr(&wr, None, &mut MaybeUninit::uninit()).expect("there is the operation");
        assert_eq!(raw.opcode, opcode);
        // SAFETY: both are numbers of four bytes.
        assert_eq!(unsafe { raw.imm_data_invalidated_rkey_union.invalidated_rkey }, RKEY);
    }
}

#[test]
fn q04_operations_that_the_binding_does_not_have_are_not_made() {
    use cq_core::setup::Access;
    use cq_core::wr::{Placement, Selectivity, WindowBind};

    let at = RemoteAddr { addr: 8, rkey: 9 };
    let bind =
        WindowBind { window: 1, rkey: 2, lkey: 3, addr: 4, length: 5, access: Access::REMOTE };
    for wr in [
        SendWr::bind_window(1, bind),
        SendWr::atomic_write_inline(1, &[0; 8], at),
        SendWr::flush(1, at, 8, Placement::GLOBAL, Selectivity::Range),
    ] {
        assert!(send_wr(&wr, None, &mut MaybeUninit::uninit()).is_none(), "{:?}", wr.op);
    }
}
