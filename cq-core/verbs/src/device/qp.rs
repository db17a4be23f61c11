//! Queue pairs.

use super::Object;
use crate::post::Post;
use crate::setup::{
    Destination, DeviceError, Endpoint, ModifyError, Port, QpAttr, QpCaps, QpState, QpType,
};

/// A queue pair. Dropping destroys it.
///
/// ```
/// use cq_verbs::device::DeviceQp;
/// use cq_verbs::setup::{Endpoint, ModifyError, Port};
///
/// /// `exchange` sends this side's endpoint to the peer, and returns the peer's.
/// fn connect<Q: DeviceQp>(
///     qp: &mut Q,
///     port: &Port,
///     exchange: impl FnOnce(Endpoint) -> Endpoint,
/// ) -> Result<(), ModifyError> {
///     let peer = exchange(qp.endpoint(port));
///     qp.connect(port, &peer)
/// }
/// ```
#[doc(alias("ibv_qp", "ibv_destroy_qp", "rdma_destroy_qp"))]
pub trait DeviceQp: Post + Object {
    /// The device's address handle.
    type Ah: Object;
    /// A queue pair with a destination.
    type Directed<'a>: Post + 'a;

    /// The queue pair's number.
    fn number(&self) -> u32;

    /// The type.
    fn qp_type(&self) -> QpType;

    /// The capacities: at least those that were requested.
    fn caps(&self) -> QpCaps;

    /// The state. A failure may change it at any time.
    ///
    /// # Errors
    /// The device could not be queried.
    fn state(&self) -> Result<QpState, DeviceError>;

    /// The state and the attributes that were set since RESET.
    ///
    /// # Errors
    /// The device could not be queried.
    #[doc(alias = "ibv_query_qp")]
    fn attributes(&self) -> Result<QpAttr, DeviceError>;

    /// Changes state and attributes ([Q1](cq_core::contract#q1)).
    ///
    /// # Errors
    /// There is no such transition, or attributes are missing, not allowed or out of range. Nothing was changed.
    #[doc(alias = "ibv_modify_qp")]
    fn modify(&mut self, attr: &QpAttr) -> Result<(), ModifyError>;

    /// What the peer has to know to [connect](Self::connect) to this queue pair.
    fn endpoint(&self, port: &Port) -> Endpoint;

    /// Connects to the queue pair of this endpoint: goes from RESET to RTS. It has no more READs and atomics outstanding than
    /// the peer answers ([`responder_resources`](Endpoint::responder_resources)). Both sides connect, in any order, before
    /// either sends.
    ///
    /// # Errors
    /// The queue pair is not in RESET, the endpoint is invalid, or the type is UD.
    fn connect(&mut self, port: &Port, peer: &Endpoint) -> Result<(), ModifyError>;

    /// Activates a UD queue pair: goes from RESET to RTS. It receives datagrams that carry `qkey`.
    ///
    /// # Errors
    /// The queue pair is not in RESET, or its type is not UD.
    fn activate(&mut self, port: &Port, qkey: u32) -> Result<(), ModifyError>;

    /// The queue pair with a destination for its datagrams: what is posted by the result is sent there.
    #[doc(alias = "ibv_wr_set_ud_addr")]
    fn to<'a>(&'a mut self, destination: &Destination<'a, Self::Ah>) -> Self::Directed<'a>;
}
