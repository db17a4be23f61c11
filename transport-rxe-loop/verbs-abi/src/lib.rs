//! `librxe_loop_verbs.so`: the C ABI of libibverbs and librdmacm over the loopback device, for unchanged programs.
//!
//! ```console
//! $ cargo build --release -p rxe-loop-verbs
//! $ export LD_PRELOAD=$PWD/target/release/librxe_loop_verbs.so
//! $ ibv_rc_pingpong > /dev/null & sleep 1; ibv_rc_pingpong localhost
//! ```
//!
//! The library defines the functions of libibverbs, as of rdma-core 65, both the exported ones and those that the header reaches through the
//! tables in and before `struct ibv_context`, and those of librdmacm. The real libraries may be loaded as well, and keep
//! working for their own objects.
//!
//! There is one device, `loop0`, with one InfiniBand port: a LID, GIDs at indices 0 to 7 and a partition key. It is the
//! device of [`transport_rxe_loop`], which documents its behaviour; this crate only translates. Programs of a user reach
//! each other in the fabric that `RXE_LOOP_FABRIC` names. `RXE_LOOP_LIMITS="queue_pairs=4096,bytes=256M"` sets the
//! [`Limits`](transport_rxe_loop::Limits) of a fabric, for the first program that opens it. If the device can't be
//! opened, or the fabric has other limits than that variable asks for, a line on stderr says so.
//!
//! `RXE_LOOP_STRICT=1` finds mistakes that pass on the loopback and fail on hardware: [its
//! documentation](transport_rxe_loop::OpenOptions::strict) lists them. When a queue pair is connected whose completion
//! queue is smaller than what can be outstanding, a line on stderr says how many entries it lacks.
//!
//! `RXE_LOOP_LINK_LAYER=ethernet` makes it a device for RoCE v2, for programs that look for one: the GIDs are addresses of
//! this machine, as they come and go, and [every path needs a global route](transport_rxe_loop::manual#ethernet). The first program that opens
//! the fabric decides; one that asks for the other link layer can't open the device.
//!
//! # Loading
//! LD_PRELOAD is for programs that are linked with libibverbs and librdmacm, and for those that open them by `dlopen(3)`,
//! such as NCCL and programs of the crate sideway: on x86_64 and aarch64 `dlopen` of either library, by any path, returns a
//! handle of this one. Every name has its newest version, `IBVERBS_1.1` or `RDMACM_1.0` and later ones, for `dlvsym(3)`. If the
//! linker can't give names versions, cargo warns when it builds the library.
//!
//! Programs that clear LD_PRELOAD, or call `dlmopen(3)`, find the library in place of the others:
//!
//! ```console
//! $ for name in libibverbs.so.1 librdmacm.so.1; do ln -s $PWD/target/release/librxe_loop_verbs.so DIR/$name; done
//! $ export LD_LIBRARY_PATH=DIR
//! ```
//!
//! Then the libraries of drivers, such as libmlx5, can't be loaded: they need what libibverbs has for them alone. Programs
//! that are linked with one are preloaded.
//!
//! # Supported
//! Queue pairs of the types RC, UC and UD, with every operation, also by `ibv_wr_*`; shared receive queues for RC
//! and UD; type 2 memory windows; address handles; completion queues, also extended ones, moderated ones, and ones that
//! ignore overruns; completion channels and asynchronous events, whose descriptors can be polled, also for edges, and be made not to block.
//! A descriptor is readable exactly while an event can be taken, as the kernel has it. They are FIFOs and epoll instances: events are taken by the calls of the libraries alone, not by `read(2)`.
//!
//! Connecting by librdmacm, in the port spaces TCP, UDP, IB and IPOIB, also by synchronous identifiers and
//! `rdma_create_ep(3)`: [`transport_rxe_loop::cm`] has the addresses, ports, states and times, and
//! [`IdOption`](transport_rxe_loop::cm::IdOption) the options of `rdma_set_option(3)`. `rdma_get_cm_event(3)` fails with EINTR
//! after a signal, unless every handler of the program has SA_RESTART, other than those of faults, such as SIGSEGV.
//!
//! Libraries over both work as well, such as librpma. That of Debian 12 flushes by a READ, and its atomic write is an inline
//! WRITE of eight bytes: it is built without the verbs FLUSH and ATOMIC_WRITE, which this device has.
//! `rpma_mr_advise(3)` gives RPMA_E_NOSUPP.
//!
//! # Not supported
//! These fail with EOPNOTSUPP:
//!
//! - memory windows of type 1 and `ibv_bind_mw`, `ibv_rereg_mr`, registrations under another address
//!   (`ibv_reg_mr_iova`), on-demand paging, device memory, DMA buffers, DMA handles;
//! - queue pairs of other types, XRC, work queues, RSS, flows, multicast, alternate paths, ECE, rate limits;
//! - shared receive queues that are resized, tag matching; time stamps; parent and thread domains; counters, also those of completions;
//! - importing objects of another process;
//! - AF_IB and RAI_SA, and `rsocket(7)`: `rpoll` and `rselect` work on other descriptors, which are EBADF for the other
//!   functions of rsockets.
//!
//! # Differences from some hardware
//! The device's [documentation](transport_rxe_loop) has the reasons.
//!
//! | where | what happens |
//! |---|---|
//! | posting in RESET, INIT or RTR; receives in RESET | EINVAL |
//! | UD: all but a SEND, or an address handle of another domain; UC: READ, atomics, FLUSH | EINVAL when posted |
//! | a datagram for a receive that is too small | the receive fails with LOC_LEN_ERR, with its queue pair; the sender succeeds. The first 40 bytes of each receive buffer are for the GRH |
//! | SEND with invalidate of a key that is not of a window of the receiver's queue pair | the receive fails with REM_INV_REQ_ERR and its queue pair; the sender succeeds |
//! | binding a zero-based window, or one that is bound | MW_BIND_ERR |
//! | registering 0 bytes, or a zero-based region | EINVAL |
//! | a peer that was destroyed or died | it does not answer: RETRY_EXC_ERR after the retries, or at once with a timeout of 0 |
//! | a completion | may be stored before `ibv_post_send` returns, unless the device is strict |
//! | arming a queue that holds completions | raises an event at once, unless the device is strict, so a program that does not poll after arming is woken, and one that polls may wake up in vain. None is raised, once, if the queue holds only the completion whose event the program has just taken: it is to poll then ([N2](cq_core::contract#n2)) |
//! | a completion that failed | has `IBV_WC_SEND` as its opcode, as with Soft-RoCE, or 0xa5a5a5a5 if the device is strict; the other fields that are undefined then hold that pattern ([C4](cq_core::contract#c4)) |
//! | a completion queue that has overrun | `ibv_poll_cq` returns `-EOVERFLOW` once everything stored was polled, whether or not the asynchronous event was taken |
//! | the path of a connection | its port and the index of its source GID are validated. Its destination LID and GID are ignored, unless the device is strict: the queue pair number finds the peer |
//! | a GID whose address has gone, on Ethernet | is 0 for `ibv_query_gid`, ENODATA for `ibv_query_gid_ex`, and missing in `ibv_query_gid_table`. An address that comes later has one; no event is raised |
//! | `rdma_bind_addr` and `rdma_resolve_addr` | ask the system for the address: without a free descriptor EMFILE, and EAFNOSUPPORT where a process may not use netlink sockets |
//! | memory that is unmapped, protected or truncated before it is deregistered | is not pinned: requests fail, or end the process by SIGSEGV or SIGBUS; [a table](transport_rxe_loop::MemoryRegion#unmapped-memory) says which |
//! | a program closes descriptors that are not its own (`closefrom(3)`) | the device goes on, and leaves alone what the program opens in their place. Channels whose `fd` is closed can't be waited for; connections by addresses end |
//! | a file of the fabric (`/dev/shm/rxe-loop.*`) is truncated while it is in use | the processes that use it end by SIGBUS |
//! | out of memory | ENOMEM, also if the device is full. If the process itself can't allocate a few bytes (`ulimit -v`), it aborts, like other Rust programs |
//!
//! # Programs that need more
//! - UCX, and Open MPI over it, require a character device in /dev. As root:
//!   `mkdir -p /dev/infiniband && ln -s /dev/null /dev/infiniband/loop0`; then `UCX_NET_DEVICES=loop0:1` with
//!   `UCX_TLS=rc_v,self` or `ud_v,self`. `UCX_SOCKADDR_TLS_PRIORITY=rdmacm` has its listeners use librdmacm.
//! - uDAPL requires an entry in `dat.conf(5)`, which `DAT_OVERRIDE` may name, for the provider that uses librdmacm:
//!   `loop0 u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "lo 0" ""`; then `dtest -P loop0`.
//! - Open MPI selects UCX by `mpirun --mca pml ucx`, with UCX's variables, and libfabric by `--mca pml cm --mca mtl ofi
//!   --mca mtl_ofi_provider_include "verbs;ofi_rxm"`, with `FI_UNIVERSE_SIZE=64`: for 256 processes, as many as libfabric
//!   assumes, it asks for a larger completion queue than the device has.
//! - nixl has a UCX in its wheel, which requires the same device and variables. That of version 1.5.1 ends by SIGSEGV in
//!   `exit(3)`, with every transport.
//! - Mooncake requires `MC_CUSTOM_TOPO_JSON`, the path of a file with `{"cpu:0": [["loop0"], []]}`. Otherwise it looks for
//!   devices in /dev, and transfers by TCP where it finds none.
//! - gloo's transport for ibverbs, and the crates sideway, ibverbs, ibverbs-rs and ruapc-rdma need nothing. ruapc-rdma asks the
//!   kernel for GIDs, by netlink, and then libibverbs; its feature `ibv-query-gid-ex` asks libibverbs alone.
//! - A connection has a descriptor in each process: `cmtime -c 1000` needs 1024 of them (`ulimit -n`).
//! - fio's engine `rdma` with `--verb=send` asks for no RNR retries, and posts no more receives than its peer has sends
//!   outstanding: where a send comes before the receive is posted again, fio reports "RNR retry counter exceeded", and hangs.
//! - `riostream`, `rstream` and `rcopy` fail: they use rsockets.
//! - Programs that rely on the behaviour of Soft-RoCE, as the crate async-rdma does for immediate data, need
//!   `RXE_LOOP_IMITATE=rxe`.
//! - Programs that are statically linked or set-user-ID (`ld.so(8)`) can't be preloaded.
//! - Programs that look for devices in /sys or by `rdma link`, as Open MPI's `openib` and newer tests of pyverbs do, find
//!   none.
//!
//! # Sanitizers
//!
//! | the program is built with | it runs with `LD_PRELOAD=` |
//! |---|---|
//! | `-fsanitize=thread`; by clang also `-fsanitize=address` | `librxe_loop_verbs.so`, as any other |
//! | `-fsanitize=address`, by gcc | `"$(gcc -print-file-name=libasan.so) librxe_loop_verbs.so"`: its runtime must come first. Or it is linked with `-static-libasan` |
//!
//! ThreadSanitizer does not look at the accesses of the device, as it does not at those of a card. The library annotates that
//! what a thread does before it posts comes before what follows a completion or an event, of any queue of the process. So no
//! program is accused that touches a buffer only after its completion, in whichever thread. Threads that do not wait for one
//! are accused of what they do to each other, and not of what they do to the device.
//!
//! If a program stops at once with "unexpected memory mapping", its runtime is older than the system's ranges of addresses:
//! `setarch --addr-no-randomize` runs it.
//!
//! # Handles
//! A pointer to an object is validated by its address, its handle and its context before it is used. Null is EINVAL; a
//! pointer that is not, or no longer, an object is ENOENT, and never a crash ([Q11](cq_core::contract#q11)).
//!
//! # Threads and processes
//! Any number of threads may call at once. Each object has its own lock, which is not held while a thread sleeps,
//! except while `ibv_modify_qp` waits for copies to the memory of a queue pair that it resets or fails. A forked
//! child can continue without the device, or open it again; inherited objects do not work.
//!
//! # Modules
//!
//! ```text
//!   exports                      what C calls, by name and in tables of functions
//!   rdmacm                       librdmacm's functions
//!   device                       the list of devices, opening one
//!   fork                         what a forked child forgets
//!   events, post, qp_ex, cq_ex, modify, query          the verbs that work on several kinds of objects
//!   qp, draft, convert           queue pairs, requests in C's words
//!   ah, cq, mr (probe), mw, srq  the other objects
//!   buf                          buffers that it allocates
//!   channel, pd, port
//!   context                      an open device
//!   ..............................................................................................
//!   wait                         waiting for events
//!   sysfs                        files of /sys
//!   raw                          C's pointers and structures as values, objects at fixed addresses; what a forked child
//!                                has of its own
//!   side                         what of an object is not behind its lock: unacknowledged events, exclusive use
//!   errno, words, rate, stderr   reasons as numbers, numbers in words, lines for whoever started the program
//!   sys                          what the header declares
//! ```
//!
//! Unsafe code is in `exports` and `raw`; all else is safe.

// Tests are C programs.
#![cfg_attr(not(test), deny(unsafe_code))]

mod ah;
mod buf;
mod channel;
mod context;
mod convert;
mod cq;
mod cq_ex;
mod device;
mod draft;
mod errno;
mod events;
#[allow(unsafe_code)]
mod exports;
mod fork;
mod modify;
mod mr;
mod mw;
mod pd;
mod port;
mod post;
mod probe;
mod qp;
mod qp_ex;
mod query;
mod rate;
#[allow(unsafe_code)]
mod raw;
mod rdmacm;
mod side;
mod srq;
mod stderr;
mod sys;
mod sysfs;
#[cfg(test)]
mod test;
mod wait;
mod words;

/// What C calls and passes, for fuzz targets.
#[cfg(fuzzing)]
pub mod fuzzing {
    pub use crate::exports::*;
    pub use crate::sys::*;
}
