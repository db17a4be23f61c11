//! `librxe_loop_verbs.so`: libibverbs' C ABI over the loopback device.

mod sys;
