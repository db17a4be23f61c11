//! The models, in one program: the longest of one file does not keep the next file waiting.
#![cfg(loom)]

mod arm;
mod budget;
mod channels;
mod closing;
mod coverage;
mod device_arena;
mod device_channel;
mod device_datagrams;
mod device_death;
mod device_fanin;
mod device_fanin_resize;
mod device_in_flight;
mod device_moderation;
mod device_ownership;
mod device_pool;
mod device_receives;
mod device_requests;
mod device_retired;
mod device_send_slots;
mod device_stage;
mod device_wakeup;
mod device_words;
mod failing;
mod in_place;
mod leaving;
mod overrun;
mod queue_set;
mod ring;
mod shared_cq;
mod shared_events;
mod shared_resize;
mod shared_ring;
mod wait;
