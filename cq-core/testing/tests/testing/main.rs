//! The tests of the scripted transport, of faults, and of the rules as checks.
#![cfg(not(loom))]

// Not all of it is used here.
#[allow(dead_code)]
mod common;
mod fake;
mod fault;
mod kit;
mod sides;

use std::cell::Cell;
use std::time::Duration;

use cq_core::cq::{CompletionQueue, WaitError};
use cq_core::queue::*;
use cq_core::transport::*;
use cq_core::wc::{Wc, WcFlags, WcOpcode, WcStatus};
use cq_testing::fake::{ASLEEP_FOR_EVER, Call, Script};
use cq_verbs::async_event::*;
use cq_verbs::post::*;
use cq_verbs::wr::*;
use proptest::prelude::*;

use self::common::*;
