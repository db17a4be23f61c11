//! `librxe_loop_verbs.so`: libibverbs' C ABI over the loopback device.

mod acks;
mod arg;
mod descriptor;
mod context;
mod device;
mod errno;
mod gate;
mod names;
mod sys;
mod table;
#[cfg(test)]
mod test;
mod words;
