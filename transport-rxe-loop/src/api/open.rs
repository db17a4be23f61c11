//! Opening the device: its fabric, the limits and the link layer of a new fabric, the copy mode, faults, imitation and
//! strictness.

mod environment;
mod error;

use std::sync::Arc;
#[cfg(test)]
use std::sync::atomic::{AtomicU32, Ordering};

use self::environment::{
    counts_from_env, imitates_from_env, link_layer_from_env, service_from_env, strict_from_env,
};
pub use self::error::OpenError;
use super::device::{self, Context};
use super::limits::{self, Limits, OtherLimitsError};
use crate::completion::channel::EventChannel;
use crate::engine::port::link_layer::LinkLayer;
use crate::lifecycle::device::DeviceOptions;
use crate::lifecycle::{Device, deaths};
use crate::policy::Policy;
use crate::policy::faults::{self, Faults};
use crate::policy::imitation::Imitation;
use crate::policy::strict::Strict;
use crate::shm::error::AttachError;
use crate::shm::name::{FabricName, FabricPath};
use crate::trace;

/// The names of the devices: `loop0`.
///
/// # Errors
/// None here; the result is that of every transport.
pub fn devices() -> Result<Vec<String>, OpenError> {
    Ok(vec![device::NAME.to_owned()])
}

/// Options for opening a device.
///
/// ```
/// use transport_rxe_loop::{Limits, OpenOptions};
///
/// let name = format!("example-{}", std::process::id());
/// let limits = Limits::default().queue_pairs(10_000).bytes(64 << 20);
/// let context = OpenOptions::new().fabric(&name).limits(limits).open("loop0")?;
/// assert_eq!(context.attributes().max_qp, 16_384);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Fabrics
/// A fabric is memory that processes of a user share; the device lies in it. Queue pairs of all processes that have
/// opened the same fabric connect by their numbers. Fabrics are isolated from each other ([X1](cq_core::contract#x1)):
/// the range of queue pair numbers and the port's LID and GIDs follow from the fabric's name and user, so that a number
/// of another fabric fails like an unused one (RETRY_EXC), and no address handle can be made of another fabric's port.
/// On [Ethernet](Self::link_layer) all fabrics have the GIDs of the machine, and the numbers alone differ.
///
/// The fabric's file is `/dev/shm/rxe-loop.<user>.<name>`, with further files in the same directory. Only the user may read or
/// write them. The first process that opens the fabric creates it, with the [`Limits`] that it requests, and the last
/// one that ends removes it. If none could, since all were killed or ended by `_exit(2)`, the next process that creates
/// a fabric of any name does ([X2](cq_core::contract#x2)); until then the file occupies shared memory. An invalid file
/// is never used: it is replaced if only this user can access it and no process has it open, and refused with the
/// reason otherwise.
///
/// Files in use must not be changed. Truncating one ends the processes that have it open by SIGBUS. After one was
/// removed, processes that open the fabric create another one.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct OpenOptions {
    fabric: Option<String>,
    limits: Option<Limits>,
    link_layer: Option<LinkLayer>,
    /// The service threads of other processes copy to and from their memory.
    by_service: bool,
    /// The device imitates Linux' Soft-RoCE driver.
    imitates_rxe: bool,
    /// Polls are counted.
    counts_polls: bool,
    /// The device is strict.
    is_strict: bool,
    /// The faults to inject.
    faults: Option<Faults>,
}

impl OpenOptions {
    /// The default options, with the fabric that `RXE_LOOP_FABRIC` names in the environment, or `default`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the fabric's name, and overrides the environment. A name has at most 64 letters, digits, `_`, `.` and `-`,
    /// and does not begin with a dot.
    pub fn fabric(mut self, name: &str) -> Self {
        self.fabric = Some(name.to_owned());
        self
    }

    /// Sets the limits of a new fabric, and overrides `RXE_LOOP_LIMITS` [in the
    /// environment](Limits#from-the-environment). An existing fabric keeps its limits: see [`Context::attributes`] for
    /// those in force, and [`Context::other_limits`] for whether they differ.
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Sets the link layer of a new fabric, and overrides `RXE_LOOP_LINK_LAYER=ethernet` or `infiniband` in the
    /// environment. All processes of a fabric are at one network: the first that opens it decides, for InfiniBand
    /// unless it requests Ethernet. A process that requests none takes what there is ([`Port::is_ethernet`]).
    ///
    /// On [Ethernet](crate::manual#ethernet) the device is one for RoCE v2: its GIDs are the addresses of this machine.
    /// No packet goes through a network interface.
    ///
    /// [`Port::is_ethernet`]: crate::Port::is_ethernet
    pub const fn link_layer(mut self, link_layer: LinkLayer) -> Self {
        self.link_layer = Some(link_layer);
        self
    }

    /// Memory of other processes that the device did not allocate is always copied by their service threads, as it is
    /// where the system refuses to copy: for testing that case. `RXE_LOOP_COPY=service` in the environment does the
    /// same. The first opening of a fabric decides for all of this process.
    pub const fn copying_by_service(mut self) -> Self {
        self.by_service = true;
        self
    }

    /// This process counts the polls, arms and events of its completion queues, in the fabric's memory, for an
    /// [observer](crate::observe) such as `cqtop`: [`PollCounts`](crate::observe::PollCounts). `RXE_LOOP_COUNT=polls` in
    /// the environment does the same, for programs that can't be changed. It makes each poll slower, and takes 512 bytes of
    /// the fabric's memory for each completion queue; without it nothing is counted and no poll pays for it. The first opening
    /// of a fabric decides for all of this process.
    pub const fn count_polls(mut self) -> Self {
        self.counts_polls = true;
        self
    }

    /// Injects faults into the send requests of this process, and overrides `RXE_LOOP_FAULTS` in the environment. The
    /// first opening of a fabric decides for all of this process.
    pub fn faults(mut self, faults: Faults) -> Self {
        self.faults = Some(faults);
        self
    }

    /// The device imitates the deviations of Linux' Soft-RoCE driver from the contract, for testing programs against
    /// them. `RXE_LOOP_IMITATE=rxe` in the environment does the same, for programs that can't be changed. The first
    /// opening of a fabric decides for all of this process. Two processes that communicate both have to imitate.
    ///
    /// - Fields that a failure leaves undefined are 0, as after a SEND. Receives have the flag GRH, also on connections.
    ///   A SEND with invalidate sets another flag than WITH_INV.
    /// - A receive that is too small or bad fails with LOC_QP_OP, and its sender with REM_OP. An invalid local key is
    ///   LOC_QP_OP.
    /// - A completion queue that overruns drops completions, reports each with CQ_ERR, raises no event, and works on.
    ///   Failures raise no event for solicited completions, except flushed receives.
    /// - Of queue pairs no event is reported but SQ_DRAINED, which is reported without a request. There is no SQE.
    /// - Queues hold more than was requested. Slots of send queues are free before anything is polled. Atomics are
    ///   validated when they are posted. A wrong current state is accepted.
    ///
    /// Programs that keep to the contract work with all of it, except those that wait for an event that never comes.
    /// The [manual](crate::manual#imitation-of-soft-roce) has every deviation, and what of Soft-RoCE is not imitated.
    ///
    /// ```
    /// use transport_rxe_loop::{Access, OpenOptions, SendWr, Wc, WcStatus};
    ///
    /// let fabric = format!("as-rxe-{}", std::process::id());
    /// let context = OpenOptions::new().fabric(&fabric).imitate_rxe().open("loop0")?;
    /// let mut cq = context.cq(16).create()?;
    /// assert_eq!(cq.capacity(), 31);
    /// let (port, pd) = (context.port(1)?, context.alloc_pd()?);
    /// let mut qp = pd.qp(&cq).create()?;
    /// qp.connect(&port, &qp.endpoint(&port))?;
    ///
    /// let dead = pd.allocate(64, Access::LOCAL_WRITE)?.sge(..64)?;
    /// qp.post_send(&[SendWr::send(1, &[dead])])?;
    /// let mut wcs = [Wc::default(); 4];
    /// while cq.poll(&mut wcs)?.is_empty() {}
    /// assert_eq!(wcs[0].status(), WcStatus::LOC_QP_OP_ERR); // and not LOC_PROT_ERR
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "soft_roce")]
    pub const fn imitate_rxe(mut self) -> Self {
        self.imitates_rxe = true;
        self
    }

    /// The device forgives less, as hardware does, for finding mistakes that pass here and fail there.
    /// `RXE_LOOP_STRICT=1` in the environment does the same, for programs that can't be changed. The first opening of a
    /// fabric decides for all of this process.
    ///
    /// - A completion queue overruns with exactly the completion that exceeds its capacity
    ///   ([O2](cq_core::contract#o2)). [`CqHandle::demand`](crate::CqHandle::demand) says whether its queue pairs can
    ///   have more outstanding than that.
    /// - Slots of receive queues are free when completions are polled.
    /// - Requests are deferred: what they move has not been moved when posting returns, and nothing has completed.
    /// - The completion of a send may come before that of its receive, the last bytes of a WRITE before the others, and
    ///   what a READ returns after the next request, unless that has a fence.
    /// - Over the C ABI, arming a queue that holds completions raises no event, and the opcode of a completion that failed
    ///   is a pattern.
    /// - Packet sequence numbers, paths, and the limits of outstanding READs and atomics of the two ends have to match.
    ///
    /// The [manual](crate::manual#strictly) has what each of these finds, and which mistakes stay hidden.
    ///
    /// ```
    /// use cq_core::transport::{PollCq, PollError};
    /// use transport_rxe_loop::{OpenOptions, QpAttr, QpState, RecvWr, Wc};
    ///
    /// let fabric = format!("strict-{}", std::process::id());
    /// let context = OpenOptions::new().fabric(&fabric).strict().open("loop0")?;
    /// let mut cq = context.cq(4).create()?;
    /// let (port, pd) = (context.port(1)?, context.alloc_pd()?);
    /// let mut qp = pd.qp(&cq).create()?;
    /// println!("{}", cq.handle().demand()); // it lacks some
    ///
    /// qp.connect(&port, &qp.endpoint(&port))?;
    /// qp.modify(&QpAttr::new().state(QpState::ERR))?;
    /// qp.post_recv(&[RecvWr::new(1, &[]); 5])?; // flushed at once
    /// let mut wcs = [Wc::default(); 8];
    /// assert_eq!(cq.poll(&mut wcs)?.len(), 4);
    /// assert_eq!(cq.poll(&mut wcs).unwrap_err(), PollError::Overrun { dropped: Some(1) });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn strict(mut self) -> Self {
        self.is_strict = true;
        self
    }

    /// Opens the device of this name.
    ///
    /// # Errors
    /// No device has the name, its fabric can't be attached or has another link layer, it has no channel left, or a
    /// variable in the environment is invalid.
    pub fn open(&self, name: &str) -> Result<Context, OpenError> {
        if name != device::NAME {
            let (name, there_are) = (name.to_owned(), devices()?);
            return Err(OpenError::NoSuchDevice { name, there_are });
        }
        let mut asks = self.clone();
        asks.by_service |= service_from_env()? == Some(true);
        asks.imitates_rxe |= imitates_from_env()? == Some(true);
        asks.counts_polls |= counts_from_env()? == Some(true);
        asks.is_strict |= strict_from_env()? == Some(true);
        if asks.faults.is_none() {
            asks.faults = faults::from_env()?;
        }
        let link_layer = match self.link_layer {
            Some(link_layer) => Some(link_layer),
            None => link_layer_from_env()?,
        };
        let asked = match self.limits {
            Some(limits) => Some(limits),
            None => limits::from_env()?,
        };
        let named = self.fabric.as_deref().map_or_else(FabricName::from_env, str::parse);
        let wanted = asked.unwrap_or_default();
        let path = FabricPath::new(&named.map_err(AttachError::from)?);
        let (imitation, strict) = (Imitation::new(asks.imitates_rxe), Strict::new(asks.is_strict));
        let policy = Policy::new(asks.faults, imitation, strict);
        let Self { by_service, counts_polls, .. } = asks;
        let options = DeviceOptions { by_service, counts_polls, policy, link_layer };
        let device = Device::open(&path, &wanted.shape(), options)?;
        let in_force = device.engine.port.link_layer;
        if let Some(asked) = link_layer.filter(|&asked| asked != in_force) {
            return Err(OpenError::OtherLinkLayer { asked, in_force });
        }
        let events =
            deaths::retry_after_recovery(device, || EventChannel::new(device.completions))?;
        let context = Context::new(device, Arc::new(events), asked);
        trace::event!(DEBUG, device = name, fabric = path.file_name(), "device opened");
        if let Some(OtherLimitsError { asked, in_force }) = context.other_limits() {
            trace::event!(
                WARN, fabric = path.file_name(), asked = ?asked, in_force = ?in_force,
                "limits not in force"
            );
        }
        Ok(context)
    }

    /// Opens the device in a fabric of its own: cleaning up after a dead process reschedules every queue pair of a
    /// fabric.
    #[cfg(test)]
    pub fn alone(self) -> (Context, &'static Device) {
        static FABRICS: AtomicU32 = AtomicU32::new(0);
        let nth = FABRICS.fetch_add(1, Ordering::Relaxed);
        let name = format!("alone-{}-{nth}", std::process::id());
        let mut options = self.fabric(&name);
        // All tests' fabrics exist until the test process ends.
        let limits = options.limits.unwrap_or_default();
        options.limits = Some(limits.bytes(limits.bytes.min(6 << 20)));
        let context = options.open(device::NAME).unwrap();
        let device = context.device;
        (context, device)
    }
}

impl Context {
    /// Opens the device of this name with the default [`OpenOptions`].
    ///
    /// # Errors
    /// As for [`OpenOptions::open`].
    #[doc(alias("ibv_open_device", "ibv_close_device"))]
    pub fn open(name: &str) -> Result<Self, OpenError> {
        OpenOptions::new().open(name)
    }

    /// Opens the first of the [`devices`].
    ///
    /// # Errors
    /// As for [`OpenOptions::open`].
    pub fn open_first() -> Result<Self, OpenError> {
        Self::open(device::NAME)
    }
}
