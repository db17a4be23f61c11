//! Numbered completions and other entries, and a raw queue that threads can own together.

use std::fmt::Debug;
use std::sync::Arc;

use cq_core::queue::raw::{RawConsumer, RawProducer, RawQueue, Slot, Tag};
use cq_core::queue::{Control, NoChannel, OnChannel, Position, Tagged, Tail};
use cq_core::transport::CqKey;
use cq_core::wc::{Wc, WcFlags, WcOpcode, WcStatus};
use cq_testing::entries::{Bytes4, Bytes16, Spare2};
use cq_testing::raw_queue;
use cq_testing::rules::{Kind, Numbered};

/// What the queue of a model holds.
pub trait Modelled: Numbered + Debug {
    /// The entry with this number.
    fn numbered(number: u64) -> Self {
        Self::polled(Kind::Receive, number)
    }

    /// What is pushed for it.
    fn tagged(number: u64, solicited: bool) -> Self::Pushed {
        Self::pushed(if solicited { Kind::Solicited } else { Kind::Receive }, number)
    }
}

impl Modelled for Bytes16 {}
impl Modelled for Bytes4 {}
impl Modelled for Spare2 {}

impl Modelled for Wc {
    fn numbered(number: u64) -> Self {
        numbered(number)
    }

    fn tagged(number: u64, solicited: bool) -> Tagged {
        Tagged { wc: numbered(number), tag: number as u32, solicited }
    }
}

/// The successful completion with this number; every field is made from it, so that a mixture of two
/// equals neither. It is a receive, so that it can be solicited.
pub fn numbered(number: u64) -> Wc {
    // Three, so that entries which follow each other in a slot differ, whatever the ring's size.
    let opcodes = [WcOpcode::RECV, WcOpcode::RECV_RDMA_WITH_IMM, WcOpcode::TM_RECV];
    let small = number as u8;
    let wide = u32::from(small) * 0x0101_0101;
    let wc = Wc::new(number, WcStatus::SUCCESS, wide)
        .with_opcode(opcodes[number as usize % opcodes.len()])
        .with_byte_len(wide)
        .with_imm(wide.to_ne_bytes())
        .with_src_qp(wide)
        .with_flags(WcFlags::from_bits_retain(wide))
        .with_path(wide as u16, wide as u16, small, small);
    let mut bytes = wc.to_bytes();
    // Its `vendor_err`, which no success is made with.
    bytes[16..20].copy_from_slice(&wide.to_ne_bytes());
    Wc::from_bytes(bytes)
}

/// Checks that the next entry to come out is the one with this number, whole.
///
/// # Panics
/// It is not.
pub fn expect<E: Modelled>(got: &E, number: u64) {
    assert_eq!(got.number(), number, "lost, doubled or out of order");
    assert_eq!(*got, E::numbered(number), "torn");
}

/// The name of every queue here.
pub const KEY: CqKey = CqKey { index: 3, generation: 7 };

/// A raw queue on the heap. The sides borrow it, each thread from its own `Arc`.
pub struct Queue {
    control: Control,
    slots: Vec<Slot>,
    tags: Vec<Tag>,
    promised: u32,
}

impl Queue {
    /// A queue that stores what it promises, and no more.
    pub fn new(capacity: u32) -> Arc<Self> {
        Self::with_storage(capacity, capacity as usize)
    }

    /// A queue with slots to spare.
    pub fn with_storage(promised: u32, storage: usize) -> Arc<Self> {
        Arc::new(Self {
            control: Control::new(),
            slots: (0..storage).map(|_| Slot::new()).collect(),
            tags: (0..storage).map(|_| Tag::new()).collect(),
            promised,
        })
    }

    /// The producer of a queue without a channel.
    pub fn producer(&self, tail: Tail) -> RawProducer<'_> {
        self.open().into_producer(tail, NoChannel)
    }

    /// The consumer of a queue without a channel.
    pub fn consumer(&self, position: Position) -> RawConsumer<'_> {
        self.open().into_consumer(position, NoChannel)
    }

    /// The consumer of a queue with a channel.
    pub fn armable(&self) -> RawConsumer<'_, OnChannel> {
        self.open().into_consumer(0, OnChannel::named(KEY))
    }

    /// The queue itself, for producers that take turns.
    ///
    /// # Panics
    /// Its capacity is illegal.
    pub fn open(&self) -> RawQueue<'_> {
        raw_queue(&self.control, &self.slots, &self.tags, self.promised).expect("a legal capacity")
    }
}
