//! The tests of requests, accounting, connecting, several queues, tasks.
#![cfg(not(loom))]

mod aliases;
mod budget;
#[cfg(target_os = "linux")]
mod cm;
mod common;
mod counters;
#[cfg(target_os = "linux")]
mod descriptor;
#[cfg(target_os = "linux")]
mod device;
mod ends;
#[cfg(target_os = "linux")]
mod exchange;
mod handlers;
mod io_errors;
mod ledger;
mod observe;
mod queue_set;
#[cfg(target_os = "linux")]
mod rpma;
mod setup;
mod task;
mod texts;
mod tracked;
#[cfg(target_os = "linux")]
mod wait_set;
mod wr;

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use cq_core::cq::{CompletionQueue, CompletionStream, WaitError};
use cq_core::queue::*;
use cq_core::transport::*;
use cq_core::wc::{Failed, Wc, WcFlags, WcOpcode, WcStatus};
use cq_testing::fake::{ASLEEP_FOR_EVER, Call, Script};
use cq_testing::raw_queue;
use cq_verbs::async_event::*;
use cq_verbs::post::*;
use cq_verbs::wr::*;
use proptest::prelude::*;

use self::common::*;
