//! Fault injection: what a program requests to go wrong with its requests, by a seed.
//!
//! [`Faults`] has the rules. [`plan`] decides for each request when it comes first in its send queue, and the
//! requester carries that out. Each queue pair has its own dice, thrown by the
//! owner of its send queue, so that its faults do not depend on when others run.
//!
//! Without faults, a queue pair pays for one load of a word in its own entry.

mod injected;
mod parse;
pub mod plan;

pub use self::injected::Injected;
pub use self::parse::{FaultsError, from_env};
pub use self::plan::Injector;

use std::time::Duration;

use cq_core::wc::WcStatus;
use cq_verbs::fault::When;

/// The faults of a process' send requests, and when they happen: [`OpenOptions::faults`]. They are what a network does to
/// programs now and then, by a seed: requests fail or are late, peers stop or have no receives, completion queues overrun,
/// events are spurious. Tests without a device use `cq_testing::fault`.
///
/// ```
/// use std::time::Duration;
///
/// use transport_rxe_loop::{Faults, OpenOptions, SendWr, Wc, WcStatus, When};
///
/// let faults = Faults::seeded(7)
///     .defer(Duration::from_micros(50))
///     .fail(When::nth(2), WcStatus::RNR_RETRY_EXC_ERR);
/// let fabric = format!("faults-{}", std::process::id());
/// let context = OpenOptions::new().fabric(&fabric).faults(faults).open("loop0")?;
/// # let (port, pd) = (context.port(1)?, context.alloc_pd()?);
/// # let mut cq = context.cq(16).create()?;
/// # let (mut qp, mut peer) = (pd.qp(&cq).create()?, pd.qp(&cq).create()?);
/// # qp.connect(&port, &peer.endpoint(&port))?;
/// # peer.connect(&port, &qp.endpoint(&port))?;
/// # let region = pd.allocate(64, transport_rxe_loop::Access::EVERY)?;
/// let write = |wr_id| SendWr::write_inline(wr_id, b"hello", region.remote(0).unwrap());
/// qp.post_send(&[write(1), write(2), write(3)])?;
/// let (mut wcs, mut statuses) = ([Wc::default(); 4], Vec::new());
/// while statuses.len() < 3 {
///     statuses.extend(cq.poll(&mut wcs)?.iter().map(Wc::status));
/// }
/// use WcStatus as S;
/// assert_eq!(statuses, [S::SUCCESS, S::RNR_RETRY_EXC_ERR, S::WR_FLUSH_ERR]);
/// println!("{}", context.injected().unwrap_or_default());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # When
/// **Every queue pair counts for itself**: `When::nth(3)` is the third request of each. It counts its requests, and throws
/// its own dice, as each comes first in its send queue. So the same seed, with queue pairs created and requests posted
/// in the same order, gives each request the same faults, whichever thread carries it out. Requests that were flushed
/// or dropped before do not count.
///
/// # From the environment
/// `RXE_LOOP_FAULTS` is for programs that can't be changed, and applies where a program requests no faults:
/// `seed=7,defer=50us,rnr=0.01`. Each fault is `name=when`, where `when` is a probability or, for the third request of each
/// queue pair, `#3`; most take another part after a colon:
///
/// | | |
/// |---|---|
/// | `seed=7` | the seed of the dice; 0 by default |
/// | `fail=#3:RETRY_EXC_ERR`, `fail=0.01:12` | [`fail`](Self::fail), with the name of a status or its number |
/// | `defer=50us` | [`defer`](Self::defer) |
/// | `delay=0.1:2ms` | [`delay`](Self::delay) |
/// | `rnr=0.01`, `rnr=#1:5ms` | [`starve`](Self::starve), for 1 ms by default |
/// | `stop=0.01`, `stop=#9:1s` | [`stop`](Self::stop), for 10 ms by default |
/// | `overrun=#100` | [`overrun`](Self::overrun) |
/// | `spurious=0.1` | [`spurious`](Self::spurious) |
///
/// One seed gives every process the same faults: the first queue pair of each, the second, and so on. For others, start
/// each process with another seed: `RXE_LOOP_FAULTS="seed=$RANK,rnr=0.01"`, where each has a `RANK` of its own.
///
/// [`OpenOptions::faults`]: crate::OpenOptions::faults
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Faults {
    seed: u64,
    rules: Vec<(When, Fault)>,
}

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Fail(WcStatus),
    Defer(Duration),
    Delay(Duration),
    Starve(Duration),
    Stop(Duration),
    Overrun,
    Spurious,
}

impl Faults {
    /// No faults, with this seed for the dice.
    pub const fn seeded(seed: u64) -> Self {
        Self { seed, rules: Vec::new() }
    }

    /// A request fails with this status, which may be any number, as does its queue pair: it moves no bytes, and the
    /// requests behind it are flushed. If the responder takes part in such a failure, it fails too:
    ///
    /// | status | the responder |
    /// |---|---|
    /// | REM_INV_REQ | a SEND's receive: LOC_LEN; else QP_REQ_ERR. To ERR |
    /// | REM_OP | a SEND's receive: LOC_PROT; else QP_REQ_ERR. To ERR |
    /// | REM_ACCESS | the receive of a WRITE with immediate: LOC_ACCESS; else QP_ACCESS_ERR. To ERR |
    /// | any other | notices nothing |
    ///
    /// # Panics
    /// If the status is SUCCESS.
    #[track_caller]
    pub fn fail(self, when: When, status: WcStatus) -> Self {
        assert!(status != WcStatus::SUCCESS, "SUCCESS is no failure");
        self.with(when, Fault::Fail(status))
    }

    /// Every request is carried out later than it could be, by up to this duration, and by the service thread: its
    /// bytes are read late, so that a program which reuses a buffer before the completion sends the wrong ones.
    /// Requests of one queue pair stay in order, those of several do not.
    pub fn defer(self, up_to: Duration) -> Self {
        self.with(When::always(), Fault::Defer(up_to))
    }

    /// A request, and those behind it, are carried out this much later than they could be.
    pub fn delay(self, when: When, by: Duration) -> Self {
        self.with(when, Fault::Delay(by))
    }

    /// A request that takes a receive of its peer finds none for this duration, even if some are posted: it waits,
    /// and fails with RNR_RETRY_EXC if its timers expire. On an unreliable transport it is lost.
    pub fn starve(self, when: When, length: Duration) -> Self {
        self.with(when, Fault::Starve(length))
    }

    /// The peer of a request stops for this duration. It does not answer requests of this process, which wait, and
    /// fail with RETRY_EXC if their timers expire; on an unreliable transport they are lost. If the peer belongs to
    /// this process, its own requests are not carried out.
    pub fn stop(self, when: When, length: Duration) -> Self {
        self.with(when, Fault::Stop(length))
    }

    /// The completion of a request finds its completion queue full, whether it is or not
    /// ([O2](cq_core::contract#o2)–[O5](cq_core::contract#o5)), unless the queue ignores overruns.
    pub fn overrun(self, when: When) -> Self {
        self.with(when, Fault::Overrun)
    }

    /// A request that is carried out raises an event for both completion queues of its queue pair, armed or not: a
    /// spurious one ([N5](cq_core::contract#n5)), or one more.
    pub fn spurious(self, when: When) -> Self {
        self.with(when, Fault::Spurious)
    }

    /// Whether anything is said about when requests begin.
    pub(super) fn has_delay(&self) -> bool {
        self.rules.iter().any(|(_, fault)| matches!(fault, Fault::Defer(_) | Fault::Delay(_)))
    }

    /// Whether nothing goes wrong: requests are deferred at most.
    pub(super) fn only_defer(&self) -> bool {
        self.rules.iter().all(|(_, fault)| matches!(fault, Fault::Defer(_)))
    }

    fn with(mut self, when: When, fault: Fault) -> Self {
        self.rules.push((when, fault));
        self
    }
}
