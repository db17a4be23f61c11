//! What the device does for the programs that use it: the tests of one process, so that they wait side by side
//! and are linked once. Each opens a fabric of its own. What needs a process to itself stands beside this folder
//! and says why.

#[path = "../common/mod.rs"]
mod common;

mod async_events;
mod completions;
mod datagrams;
mod datagrams_across;
mod datagrams_batched;
mod datagrams_failing;
mod datagrams_many;
mod datagrams_shared;
mod events;
mod fabrics;
mod failures;
mod failures_onesided;
mod fault_injector;
mod faults;
mod faults_seeded;
mod faults_unreliable;
mod flushing;
mod ignored_overrun;
mod imitation;
mod inflight;
mod input;
mod large;
mod lifetimes;
mod memory;
mod moderation;
mod moderation_across;
mod operations;
mod overlaps;
mod overrun;
mod posting;
mod processes;
mod regions;
mod resize;
mod service;
mod sqe;
mod srq;
mod srq_edges;
mod srq_kinds;
mod states;
mod stress;
mod texts;
mod threads;
mod threads_ending;
mod threads_onesided;
mod timers;
mod unreliable;
mod windows;
mod windows_across;
mod windows_ending;
