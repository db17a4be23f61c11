//! What the device does for the programs that use it: the tests of one process, so that they wait side by side
//! and are linked once. Each opens a fabric of its own. What needs a process to itself stands beside this folder
//! and says why.

#[path = "../common/mod.rs"]
mod common;

mod async_events;
mod cm;
mod counters;
mod datagrams;
mod datagrams_across;
mod datagrams_many;
mod demand;
mod ethernet;
mod events;
mod fabrics;
mod fault_injector;
mod faults;
mod faults_seeded;
mod gids;
mod imitation;
mod inflight;
mod input;
mod large;
mod memory;
mod name_spaces;
mod objects;
mod observing;
mod overrun;
mod posting;
mod regions;
mod resize;
mod rpma;
mod service;
mod srq;
mod states;
mod stress;
mod strict;
mod threads;
mod threads_ending;
mod timers;
mod wait_set;
mod windows;
