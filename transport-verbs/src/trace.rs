//! Events for `tracing`, with the feature of that name: [`manual`](crate::manual#events-for-tracing) lists them. Without it,
//! they are compiled and never evaluated. There are none on the way of a message.

pub(crate) use cq_verbs::trace_event as event;
