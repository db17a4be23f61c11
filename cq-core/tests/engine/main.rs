//! The engine's tests.
#![cfg(not(loom))]

mod channel;
mod common;
mod cq;
mod docs;
mod executors;
mod queue;
mod shared_cq;
mod wc;

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
use proptest::prelude::*;

use self::common::*;
