//! Opening the device: which fabric it lies in, how much a new one holds, and how memory is reached.

use std::env;
use std::ffi::OsString;
use std::sync::Arc;
#[cfg(test)]
use std::sync::atomic::{AtomicU32, Ordering};

use thiserror::Error;

use super::device::{self, Context};
use super::limits::{self, Limits, LimitsTextError};
use crate::completion::channel::EventChannel;
use crate::error::CreateError;
use crate::lifecycle::device::Ways;
use crate::lifecycle::{Device, deaths};
use crate::policy::Policy;
use crate::policy::faults::{self, Faults, FaultsError};
use crate::shm::error::AttachError;
use crate::shm::name::{FabricName, FabricPath};

/// The environment variable that names what programs are to see which ask for nothing.
const IMITATE: &str = "RXE_LOOP_IMITATE";

/// Why a device could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no device of this name.
    #[error("there is no device {name:?}: this transport has {}", device::devices().join(", "))]
    NoSuchDevice {
        /// The name that was asked for.
        name: String,
    },
    /// There is no place or no descriptor for its asynchronous events.
    #[error("the device has no channel for its asynchronous events")]
    NoChannel(#[from] CreateError),
    /// Its memory, which it shares with other processes, could not be had.
    #[error("the device's shared memory can't be had")]
    NoFabric(#[from] AttachError),
    /// The environment asks for a way of copying that there is none of.
    #[error("RXE_LOOP_COPY is {how:?}: say `service` or `direct`, or unset it")]
    UnknownCopying {
        /// What it says.
        how: OsString,
    },
    /// The environment asks for a device to be imitated that nobody can.
    #[error("RXE_LOOP_IMITATE is {what:?}: say `rxe`, or unset it")]
    UnknownImitation {
        /// What it says.
        what: OsString,
    },
    /// The environment asks for faults that there are none of.
    #[error("RXE_LOOP_FAULTS says no faults")]
    BadFaults(#[from] FaultsError),
    /// The environment asks for limits that nobody understands.
    #[error("RXE_LOOP_LIMITS says no limits")]
    BadLimits(#[from] LimitsTextError),
    /// Its tables do not fit into its memory.
    #[error("the {bytes} bytes of the device's memory are too few for its tables")]
    NoMemory {
        /// How much there is.
        bytes: usize,
    },
}

/// The environment variable that says how memory of other processes is reached.
const COPY: &str = "RXE_LOOP_COPY";

/// How a device is opened.
///
/// ```
/// use transport_rxe_loop::{Limits, OpenOptions};
///
/// let name = format!("example-{}", std::process::id());
/// let limits = Limits { queue_pairs: 10_000, bytes: 64 << 20, ..Limits::default() };
/// let context = OpenOptions::new().fabric(&name).limits(limits).open("loop0")?;
/// assert_eq!(context.attributes().max_qp, 16_384);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Fabrics
/// A fabric is memory that the processes of a user share; the device is what lies in it. Queue pairs of all
/// processes that have opened the same fabric connect by their numbers; those of another see nothing of it
/// (X1). Where numbers of queue pairs begin, and what the port's LID and GID are, follows from the fabric's name and
/// user: who is told a number of another fabric finds nobody by it, as by a number that nobody has (RETRY_EXC), and
/// there is no address handle of another fabric's port. It has a name, of the user's own: `/dev/shm/rxe-loop.<user>.<name>` is its file, which nobody else may
/// read or write, and has further ones beside it. The first process that opens it makes it, with the
/// [`Limits`] that it asks for, and the last one that ends removes it. Where none could, since all were
/// killed, or ended by `_exit(2)`, the next one that makes a fabric of any name does (X2); until then the file
/// takes its room of the shared memory. A file that is not what it should be is never used: it
/// is replaced if it is this user's alone and nobody has it open, and else refused with the reason.
///
/// Files that are in use are to be left alone: to truncate one ends the processes that have it open by SIGBUS, and
/// once one is removed, those that open the fabric later make another one.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    fabric: Option<String>,
    limits: Option<Limits>,
    asks: Asks,
}

/// What a process asks for, for as long as it has the fabric.
#[derive(Clone, Debug, Default)]
struct Asks {
    /// All other processes copy by themselves.
    by_service: bool,
    /// The device is as Linux' Soft-RoCE driver.
    imitates_rxe: bool,
    /// What is to go wrong.
    faults: Option<Faults>,
}

impl OpenOptions {
    /// The fabric that the environment names in `RXE_LOOP_FABRIC`, or `default`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The fabric of this name, whatever the environment says: at most 64 letters, digits, `_`, `.` and `-`,
    /// of which the first is no dot.
    #[must_use]
    pub fn fabric(mut self, name: &str) -> Self {
        self.fabric = Some(name.to_owned());
        self
    }

    /// How much the fabric holds, if it has to be made, whatever `RXE_LOOP_LIMITS` says [in the
    /// environment](Limits#from-the-environment). Of processes that ask for different limits the first one is heard: what is
    /// in force, [the device says](Context::attributes), and whether that is [something else](Context::other_limits).
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Has memory of other processes that the device did not allocate always moved by their service threads, as
    /// where the system refuses to: for trying that. So does `RXE_LOOP_COPY=service` in the environment. What
    /// the first opening of a fabric says holds for all of this process.
    #[must_use]
    pub const fn copying_by_service(mut self) -> Self {
        self.asks.by_service = true;
        self
    }

    /// Lets go wrong what the plan says with the send requests of this process, whatever `RXE_LOOP_FAULTS` says
    /// in the environment. What the first opening of a fabric says holds for all of this process.
    #[must_use]
    pub fn faults(mut self, faults: Faults) -> Self {
        self.asks.faults = Some(faults);
        self
    }

    /// Has the device do what Linux' Soft-RoCE driver does otherwise than [it should](crate#as-soft-roce): to see
    /// whether a program lives with that. So does `RXE_LOOP_IMITATE=rxe` in the environment. What the first
    /// opening of a fabric says holds for all of this process.
    ///
    /// ```
    /// use cq_core::transport::{PollCq, Post};
    /// use cq_core::wc::{Wc, WcStatus};
    /// use cq_core::wr::SendWr;
    /// use transport_rxe_loop::{Access, OpenOptions, QpInit};
    ///
    /// let fabric = format!("as-rxe-{}", std::process::id());
    /// let context = OpenOptions::new().fabric(&fabric).imitate_rxe().open("loop0")?;
    /// let mut cq = context.create_cq(16, None)?;
    /// assert_eq!(cq.capacity(), 31);
    /// let pd = context.alloc_pd();
    /// let mut qp = pd.create_qp(&QpInit::new(&cq))?;
    /// qp.connect(qp.number())?;
    ///
    /// let dead = pd.allocate(64, Access::LOCAL_WRITE)?.sge(0, 64)?;
    /// qp.post_send(&[SendWr::send(1, &[dead])])?;
    /// let mut room = [Wc::default(); 4];
    /// assert_eq!(cq.poll(&mut room)?, 1);
    /// assert_eq!(room[0].status(), WcStatus::LOC_QP_OP_ERR); // and not LOC_PROT_ERR
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn imitate_rxe(mut self) -> Self {
        self.asks.imitates_rxe = true;
        self
    }

    /// Opens a device by its name.
    ///
    /// # Errors
    /// There is no device of that name, its fabric can't be attached to, too many have opened it, or the
    /// environment says what nobody understands.
    pub fn open(&self, name: &str) -> Result<Context, OpenError> {
        if name != device::NAME {
            return Err(OpenError::NoSuchDevice { name: name.to_owned() });
        }
        let mut asks = self.asks.clone();
        asks.by_service |= service_from_env()?;
        asks.imitates_rxe |= imitates_from_env()?;
        if asks.faults.is_none() {
            asks.faults = faults::from_env()?;
        }
        let asked = match self.limits {
            Some(limits) => Some(limits),
            None => limits::from_env()?,
        };
        let named = self.fabric.as_deref().map_or_else(FabricName::from_env, str::parse);
        let wanted = asked.unwrap_or_default();
        let path = FabricPath::new(&named.map_err(AttachError::from)?);
        let policy = Policy::new(asks.faults, asks.imitates_rxe);
        let ways = Ways { by_service: asks.by_service, policy };
        let device = Device::open(&path, &wanted.shape(), ways)?;
        let events = deaths::take(device, || EventChannel::new(device.completions))?;
        Ok(Context::new(device, Arc::new(events), asked))
    }

    /// Opens the device in a fabric where no other test is: what one sweeps up after has every queue pair run.
    #[cfg(test)]
    pub fn alone(self) -> (Context, &'static Device) {
        static FABRICS: AtomicU32 = AtomicU32::new(0);
        let nth = FABRICS.fetch_add(1, Ordering::Relaxed);
        let name = format!("alone-{}-{nth}", std::process::id());
        let mut options = self.fabric(&name);
        // There is one for each of many tests, until all are through.
        let limits = options.limits.unwrap_or_default();
        options.limits = Some(Limits { bytes: limits.bytes.min(16 << 20), ..limits });
        let context = options.open(device::NAME).unwrap();
        let device = context.device();
        (context, device)
    }
}

impl Context {
    /// Opens a device by its name, in the fabric that the environment names: [`OpenOptions`] has more.
    ///
    /// # Errors
    /// As for [`OpenOptions::open`].
    pub fn open(name: &str) -> Result<Self, OpenError> {
        OpenOptions::new().open(name)
    }
}

fn service_from_env() -> Result<bool, OpenError> {
    match env::var_os(COPY) {
        None => Ok(false),
        Some(how) if how == "direct" => Ok(false),
        Some(how) if how == "service" => Ok(true),
        Some(how) => Err(OpenError::UnknownCopying { how }),
    }
}

/// Whether the environment asks for Soft-RoCE's behaviour.
fn imitates_from_env() -> Result<bool, OpenError> {
    match env::var_os(IMITATE) {
        None => Ok(false),
        Some(what) if what == "rxe" => Ok(true),
        Some(what) => Err(OpenError::UnknownImitation { what }),
    }
}
