//! Faults on request: what a program asks to go wrong with its send requests, by a seed.
//!
//! [`Faults`] says what; [`plan`] decides for each request, once. `engine/requester/faults` has it happen. Each queue
//! pair has dice of its own, thrown by the owner of its send queue, so that what happens to one does not depend on when
//! others run. Without faults a process pays for a look at one word.

mod injected;
mod parse;
pub mod plan;

pub use self::injected::Injected;
pub use self::parse::{FaultsError, from_env};
pub use self::plan::Injector;

use std::time::Duration;

use cq_core::testing::fault::When;
use cq_core::wc::WcStatus;

/// What is to go wrong with the send requests of a process, and when: [`OpenOptions::faults`].
///
/// ```
/// use std::time::Duration;
/// use cq_core::transport::{PollCq, Post};
/// use cq_core::wc::{Wc, WcStatus};
/// use cq_core::wr::SendWr;
/// use transport_rxe_loop::{Faults, OpenOptions, QpInit, When};
///
/// let faults = Faults::seeded(7)
///     .defer(Duration::from_micros(50))
///     .fail(When::nth(2), WcStatus::RNR_RETRY_EXC_ERR);
/// let fabric = format!("faults-{}", std::process::id());
/// let context = OpenOptions::new().fabric(&fabric).faults(faults).open("loop0")?;
/// # let pd = context.alloc_pd();
/// # let mut cq = context.create_cq(16, None)?;
/// # let (mut qp, mut peer) = (pd.create_qp(&QpInit::new(&cq))?, pd.create_qp(&QpInit::new(&cq))?);
/// # qp.connect(peer.number())?;
/// # peer.connect(qp.number())?;
/// # let region = pd.allocate(64, transport_rxe_loop::Access::EVERY)?;
/// let write = |wr_id| SendWr::write_inline(wr_id, b"hello", region.remote(0).unwrap());
/// qp.post_send(&[write(1), write(2), write(3)])?;
/// let (mut room, mut statuses) = ([Wc::default(); 4], Vec::new());
/// while statuses.len() < 3 {
///     let count = cq.poll(&mut room)?;
///     statuses.extend(room[..count].iter().map(Wc::status));
/// }
/// use WcStatus as S;
/// assert_eq!(statuses, [S::SUCCESS, S::RNR_RETRY_EXC_ERR, S::WR_FLUSH_ERR]);
/// println!("{}", context.injected().unwrap_or_default());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # When
/// Every queue pair of the process counts its requests, and throws dice of its own, as their turn comes:
/// `When::nth(3)` is the third of each. So the same seed, with queue pairs made and requests posted in the same
/// order, gives each of them the same fate, whichever thread carries it out. What was flushed or dropped before its
/// turn does not count.
///
/// # From the environment
/// A program that can't be changed is given its faults in `RXE_LOOP_FAULTS`, which counts where it asks for none:
/// `seed=7,defer=50us,rnr=0.01`. Each fault is `name=when`, where `when` is a probability or, for the third, `#3`,
/// and for most with something behind a colon:
///
/// | | |
/// |---|---|
/// | `seed=7` | what the dice begin with; 0 if nothing says |
/// | `fail=#3:RETRY_EXC_ERR`, `fail=0.01:12` | [`fail`](Self::fail), with the name of a status or its number |
/// | `defer=50us` | [`defer`](Self::defer) |
/// | `delay=0.1:2ms` | [`delay`](Self::delay) |
/// | `rnr=0.01`, `rnr=#1:5ms` | [`starve`](Self::starve), for 1 ms if nothing else is said |
/// | `stop=0.01`, `stop=#9:1s` | [`stop`](Self::stop), for 10 ms if nothing else is said |
/// | `overrun=#100` | [`overrun`](Self::overrun) |
/// | `spurious=0.1` | [`spurious`](Self::spurious) |
///
/// [`OpenOptions::faults`]: crate::OpenOptions::faults
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    seed: u64,
    rules: Vec<(When, Fault)>,
}

/// What goes wrong with a request.
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
    /// None, with this seed for the dice.
    #[must_use]
    pub const fn seeded(seed: u64) -> Self {
        Self { seed, rules: Vec::new() }
    }

    /// A request fails with this status, any number, and its queue pair as it does then: it moves no bytes, and
    /// what is behind it is flushed. If its peer has a part in such a failure, that fails too:
    ///
    /// | status | the peer |
    /// |---|---|
    /// | REM_INV_REQ | a SEND's receive: LOC_LEN; else QP_REQ_ERR. To ERR |
    /// | REM_OP | a SEND's receive: LOC_PROT; else QP_REQ_ERR. To ERR |
    /// | REM_ACCESS | the receive of a WRITE with immediate: LOC_ACCESS; else QP_ACCESS_ERR. To ERR |
    /// | any other | notices nothing |
    ///
    /// # Panics
    /// SUCCESS is no failure.
    #[must_use]
    #[track_caller]
    pub fn fail(self, when: When, status: WcStatus) -> Self {
        assert!(status != WcStatus::SUCCESS, "SUCCESS is no failure");
        self.with(when, Fault::Fail(status))
    }

    /// Every request is carried out later than it could be, by up to so much, and by the service thread: its bytes
    /// are read late, so that a program which reuses a buffer before the completion sends the wrong ones. Requests of
    /// one queue pair stay in their order, those of several do not.
    #[must_use]
    pub fn defer(self, up_to: Duration) -> Self {
        self.with(When::always(), Fault::Defer(up_to))
    }

    /// A request is carried out so much later than it could be, and those behind it after it.
    #[must_use]
    pub fn delay(self, when: When, by: Duration) -> Self {
        self.with(when, Fault::Delay(by))
    }

    /// A request that takes a receive of its peer finds none for so long, whatever is posted: it waits, and fails
    /// with RNR_RETRY_EXC if its timers say so. On an unreliable connection or as a datagram it is lost.
    #[must_use]
    pub fn starve(self, when: When, length: Duration) -> Self {
        self.with(when, Fault::Starve(length))
    }

    /// The peer of a request stops for so long. It does not answer requests of this process, which wait, and fail
    /// with RETRY_EXC if their timers say so, or are lost where nobody answers anyway; and if it is of this process,
    /// its own are not carried out.
    #[must_use]
    pub fn stop(self, when: When, length: Duration) -> Self {
        self.with(when, Fault::Stop(length))
    }

    /// The completion of a request finds its completion queue full, whether it is or not (O2–O5), unless that
    /// ignores overruns.
    #[must_use]
    pub fn overrun(self, when: When) -> Self {
        self.with(when, Fault::Overrun)
    }

    /// A request that is carried out raises an event for both completion queues of its queue pair, armed or not:
    /// one for nothing (N5), or one too many.
    #[must_use]
    pub fn spurious(self, when: When) -> Self {
        self.with(when, Fault::Spurious)
    }

    fn with(mut self, when: When, fault: Fault) -> Self {
        self.rules.push((when, fault));
        self
    }
}
