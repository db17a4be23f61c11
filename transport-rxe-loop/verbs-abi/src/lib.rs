//! `librxe_loop_verbs.so`: libibverbs' C ABI over the loopback device.

mod absent;
mod acks;
mod ah;
mod arg;
mod context;
mod descriptor;
mod device;
mod errno;
mod fork;
mod gate;
mod mr;
mod mw;
mod names;
mod pd;
mod port;
mod probe;
mod query;
mod rate;
mod sys;
mod table;
#[cfg(test)]
mod test;
mod wait;
mod words;
