//! What completion queues and queue pairs are created with.

use super::{Device, DevicePd};
use crate::setup::{CreateError, QpCaps, QpType};

type CqHandle<P> = <<P as DevicePd>::Device as Device>::CqHandle;
type Srq<P> = <<P as DevicePd>::Device as Device>::Srq;
type Qp<P> = <<P as DevicePd>::Device as Device>::Qp;

/// The attributes of a new completion queue, `struct ibv_cq_init_attr_ex`: [`Device::cq`] begins with the capacity,
/// [`create`](Self::create) creates the queue.
///
/// ```
/// use cq_verbs::device::Device;
/// use cq_verbs::setup::CreateError;
///
/// fn create<D: Device>(device: &D) -> Result<(D::Channel, D::Cq), CreateError> {
///     let channel = device.create_channel()?;
///     let cq = device.cq(64).channel(&channel).create()?;
///     Ok((channel, cq))
/// }
/// ```
#[doc(alias("ibv_cq_init_attr", "ibv_cq_init_attr_ex"))]
#[derive(Debug)]
#[must_use = "`create` creates the queue"]
#[non_exhaustive]
pub struct CqBuilder<'a, D: Device> {
    device: &'a D,
    /// The number of completions that it holds at least ([O1](cq_core::contract#o1)).
    pub capacity: u32,
    /// The channel of its events. Without one it can't be armed ([N11](cq_core::contract#n11)).
    pub channel: Option<&'a D::Channel>,
    /// Which of the device's completion vectors raises its events.
    pub comp_vector: u32,
    /// Whether completions are dropped while it is full, instead of failing the queue.
    pub ignore_overrun: bool,
}

impl<'a, D: Device> CqBuilder<'a, D> {
    /// For transports: a queue of this capacity without a channel, which fails if it overruns.
    pub const fn new(device: &'a D, capacity: u32) -> Self {
        Self { device, capacity, channel: None, comp_vector: 0, ignore_overrun: false }
    }

    /// The queue can be armed, and raises its events on this channel.
    pub fn channel(mut self, channel: impl Into<Option<&'a D::Channel>>) -> Self {
        self.channel = channel.into();
        self
    }

    /// This completion vector raises its events: below the device's
    /// [`num_comp_vectors`](crate::setup::DeviceAttr::num_comp_vectors). 0 unless it is set.
    pub const fn comp_vector(mut self, vector: u32) -> Self {
        self.comp_vector = vector;
        self
    }

    /// Completions are dropped while the queue is full, and the queue does not fail, as with
    /// `IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN`. A device that can't refuses to create the queue.
    pub const fn ignore_overrun(mut self) -> Self {
        self.ignore_overrun = true;
        self
    }

    /// Creates the queue.
    ///
    /// # Errors
    /// The capacity or the vector is out of range, there are too many queues, or the channel was made by another opening of
    /// the device.
    #[doc(alias("ibv_create_cq", "ibv_create_cq_ex", "ibv_cq_ex_to_cq"))]
    pub fn create(&self) -> Result<D::Cq, CreateError> {
        self.device.create_cq(self)
    }
}

cq_core::copied!([D: Device] CqBuilder<'_, D>);

/// The attributes of a new queue pair, `struct ibv_qp_init_attr`: [`DevicePd::qp`] begins with the completion queue,
/// [`create`](Self::create) creates the queue pair.
///
/// ```
/// use cq_verbs::device::{Device, DevicePd};
/// use cq_verbs::setup::{CreateError, QpCaps};
///
/// fn create<D: Device>(pd: &D::Pd, cq: &D::Cq, srq: &D::Srq) -> Result<D::Qp, CreateError> {
///     pd.qp(cq).srq(srq).caps(QpCaps::USUAL.max_send_wr(16)).create()
/// }
/// ```
#[doc(alias("ibv_qp_init_attr", "ibv_qp_init_attr_ex"))]
#[derive(Debug)]
#[must_use = "`create` creates the queue pair"]
#[non_exhaustive]
pub struct QpBuilder<'a, P: DevicePd> {
    pd: &'a P,
    /// The type.
    pub qp_type: QpType,
    /// The completion queue of sends.
    pub send_cq: &'a CqHandle<P>,
    /// The completion queue of receives. It may be the same.
    pub recv_cq: &'a CqHandle<P>,
    /// The shared receive queue, if it has no receive queue of its own ([Q9](cq_core::contract#q9)). The capacities of
    /// receives in `caps` are then ignored.
    pub srq: Option<&'a Srq<P>>,
    /// The capacities.
    pub caps: QpCaps,
    /// Whether every send is signaled, whatever its flags say.
    pub sq_sig_all: bool,
}

impl<'a, P: DevicePd> QpBuilder<'a, P> {
    /// For transports: a reliable connection with one completion queue and the [usual capacities](QpCaps::USUAL).
    pub fn new(pd: &'a P, cq: &'a impl AsRef<CqHandle<P>>) -> Self {
        let (qp_type, caps, cq) = (QpType::RC, QpCaps::USUAL, cq.as_ref());
        Self { pd, qp_type, send_cq: cq, recv_cq: cq, srq: None, caps, sq_sig_all: false }
    }

    /// Another type.
    pub const fn qp_type(mut self, qp_type: QpType) -> Self {
        self.qp_type = qp_type;
        self
    }

    /// Another completion queue for sends.
    pub fn send_cq(mut self, cq: &'a impl AsRef<CqHandle<P>>) -> Self {
        self.send_cq = cq.as_ref();
        self
    }

    /// Another completion queue for receives.
    pub fn recv_cq(mut self, cq: &'a impl AsRef<CqHandle<P>>) -> Self {
        self.recv_cq = cq.as_ref();
        self
    }

    /// Its receives are those of a shared receive queue.
    pub fn srq(mut self, srq: impl Into<Option<&'a Srq<P>>>) -> Self {
        self.srq = srq.into();
        self
    }

    /// Other capacities.
    pub const fn caps(mut self, caps: QpCaps) -> Self {
        self.caps = caps;
        self
    }

    /// Whether every send is signaled.
    pub const fn sq_sig_all(mut self, all: bool) -> Self {
        self.sq_sig_all = all;
        self
    }

    /// Creates the queue pair, in RESET.
    ///
    /// # Errors
    /// A capacity is out of range, there are too many queue pairs, or a queue was made by another opening of the device.
    #[doc(alias("ibv_create_qp", "ibv_create_qp_ex"))]
    pub fn create(&self) -> Result<Qp<P>, CreateError> {
        self.pd.create_qp(self)
    }
}

cq_core::copied!([P: DevicePd] QpBuilder<'_, P>);
