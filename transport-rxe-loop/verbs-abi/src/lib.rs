//! `librxe_loop_verbs.so`: the C ABI of libibverbs and librdmacm over the loopback device, for unmodified programs.
//!
//! ```console
//! $ cargo build --release -p rxe-loop-verbs
//! $ export LD_PRELOAD=$PWD/target/release/librxe_loop_verbs.so
//! $ ibv_rc_pingpong > /dev/null & sleep 1; ibv_rc_pingpong localhost
//! $ rping -s -C 3 & sleep 1; rping -c -v -C 3 -a 127.0.0.1
//! ```
//!
//! The library defines the functions of rdma-core 65, exported ones and those behind the header's inline functions. There
//! is one device, `loop0`, with one port. Its behaviour, and the variables `RXE_LOOP_*` for fabrics, faults and strict mode,
//! are those of [`transport_rxe_loop`]: [its manual](transport_rxe_loop::manual). The real libraries may be loaded as well,
//! and keep working for their own objects.
//!
//! - [Programs](manual#programs) that are known to work, and their [settings](manual#settings-that-programs-need)
//! - [Loading](manual#loading), [sanitizers](manual#sanitizers)
//! - What is [supported](manual#supported), [not supported](manual#not-supported), and [different from
//!   hardware](manual#differences-from-some-hardware)
//!
//! If the device can't be opened, or the fabric has other limits than `RXE_LOOP_LIMITS` requests, a line on stderr says so.
//!
//! # Modules
//! Unsafe code is in `exports` and `raw`.
//!
//! ```text
//!   exports, rdmacm                                   what C calls: libibverbs' functions and tables, librdmacm's
//!   events, post, qp_ex, cq_ex, modify, query         calls for several kinds of objects
//!   device, context, port, pd, cq, channel, srq, mr (probe), mw, ah, buf, qp (draft, convert)
//!   fork                                              what a forked child forgets
//!   ....................................................................................................
//!   wait, side                                        waiting for events; what of an object is not behind its lock
//!   raw, sys, sysfs                                   C's pointers as values; the header; files of /sys
//!   errno, words, rate, stderr                        errors and numbers in C's words; lines on stderr
//! ```

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
pub mod manual;
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
