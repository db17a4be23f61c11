//! `cqtop`: a terminal view of a live fabric of the loopback device, as top(1) is one of a machine.
//!
//! It shows the processes that have the fabric open, their queue pairs, completion queues, shared receive queues,
//! regions and channels, how full the tables and the memory are, and what waits for what, since when. It looks at the
//! fabric by [`transport_rxe_loop::observe`]: it is not attached, takes no lock, writes nothing and sends no signal.
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
