//! The structures that a program passes, of garbage.

use std::ptr::null_mut;

use arbitrary::Arbitrary;
use rxe_loop_verbs::fuzzing::*;

use crate::table::{Handle, Kind, Number, Table, status};

/// As many SGEs as a request may have: a count that is larger says what is not so.
const SGES: usize = 16;
/// As many requests of a list.
const REQUESTS: usize = 8;

#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Sge {
    address: Number,
    length: Number,
    key: Key,
}

/// A key of memory, and what offset of the program's memory its addresses are from.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Key {
    Of(Handle),
    OfWindow(Handle),
    Any(u32),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Count {
    Few(u8),
    Any(i32),
}

#[derive(Arbitrary, Debug)]
pub struct Request {
    pub sges: Vec<Sge>,
    /// Instead of how many there are.
    count: Option<Count>,
    pub opcode: u8,
    pub flags: Number,
    pub remote: Sge,
    pub words: [u64; 2],
    pub handle: Handle,
}

#[derive(Arbitrary, Debug)]
pub struct Init {
    send: Handle,
    recv: Handle,
    shared: Handle,
    cap: [Number; 5],
    kind: Number,
    signals: bool,
}

#[derive(Arbitrary, Debug)]
pub struct Attr {
    state: u8,
    pub mask: Number,
    numbers: [u32; 6],
    bytes: [u8; 16],
    peer: Handle,
}

/// A structure of zeros.
pub fn zeroed<T>() -> T {
    // SAFETY: those of C, which have numbers and pointers alone.
    unsafe { std::mem::zeroed() }
}

impl Key {
    fn get(self, table: &Table) -> u32 {
        match self {
            Self::Any(key) => key,
            Self::Of(handle) => table.known::<ibv_mr>(Kind::Mr, handle).map_or(0, |mr| mr.rkey),
            Self::OfWindow(handle) => {
                table.known::<ibv_mw>(Kind::Mw, handle).map_or(0, |mw| mw.rkey)
            }
        }
    }
}

impl Sge {
    /// Of inline bytes the address is of memory, as C wants it.
    pub fn get(self, table: &Table, is_inline: bool) -> ibv_sge {
        let addr = match self.address {
            Number::Any(address) if !is_inline => address,
            address => table.memory(address.get()).addr() as u64,
        };
        ibv_sge { addr, length: self.length.get() as u32, lkey: self.key.get(table) }
    }
}

impl Request {
    /// The array of SGEs, and how many there are said to be.
    pub fn sges(&self, table: &Table, is_inline: bool) -> (Box<[ibv_sge]>, c_int) {
        let list = self.sges.iter().take(SGES).map(|sge| sge.get(table, is_inline));
        let mut list: Vec<_> = list.collect();
        let count = match self.count {
            None => list.len() as c_int,
            Some(Count::Few(count)) => c_int::from(count % 20),
            Some(Count::Any(count)) => count,
        };
        // A list is as long as its count says, up to the most that a queue pair allows: C can't be protected from less.
        list.resize(list.len().max(usize::try_from(count).unwrap_or(0).min(SGES)), zeroed());
        (list.into(), count)
    }

    fn recv(&self, sges: &[ibv_sge], num_sge: c_int) -> ibv_recv_wr {
        ibv_recv_wr {
            wr_id: self.words[0],
            sg_list: sges.as_ptr().cast_mut(),
            num_sge,
            next: null_mut(),
        }
    }

    fn send(&self, table: &Table, sges: &[ibv_sge], num_sge: c_int) -> ibv_send_wr {
        let remote = self.remote.get(table, false);
        let mut wr: ibv_send_wr = zeroed();
        (wr.wr_id, wr.num_sge) = (self.words[0], num_sge);
        wr.sg_list = sges.as_ptr().cast_mut();
        wr.opcode = u32::from(self.opcode % 20);
        wr.send_flags = self.flags.get() as c_uint;
        wr.anon_1.imm_data = remote.lkey;
        if [IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD].contains(&wr.opcode) {
            let [compare_add, swap] = self.words;
            wr.wr.atomic = ibv_send_wr_atomic {
                remote_addr: remote.addr,
                compare_add,
                swap,
                rkey: remote.lkey,
            };
        } else if self.words[1] & 1 == 0 {
            wr.wr.rdma = ibv_send_wr_rdma { remote_addr: remote.addr, rkey: remote.lkey };
        } else {
            wr.wr.ud.ah = table.get(Kind::Ah, self.handle);
            (wr.wr.ud.remote_qpn, wr.wr.ud.remote_qkey) = (remote.length, remote.lkey);
        }
        wr.anon_2.bind_mw = self.bind(table);
        wr
    }

    pub fn bind(&self, table: &Table) -> ibv_send_wr_bind_mw {
        let remote = self.remote.get(table, false);
        let bind_info = ibv_mw_bind_info {
            mr: table.get(Kind::Mr, self.handle),
            addr: remote.addr,
            length: remote.length.into(),
            mw_access_flags: self.words[1] as c_uint,
        };
        ibv_send_wr_bind_mw { mw: table.get(Kind::Mw, self.handle), rkey: remote.lkey, bind_info }
    }

    /// Posts these as a list.
    pub fn post_send(
        list: &[Self],
        table: &Table,
        post: impl FnOnce(*mut ibv_send_wr, *mut *mut ibv_send_wr) -> c_int,
    ) {
        let list = &list[..list.len().min(REQUESTS)];
        let sges: Vec<_> = list.iter().map(|it| it.sges(table, it.is_inline())).collect();
        let wrs = list.iter().zip(&sges).map(|(it, (sges, count))| it.send(table, sges, *count));
        posted(wrs.collect(), |wr, next| wr.next = next, post);
    }

    /// The same, as receives.
    pub fn post_recv(
        list: &[Self],
        table: &Table,
        post: impl FnOnce(*mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int,
    ) {
        let list = &list[..list.len().min(REQUESTS)];
        let sges: Vec<_> = list.iter().map(|it| it.sges(table, false)).collect();
        let wrs = list.iter().zip(&sges).map(|(it, (sges, count))| it.recv(sges, *count));
        posted(wrs.collect(), |wr, next| wr.next = next, post);
    }

    fn is_inline(&self) -> bool {
        self.flags.get() as c_uint & IBV_SEND_INLINE != 0
    }
}

impl Init {
    pub fn get(&self, table: &Table) -> ibv_qp_init_attr {
        ibv_qp_init_attr {
            qp_context: null_mut(),
            send_cq: table.get(Kind::Cq, self.send),
            recv_cq: table.get(Kind::Cq, self.recv),
            srq: table.get(Kind::Srq, self.shared),
            cap: cap(self.cap),
            qp_type: self.kind.among([IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD]),
            sq_sig_all: self.signals.into(),
        }
    }
}

pub fn cap(numbers: [Number; 5]) -> ibv_qp_cap {
    let [wr, sge, bytes] = [[1, 2, 16, 64], [1, 2, 15, 16], [0, 8, 255, 256]];
    let [max_send_wr, max_recv_wr] = [numbers[0].among(wr), numbers[1].among(wr)];
    let [max_send_sge, max_recv_sge] = [numbers[2].among(sge), numbers[3].among(sge)];
    let max_inline_data = numbers[4].among(bytes);
    ibv_qp_cap { max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data }
}

pub fn address(
    [dlid, sl, src_path_bits, static_rate, is_global, port_num, sgid_index, hop_limit]: [u8; 8],
) -> ibv_ah_attr {
    let mut attr: ibv_ah_attr = zeroed();
    (attr.dlid, attr.sl, attr.src_path_bits) = (dlid.into(), sl, src_path_bits);
    (attr.static_rate, attr.is_global, attr.port_num) = (static_rate, is_global, port_num);
    (attr.grh.sgid_index, attr.grh.hop_limit) = (sgid_index, hop_limit);
    attr
}

impl Attr {
    pub fn get(&self, table: &Table) -> ibv_qp_attr {
        let mut attr: ibv_qp_attr = zeroed();
        attr.qp_state = u32::from(self.state % 9);
        [
            attr.cur_qp_state,
            attr.path_mtu,
            attr.qkey,
            attr.rq_psn,
            attr.sq_psn,
            attr.qp_access_flags,
        ] = self.numbers;
        attr.dest_qp_num = number(table, self.peer);
        let bytes = &self.bytes;
        attr.ah_attr = address(*bytes.first_chunk().expect("there are more"));
        [attr.max_rd_atomic, attr.max_dest_rd_atomic, attr.min_rnr_timer, attr.port_num] =
            [bytes[8], bytes[9], bytes[10], bytes[11]];
        [attr.timeout, attr.retry_cnt, attr.rnr_retry] = [bytes[12], bytes[13], bytes[14]];
        attr.pkey_index = bytes[15].into();
        attr
    }
}

/// The number of a queue pair.
pub fn number(table: &Table, handle: Handle) -> u32 {
    table.known::<ibv_qp>(Kind::Qp, handle).map_or(1, |qp| qp.qp_num)
}

/// Posts a list, and looks at what is said of it.
fn posted<W>(
    mut list: Vec<W>,
    link: impl Fn(&mut W, *mut W),
    post: impl FnOnce(*mut W, *mut *mut W) -> c_int,
) {
    let first = list.as_mut_ptr();
    for (at, wr) in list.iter_mut().enumerate().rev().skip(1) {
        link(wr, first.wrapping_add(at + 1));
    }
    let first = if list.is_empty() { null_mut() } else { first };
    let mut bad = null_mut();
    let told = post(first, &raw mut bad);
    status(told);
    let is_of_list = list.as_ptr_range().contains(&bad.cast_const());
    assert!(told == 0 || is_of_list || bad.is_null());
}
