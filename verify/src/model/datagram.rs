//! Datagrams (Q6): where they go, and how they arrive behind the area for the global route (C7).

use cq_core::setup::QpType;
use cq_core::wc::{Wc, WcFlags, WcOpcode, WcStatus};

use super::execute::{Done, Stop};
use super::failures::Fault;
use super::memory::Place;
use super::time::Why;
use super::world::{Handle, Id, Request, Target, World};
use crate::device::{Address, Errno};

/// The one port.
const PORT: u8 = 1;
/// Its local identifier.
const LID: u16 = 1;
/// Its global identifier: fe80::1.
const GID: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
/// Bytes of the largest packet, which a datagram fits into.
const MTU: u64 = 4096;
/// Bytes of a global route.
const GRH: usize = 40;

impl World {
    /// A handle of a port's address.
    pub fn create_handle(&mut self, pd: Id, to: Address) -> Result<Id, Errno> {
        if to.port != PORT {
            return Err(Errno::EINVAL);
        }
        let id = self.fresh();
        self.handles.insert(id, Handle { pd, global: to.global });
        Ok(id)
    }

    /// A handle of where a datagram came from.
    pub fn handle_from(&mut self, pd: Id, wc: &Wc, grh: &[u8; 40]) -> Result<Id, Errno> {
        // C4: a failure says nothing.
        let done = wc.result().map_err(|_| Errno::EINVAL)?;
        let global = done.flags().contains(WcFlags::GRH);
        let came_here = done.is_recv() && done.slid() == LID;
        if !came_here || global && grh != &route() {
            return Err(Errno::EINVAL);
        }
        self.create_handle(pd, Address { port: PORT, global })
    }

    /// SEND of a queue pair for datagrams. Whatever is wrong at the other side, nobody says so.
    pub fn datagram(&mut self, from: Id, request: &Request) -> Result<Done, Stop> {
        let target = request.target.expect("posting refuses datagrams that go nowhere");
        if request.len() > MTU {
            return Err(Stop::Fault(Fault::LocalLength));
        }
        let bytes = self.local_bytes(from, request)?;
        let to = self.listener(from, &target).ok_or(Stop::Wait(Why::Gone))?;
        let len = bytes.len() as u64 + GRH as u64;
        let places = self.landing(to, len)?;
        match target.global {
            true => self.write(&places, &[&route()[..], &bytes].concat()),
            false => self.write(&behind(&places, GRH), &bytes),
        }
        let receive = self.take_receive(to);
        let done = Wc::new(receive.wr_id, WcStatus::SUCCESS, to)
            .with_opcode(WcOpcode::RECV)
            // C7: with the area for the global route, whether there is one or not.
            .with_byte_len(len as u32)
            .with_src_qp(from)
            .with_path(0, LID, 0, 0)
            .with_flags(if target.global { WcFlags::GRH } else { WcFlags::empty() });
        self.receive_done(to, request.with_imm(done), request.solicited);
        Ok(Done::default())
    }

    /// Who takes it: a queue pair for datagrams that is ready, and has this queue key. A key with the
    /// highest bit set stands for the sender's own.
    fn listener(&self, from: Id, target: &Target) -> Option<Id> {
        let own = self.qps[&from].attr.qkey;
        let qkey = if target.qkey >> 31 == 1 { own } else { Some(target.qkey) };
        let qp = self.qps.get(&target.qp_num)?;
        let takes = qp.kind == QpType::Ud && qp.answers() && qp.attr.qkey == qkey;
        takes.then_some(target.qp_num)
    }
}

/// The global route of any datagram, as an IPv6 header: from the one port to itself.
fn route() -> [u8; GRH] {
    /// What is in the packet: a transport header of InfiniBand.
    const NEXT_HEADER: u8 = 0x1b;
    const HOP_LIMIT: u8 = 64;
    let mut grh = [0; GRH];
    grh[0] = 6 << 4;
    (grh[6], grh[7]) = (NEXT_HEADER, HOP_LIMIT);
    grh[8..24].copy_from_slice(&GID);
    grh[24..].copy_from_slice(&GID);
    grh
}

/// What is left of these places behind so many bytes.
fn behind(places: &[Place], mut bytes: usize) -> Vec<Place> {
    let mut left = Vec::new();
    for (key, range) in places {
        let skipped = bytes.min(range.len());
        bytes -= skipped;
        left.push((*key, range.start + skipped..range.end));
    }
    left
}
