//! The device in use by several processes: their memory, deaths, suspension and forks; the service thread; limitations.
//! What concerns one type alone is in the documentation of that type.
//!
//! Run this program twice, and give each the number that the other prints:
//!
//! ```no_run
//! use cq_core::transport::{PollCq, Post};
//! use cq_core::wc::Wc;
//! use cq_core::wr::{RecvWr, SendWr};
//! use transport_rxe_loop::{Access, Context, Endpoint, QpAttr, QpInit};
//!
//! let context = Context::open("loop0")?;
//! let (port, pd) = (context.port(1)?, context.alloc_pd()?);
//! let mut cq = context.create_cq(16, None)?;
//! let mut qp = pd.create_qp(&QpInit::new(&cq))?;
//! println!("this is queue pair {}; the other is", qp.number());
//! let mut line = String::new();
//! std::io::stdin().read_line(&mut line)?;
//!
//! // A timeout of 0: requests wait without limit until the other program has connected, too.
//! let peer = Endpoint::new(line.trim().parse()?); // one port: the number is all that there is to know
//! for step in [QpAttr::init(&port, Access::empty()), QpAttr::rtr(&port, &peer), QpAttr::rts().timeout(0)] {
//!     qp.modify(&step)?;
//! }
//! let region = pd.allocate(64, Access::LOCAL_WRITE)?;
//! qp.post_recv(&[RecvWr::new(1, &[region.sge(0, 64)?])])?;
//! qp.post_send(&[SendWr::send_inline(2, b"hello")])?;
//!
//! let mut wcs = [Wc::default(); 2];
//! let mut polled = 0;
//! while polled < 2 {
//!     polled += cq.poll(&mut wcs[polled..])?;
//! }
//! for wc in &wcs {
//!     println!("request {} succeeded", wc.result()?.wr_id());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Processes
//! All processes of a user that open the device in the same [fabric](crate::OpenOptions#fabrics) share it: queue pairs
//! connect by their numbers, and reach each other's registered memory, within a process or between two. There is no
//! daemon. Programs need nothing but the same `RXE_LOOP_FABRIC` in their environments, or none.
//!
//! ## Memory
//! Each process [maps](crate::OwnedRegion) what the device allocated, and copies it like its own memory. Memory that a
//! program registered is accessed by [system calls](crate::MemoryRegion#access-by-other-processes), or by the service
//! thread of its process.
//!
//! [Atomics](crate::Context#atomics) and atomic writes are atomic among all processes of the fabric. One that the
//! service thread of another process carries out is carried out once, however often its request is retried. A request
//! that ends in RETRY_EXC was carried out at most once, and may still be until that process resumes.
//!
//! ## Death
//! A process may end, or be killed, at any instant (X3). What it was in the middle of is repaired, its queue pairs are
//! destroyed, and everything that it had is freed. Its peers do not get an answer: a request fails with RETRY_EXC
//! [once its time is over](crate::QueuePair#how-long-a-request-waits), those behind it with WR_FLUSH.
//!
//! A death is noticed within some 20 ms by each process whose [service thread](#the-service-thread) checks for it; and
//! by a process that opens the fabric, or that creates an object for which no memory or table entry is left.
//!
//! ## Suspended processes
//! The queue pairs of a stopped process stay. It does not answer where it has to act itself: requests to memory that
//! its service thread copies wait, and fail with RETRY_EXC if it does not resume in time. Requests between other
//! processes go on.
//!
//! - A thread that waits for a lock that a stopped process holds, or for its unfinished message or copy, fails after two
//!   seconds. Only deregistering a [`MemoryRegion`](crate::MemoryRegion) waits as long as the
//!   suspension.
//! - A completion queue to which the process was just pushing fails as if it had overrun, once another process has
//!   waited so long to push to it (O3, O4).
//! - An event that the process was raising may come when it resumes. Those of others are not delayed.
//! - If the process is suspended in copying for a requester that has given up, requests to memory that its program
//!   registered fail as if it did not answer, messages to its shared receive queues wait, and datagrams to it are
//!   lost.
//!
//! ## Forked children
//! The handles that a forked child inherits reach nothing. Posting is refused as in RESET; creating, changing, polling
//! and waiting fail; dropping does nothing. Memory that the device allocated is still shared with the parent. The
//! child may open the device anew.
//!
//! A child made by `vfork` or a bare `clone` has to start another program at once.
//!
//! ## Descriptors
//! A program that closes descriptors which are not its own, as daemons do, stays attached: a guard page in memory
//! shows that it is alive, and the device opens the fabric's file again by name. So that file must not be renamed or
//! removed by hand. Until the service thread has recorded the pid of the process again, other processes have it copy
//! by itself. Channels and contexts have descriptors of their own; their events are lost once these are closed.
//!
//! ## Trust
//! Whatever a process writes to the fabric, it neither crashes nor hangs another, nor has another access memory that
//! is not registered (X4). An exception are the [files](crate::OpenOptions#fabrics) themselves: truncating one in use,
//! or punching holes into it while shared memory is full, ends the processes that use it by SIGBUS. Only programs of
//! the same user, and of root, can do that.
//!
//! # The service thread
//! A process has one service thread for each fabric, once something needs it:
//!
//! - a request that has to wait for a finite time, or is deferred by [`Faults`](crate::Faults);
//! - a queue pair that is connected to another process', or that receives datagrams;
//! - a queue pair to which requests are posted faster than the thread that owns its send queue carries them out;
//! - a completion queue with a channel that is [moderated](crate::Cq::moderate);
//! - a peer whose process was found dead.
//!
//! If the system refuses the thread, a request that has to wait for a finite time fails with GENERAL_ERR, and
//! moderating is refused. Connecting succeeds, but what other processes leave for this one to do may wait until it
//! posts again, and deaths go unnoticed.
//!
//! The thread sleeps while there is nothing to do. It checks every 20 ms whether the other processes are alive, once a
//! queue pair was connected to another process' or receives datagrams, and while other processes are attached. It
//! blocks all signals: no signal handler of the program runs in it, and a program that blocks a signal in all threads
//! of its own can wait for it (`sigwait(3)`, `signalfd(2)`).
//!
//! # Not supported
//! - Memory windows of type 1, and regions that are addressed from zero.
//! - Queue pairs of other types than RC, UC and UD; multicast; alternate paths.
//! - Resizing shared receive queues.
