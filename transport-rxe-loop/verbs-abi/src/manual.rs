//! Programs that run, settings, loading, what is supported, differences from hardware, sanitizers.
//!
//! # Programs
//! `cargo verify abi` runs these programs of Debian 12 on each commit, and judges their output:
//!
//! - ibverbs-utils: `ibv_devices`, `ibv_devinfo`, `ibv_asyncwatch`; `ibv_{rc,uc,ud,srq}_pingpong` with `-c` and `-e`, RC
//!   also with `-N`;
//! - perftest: `ib_{send,write,read,atomic}_{lat,bw}` on RC, some also on UC, UD and SRQ, with `-e`, and with `-R`;
//! - the tests of pyverbs: at least 83 pass, the others are skipped;
//! - rdmacm-utils: `rping`, `ucmatose`, `udaddy`, `cmtime`, `rdma_server` with `rdma_client`;
//! - qperf with `-cm1`: `rc_lat`, `rc_bw`, `rc_rdma_read_lat`, `rc_rdma_write_bw`;
//! - fio with `--ioengine=rdma` and `--verb=write` or `--verb=read`; libfabric's `fi_pingpong -p verbs -e msg`; uDAPL's
//!   `dtest`;
//! - UCX as root, over `rc_v`: `ucx_perftest -t tag_lat`, also with `-E sleep`; `io_demo`;
//! - Open MPI with 2 ranks, over UCX as root, and over libfabric;
//! - a program that calls each function of librpma.
//!
//! `cargo verify verbs` runs the tests of `transport-verbs` on each commit. These run with `cargo verify --long` only:
//!
//! - Open MPI with 8 ranks; `ucx_perftest` over `rc_v` and `ud_v`, with tags, streams, active messages, memory and
//!   atomics;
//! - transfers of nixl 1.5.1 and Mooncake 0.3.13.post1; allreduce of gloo with 2 ranks;
//! - the tests of the crates sideway 0.4.3, ibverbs 0.9.2, ibverbs-rs 0.4.1, ruapc-rdma 0.2.0-alpha.7 and async-rdma
//!   0.5.0, without four that look for devices elsewhere.
//!
//! # Settings that programs need
//! - **UCX**, also below Open MPI and nixl, requires a character device, made by root: `mkdir -p /dev/infiniband && ln
//!   -s /dev/null /dev/infiniband/loop0`. Then `UCX_NET_DEVICES=loop0:1`, with `UCX_TLS=rc_v,self` or `ud_v,self`.
//!   `UCX_SOCKADDR_TLS_PRIORITY=rdmacm` has its listeners use librdmacm.
//! - **Open MPI** over UCX: `mpirun --mca pml ucx`. Over libfabric: `--mca pml cm --mca mtl ofi --mca
//!   mtl_ofi_provider_include "verbs;ofi_rxm"` with `FI_UNIVERSE_SIZE=64`; without it, it requests a larger completion
//!   queue than the device has.
//! - **uDAPL**: `dtest -P loop0`, with `loop0 u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "lo 0" ""` in the
//!   `dat.conf(5)` that `DAT_OVERRIDE` names.
//! - **nixl** 1.5.1 ends by SIGSEGV in `exit(3)`, with every transport.
//! - **Mooncake**: `MC_CUSTOM_TOPO_JSON`, the path of a file with `{"cpu:0": [["loop0"], []]}`. Otherwise it transfers
//!   by TCP.
//! - **fio** with `--verb=send` requests no RNR retries: it may report "RNR retry counter exceeded", and hang.
//! - **async-rdma**, as other programs that rely on Soft-RoCE's behaviour: `RXE_LOOP_IMITATE=rxe`.
//! - **cmtime**: a connection has a descriptor in each process, so `cmtime -c 1000` needs `ulimit -n 4096`.
//! - **ruapc-rdma** asks the kernel for GIDs; with its feature `ibv-query-gid-ex` it asks libibverbs alone.
//! - Programs that look for devices in /sys, or by `rdma link`, find none.
//!
//! # Loading
//! LD_PRELOAD is for programs that are linked with the libraries, or open them by `dlopen(3)`, by any path (on x86_64
//! and aarch64). Symbols have their newest versions, for `dlvsym(3)`, unless cargo warns that the linker can't.
//! Statically linked and set-user-ID programs can't be preloaded.
//!
//! Programs that clear LD_PRELOAD, or call `dlmopen(3)`, find the library by the others' names:
//!
//! ```console
//! $ for name in libibverbs.so.1 librdmacm.so.1; do ln -s $PWD/target/release/librxe_loop_verbs.so DIR/$name; done
//! $ export LD_LIBRARY_PATH=DIR
//! ```
//!
//! Programs that are linked with a driver's library, such as libmlx5, must be preloaded: it needs private functions of
//! libibverbs.
//!
//! # Supported
//! - RC, UC and UD queue pairs with every operation, also by `ibv_wr_*`; shared receive queues for RC and UD; type 2
//!   memory windows; address handles.
//! - Completion queues, also extended, moderated, and ignoring overruns; completion channels and asynchronous events. A
//!   descriptor is readable exactly while an event can be taken, by the libraries' calls and not by `read(2)`.
//! - librdmacm, with the port spaces TCP, UDP, IB and IPOIB, synchronous identifiers and `rdma_create_ep(3)`: see
//!   [`cm`](transport_rxe_loop::cm), and [`IdOption`](transport_rxe_loop::cm::IdOption) for options.
//!   `rdma_get_cm_event(3)` fails with EINTR after a signal, unless every handler, other than those of faults, has
//!   SA_RESTART.
//! - librpma. Debian's uses neither FLUSH nor ATOMIC_WRITE. `rpma_mr_advise(3)` gives RPMA_E_NOSUPP.
//!
//! Any number of threads may call at once. No lock is held while a thread sleeps, except while `ibv_modify_qp` waits for
//! copies to the memory of a queue pair that it resets or fails. A forked child can open the device again; inherited
//! objects do not work. A null handle is EINVAL, and any other pointer that is not an object ENOENT
//! ([Q11](cq_core::contract#q11)).
//!
//! # Not supported
//! These fail with EOPNOTSUPP:
//!
//! - memory windows of type 1 and `ibv_bind_mw`, `ibv_rereg_mr`, `ibv_reg_mr_iova` with another address, on-demand
//!   paging, device memory, DMA buffers, DMA handles;
//! - queue pairs of other types, XRC, work queues, RSS, flows, multicast, alternate paths, ECE, rate limits;
//! - resizing shared receive queues, tag matching, time stamps, parent and thread domains, counters, importing objects;
//! - AF_IB, RAI_SA, and `rsocket(7)`, and so `riostream`, `rstream` and `rcopy`. `rpoll` and `rselect` work on other
//!   descriptors; the other functions of rsockets fail with EBADF.
//!
//! # Differences from some hardware
//! - EINVAL: posting in RESET, INIT or RTR; receives in RESET; on UD all but a SEND, or an address handle of another
//!   domain; on UC READ, atomics and FLUSH; registering 0 bytes, or a zero-based region.
//! - MW_BIND_ERR: binding a zero-based window, or one that is bound.
//! - A receive fails with its queue pair, and the sender succeeds: LOC_LEN_ERR if it is too small for a datagram and 40
//!   bytes of GRH; REM_INV_REQ_ERR if a SEND invalidates a key that is not of a window of the receiver's queue pair.
//! - A peer that was destroyed or died is RETRY_EXC_ERR, with a timeout of 0 at once.
//! - A completion may be stored before `ibv_post_send` returns. Arming a queue that holds completions raises an event at
//!   once; not, once, if it holds only the completion whose event was just taken: poll then
//!   ([N2](cq_core::contract#n2)). A failed completion has the opcode `IBV_WC_SEND`; other undefined fields are
//!   0xa5a5a5a5 ([C4](cq_core::contract#c4)). The LID and GID of a connection's destination are ignored. [Strict
//!   mode](transport_rxe_loop::manual#strictly) changes all but the undefined fields.
//! - After an overrun, `ibv_poll_cq` returns `-EOVERFLOW` once everything stored was polled.
//! - Where memory is short, calls fail with ENOMEM, also if the device is full, but a process that can't allocate a few
//!   bytes (`ulimit -v`) aborts. `rdma_bind_addr` and `rdma_resolve_addr` fail with EMFILE without a free descriptor.
//! - The device's documentation has what happens to [unmapped memory](transport_rxe_loop::MemoryRegion#unmapped-memory),
//!   [closed descriptors](transport_rxe_loop::manual#descriptors), [truncated
//!   files](transport_rxe_loop::manual#processes) and [addresses that go](transport_rxe_loop::manual#ethernet).
//!
//! # Sanitizers
//! `LD_PRELOAD` is as usual with `-fsanitize=thread`, and clang's `-fsanitize=address`. With gcc's, set it to
//! `"$(gcc -print-file-name=libasan.so) librxe_loop_verbs.so"`, or link with `-static-libasan`.
//!
//! ThreadSanitizer does not see the device's accesses. What a thread does before it posts is ordered before what follows
//! a completion or an event, of any queue of the process: touching a buffer only after its completion is no race.
//!
//! If a program stops with "unexpected memory mapping", run it by `setarch --addr-no-randomize`.
