//! Connecting a queue pair over a socket.

use std::os::fd::AsFd;
use std::time::Duration;

use super::TrackedQp;
use super::ledgers::Ledgers;
use crate::device::DeviceQp;
use crate::exchange::{ConnectError, Timed};
use crate::post::PostError;
use crate::setup::{Endpoint, Port};

impl<Q: DeviceQp, S, R, L: Ledgers> TrackedQp<Q, S, R, L> {
    /// Connects to the peer at the other end of a stream socket, which does the same: as
    /// [`connect_over`](crate::exchange::connect_over). Feature `std`; Linux.
    ///
    /// ```
    /// use cq_core::cq::CompletionQueue;
    /// use cq_verbs::device::{Device, DevicePd};
    /// use cq_verbs::tracked::TrackedQp;
    /// use cq_verbs::wr::SendWr;
    /// use std::error::Error;
    /// use std::os::unix::net::UnixStream;
    /// use std::time::Duration;
    ///
    /// fn send_one<D: Device>(device: &D, path: &str) -> Result<(), Box<dyn Error>> {
    ///     let mut cq = CompletionQueue::new(device.cq(128).create()?);
    ///     let qp = device.alloc_pd()?.qp(cq.get_ref()).create()?;
    ///     let mut qp = TrackedQp::<_, &str>::new(qp);
    ///     let stream = UnixStream::connect(path)?;
    ///     qp.connect_over(&stream, &device.port(1)?, Duration::from_secs(5))?;
    ///     qp.post_send(SendWr::send_inline(0, b"hello"), "a greeting")?;
    ///     while !qp.is_idle() {
    ///         for wc in cq.poll(&mut [Default::default(); 16])? {
    ///             wc.result()?;
    ///             qp.retire(wc).for_each(drop);
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// As those of [`connect_over`](crate::exchange::connect_over). [Reset](Self::reset) it before another attempt.
    pub fn connect_over(
        &mut self,
        stream: &impl AsFd,
        port: &Port,
        limit: Duration,
    ) -> Result<Endpoint, ConnectError> {
        self.connect_over_with(stream, port, limit, |_| Ok(()))
    }

    /// As [`connect_over`](Self::connect_over). `ready` is called once the queue pair can take receives, and before the
    /// peer sends: it posts those for the peer's first messages.
    ///
    /// ```
    /// use cq_verbs::device::{Device, Slots};
    /// use cq_verbs::setup::Port;
    /// use cq_verbs::tracked::TrackedQp;
    /// use std::error::Error;
    /// use std::os::unix::net::UnixStream;
    /// use std::time::Duration;
    ///
    /// fn connect<D: Device>(
    ///     qp: &mut TrackedQp<D::Qp, usize>,
    ///     slots: &Slots<D::Memory>,
    ///     stream: &UnixStream,
    ///     port: &Port,
    /// ) -> Result<(), Box<dyn Error>> {
    ///     qp.connect_over_with(stream, port, Duration::from_secs(5), |qp| {
    ///         qp.fill_receives(32, |slot| slots.sge(slot), |slot| slot)
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// As those of `connect_over`, or that of `ready`.
    pub fn connect_over_with(
        &mut self,
        stream: &impl AsFd,
        port: &Port,
        limit: Duration,
        ready: impl FnOnce(&mut Self) -> Result<(), PostError>,
    ) -> Result<Endpoint, ConnectError> {
        Timed::new(stream, limit).connect(&self.qp.endpoint(port), |peer| {
            self.qp.connect(port, peer)?;
            Ok(ready(self)?)
        })
    }
}
