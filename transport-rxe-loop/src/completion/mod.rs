//! Completion queues from the side of their producers, channels, events.
pub mod async_event;
pub mod channel;
pub mod fifo;
pub mod moderation;
pub mod push;
pub mod queue;
pub mod soft_roce;
