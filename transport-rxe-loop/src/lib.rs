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
//! let mut wcs = [Wc::default(); 4];
//! assert_eq!(cq.poll(&mut wcs)?, 2);
//! let (received, sent) = (wcs[0].result()?, wcs[1].result()?);
//! assert_eq!((received.wr_id(), received.byte_len()), (1, 5));
//! assert_eq!(sent.wr_id(), 3); // and with it the WRITE before it (C9)
//! let mut back = [0; 5];
//! region.read(2048, &mut back)?;
//! assert_eq!(&back, b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Architecture
//! Layers from top to bottom: each uses those below it and none above (`cargo verify layers` checks that).
//!
//! | folder | what it does | what a process has of it |
//! |---|---|---|
//! | `api` | what a program holds: contexts, domains, regions, windows, completion queues, channels, queue pairs, address handles; judges arguments, once | handles |
//! | `lifecycle` | the service thread, and what is done about processes that died | `Device`: all of the following, and the list of tables whose entries die with their process |
//! | `engine` | requests: who owns a send queue, the requester and its operations, the responder and its receives, retry, flush, errors | `Engine`: queue pairs, shared receive queues, alarms, remote requests |
//! | `policy` | what faults and the imitation of Soft-RoCE decide, as data | `Policy`: faults and what was injected |
//! | `completion` | completion queues from the producers' side, event channels, asynchronous events | `Completions`: completion queues, channels, moderated queues |
//! | `memory` | from keys to bytes, rights, windows; moving bytes within and between processes | `Memory`: region entries, access paths, the copier |
//! | `shm` | the fabric's file, attaching, allocation, tables, locks, liveness; knows no verbs | `Shm`: the attachment |
//! | `protocol` | the words that processes share, each with its states and orderings; checked by loom | |
//! | `sync`, `error` | atomics under one roof; errors that several layers return | |
//!
//! A SEND passes them like this:
//!
//! ```text
//!  post_send           api/qp            judges the request, writes it into the send queue, publishes its position
//!     |                engine/send_queue owns the send queue, or leaves the work to its owner
//!     v                engine/requester  takes requests in order, opens the copy guard
//!  gather              memory            checks lkeys and ranges: spans to read
//!  receive request     engine/responder  is the peer ready? its next receive, or one of its shared receive queue
//!  scatter, copy       memory            checks the receive's lkeys: spans to write; copies, whoever's memory it is
//!  complete            completion/push   one lock for each completion queue; publishes, then raises the event
//!     v
//!  poll                api/cq            no lock; gives slots of the send queue back
//! ```
//!
//! What waits, fails or is flushed is `engine/{retry, flush, queue_pair}`; completion queue overrun `engine/overrun`; memory of
//! another process `memory/{copy, paths, remote, copier}`; windows `memory/binding`; datagrams
//! `engine/requester/datagram`; a dead process `lifecycle/deaths` and each table's `Owners`.
//!
//! ## The protocol in twelve lines
//! 1. Posting writes the request into the queue, publishes its position, and asks for ownership of the send queue.
//! 2. Who finds it free owns it and works; others leave a mark, and the owner looks again before it gives it back. Only
//!    its own process runs a queue pair: others leave a remote request, and wake that process' service thread.
//! 3. The owner takes the next requests, opens its copy guard, and only then looks at states and keys.
//! 4. For a SEND, or a WRITE with immediate, it reads the peer's next receive, which is in flight as long as the guard is
//!    open. From a shared receive queue it takes one under that queue's lock, and marks for whom.
//! 5. It moves the bytes, pushes the peer's completions, closes the guard, then pushes its own.
//! 6. Where there is no receive it marks the peer as starved, and looks again; who posts one sees the mark and reschedules it.
//! 7. A request whose peer does not take it waits to be rescheduled, or for an alarm of the service thread.
//! 8. A failure puts the queue pairs concerned into ERR first, then completes, then reschedules them to flush.
//! 9. Flushing leaves the receives alone while the peer's guard is open; who closes it looks, and reschedules.
//! 10. A completion is pushed under its queue's lock, which no poller takes; the event is raised after it. Where it overran,
//!     the queue's queue pairs fail.
//! 11. Polling a send's completion gives back the slots that it covers, by the position in its tag.
//! 12. A lock whose holder died is taken over. The ring is the log: what was published there is settled again.
//!
//! No thread waits to own a send queue, none owns two, and no lock is held while bytes move, but for those of an atomic and
//! of a datagram. Only ERR, RESET, destroying, deregistering and invalidating a window wait for what is in flight.
//!
//! # Processes
//! All processes of a user that open the device in the same [fabric](OpenOptions#fabrics) share it: queue pairs connect
//! by their numbers and reach each other's registered memory, within a process or between two. There is no daemon, and no
//! need of root. Two programs need nothing but the same `RXE_LOOP_FABRIC` in their environments, or none.
//!
//! - **Memory.** What the device [allocated](ProtectionDomain::allocate) lies in shared memory, and is copied
//!   like a process' own. Any other [registered](ProtectionDomain::register) memory of another process is moved by
//!   the system, with `process_vm_readv(2)` and `process_vm_writev(2)`; each process lets those of its user
//!   trace it, where the system asks for that (`PR_SET_PTRACER`). Where the system refuses (a seccomp filter, a process
//!   namespace, a program that can't be traced), the [service thread](#the-service-thread) of the owner copies; always
//!   with [`copying_by_service`](OpenOptions::copying_by_service). Registered memory that is not mapped any more is a
//!   wrong range. Nothing lands in a program that a process started by `execve(2)`, nor in one that got its number later:
//!   each call names a byte of a guard page first, at an address drawn at random.
//! - **Memory windows.** Their keys are good for peers in every process, and either side invalidates them.
//!   [How long a key lives](MemoryWindow#how-long-a-key-lives).
//! - **Atomics**, and atomic writes, are [atomic](AtomicCap::Hca) among all processes of the fabric. One that the
//!   service thread of another process carries out is carried out once, however often its request is retried. A request
//!   that ends in RETRY_EXC was carried out at most once, and may still be until that process resumes.
//! - **Death.** A process that ends, or is killed at any instant, is found dead by the others some 20 ms
//!   later. Its queue pairs are destroyed: peers see RETRY_EXC, [when their timers say
//!   so](#how-long-a-request-waits), then WR_FLUSH. What it was in the middle of is repaired, and everything that
//!   it had is freed (X3).
//! - **Descriptors.** A program that closes descriptors which are not its own, as daemons do, stays attached: a guard page in
//!   memory says that it lives, and what the device needs is opened again by name. So the fabric's file must not be
//!   renamed or removed by hand. Until the service thread has named the process again, others have it copy by itself.
//!   Channels and contexts have descriptors of their own, whose events are lost once they are closed.
//! - **Suspension.** The queue pairs of a stopped process stay; it does not answer where it has to act
//!   itself. A thread that waits for a lock which a stopped process holds, or for what that is in the middle of, waits two
//!   seconds at most, and then fails; but deregistering memory of the program's own takes as long as the suspension.
//!   Requests between other processes go on.
//!   A completion queue to which it was just pushing fails as if it had overrun, once another process has waited so
//!   long to push (O3, O4). An event that it was raising may come when it resumes; those of others are not delayed.
//!   While it is suspended in copying for a requester that has given up, requests to memory that its program registered
//!   fail as if it did not answer, messages to its shared receive queues wait, and datagrams to it are lost.
//! - **Memory whose pages do not come.** Where a service thread copies to or from memory whose page nobody brings
//!   (`userfaultfd(2)`, a dead network file system), RESET, ERR, destroying and deregistering wait for it, without a limit.
//! - **A forked child** has inherited handles that reach nothing: posting is refused as in RESET; making,
//!   changing, polling and waiting fail; dropping does nothing. Memory that the device allocated is still
//!   shared with its parent. The child may open the device anew. `vfork` and a bare `clone` are for starting
//!   another program at once.
//! - **Trust.** Whatever a process writes into the fabric, another one neither crashes nor hangs, nor
//!   touches what is not registered (X4). The files themselves are an exception: a program that truncates one in use
//!   ([`/dev/shm/rxe-loop.*`](OpenOptions#fabrics)), or punches holes into it while shared
//!   memory is full, ends the processes that use it by SIGBUS. Only programs of the same user, and of root, can do that.
//!
//! # Unreliable transports
//! An unreliable connection ([`QpType::Uc`]) sends and writes, and waits for nothing: what its peer does not
//! take, because there is no receive, a key is wrong, a right is missing, or the peer is not ready, is lost without a report.
//! [Datagrams](QueuePair::to) ([`QpType::Ud`]) go to the queue pair with the number and the
//! queue key. A receive that can't hold a message fails with its queue pair, and the sender succeeds. What is
//! wrong on the sender's own side fails its request and leads to [SQE](QpState::Sqe), where receives go on.
//! - Between two queue pairs messages are never lost otherwise, and arrive in order. Where a
//!   process is stopped in the middle of a datagram, others to the same queue pair are lost, after each sending process
//!   has waited for two seconds, once.
//! - A READ, an atomic or a FLUSH on an unreliable queue pair is refused when posted, and so is everything but
//!   a SEND as a datagram.
//!
//! # How long a request waits
//! For a receive, `rnr_retry` times the peer's `min_rnr_timer`; for an answer, `retry_cnt` + 1
//! times the local `timeout`, as `ibv_modify_qp(3)` says; then the request fails with RNR_RETRY_EXC or
//! RETRY_EXC. `rnr_retry` 7 and `timeout` 0 are without a limit. No packet is ever lost, so a peer does
//! not answer only while it is in RESET, INIT or ERR, or connected to another, or while its process is stopped and
//! has to copy; it may come back in time. Decisions:
//! - A peer that was destroyed, whose process died, or that never existed, does not answer either; with `timeout` 0 the
//!   request then fails at once.
//! - A request that waits for a receive has the full time for an answer, once its peer stops answering; and the other way
//!   round.
//! - A request that waits has begun, so it goes on in SQD. Time in which the process was suspended counts.
//!   Attributes that are changed meanwhile do not.
//!
//! # FLUSH
//! What a request moves is visible to all once the request has completed. So a FLUSH judges the
//! rights, FLUSH_GLOBAL and FLUSH_PERSISTENT, of queue pair and region, acts as a fence, and completes. Memory
//! is as persistent as what it lies in: the device writes nothing back.
//!
//! # As Soft-RoCE
//! Programs meet devices that do not keep the contract, above all Linux' Soft-RoCE driver. [On
//! request](OpenOptions::imitate_rxe), or with `RXE_LOOP_IMITATE=rxe` for programs that can't be changed, the device behaves
//! as that does, so that a program can be tested against it anywhere:
//! - Failures hold zeros in undefined fields, as a SEND's success would; receives have GRH set, also of connections; a SEND
//!   with invalidate sets another flag than WITH_INV.
//! - A receive that is too small, or bad, is LOC_QP_OP and REM_OP; so is a dead local key LOC_QP_OP.
//! - A completion queue that overruns drops, reports each drop with CQ_ERR, raises no event, and works on. Failures
//!   raise no event for solicited completions. Of queue pairs nothing is reported but SQ_DRAINED, unasked.
//! - Queues hold more than was asked for, slots of send queues come back before anything is polled, atomics are
//!   judged when posted, a wrong current state is believed.
//!
//! Programs that keep to the contract work with all of it, except those that wait for an event that never comes.
//! The table of `src/policy/imitation.rs` has every deviation, and what of Soft-RoCE is not imitated; the conformance suite
//! judges it by what it knows of the driver itself.
//!
//! # The service thread
//! A process has one for each fabric once it needs it: for a request that has to wait for a finite time, for
//! a queue pair whose peer belongs to another process, for one that takes datagrams, for a peer whose owner
//! posts faster than others can carry its requests out, for a completion queue with a channel that is
//! [moderated](Cq::moderate). Where the system refuses it, such a wait fails with GENERAL_ERR, moderating is
//! refused, and others carry on by themselves. It sleeps while there is nothing to do; while there are
//! other processes, it checks every 20 ms whether they live. It blocks all signals:
//! no signal handler of the program runs in it, and a program that blocks a signal in all threads of its own can
//! wait for it (`sigwait(3)`, `signalfd(2)`).
//!
//! # Limits
//! A fabric holds as much as its [`Limits`] said when it was made: by default 1,024 queue pairs
//! and completion queues, 4,096 regions, 256 shared receive queues, 512 channels, 64 processes and 52 MiB,
//! which hold that many queue pairs of [usual](QpInit::new) capacities, each with a completion queue of its own.
//! [`Context::attributes`] tells what is in force. The bytes hold the tables, rings and queues of all
//! processes. They are reserved when the fabric is made, so that full shared memory, or a limit for the
//! size of files (`ulimit -f`), is an error then and no crash later; a process shows as much of them as it has
//! used, as shared memory. What the device allocates is reserved beside them, region by region; memory of the
//! program's own does not count.
//!
//! # Faults on request
//! Fields that a failure leaves undefined hold a [pattern](cq_core::wc::Wc::poisoned). Everything else that a
//! network does to programs now and then, the device does [on request](Faults), by a seed: it fails
//! requests, delays them, so that the early reuse of a buffer is seen, lets peers stop or have
//! no receives, overruns queues, raises spurious events. `RXE_LOOP_FAULTS` asks for a program that can't be
//! changed. Tests that need no device find the like in [`cq_core::testing::fault`].
//!
//! # Not supported
//! Memory windows of type 1, zero-based regions, multicast, alternate paths, resizing shared receive queues, queue pairs of
//! other types than RC, UC and UD.
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
        pub use crate::api::cq::moderation::ModerateError;
        pub use crate::api::cq::resize::ResizeError;
        pub use crate::api::cq::{Cq, CqInit};
        pub use crate::api::datagram::Directed;
        pub use crate::api::device::{AtomicCap, Context, DeviceAttr, MemoryWindows, devices};
        pub use crate::api::limits::{Limits, LimitsTextError, OtherLimits};
        pub use crate::api::mr::{MemoryRegion, OwnedRegion};
        pub use crate::api::mw::MemoryWindow;
        pub use crate::api::open::{OpenError, OpenOptions};
        pub use crate::api::pd::ProtectionDomain;
        pub use crate::api::qp::{Batch, QpInit, QueuePair};
        pub use crate::api::srq::{ArmLimitError, SharedReceiveQueue};
        pub use crate::api::state::{QpState, Rule};
        pub use crate::error::{CreateError, Limit, RegisterError};
        pub use crate::policy::faults::{Faults, FaultsError, Injected};
        pub use crate::shm::error::AttachError;
        pub use crate::shm::header::NotOurs;
        pub use crate::shm::limits::LimitsError;
        pub use crate::shm::name::NameError;
    }
}

/// The example of the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
