//! The device in use by several processes: their memory, deaths, suspension and forks; the service thread; events for
//! `tracing`; the strict device; Ethernet; the imitation of Soft-RoCE; limitations. What concerns one type alone is in
//! the documentation of that type.
//!
//! Run this program twice, at the same time:
//!
//! ```no_run
//! use std::os::linux::net::SocketAddrExt;
//! use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
//! use std::time::Duration;
//!
//! use transport_rxe_loop::verbs::exchange::connect_over;
//! use transport_rxe_loop::{Access, Context, RecvWr, SendWr, Wc};
//!
//! let context = Context::open("loop0")?;
//! let pd = context.alloc_pd()?;
//! let mut cq = context.cq(16).create()?;
//! let mut qp = pd.qp(&cq).create()?;
//!
//! // The first program listens, the second finds it.
//! let address = SocketAddr::from_abstract_name("hello")?;
//! let stream = UnixStream::connect_addr(&address)
//!     .or_else(|_| UnixListener::bind_addr(&address)?.accept().map(|(stream, _)| stream))?;
//! connect_over(&stream, &mut qp, &context.port(1)?, Duration::from_secs(5))?;
//!
//! let region = pd.allocate(64, Access::LOCAL_WRITE)?;
//! qp.post_recv(&[RecvWr::new(1, &[region.sge(..64)?])])?; // a message that comes before waits for it
//! qp.post_send(&[SendWr::send_inline(2, b"hello")])?;
//!
//! let mut wcs = [Wc::default(); 2];
//! let mut polled = 0;
//! while polled < 2 {
//!     polled += cq.poll(&mut wcs[polled..])?.len();
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
//! A process may end, or be killed, at any instant ([X3](cq_core::contract#x3)). What it was in the middle of is
//! repaired, its queue pairs are destroyed, and everything that it had is freed. Its peers do not get an answer: a
//! request fails with RETRY_EXC [once its time is over](crate::QueuePair#how-long-a-request-waits), those behind it
//! with WR_FLUSH.
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
//!   waited so long to push to it ([O3](cq_core::contract#o3), [O4](cq_core::contract#o4)).
//! - An event that the process was raising, or had to raise, may come when it resumes. Those of others are not delayed,
//!   unless it holds the lock of the sender's completion queue: then by two seconds. If the object of the event was
//!   destroyed, or another process died, or the program closed the channel's descriptor, while this one was suspended or
//!   slow as it raised the event, the channel may be readable once without one then ([N14](cq_core::contract#n14)).
//!   Destroying an object of which a suspended process raises an event, or a dead one did, waits 15 ms for that, and reads
//!   the channel's unread events six times: if there are thousands, that takes longer than the wait.
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
//! ## PID namespaces
//! Processes in different PID namespaces, such as containers of a pod that share `/dev/shm`, use a fabric as others do. To
//! some of the others such a process has no pid, or another one than to itself:
//!
//! | what | how it knows a process |
//! |---|---|
//! | tables, locks, keys, names of files | by its place in the fabric |
//! | whether it is alive | by a lock of the fabric's file. When the first process of a namespace ends, the kernel kills the others there: each is a [death](#death) |
//! | memory that a program registered | by its pid where it has one, as seen from a namespace around its own. Else its service thread copies |
//! | [permission to trace](#trust) | not at all: any process of the user has it |
//! | the peer of a [connection](crate::cm) | by its user. Both are in one network namespace |
//! | [`FabricObserver`](crate::observe::FabricObserver), `cqtop` | by its pid in the observer's namespace; `None` and `-` where it has none. `cqtop` then does not know whether it runs, neither does it where `/proc` is that of another namespace |
//! | [events for `tracing`](#events-for-tracing) | by its pid in its own namespace |
//! | its own descriptors | by `/proc/thread-self`, which is there where `/proc` is that of its own namespace, or of one around that |
//!
//! ## Descriptors
//! A program that closes descriptors which are not its own, as daemons do, stays attached: a guard page in memory
//! shows that it is alive, and the device opens the fabric's file again by name. So that file must not be renamed or
//! removed by hand. Until the service thread has recorded the pid of the process again, other processes have it copy
//! by itself.
//!
//! What the program then opens may get the same numbers. The device looks whether a descriptor is still its own before
//! it uses or closes it, and leaves alone what is not; the program must not close it in between, in another thread:
//!
//! | descriptor | once the program has closed it |
//! |---|---|
//! | the fabric's file | is opened again by name |
//! | that of a completion channel, or of a context's asynchronous events | the device goes on with another one: events are taken, and waited for by [`Block`](cq_core::transport::Block). Whatever watched the number, as epoll(7) does, learns of none |
//! | those of connections by addresses ([`cm`](crate::cm)) | connections, listeners and requests end, as the system closes their sockets; waiting for an event of the channel fails with EBADF |
//! | that of an [observer](crate::observe::FabricObserver) | it finds nothing |
//!
//! ## Trust
//! Whatever a broken process writes to the fabric, it neither crashes nor hangs another, nor has another access memory
//! that is not registered ([X4](cq_core::contract#x4)). An exception are the [files](crate::OpenOptions#fabrics)
//! themselves: truncating one in use, or punching holes into it while shared memory is full, ends the processes that use
//! it by SIGBUS. Only programs of the same user, and of root, can do that. They can also trace this process, which opening
//! the device permits, and forge entries of the tables: the device is no sandbox. `SECURITY.md`, in the repository, has
//! the whole boundary.
//!
//! # When a system call fails
//! What opening the device, a channel or a file of memory needs of the system, it may refuse: a container that permits
//! less, a limit, a full `/dev/shm`. The error names the call and what it was for, as [`SystemError`](crate::SystemError)
//! has it, and what to do. Programs that use the C ABI are told on stderr, in a line, and find the number in `errno`. The
//! first row that fits:
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
//! A file that is there and can't be used, as one of another user or version, is a reason of its own in
//! [`AttachError`](crate::AttachError). Binding an identifier and resolving an address ask the system by rtnetlink(7) on either
//! link layer, and return the number alone.
//!
//! # Observing
//! [`observe`](crate::observe) shows what is in a fabric, and what waits for what, without attaching to it; the program
//! `cqtop` of this repository shows that in a terminal. What is private to a process can't be seen: of a completion queue
//! it is known within a [range](crate::observe::CompletionQueue::unpolled_min) how many completions are unpolled, unless
//! its process [counts its polls](crate::OpenOptions::count_polls).
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
//! If the system [refuses](#when-a-system-call-fails) the thread, a request that has to wait for a finite time fails with
//! GENERAL_ERR, and moderating is refused. Connecting succeeds, but what other processes leave for this one to do may wait until it
//! posts again, and deaths go unnoticed.
//!
//! The thread sleeps while there is nothing to do. It checks every 20 ms whether the other processes are alive, once a
//! queue pair was connected to another process' or receives datagrams, and while other processes are attached. It
//! blocks all signals: no signal handler of the program runs in it, and a program that blocks a signal in all threads
//! of its own can wait for it (`sigwait(3)`, `signalfd(2)`).
//!
//! # Events for `tracing`
//! With the feature `tracing`, the device tells a subscriber of [`tracing`](https://docs.rs/tracing) what happens around
//! messages. A message itself has no event: with the feature, and without a subscriber, it takes the same instructions.
//!
//! ```
//! use transport_rxe_loop::{Context, RemoteAddr, SendWr};
//!
//! tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).init();
//! let context = Context::open("loop0")?;
//! let (port, pd, cq) = (context.port(1)?, context.alloc_pd()?, context.cq(16).create()?);
//! let mut qp = pd.qp(&cq).create()?;
//! qp.connect(&port, &qp.endpoint(&port))?;
//! qp.post_send(&[SendWr::write_inline(7, b"hello", RemoteAddr { addr: 0, rkey: 1 })])?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! prints, among others,
//!
//! ```text
//! DEBUG transport_rxe_loop::lifecycle::open: fabric attached fabric="rxe-loop.0.default" created=true pid=17187
//! DEBUG transport_rxe_loop::engine::queue_pair: queue pair created qp_num=15733222 qp_type=RC pd=16777216 send_cq=0.0 recv_cq=0.0 srq=0
//! DEBUG transport_rxe_loop::api::qp: queue pair changed its state qp_num=15733222 from=RTR state=RTS
//!  WARN transport_rxe_loop::engine::responder: queue pair failed qp_num=15733222 state=ERR reason=REM_ACCESS_ERR peer=15733222
//! ERROR transport_rxe_loop::engine::requester: request failed qp_num=15733222 cq=0.0 wr_id=7 status=REM_ACCESS_ERR
//! ```
//!
//! | level | event | fields |
//! |---|---|---|
//! | debug | device opened; fabric attached, unused fabric removed | `device`, `fabric`, `created`, `pid` |
//! | debug | an object created, destroyed | `qp_num`, `cq`, `srq`, `pd`, `rkey`, `channel`, and its capacities |
//! | debug | queue pair changed its state, as the program asked | `qp_num`, `from`, `state` |
//! | warn | queue pair failed: it went to ERR or SQE by itself | `qp_num`, `state`, `reason`: a status, or what happened; `peer` where a request of that one was refused |
//! | error | request failed, by itself: those behind it are flushed | `qp_num`, `cq`, `wr_id`, `status` |
//! | error | completion queue overrun, or given up because a suspended process holds its lock | `cq` |
//! | warn | process died; taking over the lock of a dead process | `pid`, as that process saw it |
//! | warn | limits not in force | `fabric`, `asked`, `in_force` |
//! | warn | service thread refused by the system | `error` |
//!
//! The process that notices or does something tells of it. So a queue pair that refuses a request fails in the process of the
//! requester, which carries out requests, and one process tells of a death: the one that frees what the dead one had. The
//! thread is the program's, or the service thread.
//!
//! A subscriber must not use the device: the thread may own a send queue, or keep the peer waiting. There are no events in a
//! forked child about what it inherited, and none while a process ends, when it removes the fabric as the last one.
//!
//! # Strictly
//! A program that relies on more than verbs promise may work here and fail on hardware. The device is faster and more
//! regular: requests are carried out while they are posted, one after the other. With
//! [`OpenOptions::strict`](crate::OpenOptions::strict) it behaves, where it can, like hardware that does not forgive
//! the mistake:
//!
//! | mistake | ordinarily | strictly |
//! |---|---|---|
//! | a completion queue is smaller than what completes in it | it holds up to 2.5 times its capacity | it overruns with the first completion that exceeds its capacity ([O1](cq_core::contract#o1), [O2](cq_core::contract#o2)), whichever process pushes it; one that was polled counts no more |
//! | the same, in a program that never comes so far in its tests | [`CqHandle::demand`](crate::CqHandle::demand) has what its queue pairs can have outstanding, and what is missing | the same; a program that uses the C ABI is told on stderr when a queue pair is connected |
//! | a program that uses the C ABI arms a queue, and sleeps without polling again | it is woken at once if completions are there ([N2](cq_core::contract#n2)) | it sleeps |
//! | a program that uses the C ABI reads the opcode of a completion that failed | it is SEND | it is a pattern ([C4](cq_core::contract#c4)) |
//! | receives are posted again before their completions are polled | a slot is free when its receive completes | a slot is free when its completion was polled, as it is for sends ([Q5](cq_core::contract#q5)), so that a completion queue without missing entries never overruns ([O7](cq_core::contract#o7)) |
//! | a buffer is reused, read, deregistered or freed before the completion; a queue pair is destroyed, or the process ends, right after posting | the bytes have been moved when posting returns | requests are [deferred](crate::Faults::defer) by up to 20 microseconds, unless [faults](crate::OpenOptions::faults) say when they begin (`defer=0us`: at once) |
//! | a completion is expected as soon as posting returns, or at the other end once one end has it; requests of several queue pairs are expected to be carried out in the order in which they were posted | all of that is so, except that a receiver which polls may have a message before its sender has the completion | none of it is: see above. In either case a receiver that an event wakes comes after the completion of the sender ([N13](cq_core::contract#n13)) |
//! | the completion of a receive is expected before that of its send | it is pushed first | that of the send is pushed first, if its queue has no channel and can take it at once |
//! | the last bytes of a WRITE are polled, and the others are expected to be there | up to 4 KiB they are ([Q8](cq_core::contract#q8)) | up to 4 KiB the last eight bytes are visible first, between processes in memory that the device [allocated](crate::ProtectionDomain::allocate) |
//! | what a READ or an atomic returns is sent on, without a FENCE | it is what was read: requests are carried out one after the other | it is what was there before, if the next request was posted in time; not where other faults than `defer` are injected |
//! | `max_rd_atomic` exceeds the peer's `max_dest_rd_atomic` | one READ or atomic is carried out at a time, so the limit is never reached | where more are posted than the peer allows, the first of them fails with REM_INV_REQ ([Q7](cq_core::contract#q7)) |
//! | the two ends disagree about the first packet sequence number | no packet has a number | the peer of an RC requester does not answer: RETRY_EXC ([Q7](cq_core::contract#q7)) |
//! | the LID or the GID of the peer is wrong in a connection's path; on Ethernet, also GIDs of IPv4 and IPv6 are mixed | the queue pair number alone finds the peer | modifying to RTR is refused |
//!
//! Strictness applies to the requests, queue pairs and completion queues of the process that asks for it. It composes
//! with [faults](crate::Faults), whose dice then fall otherwise for the same seed, and with the [imitation of
//! Soft-RoCE](#imitation-of-soft-roce): a completion queue then drops what exceeds the capacity that it reports, as
//! that driver does, and receives free their slots as early.
//!
//! What stays hidden, or shows only with [faults](crate::Faults):
//!
//! | mistake | why |
//! |---|---|
//! | timeouts and retry counts that are too small | no packet is lost: `stop` and `rnr` make a peer that does not answer, or has no receive |
//! | receives that are posted a moment late | they are used at once; hardware waits for [`min_rnr_timer`](crate::QpAttr::min_rnr_timer), which is 0.65 s where nothing else is set after [connecting by addresses](cq_verbs::cm#receives-that-are-late) |
//! | unreliable messages are expected to arrive | one is lost only if it is not received: `rnr` and `stop` lose more |
//! | without a `timeout`, a message that was sent before the peer was ready is never sent again | here it arrives once the peer is ready, which is clearer than a wait without end |
//! | the path MTUs of the two ends differ | messages are not cut into packets |
//! | memory is unmapped or mapped anew while it is registered; a child is forked while a region is written | [memory is not pinned](crate::MemoryRegion#unmapped-memory): requests find what is at the address now |
//! | more memory is registered than may be locked (`ulimit -l`) | nothing is locked, and the limit of this machine says nothing about another |
//! | an lkey is used as an rkey, or the other way round | they are the same number, as on most cards. Their rights are checked |
//! | a key is used after its region is gone | it is invalid at once; but it is valid again, for another region, after 255 registrations that use the same entry of the table |
//! | the processor changes a word by atomic instructions that the device's atomics change | here they [exclude each other](crate::Context::attributes), which hardware need not promise |
//! | completions are polled after their queue pair was reset or destroyed | they stay in the queue; drivers of some cards remove them ([C8](cq_core::contract#c8)) |
//! | memory is expected to be unchanged after a request has failed | it is, except the word of an atomic that fails at its own end, and what lies before memory that is not mapped any more; cards write packet by packet |
//! | the bytes of a receive behind `byte_len` are used | they are unchanged, as on cards |
//! | the limits of this device are taken for those of a card: an MTU of 4096 bytes, 16 SGEs, 256 inline bytes; or a card is expected to make queues of exactly the capacity that was asked for | a program has to query its card, which may have lower limits, and report larger capacities |
//! | events such as COMM_EST, or of the port, end the program | they are not reported |
//! | a path lacks the global route that RoCE needs | the port has a LID, as on InfiniBand; not if its [link layer](#ethernet) is Ethernet |
//! | on RoCE the GID at an index is not the one that reaches the peer | each GID reaches every queue pair of the fabric |
//!
//! Nothing is hidden of these: send queues, receive queues and lists of SGEs have exactly the capacities that were
//! asked for, also inline data; slots of send queues come back with polled completions; fields that a failure leaves
//! undefined hold a pattern; objects in use can't be destroyed; keys, ranges, rights and protection domains are
//! checked.
//!
//! # Ethernet
//! The link layer of a fabric's port is InfiniBand or, with [`OpenOptions::link_layer`](crate::OpenOptions::link_layer)
//! or `RXE_LOOP_LINK_LAYER=ethernet`, Ethernet. It is a property of the fabric, since all queue pairs of a fabric reach
//! each other, and addresses of the one link layer mean nothing on the other. The first process that opens the fabric
//! decides. A process that requests the other link layer is [refused](crate::OpenError::OtherLinkLayer); one that
//! requests none takes what there is.
//!
//! | | InfiniBand | Ethernet (RoCE v2) |
//! |---|---|---|
//! | LID | a hash of the fabric's name | 0; those in paths are ignored |
//! | [GID table](crate::Context::gid_table) | 8 entries: one GUID, link-local and in site-local subnets | addresses of this machine, loopback ones last; at least 4, at most 256. It changes as they do |
//! | GIDs of other fabrics | are unknown | are the same |
//! | a path without a global route | leads to the LID | is refused: `ibv_create_ah(3)`, and modifying to RTR |
//! | a path from an index that has no GID | is refused | is refused |
//! | an address handle from a GID of IPv4 to one of IPv6, or back | | is refused |
//! | before a datagram with a route | a GRH | an IPv6 header; between IPv4 addresses 20 bytes of 0 and an IPv4 header |
//! | MTU | 4096 bytes | the same, whatever the network interfaces have |
//!
//! The table of a process follows the addresses of its network namespace, whenever it is asked for or a path is made:
//!
//! | an address | its GID |
//! |---|---|
//! | comes | has an index that no other had; if all 256 were used, one whose address has gone |
//! | stays | keeps its index |
//! | goes | `ibv_query_gid(3)` gives `::`, `ibv_query_gid_ex(3)` fails with ENODATA, and `ibv_query_gid_table(3)` leaves it out, as with Linux' table; new paths from or to it are refused. Those that were made before lead where they did, with the same header |
//! | comes back | has the same index, unless another address has it meanwhile |
//!
//! Posting and polling ask nothing. No event is raised. In a forked child the table stays as it was. If the system does not tell
//! the addresses when they have changed, the call fails with its number, and can be repeated.
//!
//! Address handles, and the paths of strict devices, lead to GIDs of the table only: processes in different network
//! namespaces that share a fabric need an address that both have, as 127.0.0.1 is.
//!
//! # Imitation of Soft-RoCE
//! With [`OpenOptions::imitate_rxe`](crate::OpenOptions::imitate_rxe) the device deviates from the contract as Linux'
//! Soft-RoCE driver does: `rxe` of Linux 6.1 with the provider of rdma-core 44, where the deviations were observed. Its
//! port is Soft-RoCE's, too, if [Ethernet](#ethernet) is requested as well.
//!
//! | rule | deviation |
//! |---|---|
//! | [C4](cq_core::contract#c4) | a failure has 0 in all fields but its id, status and queue pair, as a SEND would |
//! | [C5](cq_core::contract#c5) | a SEND with invalidate sets IP_CSUM_OK (4) instead of WITH_INV |
//! | [C7](cq_core::contract#c7) | receives have GRH set on every type; a datagram comes from local identifier 0, with service level 0 |
//! | [C7](cq_core::contract#c7) | sends have their length, and those with immediate WITH_IMM |
//! | [C7](cq_core::contract#c7) | an address handle needs a global route |
//! | [O1](cq_core::contract#o1), [Q4](cq_core::contract#q4) | queues have a capacity of 2^k - 1; only completion queues report it |
//! | [O2](cq_core::contract#o2)–[O5](cq_core::contract#o5) | a completion that does not fit is dropped, and reported by CQ_ERR, each; no event is raised; only a receive's queue pair goes to ERR, and the queue stays usable |
//! | [N3](cq_core::contract#n3) | failures raise no event if solicited completions are awaited, except flushed receives |
//! | [Q1](cq_core::contract#q1) | a given current state is not checked; packet sequence numbers are truncated to 24 bits; any retry count and `max_dest_rd_atomic` is accepted; an unreliable connection in SQD refuses an address |
//! | [Q1](cq_core::contract#q1)–[Q3](cq_core::contract#q3) | there is no SQE: UC and UD go to ERR |
//! | [Q1](cq_core::contract#q1) | changing back to RTS does not resume: posting does |
//! | [Q1](cq_core::contract#q1) | SQ_DRAINED is reported without a request |
//! | [Q2](cq_core::contract#q2) | receives that are posted in ERR stay until the queue pair is run |
//! | [Q5](cq_core::contract#q5) | slots of the send queue are freed when requests complete |
//! | [Q6](cq_core::contract#q6) | the highest bit of a datagram's queue key has no special meaning |
//! | [Q7](cq_core::contract#q7) | a receive that is too small or bad: LOC_QP_OP, and REM_OP at the sender; for a WRITE with immediate REM_ACCESS |
//! | [Q7](cq_core::contract#q7) | an invalid local key of a SEND, WRITE or atomic write is LOC_QP_OP |
//! | [Q7](cq_core::contract#q7) | SEND with invalidate on an unreliable connection is LOC_QP_OP |
//! | [Q7](cq_core::contract#q7) | an atomic that is not aligned, or of fewer than eight bytes, is refused (EINVAL); of more it succeeds |
//! | [Q7](cq_core::contract#q7) | a datagram longer than a packet succeeds, and is dropped |
//! | [Q7](cq_core::contract#q7) | without a timeout, a request to a peer that is gone never fails |
//! | [Q9](cq_core::contract#q9) | unreliable connections may use a shared receive queue |
//! | [Q7](cq_core::contract#q7), [Q9](cq_core::contract#q9) | no event of a queue pair is reported but SQ_DRAINED |
//!
//! Not imitated:
//!
//! | what | why |
//! |---|---|
//! | a fenced request that is retried waits for a READ behind it; a waiting request is never retried once a request behind it has failed | requests are carried out one after the other |
//! | without a timeout, what was sent before the peer was ready is lost | nothing is lost here |
//! | READ with `max_rd_atomic` 0 waits for ever | posting refuses it, which is clearer |
//! | a message of an unreliable connection arrives at a peer that is connected elsewhere | a connection's receives are taken by its peer only |
//! | lengths are added up in 32 bits; the device reports a higher limit for requests than it can allocate | not useful for tests |
//! | ATOMIC_WRITE, FLUSH, moderation and ignoring overruns are missing | programs that do not use them see no difference; a queue that ignores overruns is an ordinary one throughout |
//! | order and time: completions within `post_send`, `retry_cnt` 7 for ever | programs must not rely on them |
//!
//! The deviations apply to the completion queues of the process that imitates, and to the requests that it carries out: two
//! processes that communicate both have to imitate.
//!
//! # Connecting by addresses
//! [`cm`](crate::cm) has the addresses, ports, states and times, and [`IdOption`](crate::cm::IdOption) the table of options.
//!
//! # Not supported
//! - Memory windows of type 1, and regions that are addressed from zero.
//! - Queue pairs of other types than RC, UC and UD; multicast; alternate paths.
//! - Resizing shared receive queues.
