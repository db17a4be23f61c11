//! `librxe_loop_verbs.so`: libibverbs' C ABI over the loopback device.

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
