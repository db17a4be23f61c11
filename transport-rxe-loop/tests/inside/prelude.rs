//! What most tests of this crate's inside use.

pub use std::fs::File;
pub use std::os::fd::AsFd as _;
pub use std::os::unix::process::ExitStatusExt as _;
pub use std::thread;
pub use std::time::{Duration, Instant};

pub use cq_core::transport::{Arm, Armed, Block, Events, Notify, PollCq, PollError, Woken};
pub use cq_core::wc::{Failed, Wc, WcStatus};
pub use cq_verbs::async_event::{AsyncEventType, AsyncEvents, BlockAsync};
pub use cq_verbs::device::QpBuilder;
pub use cq_verbs::post::{Post, WrError};
pub use cq_verbs::setup::{
    Access, AckTimeout, AddressVector, Endpoint, MemoryOptions, Port, QpAttr, QpCaps, QpState,
    QpType, RnrTimer, SrqInit, inc_rkey,
};
pub use cq_verbs::wr::{RecvWr, RemoteAddr, SendWr, Sge, WindowBind};
pub use rustix::process::Signal;

pub use crate::api::ah::{AddressHandle, Destination};
pub use crate::api::channel::CompletionChannel;
pub use crate::api::cq::Cq;
pub use crate::api::device::Context;
pub use crate::api::limits::Limits;
pub use crate::api::mr::{MemoryRegion, OwnedRegion};
pub use crate::api::open::OpenOptions;
pub use crate::api::pd::ProtectionDomain;
pub use crate::api::qp::QueuePair;
pub use crate::api::srq::SharedReceiveQueue;
pub use crate::completion::push;
pub use crate::engine::{complete, identity, send_queue};
pub use crate::inside::actor::{Actor, die_with_parent, order, say, until, waits};
pub use crate::inside::attaching::Directory;
pub use crate::inside::audit::{self, Estate};
pub use crate::inside::chance::Chance;
pub use crate::inside::fixture::{
    ANOTHER, DEAD, Fixture, before, connect_with, copy_guard, heap, next_wc, polled, recover_all,
    told,
};
pub use crate::lifecycle::{Device, deaths};
pub use crate::memory::copy_guard::CopyGuard;
pub use crate::memory::key::Key;
pub use crate::memory::region::KeyUser;
pub use crate::memory::sge::{Far, Span, Spans, Target};
pub use crate::protocol::in_flight::{ChangeFence, InFlight};
pub use crate::protocol::lock::{AttachmentId, AttachmentKey, Lock};
pub use crate::protocol::number::{CqIndex, Position, QpIndex, QpNumber, SrqNumber};
#[cfg(debug_assertions)]
pub use crate::protocol::steps::Step;
pub use crate::protocol::tag;
pub use crate::shm::registry::Registry;
pub use crate::shm::table::Entry as _;
pub(crate) use crate::sync::{self, AtomicU32, AtomicU64};
