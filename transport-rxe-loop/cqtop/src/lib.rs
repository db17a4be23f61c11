//! `cqtop`: a terminal view of a live fabric of the loopback device, as top(1) is one of a machine.
//!
//! It shows processes, queue pairs and what their oldest requests wait for, completion queues, how full tables and memory
//! are, waits and locks. It reads the fabric by [`transport_rxe_loop::observe`]: it is not attached, takes no lock, writes
//! nothing and sends no signal. So it works on programs that hang, are stopped, or were killed. Here one of two was stopped:
//!
//! ```text
//! $ cargo run --release -p cqtop -- --once --interval 2
//!  …
//! PROCESSES
//! id   pid state    for   QPs CQs regions   arena wakes/s command
//!  0 12987 sleeping -       1   1       1 5.8 KiB       0 ./target/release/cqperf pingpong --events --processes 2
//!  1 13006 stopped  2.0 s   1   1       1 5.8 KiB       0 …/target/release/cqperf --started --transport=loop
//!
//! WAITS
//! what process         seen for because                                 depends on
//! CQ 0 12987           2.0 s    armed: waits for a completion           -
//! CQ 1 13006 (stopped) 2.0 s    its process has not taken its events: 1 13006 (stopped)
//!  …
//! ```
//!
//! Without `--once` it is a view in the terminal, with `--once --json` an object; `--help` has tables, keys and arguments.
//! Unpolled completions are a range, unless the process runs with `RXE_LOOP_COUNT=polls`, which also counts its polls. A
//! narrow terminal leaves out columns, and names them.
//!
//! ```
//! use cqtop::{proc, report::History, tables};
//! use transport_rxe_loop::OpenOptions;
//! use transport_rxe_loop::observe::FabricObserver;
//!
//! let name = format!("shown-{}", std::process::id());
//! let context = OpenOptions::new().fabric(&name).open("loop0")?;
//! let cq = context.cq(16).create()?;
//!
//! let mut observer = FabricObserver::open(&name)?;
//! let mut history = History::default();
//! let report = history.report(observer.snapshot(), proc::look);
//! let shown = tables::plain(&report);
//! assert!(shown.contains(&std::process::id().to_string()));
//! assert!(serde_json::to_value(&report)?["completion_queues"][0]["capacity"] == 16);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Modules
//!
//! | module | owns |
//! |---|---|
//! | [`args`] | the command line |
//! | [`live`] | the view in a terminal |
//! | [`app`], [`screen`] | its state and what keys do, how it is drawn |
//! | [`fit`] | how tables and lines fit a narrow terminal |
//! | [`tables`] | which tables there are, their columns, and how they are printed |
//! | [`cell`] | a cell of a table: its text, how it is sorted, its emphasis |
//! | [`report`] | a snapshot with rates, times and names of processes; its JSON |
//! | [`proc`] | what /proc says of a process |
#![deny(unsafe_code)]

pub mod app;
pub mod args;
pub mod cell;
pub mod fit;
pub mod live;
pub mod proc;
pub mod report;
pub mod screen;
pub mod tables;
