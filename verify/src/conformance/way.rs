//! What the cases of datagrams are written with: the path from one end to another.

use cq_verbs::post::PostError;

use super::stand::*;
use crate::device::{Address, Destination};

/// The bytes of a receive buffer that are reserved for the GRH.
pub const GRH: usize = 40;

/// The destination of datagrams: address handle, queue pair number, Q_Key.
pub struct Way<D: Device> {
    pub ah: D::Ah,
    pub qp_num: u32,
    pub qkey: u32,
}

/// An address handle with a global route, in the end's protection domain.
#[track_caller]
pub fn address<D: Device>(end: &End<D>) -> D::Ah {
    offered(end.device.create_ah(&end.pd, Address { port: 1, global: true }))
}

/// The path from one end to another.
#[track_caller]
pub fn way<D: Device>(from: &End<D>, to: &End<D>) -> Way<D> {
    Way { ah: address(from), qp_num: to.qp.number(), qkey: QKEY }
}

/// Two UD ends in RTS, and the path from the first to the second.
pub fn strangers<D: Device>() -> (End<D>, End<D>, Way<D>) {
    strangers_with(&Plan::of(QpType::UD), &Plan::of(QpType::UD))
}

/// Two ends of these plans in RTS, and the path from the first to the second.
pub fn strangers_with<D: Device>(a: &Plan, b: &Plan) -> (End<D>, End<D>, Way<D>) {
    let (a, b) = pair_with(a, b);
    let way = way(&a, &b);
    (a, b, way)
}

impl<D: Device> End<D> {
    /// Posts one datagram.
    #[track_caller]
    pub fn post_to(&mut self, way: &Way<D>, wr: SendWr<'_>) {
        posted(self.try_post_to(way, &[wr]));
    }

    /// Posts datagrams; they may be refused.
    pub fn try_post_to(&mut self, way: &Way<D>, list: &[SendWr<'_>]) -> Result<(), PostError> {
        let Way { ah, qp_num, qkey } = way;
        self.qp.post_to(&Destination::new(ah, *qp_num, *qkey), list)
    }

    /// Posts one datagram, and expects its completion.
    #[track_caller]
    pub fn send_to(&mut self, way: &Way<D>, wr: SendWr<'_>) {
        self.post_to(way, wr);
        self.expect_sent(&[(wr.wr_id, S::SUCCESS)]);
    }

    /// The bytes after the GRH of a datagram that was received at `offset`.
    pub fn payload(&self, offset: usize, length: usize) -> Vec<u8> {
        self.bytes(offset + GRH, length)
    }
}
