//! Work requests in serialized form, which own their SGEs and inline bytes.

use cq_verbs::wr::{Data, RecvWr, SendFlags, SendOp, SendWr, Sge};
use serde::{Deserialize, Serialize};

/// A [`SendWr`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Send {
    wr_id: u64,
    op: SendOp,
    flags: SendFlags,
    /// The inline bytes, or the SGEs.
    data: Result<Vec<u8>, Vec<Sge>>,
}

impl From<&SendWr<'_>> for Send {
    fn from(wr: &SendWr<'_>) -> Self {
        let data = match wr.data {
            Data::Inline(bytes) => Ok(bytes.to_vec()),
            Data::Sges(sges) => Err(sges.to_vec()),
        };
        Self { wr_id: wr.wr_id, op: wr.op, flags: wr.flags, data }
    }
}

impl Send {
    /// The request, which borrows from this.
    pub fn request(&self) -> SendWr<'_> {
        let data = match &self.data {
            Ok(bytes) => Data::Inline(bytes),
            Err(sges) => Data::Sges(sges),
        };
        SendWr { flags: self.flags, ..SendWr::new(self.wr_id, self.op, data) }
    }
}

/// A [`RecvWr`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Receive {
    wr_id: u64,
    sges: Vec<Sge>,
}

impl From<&RecvWr<'_>> for Receive {
    fn from(wr: &RecvWr<'_>) -> Self {
        Self { wr_id: wr.wr_id, sges: wr.sges.to_vec() }
    }
}

impl Receive {
    /// The request, which borrows from this.
    pub const fn request(&self) -> RecvWr<'_> {
        RecvWr::new(self.wr_id, self.sges.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use cq_verbs::wr::{Placement, RemoteAddr, Selectivity, WindowBind};

    use super::*;
    use crate::device::Access;

    #[test]
    fn requests_survive_the_trip() {
        let sges = [Sge { addr: u64::MAX, length: 1, lkey: 2 }; 3];
        let at = RemoteAddr { addr: 5, rkey: u32::MAX };
        let access = Access::REMOTE_READ | Access::from_bits_retain(1 << 19);
        let bind = WindowBind { window: 1, rkey: 2, lkey: 3, addr: 4, length: u64::MAX, access };
        for wr in [
            SendWr::send(u64::MAX, &sges).solicited(),
            SendWr::send_inline(1, b"bytes").with_imm([1, 2, 3, 4]).unsignaled(),
            SendWr::write(2, &[], at).with_imm([9; 4]).fenced(),
            SendWr::read(3, &sges[..1], at),
            SendWr::compare_swap(4, &sges[..1], at, u64::MAX, 1),
            SendWr::fetch_add(5, &sges[..1], at, u64::MAX),
            SendWr::send_with_inv(6, &sges, u32::MAX),
            SendWr::atomic_write_inline(7, b"at a go!", at),
            SendWr::flush(8, at, u32::MAX, Placement::from_bits_retain(7), Selectivity::Region),
            SendWr::flush(9, at, 1, Placement::GLOBAL, Selectivity::Range),
            SendWr::bind_window(10, bind),
            SendWr::local_invalidate(11, 3),
        ] {
            let sent = serde_json::to_vec(&Send::from(&wr)).unwrap();
            let sent: Send = serde_json::from_slice(&sent).unwrap();
            assert_eq!(sent.request(), wr);
        }
        let wr = RecvWr::new(6, &sges);
        let sent = serde_json::to_vec(&Receive::from(&wr)).unwrap();
        let sent: Receive = serde_json::from_slice(&sent).unwrap();
        assert_eq!(sent.request(), wr);
    }
}
