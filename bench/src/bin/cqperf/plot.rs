//! A plot of a sweep: latency, and below it bandwidth, over the size of messages.
