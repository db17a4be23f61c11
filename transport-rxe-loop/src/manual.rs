//! Environment variables, several processes, failed system calls, `tracing`, strict mode, Ethernet, Soft-RoCE,
//! limitations.
//!
//! # Environment
//! For programs that can't be changed. Variables are read when the device is opened; an invalid value is an error.
//!
//! | variable | values | effect |
//! |---|---|---|
//! | `RXE_LOOP_FABRIC` | a name; unset: `default` | the [fabric](crate::OpenOptions#fabrics) |
//! | `RXE_LOOP_LIMITS` | `queue_pairs=4096,bytes=256M` | the [size](crate::Limits) of a new fabric |
//! | `RXE_LOOP_LINK_LAYER` | `infiniband`, `ethernet` | the [link layer](#ethernet) of a new fabric |
//! | `RXE_LOOP_FAULTS` | `seed=7,defer=50us,rnr=0.01` | [injects faults](crate::Faults#from-the-environment) |
//! | `RXE_LOOP_STRICT` | `0`, `1` | [strict mode](#strictly) |
//! | `RXE_LOOP_IMITATE` | `rxe` | [imitates Soft-RoCE](#imitation-of-soft-roce) |
//! | `RXE_LOOP_COUNT` | `polls` | [counts polls](crate::OpenOptions::count_polls) for `cqtop`; each poll is slower |
//! | `RXE_LOOP_COPY` | `direct`, `service` | [service threads copy](crate::OpenOptions::copying_by_service) registered memory, for tests |
//!
//! Options of [`OpenOptions`](crate::OpenOptions) override the first four; the others can be set by either. For
//! `RXE_LOOP_FAULTS` and below, a process's first opening of a fabric decides.
//!
//! # Processes
//! Queue pairs of all processes of a user that open the same fabric connect by their numbers, and reach each other's
//! registered memory. There is no daemon.
//!
//! **Do not truncate, rename or remove `/dev/shm/rxe-loop.*` while in use.** Truncation ends all processes that use the
//! file by SIGBUS.
//!
//! Run this program twice, at the same time:
//!
//! ```no_run
//! use std::os::linux::net::SocketAddrExt;
//! use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
//! use std::time::Duration;
//!
//! use transport_rxe_loop::Context;
//! use transport_rxe_loop::verbs::exchange::connect_over;
//!
//! let context = Context::open("loop0")?;
//! let cq = context.cq(16).create()?;
//! let mut qp = context.alloc_pd()?.qp(&cq).create()?;
//!
//! // The first process listens, the second connects.
//! let address = SocketAddr::from_abstract_name("hello")?;
//! let stream = UnixStream::connect_addr(&address)
//!     .or_else(|_| UnixListener::bind_addr(&address)?.accept().map(|(stream, _)| stream))?;
//! connect_over(&stream, &mut qp, &context.port(1)?, Duration::from_secs(5))?;
//! // Both can post and poll now.
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ## Memory
//! Each process maps memory that the device [allocated](crate::OwnedRegion). Memory that a program registered is
//! accessed by [system calls](crate::MemoryRegion#access-by-other-processes), or by the service thread of its process.
//!
//! [Atomics](crate::Context#atomics) and atomic writes are atomic among all processes of the fabric. A retried one is
//! carried out once. One that fails with RETRY_EXC was carried out at most once, and may still be until a suspended peer
//! resumes.
//!
//! ## Death
//! A process may be killed at any instant ([X3](cq_core::contract#x3)). Its objects are destroyed or repaired. Requests
//! to it fail with RETRY_EXC [after their timeouts](crate::QueuePair#how-long-a-request-waits), those behind them with
//! WR_FLUSH.
//!
//! Processes whose [service thread](#the-service-thread) checks for deaths notice one within about 20 ms; others when
//! they open the fabric, or find no memory or table entry free.
//!
//! ## Suspended processes
//! The queue pairs of a stopped process stay, and requests between other processes continue. Requests to memory that its
//! service thread copies wait, and fail with RETRY_EXC if it does not resume in time.
//!
//! - A thread that needs a lock of the stopped process, or waits for its unfinished message or copy, fails after two
//!   seconds. Only deregistering a [`MemoryRegion`](crate::MemoryRegion) waits until it resumes.
//! - A completion queue to which it was pushing fails as if overrun, once another process has waited two seconds to push
//!   ([O3](cq_core::contract#o3), [O4](cq_core::contract#o4)).
//! - An event that it was raising may come when it resumes. If it holds the lock of the sender's completion queue, other
//!   events are two seconds late.
//! - If it was raising an event whose object was destroyed meanwhile, a channel may be readable once without an event
//!   ([N14](cq_core::contract#n14)); the same after a death, or if the descriptor is closed. Destroying such an object
//!   takes 15 ms, with thousands of unread events longer.
//! - If it is copying for a requester that has given up, requests to memory that its program registered fail with
//!   RETRY_EXC, messages to its shared receive queues wait, and datagrams to it are lost.
//!
//! ## Forked children
//! Inherited handles do not work: posting is refused as in RESET; creating, changing, polling and waiting fail; dropping
//! does nothing. Memory that the device allocated stays shared with the parent. The child may open the device itself. A
//! child of `vfork` or a bare `clone` must execute another program at once.
//!
//! ## PID namespaces
//! Processes in different PID namespaces, such as containers that share `/dev/shm`, can share a fabric. The kernel kills
//! all processes of a PID namespace when its first one ends: each is a [death](#death). Where a pid is not visible, the
//! service thread copies registered memory, and [`FabricObserver`](crate::observe::FabricObserver) has `None`; `cqtop`
//! then does not know whether it runs, nor does it with another namespace's `/proc`.
//!
//! ## Descriptors
//! A program may close descriptors that are not its own, as daemons do, but not while another thread calls the device,
//! and open others with the same numbers, which the device leaves alone. The fabric's file is opened again by name.
//!
//! - Of a completion channel or asynchronous events: [`Block`](cq_core::transport::Block) still waits for events, and
//!   they can be taken. epoll(7) reports none.
//! - Of [`cm`](crate::cm): connections, listeners and requests end; waiting for an event of the channel fails with
//!   EBADF.
//! - Of an [observer](crate::observe::FabricObserver): it finds nothing.
//!
//! ## Trust
//! Whatever a broken process writes to the fabric, other processes do not crash or hang, or access memory that is not
//! registered ([X4](cq_core::contract#x4)). The device is no sandbox: processes of the same user, and root, can trace
//! this one, which opening the device permits, forge table entries, and truncate the files, or punch holes into them
//! while shared memory is full (SIGBUS). `SECURITY.md`, in the repository, has the whole boundary.
//!
//! # When a system call fails
//! The error names the call, its object and what to do ([`SystemError`](crate::SystemError)). The C ABI prints the same
//! on stderr and sets `errno`. The first row that fits:
//!
//! | call | error | what to do |
//! |---|---|---|
//! | any | EMFILE | the process has no descriptor left: close some, or raise the limit (`ulimit -n`) |
//! | any | ENFILE | the system has no descriptor left: end programs, or raise the limit (`sysctl fs.file-max`) |
//! | `open`, `link` | ENOENT, of a path in `/proc` | /proc is not mounted: mount it (`mount -t proc proc /proc`) |
//! | `open` | ENOENT | there is no such directory: make it, and mount a tmpfs there (`mount -t tmpfs tmpfs /dev/shm`) |
//! | `stat`, `open` | ENOTDIR | this is no directory: make one there, and mount a tmpfs (`mount -t tmpfs tmpfs /dev/shm`) |
//! | `stat`, `open`, `mknod`, `link` | EACCES | this user may not use /dev/shm: permit it (`chmod 1777 /dev/shm`), also in a policy of SELinux or AppArmor |
//! | `open`, `mknod`, `link` | EROFS | /dev/shm is read-only: remount it (`mount -o remount,rw /dev/shm`) |
//! | `open`, `mknod` | ENOSPC, where no inode is free | /dev/shm has no inode left: remove files there, or remount it with more (`mount -o remount,nr_inodes=… /dev/shm`) |
//! | `epoll_ctl` | ENOSPC | the user watches as many descriptors as the system permits: raise the limit (`sysctl fs.epoll.max_user_watches`) |
//! | any | ENOSPC | /dev/shm is full: remove files there, enlarge it (`mount -o remount,size=… /dev/shm`, `docker run --shm-size=…`), or ask for a smaller fabric (`RXE_LOOP_LIMITS=bytes=…`) |
//! | `open`, `pwrite`, `fallocate`, `mknod` | EDQUOT | the quota of this user in /dev/shm is used up: remove files there, or have it raised |
//! | `open`, `fallocate` | EOPNOTSUPP | the file system of /dev/shm lacks unnamed files or reserved space: mount a tmpfs there (`mount -t tmpfs tmpfs /dev/shm`) |
//! | `fallocate` | EFBIG | files of this process may not be so long: raise the limit (`ulimit -f`), or ask for a smaller fabric (`RXE_LOOP_LIMITS=bytes=…`) |
//! | `mknod`, `open` | EEXIST | something has this name that can't be removed: remove it, or name another fabric (`RXE_LOOP_FABRIC=…`) |
//! | `clone` | EAGAIN | no thread or no memory for its stack is left: end some, or raise the limits (`ulimit -u`, `ulimit -v`, `pids.max` of a container) |
//! | `fcntl` | EINVAL | the kernel has no locks of open files (`F_OFD_SETLK`): use Linux 3.15 or later |
//! | `mmap` | EAGAIN | the process locks its memory (`mlockall`), and may lock no more: raise the limit (`ulimit -l`), or ask for a smaller fabric (`RXE_LOOP_LIMITS=bytes=…`) |
//! | any | ENOMEM | there is no memory or address space left: raise the limit (`ulimit -v`), end programs, or ask for a smaller fabric (`RXE_LOOP_LIMITS=bytes=…`) |
//! | `getifaddrs`, `rtnetlink` | EAFNOSUPPORT | the process may not use netlink sockets: permit them (`RestrictAddressFamilies=AF_NETLINK` of systemd), or ask for InfiniBand (`RXE_LOOP_LINK_LAYER=infiniband`) |
//! | `socket` | EAFNOSUPPORT | the process may not use Unix sockets: permit them (`RestrictAddressFamilies=AF_UNIX` of systemd) |
//! | any | EPERM, ENOSYS | the system forbids the call, as a seccomp filter of a container does: permit it there |
//! | any | any | this is not foreseen: the manual page of the call has the number |
//!
//! A file of another user or version is an [`AttachError`](crate::AttachError). Binding an identifier and resolving an
//! address use rtnetlink(7) on either link layer, and return the number alone.
//!
//! # Observing
//! [`observe`](crate::observe) and `cqtop` show what is in a fabric and what waits for what, without attaching to it.
//! The number of unpolled completions is a [range](crate::observe::CompletionQueue::unpolled_min), unless the process
//! counts its polls.
//!
//! # The service thread
//! A process has at most one service thread for each fabric. These start it: a request that waits for a finite time, or
//! is [deferred](crate::Faults); a queue pair that is connected to another process, receives datagrams, or is posted to
//! faster than the thread that owns its send queue carries requests out; [moderation](crate::Cq::moderate) of a queue
//! with a channel; a dead peer.
//!
//! It sleeps while it has no work. While other processes are attached, and once a queue pair was connected to one or
//! receives datagrams, it checks every 20 ms whether they are alive. It blocks all signals, so that `sigwait(3)` and
//! `signalfd(2)` work.
//!
//! If the system [refuses](#when-a-system-call-fails) the thread, moderating fails, and requests that have to wait for a
//! finite time fail with GENERAL_ERR. Requests of other processes may wait until this one posts, and deaths are not
//! noticed.
//!
//! # Events for `tracing`
//! With the feature `tracing`, the device emits events around messages. A message has none, and costs nothing more
//! without a subscriber. A line of `tracing_subscriber::fmt`:
//!
//! ```text
//! ERROR transport_rxe_loop::engine::requester: request failed qp_num=15733222 cq=0.0 wr_id=7 status=REM_ACCESS_ERR
//! ```
//!
//! | level | event | fields |
//! |---|---|---|
//! | debug | device opened; fabric attached, unused fabric removed | `device`, `fabric`, `created`, `pid` |
//! | debug | object created, destroyed | `qp_num`, `cq`, `srq`, `pd`, `rkey`, `channel`, capacities |
//! | debug | queue pair changed its state, as the program asked | `qp_num`, `from`, `state` |
//! | warn | queue pair failed: went to ERR or SQE by itself | `qp_num`, `state`, `reason`; `peer` whose request was refused |
//! | error | request failed, and was not flushed | `qp_num`, `cq`, `wr_id`, `status` |
//! | error | completion queue overrun, or given up because a suspended process holds its lock | `cq` |
//! | warn | process died; taking over the lock of a dead process | `pid` in its own namespace |
//! | warn | limits not in force | `fabric`, `asked`, `in_force` |
//! | warn | service thread refused by the system | `error` |
//!
//! The requester's process reports that a peer's queue pair refused a request, and the process that frees what a dead
//! one had reports the death. A subscriber must not use the device. Forked children emit nothing about what they
//! inherited, nor do processes that end.
//!
//! # Strictly
//! The device is faster and more regular than hardware, which hides mistakes. [Strict mode](crate::OpenOptions::strict)
//! shows these:
//!
//! | mistake | default | strict |
//! |---|---|---|
//! | a completion queue is too small | it holds up to 2.5 times its capacity; [`CqHandle::demand`](crate::CqHandle::demand) has what is missing | it overruns at exactly its capacity ([O1](cq_core::contract#o1), [O2](cq_core::contract#o2)). The C ABI reports on stderr what is missing when a queue pair is connected |
//! | a C program arms a queue, and sleeps without polling again | completions that are there wake it ([N2](cq_core::contract#n2)) | it sleeps |
//! | a C program reads the opcode of a failed completion | it is SEND | it is a pattern ([C4](cq_core::contract#c4)) |
//! | receives are posted before completions are polled | a slot is free when its receive completes | a slot is free when the completion is polled ([Q5](cq_core::contract#q5), [O7](cq_core::contract#o7)) |
//! | a buffer is reused, read, deregistered or freed before the completion; a queue pair is destroyed, or the process ends, right after posting | the bytes have been moved when posting returns | requests are [deferred](crate::Faults::defer) by up to 20 microseconds, unless [faults](crate::Faults) set `defer` (`0us`: at once) or `delay` |
//! | a completion is expected when posting returns, or at one end once the other has its own; queue pairs are expected to keep the order of posting | this holds, but a polling receiver may precede the sender's completion | this does not hold. In either mode a receiver that an event wakes comes after that completion ([N13](cq_core::contract#n13)) |
//! | a receive's completion is expected before its send's | it is first | the send's is first, if its queue has no channel and can take it at once |
//! | a program polls the last bytes of a WRITE, and reads the others | up to 4 KiB they are there ([Q8](cq_core::contract#q8)) | up to 4 KiB the last eight bytes are first, between processes, in memory that the device [allocated](crate::ProtectionDomain::allocate) |
//! | the result of a READ or atomic is sent without a FENCE | it is new | it is old, if the next request was posted in time; not with faults other than `defer` |
//! | `max_rd_atomic` exceeds the peer's `max_dest_rd_atomic` | no effect | the first request over the limit fails with REM_INV_REQ ([Q7](cq_core::contract#q7)) |
//! | the ends have different first packet sequence numbers | no effect | RETRY_EXC on RC ([Q7](cq_core::contract#q7)) |
//! | a path has a wrong LID or GID; on Ethernet, it mixes IPv4 and IPv6 | no effect | modifying to RTR is refused |
//!
//! Strict mode applies to the process that enables it. It changes which requests a seed of faults hits. With the
//! [imitation of Soft-RoCE](#imitation-of-soft-roce) a completion queue drops what exceeds its reported capacity, and
//! receives free their slots as that driver does.
//!
//! These mistakes stay hidden:
//!
//! - too small timeouts and retry counts; unreliable messages that must arrive: nothing is lost without the
//!   [faults](crate::Faults) `stop` and `rnr`;
//! - receives that are posted late: hardware waits for [`min_rnr_timer`](crate::QpAttr::min_rnr_timer), by default 0.65
//!   s after [connecting by addresses](cq_verbs::cm#receives-that-are-late);
//! - with `timeout` 0, a message before the peer is ready: it arrives later, and on hardware never;
//! - different path MTUs;
//! - memory that is unmapped or mapped anew while registered, or a fork while a region is written: [memory is not
//!   pinned](crate::MemoryRegion#unmapped-memory), and `ulimit -l` does not matter;
//! - an lkey that is used as an rkey, or the reverse: they are the same number; rights are checked;
//! - a key after its region is gone: invalid, but another region's after 255 registrations with its table entry;
//! - processor atomics on words of the device's atomics: they [exclude each other](crate::Context::attributes);
//! - completions that are polled after their queue pair was reset or destroyed: they stay; some drivers remove them
//!   ([C8](cq_core::contract#c8));
//! - memory that must be unchanged after a failed request: it is, except the word of an atomic that fails at its own
//!   end, and bytes before memory that is not mapped;
//! - bytes of a receive behind `byte_len`: unchanged;
//! - limits of a card: here MTU 4096, 16 SGEs, 256 inline bytes, capacities as requested;
//! - events of the port, or COMM_EST: never reported;
//! - a missing global route, except on [Ethernet](#ethernet); a wrong GID index: each GID reaches every queue pair.
//!
//! Checked in both modes: capacities of queues, SGE lists and inline data; send slots, which polling frees; objects in
//! use; keys, ranges, rights and protection domains.
//!
//! # Ethernet
//! The link layer belongs to the fabric: InfiniBand, or Ethernet for RoCE v2
//! ([`link_layer`](crate::OpenOptions::link_layer)). The first process that opens the fabric decides; one that requests
//! the other is [refused](crate::OpenError::OtherLinkLayer).
//!
//! | | InfiniBand | Ethernet |
//! |---|---|---|
//! | LID | a hash of the fabric's name | 0; ignored in paths |
//! | [GID table](crate::Context::gid_table) | 8 entries: one GUID, link-local and site-local | addresses of this machine, loopback ones last; 4 to 256 |
//! | GIDs of other fabrics | unknown | the same |
//! | path without a global route | leads to the LID | refused: `ibv_create_ah(3)`, and modifying to RTR |
//! | path from an index without a GID | refused | refused, and address handles between IPv4 and IPv6 |
//! | before a datagram with a route | a GRH | an IPv6 header; for IPv4 20 bytes of 0 and an IPv4 header |
//! | MTU | 4096 bytes | the same, whatever the interfaces have |
//!
//! The table follows the addresses of the process' network namespace, whenever it is read or a path is made, without an
//! event:
//!
//! - A new address has an unused index or, once all 256 were used, one whose address is gone. An address that comes back
//!   has its old index, unless that was reused.
//! - For an index whose address is gone, `ibv_query_gid(3)` gives `::`, `ibv_query_gid_ex(3)` fails with ENODATA, and
//!   `ibv_query_gid_table(3)` omits it. New paths from or to it are refused; existing ones work.
//! - If the system can't list the addresses, the call fails with its number, and can be repeated. In a forked child the
//!   table does not change.
//!
//! Address handles, and paths in strict mode, lead to GIDs of the table only: processes in different network namespaces
//! need a common address, such as 127.0.0.1.
//!
//! # Imitation of Soft-RoCE
//! With [`imitate_rxe`](crate::OpenOptions::imitate_rxe) the device deviates from the contract as `rxe` of Linux 6.1
//! with rdma-core 44 does. The port is Soft-RoCE's only with [Ethernet](#ethernet). Both of two communicating processes
//! have to imitate.
//!
//! - [C4](cq_core::contract#c4): a failure has 0 in all fields but its id, status and queue pair, as a SEND would.
//! - [C5](cq_core::contract#c5): a SEND with invalidate sets IP_CSUM_OK (4) instead of WITH_INV.
//! - [C7](cq_core::contract#c7): receives have GRH on every type; a datagram has source LID 0 and service level 0; sends
//!   have their length, and WITH_IMM; an address handle needs a global route.
//! - [O1](cq_core::contract#o1), [Q4](cq_core::contract#q4): queues have a capacity of 2^k - 1, which only completion
//!   queues report.
//! - [O2](cq_core::contract#o2)–[O5](cq_core::contract#o5): each completion that does not fit is dropped, with CQ_ERR
//!   and no event; only a receive's queue pair goes to ERR, and the queue stays usable.
//! - [N3](cq_core::contract#n3): failures are not solicited, except flushed receives.
//! - [Q1](cq_core::contract#q1): a given current state is not checked; packet sequence numbers are truncated to 24 bits;
//!   any retry count and `max_dest_rd_atomic` is accepted; UC in SQD refuses an address; posting resumes from SQD, and
//!   RTS does not; SQ_DRAINED needs no request.
//! - [Q1](cq_core::contract#q1)–[Q3](cq_core::contract#q3): UC and UD go to ERR instead of SQE; receives that are posted
//!   in ERR stay until the queue pair is in use again.
//! - [Q5](cq_core::contract#q5): send slots are freed when requests complete.
//! - [Q6](cq_core::contract#q6): the highest bit of a datagram's Q_Key has no special meaning.
//! - [Q7](cq_core::contract#q7): a receive that is too small or bad is LOC_QP_OP, and REM_OP at the sender, REM_ACCESS
//!   for a WRITE with immediate data. LOC_QP_OP also for an invalid lkey of a SEND, WRITE or atomic write, and for SEND
//!   with invalidate on UC. Posting an atomic that is not aligned, or below eight bytes, is EINVAL; a longer one
//!   succeeds. A datagram longer than a packet succeeds, and is dropped. Without a timeout, requests to a peer that is
//!   gone never fail.
//! - [Q9](cq_core::contract#q9): UC may use a shared receive queue. Of a queue pair's events only SQ_DRAINED is
//!   reported.
//!
//! Not imitated: order and time of retries and completions; loss without a timeout; READ with `max_rd_atomic` 0, which
//! never ends there; UC messages to a peer that is connected elsewhere; sums of lengths in 32 bits; wrong reported
//! limits; missing ATOMIC_WRITE, FLUSH, moderation and ignored overruns.
//!
//! # Connecting by addresses
//! [`cm`](crate::cm) has the addresses, ports, states and times, and [`IdOption`](crate::cm::IdOption) the options.
//!
//! # Not supported
//! - Several machines, or several users, in one fabric.
//! - Memory windows of type 1, and zero-based regions; on-demand paging.
//! - Queue pairs of other types than RC, UC and UD; multicast; alternate paths.
//! - Resizing shared receive queues.
