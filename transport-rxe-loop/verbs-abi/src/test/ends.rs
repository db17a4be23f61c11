//! Queue pairs for the tests, made, connected and used as a C program does it: through exported functions, and the
//! tables that the header's inline functions call.

use std::mem;

use cq_verbs::setup::QpAttrMask;

use crate::port;
use crate::test::*;

/// The queue key of datagrams.
pub const QKEY: u32 = 0x1111;
/// Bytes of an end's region.
pub const MEMORY: usize = 8192;

pub const CAP: ibv_qp_cap = ibv_qp_cap {
    max_send_wr: 24,
    max_recv_wr: 24,
    max_send_sge: 4,
    max_recv_sge: 4,
    max_inline_data: 64,
};

/// A queue pair with everything that it needs, for itself.
pub struct End {
    pub context: *mut ibv_context,
    pub pd: *mut ibv_pd,
    pub cq: *mut ibv_cq,
    pub qp: *mut ibv_qp,
    pub mr: *mut ibv_mr,
    memory: *mut u8,
}

// SAFETY: C's objects belong to no thread.
unsafe impl Send for End {}
// SAFETY: as above; each has its own lock.
unsafe impl Sync for End {}

impl End {
    /// One of this type, in RESET.
    pub fn new(qp_type: ibv_qp_type) -> Self {
        Self::of(|init| init.qp_type = qp_type).unwrap()
    }

    /// One that is made of what is usual, changed like this; by `ibv_create_qp_ex` if the mask asks for more than a
    /// domain. Its `qp_context` is the domain.
    pub fn of(change: impl FnOnce(&mut ibv_qp_init_attr_ex)) -> Result<Self, Errno> {
        let access = (Access::EVERY | Access::MW_BIND).bits();
        let memory = Box::leak(Box::new([0_u8; MEMORY])).as_mut_ptr();
        // SAFETY: any pointer may be handed in; the memory stays; what both kinds of attributes have lies alike.
        unsafe {
            let context = open();
            let pd = ibv_alloc_pd(context);
            let cq = ibv_create_cq(context, 256, ptr::null_mut(), ptr::null_mut(), 0);
            let mr = ibv_reg_mr(pd, memory.cast(), MEMORY, access);
            assert!(!cq.is_null() && !mr.is_null(), "{:?}", Errno::last());
            let mut end = Self { context, pd, cq, qp: ptr::null_mut(), mr, memory };
            let mut init = ibv_qp_init_attr_ex {
                qp_context: pd.cast(),
                send_cq: cq,
                recv_cq: cq,
                cap: CAP,
                qp_type: IBV_QPT_RC,
                comp_mask: IBV_QP_INIT_ATTR_PD,
                pd,
                ..ibv_qp_init_attr_ex::ZEROED
            };
            change(&mut init);
            end.qp = match init.comp_mask {
                IBV_QP_INIT_ATTR_PD => ibv_create_qp(init.pd, (&raw mut init).cast()),
                _ => ibv_create_qp_ex(context, &raw mut init),
            };
            if end.qp.is_null() { Err(Errno::last()) } else { Ok(end) }
        }
    }

    /// One that is connected to itself, and whose receives complete on this queue.
    pub fn to(cq: *mut ibv_cq) -> Self {
        let end = Self::of(|init| init.recv_cq = cq).unwrap();
        end.connect(end.number());
        end
    }

    /// A receive of each of these completes, of a message to itself.
    pub fn complete(&self, wr_ids: impl IntoIterator<Item = u64>) {
        for wr_id in wr_ids {
            assert_eq!(self.post_recv(&mut [recv(wr_id, &[])]), Ok(()));
            assert_eq!(self.post_send(&mut [send(0, &[])]), Ok(()));
            self.completions(1);
        }
    }

    /// A receive of each of these is flushed. Nothing else comes any more.
    pub fn flush(&self, wr_ids: impl IntoIterator<Item = u64>) {
        self.change(IBV_QPS_ERR);
        for wr_id in wr_ids {
            assert_eq!(self.post_recv(&mut [recv(wr_id, &[])]), Ok(()));
        }
    }

    /// `ibv_destroy_qp`, before its end.
    pub fn destroy_qp(&mut self) -> c_int {
        // SAFETY: any pointer may be handed in.
        unsafe { ibv_destroy_qp(mem::replace(&mut self.qp, ptr::null_mut())) }
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        // SAFETY: a queue pair, or what was one; nobody changes its number.
        unsafe { (*self.qp).qp_num }
    }

    fn ops(&self) -> &ibv_context_ops {
        // SAFETY: a context, or what was one.
        unsafe { &(*self.context).ops }
    }

    /// Brings it from RESET to RTS, connected to the queue pair with this number.
    pub fn connect(&self, peer: u32) {
        // SAFETY: as of the number.
        let qp_type = unsafe { (*self.qp).qp_type };
        let ah_attr = ibv_ah_attr { dlid: lid(), port_num: 1, ..ibv_ah_attr::ZEROED };
        for (state, mask) in way(qp_type) {
            let attr = every_attribute(state, peer);
            // Both ends begin with the packet that the other expects.
            let attr = ibv_qp_attr { ah_attr, sq_psn: attr.rq_psn, ..attr };
            assert_eq!(self.modify(&attr, mask), 0, "to {state}");
        }
    }

    /// `ibv_modify_qp`.
    pub fn modify(&self, attr: &ibv_qp_attr, mask: QpAttrMask) -> c_int {
        let attr = ptr::from_ref(attr).cast_mut();
        // SAFETY: attributes, which are read only.
        unsafe { ibv_modify_qp(self.qp, attr, mask.bits() as c_int) }
    }

    /// Brings it to a state that asks for nothing else.
    pub fn change(&self, state: ibv_qp_state) {
        assert_eq!(self.modify(&every_attribute(state, 0), QpAttrMask::STATE), 0);
    }

    /// `ibv_query_qp`.
    pub fn query(&self) -> (ibv_qp_attr, ibv_qp_init_attr) {
        let (mut attr, mut init) = (ibv_qp_attr::ZEROED, ibv_qp_init_attr::ZEROED);
        // SAFETY: a buffer for both.
        assert_eq!(unsafe { ibv_query_qp(self.qp, &raw mut attr, 0, &raw mut init) }, 0);
        (attr, init)
    }

    /// An SGE of its memory.
    pub fn sge(&self, offset: usize, length: u32) -> ibv_sge {
        // SAFETY: a region, or what was one.
        let lkey = unsafe { (*self.mr).lkey };
        ibv_sge { addr: self.addr(offset), length, lkey }
    }

    /// Where in memory that is.
    pub fn addr(&self, offset: usize) -> u64 {
        self.memory.wrapping_add(offset).expose_provenance() as u64
    }

    pub fn rkey(&self) -> u32 {
        // SAFETY: as above.
        unsafe { (*self.mr).rkey }
    }

    /// A handle of the only port's address, in its domain.
    pub fn address(&self) -> *mut ibv_ah {
        let mut to = ibv_ah_attr { dlid: lid(), port_num: 1, ..ibv_ah_attr::ZEROED };
        // SAFETY: attributes.
        let ah = unsafe { ibv_create_ah(self.pd, &raw mut to) };
        assert!(!ah.is_null());
        ah
    }

    /// A window in its domain.
    pub fn window(&self) -> *mut ibv_mw {
        // SAFETY: any pointer may be handed in.
        let mw = unsafe { ibv_alloc_mw(self.pd, IBV_MW_TYPE_2) };
        assert!(!mw.is_null());
        mw
    }

    /// What is in its memory.
    pub fn read(&self, offset: usize, length: usize) -> Vec<u8> {
        assert!(offset + length <= MEMORY);
        // SAFETY: inside of the memory, which nothing is under way to.
        (offset..offset + length).map(|at| unsafe { self.memory.add(at).read_volatile() }).collect()
    }

    /// Writes into its memory.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= MEMORY);
        for (at, byte) in bytes.iter().enumerate() {
            // SAFETY: as above.
            unsafe { self.memory.add(offset + at).write_volatile(*byte) };
        }
    }

    /// `ibv_post_send` of a list that begins with the first; which one is bad, if one is.
    pub fn post_send(&self, list: &mut [ibv_send_wr]) -> Result<(), (c_int, usize)> {
        let post = self.ops().post_send.unwrap();
        // SAFETY: a list, and a buffer for a pointer.
        posted(list, |wr, next| wr.next = next, |first, bad| unsafe { post(self.qp, first, bad) })
    }

    /// `ibv_post_recv`, so.
    pub fn post_recv(&self, list: &mut [ibv_recv_wr]) -> Result<(), (c_int, usize)> {
        let post = self.ops().post_recv.unwrap();
        // SAFETY: as above.
        posted(list, |wr, next| wr.next = next, |first, bad| unsafe { post(self.qp, first, bad) })
    }

    /// Posts a receive of so many bytes.
    pub fn recv(&self, wr_id: u64, offset: usize, length: u32) {
        let sge = self.sge(offset, length);
        assert_eq!(self.post_recv(&mut [recv(wr_id, &[sge])]), Ok(()));
    }

    /// So many completions.
    #[track_caller]
    pub fn completions(&self, count: usize) -> Vec<ibv_wc> {
        let mut all = Vec::new();
        until("they complete", || {
            all.extend(poll(self.cq, (count - all.len()) as c_int).unwrap());
            all.len() == count
        });
        all
    }

    /// Exactly these completions, and no more.
    #[track_caller]
    pub fn expect(&self, wanted: &[(u64, ibv_wc_status)]) -> Vec<ibv_wc> {
        let all = self.completions(wanted.len());
        let seen: Vec<_> = all.iter().map(|wc| (wc.wr_id(), wc.status())).collect();
        assert_eq!(seen, wanted);
        assert_eq!(poll(self.cq, 1), Ok(vec![]));
        all
    }
}

impl Drop for End {
    /// Destroys what the test left.
    fn drop(&mut self) {
        // SAFETY: any pointer may be handed in; nobody uses these any more.
        unsafe {
            ibv_destroy_qp(self.qp);
            ibv_dereg_mr(self.mr);
            ibv_destroy_cq(self.cq);
            ibv_dealloc_pd(self.pd);
            ibv_close_device(self.context);
        }
    }
}

/// Two ends of a type, each connected to the other.
pub fn pair(qp_type: ibv_qp_type) -> (End, End) {
    connected(|| End::new(qp_type))
}

/// Two such ends, each connected to the other.
pub fn connected(make: impl Fn() -> End) -> (End, End) {
    let (a, b) = (make(), make());
    a.connect(b.number());
    b.connect(a.number());
    (a, b)
}

/// The local identifier of the only port.
pub fn lid() -> u16 {
    port::at_port(open(), 1).unwrap().lid
}

/// Every attribute that there is, for this state and peer.
pub fn every_attribute(qp_state: ibv_qp_state, dest_qp_num: u32) -> ibv_qp_attr {
    ibv_qp_attr {
        qp_state,
        dest_qp_num,
        path_mtu: IBV_MTU_1024,
        qkey: QKEY,
        rq_psn: 0x12_3456,
        sq_psn: 0x65_4321,
        qp_access_flags: Access::REMOTE.bits(),
        ah_attr: ibv_ah_attr { dlid: 1, port_num: 1, ..ibv_ah_attr::ZEROED },
        max_rd_atomic: 3,
        max_dest_rd_atomic: 4,
        min_rnr_timer: 12,
        port_num: 1,
        timeout: 14,
        retry_cnt: 6,
        rnr_retry: 5,
        ..ibv_qp_attr::ZEROED
    }
}

/// Which of them each step from RESET to RTS takes.
pub fn way(qp_type: ibv_qp_type) -> [(ibv_qp_state, QpAttrMask); 3] {
    type M = QpAttrMask;
    let (place, to_peer) = (M::PKEY_INDEX | M::PORT, M::AV | M::PATH_MTU | M::DEST_QPN | M::RQ_PSN);
    let (init, rtr, rts) = match qp_type {
        IBV_QPT_UD => (place | M::QKEY, M::empty(), M::SQ_PSN),
        IBV_QPT_UC => (place | M::ACCESS_FLAGS, to_peer, M::SQ_PSN),
        _ => (
            place | M::ACCESS_FLAGS,
            to_peer | M::MAX_DEST_RD_ATOMIC | M::MIN_RNR_TIMER,
            M::SQ_PSN | M::MAX_QP_RD_ATOMIC | M::TIMEOUT | M::RETRY_CNT | M::RNR_RETRY,
        ),
    };
    [(IBV_QPS_INIT, init), (IBV_QPS_RTR, rtr), (IBV_QPS_RTS, rts)]
        .map(|(state, mask)| (state, mask | M::STATE))
}

/// A signaled SEND of these SGEs.
pub fn send(wr_id: u64, sges: &[ibv_sge]) -> ibv_send_wr {
    ibv_send_wr {
        wr_id,
        sg_list: sges.as_ptr().cast_mut(),
        num_sge: sges.len() as c_int,
        opcode: IBV_WR_SEND,
        send_flags: cq_verbs::wr::SendFlags::SIGNALED.bits(),
        ..ibv_send_wr::ZEROED
    }
}

/// A receive into these SGEs.
pub fn recv(wr_id: u64, sges: &[ibv_sge]) -> ibv_recv_wr {
    let (sg_list, num_sge) = (sges.as_ptr().cast_mut(), sges.len() as c_int);
    ibv_recv_wr { wr_id, sg_list, num_sge, ..ibv_recv_wr::ZEROED }
}

/// Makes a list of an array, and posts it: the answer, with the place of the bad request.
fn posted<W>(
    list: &mut [W],
    set_next: impl Fn(&mut W, *mut W),
    post: impl FnOnce(*mut W, *mut *mut W) -> c_int,
) -> Result<(), (c_int, usize)> {
    let (first, mut bad) = (list.as_mut_ptr(), ptr::null_mut());
    for (at, wr) in list.iter_mut().enumerate().rev().skip(1) {
        set_next(wr, first.wrapping_add(at + 1));
    }
    let status = post(first, &raw mut bad);
    if status == 0 {
        return Ok(());
    }
    assert_eq!(Errno::last().number(), status);
    Err((status, list.iter().position(|wr| ptr::eq(wr, bad)).expect("one of the list")))
}
