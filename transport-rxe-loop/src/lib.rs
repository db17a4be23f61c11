//! `loop0`: a verbs device in user space. No kernel module, no root, no hardware; completions as the verbs
//! specification describes them, for programs that want to be tested anywhere.
//!
//! ```
//! use cq_core::transport::{Poll, Post};
//! use cq_core::wc::Wc;
//! use cq_core::wr::{RecvWr, SendWr};
//! use transport_rxe_loop::{Access, Context, QpInit};
//!
//! let context = Context::open("loop0")?;
//! let pd = context.alloc_pd();
//! let mut cq = context.create_cq(16, None)?;
//! let mut alice = pd.create_qp(&QpInit::new(&cq))?;
//! let mut bob = pd.create_qp(&QpInit::new(&cq))?;
//! alice.connect(bob.number())?;
//! bob.connect(alice.number())?;
//!
//! let region = pd.allocate(4096, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
//! region.write(0, b"hello")?;
//! bob.post_recv(&[RecvWr::new(1, &[region.sge(1024, 64)?])])?;
//! alice.post_send(&[
//!     SendWr::write(2, &[region.sge(0, 5)?], region.remote(2048)?).unsignaled(),
//!     SendWr::send(3, &[region.sge(0, 5)?]),
//! ])?;
//!
//! let mut room = [Wc::default(); 4];
//! assert_eq!(cq.poll(&mut room)?, 2);
//! let (received, sent) = (room[0].result()?, room[1].result()?);
//! assert_eq!((received.wr_id(), received.byte_len()), (1, 5));
//! assert_eq!(sent.wr_id(), 3); // and with it the WRITE before it (C9)
//! let mut back = [0; 5];
//! region.read(2048, &mut back)?;
//! assert_eq!(&back, b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where things are
//!
//! ```text
//!   device     Context: open, limits           error    every reason, with a sentence
//!     |
//!     +-- pd, mr     domains, keys, rights     qp       posting, modify (attr, state), destroy
//!     +-- async_event, channel                   |
//!     |     on bell: descriptor, list          place    claimed, emptied, given back
//!     +-- cq         ring, push, poll, resize    |
//!            ^   |                               |
//!            |   v                               v
//!            | overrun  fails queue pairs --> execute    the turn; SEND  <-- service    the thread
//!            |                                   |       onesided: WRITE, READ, atomics
//!       completion <-- flush <-------------------+
//!                                                |
//!                           peer    queue, retry | window, memory, reach    bytes of every process
//!     ..........................................................................
//!     fabric     layout: tables by index       arena: rings and queues by offset
//!     region     the mapping                   lock, list, identity, sync: who may do what, when
//! ```
//!
//! # The protocol in eleven lines
//! 1. Posting writes the request into the queue, publishes the position, and asks for the queue pair's turn.
//! 2. Whoever finds the turn free holds it and works; others leave a kick, which makes the holder look again.
//! 3. The holder takes the next request, opens its window for copying, and only then looks at keys.
//! 4. For a SEND it takes the peer's next receive under the receive queue's lock, and drops the lock.
//! 5. It moves the bytes, pushes the peer's completion, ends the receive, then pushes its own completion.
//! 6. Where there is no receive it leaves a mark under that lock; who posts one sees it and kicks back.
//! 7. A request whose peer does not take it waits for that kick, or for an alarm of the service thread.
//! 8. A failure puts the queue pairs it concerns into ERR first, then completes, then kicks them to flush.
//! 9. Flushing stops at a receive that is in flight; who has it kicks when it is done.
//! 10. A completion is pushed under its queue's lock, which no poller takes; the event is raised after it.
//!     Where it overran, the queue's queue pairs fail, and are flushed once the turn is given back.
//! 11. Polling a send's completion gives the slots it covers back, by the position in its tag.
//!
//! No thread waits for another to get its turn, none holds two turns, and no lock is held while bytes move.
//! Only ERR, RESET, destroying and deregistering wait, for what is under way.
//!
//! # How long a request waits
//! A receive is waited for, `rnr_retry` times the peer's `min_rnr_timer`, and an answer, `retry_cnt` + 1
//! times the local `timeout`, as `ibv_modify_qp(3)` has it; then the request fails with RNR_RETRY_EXC or
//! RETRY_EXC. `rnr_retry` 7 and `timeout` 0 are for ever. Nothing is lost here, so the peer does
//! not answer while it is in RESET, INIT or ERR, or connected to another; it may come back in time, and the
//! request goes on at once. Decisions:
//! - A peer that was destroyed, or never was, ends a request at once, whatever the timers.
//! - A request that waits for a receive has as long for an answer, once its peer stops answering, as if it
//!   were new; and the other way round.
//! - A request that waits is begun, so it goes on in SQD. Time in which the process was suspended counts.
//!   Attributes that are changed meanwhile do not.
//! - The first request that has to wait for a finite time starts the one thread that this library has in a
//!   process. Where the system refuses it, the request fails with GENERAL_ERR.
//! - The thread also relieves others of a peer whose owner posts faster than they can carry its requests
//!   out. Where the system refuses it, they carry on.
//! - A child that was forked has no such thread: there, nothing ends a wait.
//!
//! # Limits
//! What all objects of a process have in common is 16 MiB of memory, used as it is needed: see
//! [`Context::attributes`] for how many there can be. Registered memory does not count.
//!
//! # Memory of other processes
//! Every process of a user that has opened the same [fabric](OpenOptions) reaches the registered memory of the
//! others. What the device [allocated](ProtectionDomain::allocate) lies in shared memory, a file for each
//! region, so there has to be room for it. Any other is moved by the system from one process to the other, by
//! `process_vm_readv(2)` and `process_vm_writev(2)`. Where the system does not let it, because of a seccomp
//! filter, a process namespace or a process that can't be traced, a thread of the process that has the memory
//! does; with `RXE_LOOP_COPY=service` in the environment it always does. A process that opens the device lets
//! all processes of its user trace it, where the system asks for that (`PR_SET_PTRACER`).
//!
//! Memory that is not there any more, though it is registered, is a wrong range, where the system moves the
//! bytes. Where a process has to move them itself, it does not answer while it is stopped.
//!
//! # What is not here yet
//! - No WRITE with immediate, invalidation, shared receive queues.
//!
//! The rules that the documentation cites (`C8`, `Q5`) are the contract's:
//! [`verify/CONTRACT.md`](../../../verify/CONTRACT.md) in the repository says each, with its source.
#![deny(unsafe_code)]

#[doc(hidden)]
pub mod protocol;
#[doc(hidden)]
pub mod sync;

cfg_if::cfg_if! {
    if #[cfg(not(loom))] {
        #[cfg(test)]
        mod actor;
        mod arena;
        mod async_event;
        mod attr;
        #[cfg(test)]
        mod audit;
        mod bell;
        #[cfg(test)]
        mod chance;
        mod channel;
        mod completion;
        mod cq;
        mod device;
        #[cfg(test)]
        mod dying;
        mod error;
        mod execute;
        mod fabric;
        mod facts;
        mod fifo;
        mod flush;
        #[cfg(test)]
        mod hostile;
        mod identity;
        mod layout;
        mod lock;
        mod memory;
        mod mr;
        mod notes;
        mod onesided;
        mod open;
        mod overrun;
        mod pd;
        mod peer;
        mod place;
        mod qp;
        mod queue;
        mod reach;
        mod region;
        mod retry;
        mod service;
        mod state;
        mod sweep;
        mod window;

        pub use cq_core::setup::{Access, InUse, QpAttrMask, QpCaps, RangeError};

        pub use crate::attr::QpAttr;
        pub use crate::channel::CompletionChannel;
        pub use crate::cq::Cq;
        pub use crate::device::{AtomicCap, Context, DeviceAttr, devices};
        pub use crate::error::{CreateError, Limit, ModifyError, OpenError, RegisterError, ResizeError};
        pub use crate::fabric::error::AttachError;
        pub use crate::fabric::limits::Limits;
        pub use crate::mr::{MemoryRegion, OwnedRegion};
        pub use crate::open::OpenOptions;
        pub use crate::pd::ProtectionDomain;
        pub use crate::qp::{QpInit, QueuePair};
        pub use crate::state::{QpState, Rule};
    }
}

/// The example of the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
