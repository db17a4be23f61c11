//! Events for `tracing`, with the feature of that name: [`manual`](crate::manual#events-for-tracing) lists them. Without
//! it, they are compiled and never evaluated.
//!
//! A subscriber is the program's code, which may wait for whatever it likes. So there is no event on the usual way of a
//! message, none in a forked child about what it inherited, since another thread of the parent may have locked the
//! subscriber, and none while the process ends, when the variables of its threads are gone. No lock of the fabric is held
//! meanwhile, but the thread may own a send queue, or have a copy guard open where a queue pair fails: then it is as if the
//! process were suspended for as long as the subscriber takes.

pub(crate) use cq_verbs::trace_event as event;

#[cfg(test)]
mod tests;
