//! `librxe_loop_verbs.so`: libibverbs' C ABI over the loopback device, for programs that are not to be changed.
//!
//! ```console
//! $ cargo build --release -p rxe-loop-verbs
//! $ export LD_PRELOAD=$PWD/target/release/librxe_loop_verbs.so
//! $ ibv_rc_pingpong & ibv_rc_pingpong localhost
//! ```
//!
//! Whatever such a program calls of libibverbs is called here: the exported functions by their names, and the
//! others, which the header makes of the tables in `struct ibv_context` and before it, by what those hold. The real
//! library may be loaded beside it, and keeps what concerns no object of ours. There is one device, `loop0`: an
//! InfiniBand port with LID 1, one GID and one partition key. Programs of a user reach each other as others of
//! [`transport_rxe_loop`] do, in the fabric that `RXE_LOOP_FABRIC` names, and that crate says how everything
//! behaves: this one translates, and decides nothing.
//!
//! # What there is
//! Queue pairs of the types RC, UC and UD, with every operation, also by `ibv_wr_*`; shared receive queues; type 2
//! memory windows; address handles; completion queues, also extended ones, moderated ones, and ones that ignore
//! overruns; completion channels and asynchronous events, whose descriptors can be polled and be made not to block.
//!
//! # What there is not
//! It says EOPNOTSUPP, in the way of each function:
//!
//! - memory windows of type 1, `ibv_rereg_mr`, registrations under another address (`ibv_reg_mr_iova`), on-demand
//!   paging, device memory, DMA buffers;
//! - queue pairs of other types, XRC, work queues, RSS, flows, multicast, alternate paths, ECE, rate limits;
//! - shared receive queues that are resized, tag matching; time stamps; parent and thread domains; counters;
//! - importing objects of another process, and `librdmacm`, which needs the kernel.
//!
//! What the device itself does otherwise than some hardware, its own documentation says: requests that a queue pair
//! can't carry out, or in a state that takes none, are refused when they are posted (EINVAL), not dropped; regions of no
//! bytes are refused; a peer that is gone ends a request without a timeout at once.
//!
//! Memory is not pinned: what a program unmaps before it deregisters it, and is reached there by a queue pair of the
//! same process, ends the process by SIGSEGV. Nor are descriptors guarded: a program that has opened the device, and
//! then closes all that are not its own (`closefrom(3)`), can do no more with it.
//!
//! Programs that open libibverbs by `dlopen(3)`, and look its functions up there, are not reached by LD_PRELOAD, nor
//! are those that are linked statically, or run with the rights of another user (`ld.so(8)`).
//!
//! Too many objects, and no room in the device's memory, are ENOMEM. Where the system has not even some bytes more
//! for the process itself (`ulimit -v`), it is aborted, as other programs in Rust are.
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
//!   sys        what the header declares        table     objects at fixed addresses, behind locks
//!   errno      every reason as a number        arg       pointers that may be null
//!
//!   device --- context --- query, port         names --- async_event, channel      acks, wait, descriptor
//!                 |
//!                pd --- mr (probe), mw, ah     cq, cq_ex     srq     qp (modify) --- post --- qp_ex      gate
//!
//!   words, rate      numbers in words          fork, absent      what does nothing, or says no
//! ```

mod absent;
mod acks;
mod ah;
mod arg;
mod async_event;
mod channel;
mod context;
mod cq;
mod cq_ex;
mod descriptor;
mod device;
mod errno;
mod fork;
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
mod srq;
mod sys;
mod table;
#[cfg(test)]
mod test;
mod wait;
mod words;
