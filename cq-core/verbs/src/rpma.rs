//! The completion-queue calls of librpma, the Persistent Memory Access library, over any transport. Rules:
//! [R1](cq_core::contract#r1)–[R3](cq_core::contract#r3).
//!
//! ```
//! # use cq_core::{channel::thread, queue::HeapCq, wc::{Wc, WcStatus}};
//! use cq_verbs::rpma::{Cq, RpmaError};
//!
//! # let (raiser, events) = thread::channel(1);
//! # let (mut device, queue) = HeapCq::new(16)?.split_with(raiser);
//! let mut cq = Cq::new(queue, Some(events))?; // armed
//! device.push(&Wc::new(7, WcStatus::SUCCESS, 5))?;
//! cq.wait(None)?; // armed again
//! let mut wc = [Wc::default(); 4];
//! loop {
//!     match cq.get_wc(&mut wc) {
//!         Ok(got) => got.iter().for_each(|wc| println!("request {}: {}", wc.wr_id(), wc.status())),
//!         Err(RpmaError::NoCompletion) => break, // only now wait again
//!         Err(error) => return Err(error.into()),
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The pages of librpma's section 3, without `rpma_`. `Context` and `cm` are those of the transports.
//!
//! | librpma | here |
//! |---|---|
//! | `cq_{get_wc,wait,get_fd}`, `conn_{get_cq,get_rcq}` | [`Cq`], [`Conn`] |
//! | `conn_wait`, `conn_get_compl_fd` | the program has the shared channel, and calls [`Cq::took_event`] |
//! | `conn_cfg_{new,delete}`, `conn_cfg_{get,set}_{cq_size,rcq_size,compl_channel}` | arguments of [`Conn::new`] |
//! | `conn_cfg_{get,set}_{sq_size,rq_size,srq,timeout}` | [`QpBuilder`]: `caps`, `srq`; the `limit` of calls of `cm` |
//! | `conn_req_{new,connect,delete}` | `cm::resolve`, `Route::connect`; `accept` and `reject` of a `cm::Request` |
//! | `{conn,conn_req}_get_private_data`, `conn_get_qp_num` | `private_data` of `cm`; `DeviceQp::number` |
//! | `ep_{listen,next_conn_req}`, `{ep_get,conn_get_event}_fd` | `bind`, `accept` of `cm::Listener`; `AsFd` of each |
//! | `conn_{next_event,disconnect}`, `utils_conn_event_2str` | of `cm::Connection`; `Display` of `EventKind` |
//! | `{read,write,send,flush,atomic_write}`, `{write,send}_with_imm` | `SendWr`; FLUSH, ATOMIC_WRITE: loopback only |
//! | `recv`, `conn_req_recv` | [`post_recv`](crate::post::Post::post_recv), also before connecting |
//! | `srq_{new,recv}`, `srq_cfg_{new,delete}`, `srq_cfg_{get,set}_rq_size` | `create_srq`, its `post_recv`, `SrqInit` |
//! | `srq_get_rcq`, `srq_cfg_{get,set}_rcq_size` | a [`Cq`] of the program, as `recv_cq` of its queue pairs |
//! | `mr_reg`, `mr_get_{ptr,size,descriptor,descriptor_size}` | `register`; `Region::len`, `remote`, feature `serde` |
//! | `mr_remote_{from_descriptor,get_size,delete}` | a [`RemoteAddr`](crate::wr::RemoteAddr), without its length |
//! | `mr_remote_get_flush_type` | not needed: the peer refuses a FLUSH that its `Access` does not allow |
//! | `peer_cfg_{new,delete,from_descriptor,get_descriptor,get_descriptor_size}` | not needed, as the next row says |
//! | `peer_cfg_{get,set}_direct_write_to_pmem`, `conn_apply_remote_peer_cfg` | not needed: no READ imitates FLUSH |
//! | `mr_advise`, `utils_ibv_context_is_odp_capable` | not supported: no memory is paged on demand |
//! | `peer_new`, `utils_get_ibv_context` | `alloc_pd`; `Context::open` by name, by address `device()` of a `Route` |
//! | `{peer,conn,srq}_delete`, `ep_shutdown`, `mr_dereg` | drop the object |
//! | `err_2str`, `log_set_function`, `log_{get,set}_threshold` | `Display`; a subscriber of `tracing` |

use cq_core::cq::CompletionQueue;
use cq_core::transport::{Arm, Block, CqKey, Notify, PollError, WaitError, Woken};
use cq_core::wc::Wc;

use crate::device::{Device, DevicePd, QpBuilder};
use crate::polling::ArmWc;
use crate::setup::CreateError;

/// Why a call failed: `RPMA_E_…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum RpmaError {
    /// The buffer is empty.
    #[error("the buffer holds no completion: give one with at least one entry")]
    Inval,
    /// The queue is empty, or no event came before the deadline or a signal.
    #[error("there is no completion yet: wait again")]
    NoCompletion,
    /// The queue can't be polled or armed, or its channel can't be read, or is another queue's.
    #[error("the device failed")]
    Provider(#[from] WaitError),
    /// The transport claimed more completions than the buffer holds, or the event names another queue.
    #[error("the device returned something else than it was asked for")]
    Unknown(#[source] WaitError),
    /// The queue's channel is shared.
    #[error("the queue shares its channel: take the events from the channel")]
    SharedChannel,
    /// A queue or a channel can't be created: PROVIDER in C.
    #[error("a completion queue or its channel can't be created")]
    Create(#[from] CreateError),
}

/// `struct rpma_cq`: a completion queue, and its channel unless that is shared.
///
/// With a shared channel, the program takes the events:
/// ```
/// use cq_core::channel::thread;
/// use cq_core::queue::HeapCq;
/// use cq_core::transport::Events;
/// use cq_core::wc::{Wc, WcStatus};
/// use cq_verbs::rpma::{Cq, RpmaError};
///
/// let (raiser, mut shared) = thread::channel(1);
/// let (mut device, queue) = HeapCq::new(16)?.split_with(raiser);
/// let mut cq = Cq::<_, thread::Receiver>::new(queue, None)?;
/// device.push(&Wc::new(7, WcStatus::SUCCESS, 5))?;
/// while let Some(key) = shared.take_event()? {
///     cq.took_event(key)?;
/// }
/// assert_eq!(cq.get_wc(&mut [Wc::default(); 4])?.len(), 1);
/// assert_eq!(cq.get_wc(&mut [Wc::default(); 4]), Err(RpmaError::NoCompletion));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Cq<T, C>(CompletionQueue<T>, Option<C>);

impl<T: ArmWc, C: Block> Cq<T, C> {
    /// Arms the queue. With `None`, the queue's channel is shared.
    ///
    /// # Errors
    /// [`Provider`](RpmaError::Provider): it can't be armed, or the channel does not serve it.
    pub fn new(queue: T, channel: Option<C>) -> Result<Self, RpmaError> {
        let key = queue.key();
        if channel.as_ref().is_some_and(|channel| !channel.serves(key)) {
            return Err(WaitError::WrongChannel(key).into());
        }
        let mut cq = Self(CompletionQueue::new(queue), channel);
        cq.arm().map(|()| cq)
    }

    /// Whether completions may have been missed does not matter: the program polls next.
    fn arm(&mut self) -> Result<(), RpmaError> {
        let _ = self.0.get_mut().arm(Notify::Next).map_err(WaitError::from)?;
        Ok(())
    }

    /// Takes up to `wc.len()` completions. The length of the result is `num_entries_got`: at least 1.
    ///
    /// # Errors
    /// Those of [R1](cq_core::contract#r1): also an empty buffer, and an empty queue.
    #[doc(alias = "rpma_cq_get_wc")]
    pub fn get_wc<'r>(&mut self, wc: &'r mut [Wc]) -> Result<&'r [Wc], RpmaError> {
        if wc.is_empty() {
            return Err(RpmaError::Inval);
        }
        match self.0.poll(wc) {
            Ok([]) => Err(RpmaError::NoCompletion),
            Err(error @ PollError::Misbehaved { .. }) => Err(RpmaError::Unknown(error.into())),
            polled => polled.map_err(|error| WaitError::from(error).into()),
        }
    }

    /// Waits for an event, takes it, and arms the queue again. Then take all completions by [`get_wc`](Self::get_wc):
    /// the next wait may sleep on those that are left. A deadline in the past is C's O_NONBLOCK.
    ///
    /// # Errors
    /// Those of [R2](cq_core::contract#r2).
    #[doc(alias = "rpma_cq_wait")]
    pub fn wait(&mut self, deadline: Option<C::Instant>) -> Result<(), RpmaError> {
        let (channel, mut woken) = (self.1.as_mut().ok_or(RpmaError::SharedChannel)?, Woken::Event);
        loop {
            match channel.take_event().map_err(WaitError::from)? {
                Some(key) => return self.took_event(key),
                None if woken != Woken::Event => return Err(RpmaError::NoCompletion),
                None => woken = channel.block(deadline).map_err(WaitError::from)?,
            }
        }
    }

    /// Arms the queue again after this event of a shared channel.
    ///
    /// # Errors
    /// [`Unknown`](RpmaError::Unknown): the event is of another queue. [`Provider`](RpmaError::Provider).
    pub fn took_event(&mut self, key: CqKey) -> Result<(), RpmaError> {
        if key != self.0.get_mut().key() {
            return Err(RpmaError::Unknown(WaitError::OtherQueue(key)));
        }
        self.0.get_mut().took_events(1);
        self.arm()
    }

    /// The descriptor of the channel.
    ///
    /// # Errors
    /// [`SharedChannel`](RpmaError::SharedChannel).
    #[cfg(all(feature = "std", target_os = "linux"))]
    #[doc(alias = "rpma_cq_get_fd")]
    pub fn get_fd(&self) -> Result<std::os::fd::BorrowedFd<'_>, RpmaError>
    where
        C: std::os::fd::AsFd,
    {
        self.1.as_ref().map(C::as_fd).ok_or(RpmaError::SharedChannel)
    }
}

/// `struct rpma_conn`: the completion queues of a connection ([R3](cq_core::contract#r3)).
///
/// ```
/// use std::error::Error;
///
/// use cq_verbs::device::Device;
/// use cq_verbs::rpma::Conn;
///
/// /// 64 entries for sends and 16 for receives, each queue with a channel of its own.
/// fn create<D: Device>(device: &D, pd: &D::Pd) -> Result<(Conn<D>, D::Qp), Box<dyn Error>> {
///     let mut conn = Conn::new(device, 64, 16, None)?;
///     let qp = conn.qp(pd).create()?;
///     assert!(conn.get_rcq().is_some());
///     Ok((conn, qp))
/// }
/// ```
#[derive(Debug)]
pub struct Conn<D: Device> {
    cq: Cq<D::Cq, D::Channel>,
    rcq: Option<Cq<D::Cq, D::Channel>>,
}

impl<D: Device> Conn<D> {
    /// Creates and arms the queues, each with a channel of its own, or all with the one that is shared.
    ///
    /// # Errors
    /// [`Create`](RpmaError::Create), [`Provider`](RpmaError::Provider).
    pub fn new(
        device: &D,
        cq_size: u32,
        rcq_size: u32,
        shared: Option<&D::Channel>,
    ) -> Result<Self, RpmaError> {
        let create = |size| {
            let own = shared.is_none().then(|| device.create_channel()).transpose()?;
            Cq::new(device.cq(size).channel(shared.or(own.as_ref())).create()?, own)
        };
        let (cq, rcq) = (create(cq_size)?, (rcq_size > 0).then(|| create(rcq_size)).transpose()?);
        Ok(Self { cq, rcq })
    }

    /// Begins a queue pair that completes in these queues.
    pub fn qp<'a>(&'a self, pd: &'a D::Pd) -> QpBuilder<'a, D::Pd> {
        pd.qp(&self.cq.0).recv_cq(&self.rcq.as_ref().unwrap_or(&self.cq).0)
    }

    /// The main queue.
    #[doc(alias = "rpma_conn_get_cq")]
    pub const fn get_cq(&mut self) -> &mut Cq<D::Cq, D::Channel> {
        &mut self.cq
    }

    /// The receive queue, unless its size is 0.
    #[doc(alias = "rpma_conn_get_rcq")]
    pub const fn get_rcq(&mut self) -> Option<&mut Cq<D::Cq, D::Channel>> {
        self.rcq.as_mut()
    }
}
