//! What the two sides of a connection tell each other.

use alloc::vec::Vec;

/// `struct rdma_conn_param`: the parameters of a connection, as one side sends them with its request or its answer, and
/// as the peer's event has them. rdma_connect(3) and rdma_accept(3) are the source. `D` is the private data: a slice
/// where it is sent, a vector where it is received. To connect, begin with [`new`](Self::new); the default, zeros, is what an
/// event has that brings none.
///
/// ```
/// use cq_verbs::cm::ConnParam;
///
/// let request = ConnParam::new(17, &b"hello"[..]);
/// assert_eq!((request.responder_resources, request.retry_count), (ConnParam::MOST, 6));
/// let answer = request.responder_resources(4).initiator_depth(0);
/// assert_eq!(answer.qp_num, 17);
/// ```
#[doc(alias = "rdma_conn_param")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ConnParam<D = Vec<u8>> {
    /// The number of the sender's queue pair.
    pub qp_num: u32,
    /// Whether that takes its receives from a shared receive queue.
    pub srq: bool,
    /// The program's own data: at most 56 bytes of a request, 196 of an answer. The peer gets it padded with zeros up
    /// to the size that the transport carries.
    pub private_data: D,
    /// Sent: how many READs and atomics of the peer may be outstanding, at most the device's `max_qp_rd_atom`, or
    /// [`MOST`](Self::MOST). Received: how many the peer asks for, which is its `initiator_depth`.
    pub responder_resources: u8,
    /// Sent: how many READs and atomics of this side may be outstanding, at most the device's `max_qp_init_rd_atom`
    /// and, in an answer, what the request has; or [`MOST`](Self::MOST). Received: how many the peer allows, which is
    /// its `responder_resources`.
    pub initiator_depth: u8,
    /// Whether the hardware has flow control. It is sent to the peer, and configures nothing.
    pub flow_control: bool,
    /// How often a send is tried again where the peer does not answer: 0 to 7. Some devices take 7 for no limit. An
    /// answer ignores it.
    pub retry_count: u8,
    /// How often the peer's sends are tried again where no receive is posted: 0 to 6, or 7 for no limit.
    pub rnr_retry_count: u8,
}

impl ConnParam {
    /// `RDMA_MAX_RESP_RES` and `RDMA_MAX_INIT_DEPTH`: as many READs and atomics as the device allows, or as the peer
    /// asked for if that is less.
    pub const MOST: u8 = u8::MAX;
}

impl<D> ConnParam<D> {
    /// The parameters of a queue pair without a shared receive queue: as many READs and atomics as possible, 6 retries,
    /// and no limit of those where no receive is posted.
    pub const fn new(qp_num: u32, private_data: D) -> Self {
        Self {
            qp_num,
            srq: false,
            private_data,
            responder_resources: ConnParam::MOST,
            initiator_depth: ConnParam::MOST,
            flow_control: false,
            retry_count: 6,
            rnr_retry_count: 7,
        }
    }

    crate::setters! { srq: bool; responder_resources: u8; initiator_depth: u8; flow_control: bool; retry_count: u8; rnr_retry_count: u8; }
}
