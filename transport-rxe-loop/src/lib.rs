//! `loop0`: a verbs device in user space, within a process and between processes. No kernel module, no root,
//! no hardware; completions as the verbs specification describes them, for programs that want to be tested
//! anywhere.
//!
//! ```
//! use cq_core::transport::{PollCq, Post};
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
//! # Processes
//! Whoever of a user opens the device in the same [fabric](OpenOptions#fabrics) shares it: queue pairs connect
//! by their numbers and reach each other's registered memory, in one process or between two. Nobody serves
//! it: no daemon, no root. Two programs that are to see each other need nothing but the same
//! `RXE_LOOP_FABRIC` in their environments, or none; how they tell each other their numbers is theirs.
//!
//! - **Memory.** What the device [allocated](ProtectionDomain::allocate) lies in shared memory, and is copied
//!   like one's own. Any other [registered](ProtectionDomain::register) memory of another process is moved by
//!   the system, with `process_vm_readv(2)` and `process_vm_writev(2)`; each process lets those of its user
//!   trace it, where the system asks for that (`PR_SET_PTRACER`). Where the system refuses, because of a
//!   seccomp filter, a process namespace or a program that can't be traced, the [service
//!   thread](#the-service-thread) of the process that has the memory copies, always so if it is [asked
//!   to](OpenOptions::copying_by_service). Registered memory that is not there any more is a wrong range. A process
//!   that runs another program, by `execve(2)`, is dead, and nothing lands in that program, nor in one that has its
//!   number later: each call names a byte of a page first which the system puts nowhere by itself. A program that maps
//!   something of its own there, at one of 2^28 addresses which was drawn at random, is not protected.
//! - **Memory windows.** Their keys are good for peers in every process, and either side takes one away from the
//!   other, whichever process that is in. [Here](MemoryWindow#how-long-a-key-lives) is how long they live.
//! - **Atomics**, and writes that are one, are [one step](AtomicCap::Hca) for all processes of the fabric. One that the
//!   service thread of another process carries out is carried out once, however often its request is tried. A request
//!   that ends in RETRY_EXC was carried out at most once, and may still be until that process goes on.
//! - **Death.** A process that ends, or is killed at any instant, is found dead by the others some 20 ms
//!   later. Its queue pairs are destroyed ones: peers see RETRY_EXC, [when their timers say
//!   so](#how-long-a-request-waits), then WR_FLUSH. What it was in the middle of is repaired, and everything that
//!   it had is free again (X3).
//! - **Descriptors.** A program that closes descriptors which are not its own, as daemons do, stays attached: that it
//!   lives is told by memory, and what the device needs is opened again by its name. So the fabric's file must not be
//!   renamed or removed by hand: who can't open it again finds nobody dead any more, and leaves that to others.
//!   Meanwhile, and after the program opened and closed the fabric's file itself, others have the service thread copy.
//!   Channels and contexts have descriptors of their own, whose events are gone once they are closed.
//! - **Suspension.** The queue pairs of a process that is stopped stay; it does not answer where it has to do
//!   something itself. Who waits for a lock that it holds, or for what it is in the middle of, does so for two
//!   seconds at most, and then fails; but deregistering memory of the program's own takes as long as that lasts.
//!   Requests between other processes go on meanwhile: each process has [shared memory of its own](OpenOptions::copying_by_service)
//!   for what the service threads copy.
//!   A completion queue to which it was just pushing fails as if it had overrun, once another process has waited so
//!   long to push (O3, O4). An event that it was raising may come when it goes on; those of others are not kept.
//!   While it is suspended in copying for a requester that has given up, nobody reaches memory directly that its program
//!   registered, as what is copied may come after that: requests to such memory fail as if it did not answer.
//!   Messages to its shared receive queues wait, and datagrams to it are lost, while it is suspended in copying a
//!   message whose sender has given up or died: the receive is in use until it goes on.
//! - **Memory whose pages do not come.** Where this process' service thread copies to or from memory of the program's that
//!   is not there yet, and whose page nobody brings (`userfaultfd(2)`, a dead network file system), RESET, ERR, destroying
//!   and deregistering wait for it, without an end.
//! - **A forked child** has inherited handles that reach nothing: posting is refused as in RESET; making,
//!   changing, polling and waiting fail; dropping does nothing. Memory that the device allocated is still
//!   shared with its parent. It may open the device anew. `vfork` and a bare `clone` are for those who start
//!   another program at once.
//! - **Trust.** Whatever a process writes into the fabric, another one neither crashes nor hangs, nor
//!   touches what is not registered (X4). The files themselves are outside of that: a program that truncates one in use
//!   ([`/dev/shm/rxe-loop.*`](OpenOptions#fabrics), the fabric's or a region's), or punches holes into it while shared
//!   memory is full, ends the processes that use it by SIGBUS. Only programs of the same user, and of root, can do that.
//!
//! # Where things are
//!
//! ```text
//!   open       fabric, limits                  error    every reason, with a sentence
//!     |
//!   device     Context: attributes
//!     |
//!     +-- pd, mr, mw domains, keys, rights     qp, srq  posting, modify (attr, state), destroy
//!     +-- async_event, channel                   |
//!     |     on bell: marks, fifo: descriptor   place    claimed, emptied, given back
//!     +-- cq         ring, push, poll, resize    |
//!            ^   |                               |      +-- notes   from other processes
//!            |   v                               v      v
//!            | overrun  fails queue pairs --> execute    the turn  <--------------------- service    the thread
//!            |                                   |                                              |
//!       completion <-- flush <-------------- initiator    requests, one by one                sweep
//!                                                |  twosided: SEND, what takes a receive        after a death
//!                                                |  onesided: WRITE, READ, FLUSH, atomics
//!                                                |  local, mw: windows; unreliable, datagram: UC, UD
//!                                                |  fault: what is asked to go wrong
//!                     peer    queue, pool, retry | window, facts, memory
//!                                                |   reach    bytes, in every process
//!     ..........................................................................
//!     fabric     file, attaching, who lives    arena    rings and queues by offset
//!     descriptor which numbers are kept        region   the mapping
//!     layout     tables by index
//!     protocol   the words that processes share, for loom    lock, sync    who may do what, when
//! ```
//!
//! # The protocol in twelve lines
//! 1. Posting writes the request into the queue, publishes the position, and asks for the queue pair's turn.
//! 2. Whoever finds the turn free holds it and works; others leave a kick, which makes the holder look again.
//!    Only its own process runs a queue pair: others leave a note, and wake that one's service thread.
//! 3. The holder takes the next requests, opens its window for copying, and only then looks at states and keys.
//! 4. For a SEND, or a WRITE with immediate, it reads the peer's next receive, which is in flight as long as the
//!    window is open. From a shared receive queue it takes one, under that queue's lock, and a mark says who has
//!    it for whom: who sweeps up after the dead gives it back.
//! 5. It moves the bytes, pushes the peer's completions, closes the window, then pushes its own.
//! 6. Where there is no receive it leaves a mark, and looks again; who posts one sees the mark and kicks back.
//! 7. A request whose peer does not take it waits for that kick, or for an alarm of the service thread.
//! 8. A failure puts the queue pairs it concerns into ERR first, then completes, then kicks them to flush.
//! 9. Flushing leaves the receives alone while the peer's window is open; who closes it looks, and kicks. Of a
//!    shared receive queue nothing is flushed; that nothing of it is taken any more is found in the same way.
//! 10. A completion is pushed under its queue's lock, which no poller takes; the event is raised after it.
//!     Where it overran, the queue's queue pairs fail, and are flushed once the turn is given back. An event of
//!     a moderated queue may be left to the next completion, or to its owner's service thread.
//! 11. Polling a send's completion gives the slots it covers back, by the position in its tag.
//! 12. A lock whose holder died is inherited. The ring is its log: what was published there is settled again.
//!
//! No thread waits for another to get its turn, none holds two turns, and no lock is held while bytes move,
//! but for those of an atomic and of a datagram. Only ERR, RESET, destroying, deregistering, and taking the key
//! of a memory window away wait, for what is under way; the last under its turn, when its own window for copying
//! is closed.
//!
//! # Without an answer
//! An unreliable connection ([`QpType::Uc`]) sends and writes, and waits for nothing: what its peer does not
//! take, because there is no receive, a key is wrong, a right is missing, or the peer does not listen, is lost,
//! and nobody hears of it. [Datagrams](QueuePair::to) ([`QpType::Ud`]) go to whoever has the number and the
//! queue key. A receive that can't hold what comes fails with its queue pair, and the sender succeeds. What is
//! wrong on the sender's own side fails its request and leads to [SQE](QpState::Sqe), where receives go on.
//! Decisions:
//! - Between two queue pairs nothing is lost that was not so, and what one sends arrives in order. Where a
//!   process is stopped in the middle of a datagram, others to the same queue pair are lost, after each process
//!   that sends some has waited for two seconds, once.
//! - A READ, an atomic or a FLUSH on an unreliable queue pair is refused when posted, and so is everything but
//!   a SEND as a datagram.
//!
//! # How long a request waits
//! A receive is waited for, `rnr_retry` times the peer's `min_rnr_timer`, and an answer, `retry_cnt` + 1
//! times the local `timeout`, as `ibv_modify_qp(3)` has it; then the request fails with RNR_RETRY_EXC or
//! RETRY_EXC. `rnr_retry` 7 and `timeout` 0 are for ever. Nothing is lost here, so the peer does
//! not answer while it is in RESET, INIT or ERR, or connected to another, or while its process is stopped and
//! has to copy; it may come back in time, and the request goes on. Decisions:
//! - A peer that was destroyed, whose process died, or that never was, does not answer either; but nobody waits
//!   for it for ever: with `timeout` 0 the request fails at once.
//! - A request that waits for a receive has as long for an answer, once its peer stops answering, as if it
//!   were new; and the other way round.
//! - A request that waits is begun, so it goes on in SQD. Time in which the process was suspended counts.
//!   Attributes that are changed meanwhile do not.
//!
//! # Flushing
//! What a request moves is where everybody sees it once the request has completed. So a FLUSH judges the
//! rights, FLUSH_GLOBAL and FLUSH_PERSISTENT, of queue pair and region, stands as a fence, and completes. Memory
//! is as persistent as what it lies in: the device writes nothing back.
//!
//! # As Soft-RoCE
//! Programs meet devices that do not keep the contract, above all Linux' Soft-RoCE driver. [Asked
//! to](OpenOptions::imitate_rxe), or by `RXE_LOOP_IMITATE=rxe` for programs that can't be changed, this one does
//! what that does otherwise, so that it can be seen anywhere whether a program lives with it:
//! - Failures hold zeros in what they leave undefined, as a SEND's success would; receives say that a route came
//!   before them, also of connections; a SEND with invalidate sets another flag than WITH_INV.
//! - A receive that is too small, or bad, is LOC_QP_OP and REM_OP; so is a dead local key LOC_QP_OP.
//! - A completion queue that overruns drops, tells of each with CQ_ERR, wakes nobody, and works on. Failures
//!   raise no event for solicited completions. Of queue pairs nothing is told but SQ_DRAINED, and that unasked.
//! - Queues take more than was asked for, slots of send queues come back before anything is polled, atomics are
//!   judged when posted, a wrong current state is believed.
//!
//! Programs that hold to the contract survive all of it, but for those that wait for an event that never comes.
//! The table of `src/imitate.rs` has every deviation, and what of Soft-RoCE is not imitated; the conformance suite
//! judges it by what it knows of the driver itself.
//!
//! # The service thread
//! A process has one for each fabric once it needs it: for a request that has to wait for a finite time, for
//! a queue pair whose peer belongs to another process, for one that takes datagrams, for a peer whose owner
//! posts faster than others can carry its requests out, for a completion queue with a channel that is
//! [moderated](Cq::moderate). Where the system refuses it, such a wait fails with GENERAL_ERR, moderating is
//! refused, and others carry on by themselves. It sleeps while there is nothing to do, but as long as there
//! are other processes that it may have to do with, it looks every 20 ms whether they live. It blocks all signals:
//! no signal handler of the program runs in it, and a program that blocks a signal in all threads of its own can
//! wait for it (`sigwait(3)`, `signalfd(2)`).
//!
//! # Limits
//! A fabric has room for as much as its [`Limits`] said when it was made: if nothing else, 1,024 queue pairs
//! and completion queues, 4,096 regions, 256 shared receive queues, 512 channels, 64 processes and 52 MiB,
//! which hold that many queue pairs of [usual](QpInit::new) capacities, each with a completion queue of its own.
//! [`Context::attributes`] tells what is in force. The bytes hold the tables, rings and queues of all
//! processes. They are reserved when the fabric is made, so that shared memory that is full, or a limit for the
//! size of files (`ulimit -f`), is an error then and no crash later; a process shows as much of them as it has
//! used, as shared memory. What the device allocates is reserved beside them, region by region; memory of the
//! program's own does not count.
//!
//! # What a program's tests find
//! Fields that a failure leaves undefined hold a [pattern](cq_core::wc::Wc::poisoned). Everything else that a
//! network does to programs now and then, this device does when it is [asked to](Faults), by a seed: it fails
//! requests, carries them out late, so that a buffer which is reused too early is seen to be, lets peers stop or have
//! no receives, overruns queues, raises events for nothing. `RXE_LOOP_FAULTS` asks for a program that can't be
//! changed. Tests that need no device find the like in [`cq_core::testing::fault`].
//!
//! # What it does not have
//! Memory windows of type 1, zero-based regions, multicast, alternate paths, shared receive queues that are
//! resized, queue pairs of other types than RC, UC and UD.
//!
//! The rules that the documentation cites (`C8`, `Q5`) are the contract's:
//! [`cq_core::contract`] says each, with its source.
#![deny(unsafe_code)]

#[doc(hidden)]
pub mod protocol;
#[doc(hidden)]
pub mod sync;

cfg_if::cfg_if! {
    if #[cfg(not(loom))] {
        mod api;
        mod completion;
        mod engine;
        mod error;
        #[cfg(test)]
        #[path = "../tests/inside/mod.rs"]
        mod inside;
        mod lifecycle;
        mod memory;
        mod policy;
        mod shm;

        #[doc(hidden)]
        pub use crate::shm::descriptor;

        pub use cq_core::testing::fault::When;
        pub use cq_core::setup::{Access, Gid, GlobalRoute, InUse, QpAttrMask, QpCaps, QpType, RangeError, SrqInit};

        pub use crate::api::ah::{AddressError, AddressHandle, AddressVector, Destination};
        pub use crate::api::attr::{ModifyError, QpAttr};
        pub use crate::api::channel::CompletionChannel;
        pub use crate::api::cq::{Cq, CqInit};
        pub use crate::api::cq::moderation::ModerateError;
        pub use crate::api::cq::resize::ResizeError;
        pub use crate::api::datagram::Directed;
        pub use crate::api::device::{AtomicCap, Context, DeviceAttr, MemoryWindows, devices};
        pub use crate::error::{CreateError, Limit, RegisterError};
        pub use crate::shm::error::AttachError;
        pub use crate::shm::header::NotOurs;
        pub use crate::api::limits::{Limits, LimitsTextError, OtherLimits};
        pub use crate::shm::name::NameError;
        pub use crate::policy::faults::{Faults, FaultsError, Injected};
        pub use crate::api::mr::{MemoryRegion, OwnedRegion};
        pub use crate::api::mw::MemoryWindow;
        pub use crate::api::open::{OpenError, OpenOptions};
        pub use crate::api::pd::ProtectionDomain;
        pub use crate::api::qp::{Batch, QpInit, QueuePair};
        pub use crate::api::srq::{ArmLimitError, SharedReceiveQueue};
        pub use crate::api::state::{QpState, Rule};
    }
}

/// The example of the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
