//! Datagrams (Q6): their destinations, and how they are received behind the area for the GRH (C7).

use cq_core::wc::{Wc, WcFlags, WcOpcode, WcStatus};
use cq_verbs::setup::QpType;

use super::execute::{Done, Execution, Stop};
use super::failures::Fault;
use super::memory::Place;
use super::time::Why;
use super::world::{AddressHandle, Id, Request, Target, World};
use crate::device::{Address, Errno};

/// The one port.
const PORT: u8 = 1;
/// Its local identifier.
const LID: u16 = 1;
/// Its global identifier: fe80::1.
const GID: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
/// The path MTU, the maximum size of a datagram.
const MTU: u64 = 4096;
/// The size of a GRH.
const GRH: usize = 40;

impl World {
    /// An address handle of a port.
    pub fn create_handle(&mut self, pd: Id, to: Address) -> Result<Id, Errno> {
        if to.port != PORT {
            return Err(Errno::EINVAL);
        }
        Ok(self.put(|world| &mut world.handles, AddressHandle { pd, global: to.global }))
    }

    /// An address handle of the source of a datagram.
    pub fn handle_from(&mut self, pd: Id, wc: &Wc, grh: &[u8; 40]) -> Result<Id, Errno> {
        // C4: after a failure these fields are undefined.
        let done = wc.result().map_err(|_| Errno::EINVAL)?;
        let global = done.flags().contains(WcFlags::GRH);
        let came_here = done.is_recv() && done.slid() == LID;
        if !came_here || global && grh != &route() {
            return Err(Errno::EINVAL);
        }
        self.create_handle(pd, Address { port: PORT, global })
    }

    /// SEND of a UD queue pair. Errors of the receiver are not reported to the sender.
    pub fn datagram(&mut self, from: Id, request: &Request) -> Execution {
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
            // C7: with the area for the GRH, also if there is none.
            .with_byte_len(len as u32)
            .with_src_qp(from)
            .with_path(0, LID, 0, 0)
            .with_flags(if target.global { WcFlags::GRH } else { WcFlags::empty() });
        self.receive_done(to, request.with_imm(done), request.solicited);
        Ok(Done::default())
    }

    /// The receiver: a UD queue pair that is ready, and has this Q_Key. A Q_Key with the highest bit set stands for the
    /// sender's own.
    fn listener(&self, from: Id, target: &Target) -> Option<Id> {
        let own = self.qps[&from].attr.qkey;
        let qkey = if target.qkey >> 31 == 1 { own } else { Some(target.qkey) };
        let qp = self.qps.get(&target.qp_num)?;
        let takes = qp.kind == QpType::UD && qp.answers() && qp.attr.qkey == qkey;
        takes.then_some(target.qp_num)
    }
}

/// The GRH of every datagram, an IPv6 header: from the one port to itself.
fn route() -> [u8; GRH] {
    /// The next header: a transport header of InfiniBand.
    const NEXT_HEADER: u8 = 0x1b;
    const HOP_LIMIT: u8 = 64;
    let mut grh = [0; GRH];
    grh[0] = 6 << 4;
    (grh[6], grh[7]) = (NEXT_HEADER, HOP_LIMIT);
    grh[8..24].copy_from_slice(&GID);
    grh[24..].copy_from_slice(&GID);
    grh
}

/// These places without so many bytes at the front.
fn behind(places: &[Place], mut bytes: usize) -> Vec<Place> {
    let mut left = Vec::new();
    for (key, range) in places {
        let skipped = bytes.min(range.len());
        bytes -= skipped;
        left.push((*key, range.start + skipped..range.end));
    }
    left
}
