//! `librxe_loop_verbs.so`: libibverbs' C ABI over the loopback device.

mod acks;
mod arg;
mod descriptor;
mod errno;
mod gate;
mod sys;
mod table;
