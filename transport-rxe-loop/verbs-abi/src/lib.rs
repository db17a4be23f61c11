//! `librxe_loop_verbs.so`: libibverbs' C ABI over the loopback device, for programs that are not to be changed.
//!
//! ```console
//! $ cargo build --release -p rxe-loop-verbs
//! $ export LD_PRELOAD=$PWD/target/release/librxe_loop_verbs.so
//! $ ibv_rc_pingpong > /dev/null & sleep 1; ibv_rc_pingpong localhost
//! ```
//!
//! Whatever such a program calls of libibverbs is called here: the exported functions by their names, and the
//! others, which the header makes of the tables in `struct ibv_context` and before it, by what those hold. The real
//! library may be loaded beside it, and keeps what concerns no object of ours. There is one device, `loop0`: an
//! InfiniBand port with one LID, one GID and one partition key. Programs of a user reach each other as others of
//! [`transport_rxe_loop`] do, in the fabric that `RXE_LOOP_FABRIC` names, and that crate says how everything
//! behaves: this one translates, and decides nothing. Where such a program needs a larger or a smaller fabric,
//! `RXE_LOOP_LIMITS="queue_pairs=4096,bytes=256M"` says so to the first one that opens it
//! ([`Limits`](transport_rxe_loop::Limits)). What opening the device fails of, and that a fabric has other limits than
//! that variable asks for, is a line on stderr.
//!
//! # What there is
//! Queue pairs of the types RC, UC and UD, with every operation, also by `ibv_wr_*`; shared receive queues for RC
//! and UD; type 2 memory windows; address handles; completion queues, also extended ones, moderated ones, and ones that
//! ignore overruns; completion channels and asynchronous events, whose descriptors can be polled and be made not to block.
//!
//! # What there is not
//! It says EOPNOTSUPP, in the way of each function:
//!
//! - memory windows of type 1 and `ibv_bind_mw`, `ibv_rereg_mr`, registrations under another address
//!   (`ibv_reg_mr_iova`), on-demand paging, device memory, DMA buffers;
//! - queue pairs of other types, XRC, work queues, RSS, flows, multicast, alternate paths, ECE, rate limits;
//! - shared receive queues that are resized, tag matching; time stamps; parent and thread domains; counters;
//! - importing objects of another process, and `librdmacm`, which needs the kernel.
//!
//! # What is otherwise than on some hardware
//! The device's [own documentation](transport_rxe_loop) says why. What programs meet of it:
//!
//! | where | what happens |
//! |---|---|
//! | posting in RESET, INIT or RTR; receives in RESET | EINVAL; nothing is dropped or kept for later |
//! | UD: all but a SEND, or an address handle of another domain; UC: READ, atomics, FLUSH | EINVAL when posted |
//! | a datagram comes to a receive that is too small | it fails with LOC_LEN_ERR and its queue pair; the sender succeeds. Forty bytes come before each |
//! | SEND with invalidate of what is no key of a window of the receiver's queue pair | the receive fails with REM_INV_REQ_ERR and its queue pair; the sender succeeds |
//! | a window is bound to count from zero, or was bound before | MW_BIND_ERR |
//! | a region of no bytes, or one that counts from zero | EINVAL |
//! | a GID of another index than 0, as programs that were written for RoCE ask for; that one is link-local and of the type InfiniBand | EINVAL |
//! | a peer that is gone | it does not answer: RETRY_EXC_ERR when the timers are over, with a timeout of 0 at once |
//! | a completion | it may be there before `ibv_post_send` returns |
//! | arming a queue that holds completions | raises nothing. Who does not then poll until nothing comes sleeps for ever, as `ib_send_bw -e -l 4` does, which `RXE_LOOP_FAULTS="seed=1,defer=50us"` helps, and now and then UCX where it sleeps (`ucx_perftest -E sleep`) |
//! | the path of a connection | has to begin here; the LID and GID where it ends are not looked at, the queue pair's number is |
//! | memory that is unmapped before it is deregistered | it is not pinned: where a queue pair of the same process reaches for it, the process ends by SIGSEGV |
//! | all descriptors that are not the program's own are closed (`closefrom(3)`) | the device can do no more |
//! | a file of the fabric (`/dev/shm/rxe-loop.*`) is truncated while it is in use | the processes that use it end by SIGBUS |
//! | there is no memory | ENOMEM, also where the device has no room; but where the process itself gets not even some bytes more (`ulimit -v`), it is aborted, as other programs in Rust are |
//!
//! # Programs that need more
//! - What opens libibverbs by `dlopen(3)`, as the crate sideway does, is not reached by LD_PRELOAD. It finds this
//!   library by that name: `ln -s $PWD/librxe_loop_verbs.so DIR/libibverbs.so.1`, and `LD_LIBRARY_PATH=DIR`.
//! - UCX, and Open MPI over it, take no device without a file in /dev, whatever that is. Root makes one:
//!   `mkdir -p /dev/infiniband && ln -s /dev/null /dev/infiniband/loop0`; then `UCX_NET_DEVICES=loop0:1` with
//!   `UCX_TLS=rc_v,self` or `ud_v,self`.
//! - What was written for Soft-RoCE may take what that does for granted, as the crate async-rdma does for
//!   immediate data: `RXE_LOOP_IMITATE=rxe`.
//! - What is linked statically, or runs with the rights of another user (`ld.so(8)`), is not reached at all.
//! - What looks for devices in /sys or by `rdma link`, as Open MPI's `openib` and newer tests of pyverbs do, finds none.
//!
//! # Handles
//! A pointer to an object is judged by its address, its handle and its context before it is used: null is EINVAL,
//! what is no object, or not any more, is ENOENT, and never a crash (Q11).
//!
//! # Threads and processes
//! Any number of threads may call at once; each object has a lock of its own, and none is held while somebody
//! sleeps. A child that is forked may go on without the device, or open it anew; what it has inherited reaches nothing.
//!
//! # Where things are
//!
//! ```text
//!   device                       the list of devices, opening one
//!   functions, fork              the tables of functions, what a forked child forgets
//!   async_event, post, qp_ex, cq_ex, modify, query     the verbs that work on several kinds of objects
//!   qp, draft, convert           queue pairs, requests in C's words
//!   ah, cq, mr (probe), mw, srq  the other objects
//!   channel, pd, port
//!   context, names               an open device, and what its events name
//!   ..............................................................................................
//!   table, side, child           objects at fixed addresses, behind locks; what a forked child has of its own
//!   wait, descriptor, acks, gate waiting for events, acknowledging them; exclusive use
//!   errno, arg, words, rate      reasons as numbers, pointers that may be null, numbers in words
//!   absent                       what is not supported
//!   sys                          what the header declares
//! ```

mod absent;
mod acks;
mod ah;
mod arg;
mod async_event;
mod channel;
mod child;
mod context;
mod convert;
mod cq;
mod cq_ex;
mod descriptor;
mod device;
mod draft;
mod errno;
mod fork;
mod functions;
mod gate;
mod modify;
mod mr;
mod mw;
mod names;
mod pd;
mod port;
mod post;
mod probe;
mod qp;
mod qp_ex;
mod query;
mod rate;
mod side;
mod srq;
mod sys;
mod table;
#[cfg(test)]
mod test;
mod wait;
mod words;
