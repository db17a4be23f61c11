//! The software completion queue of cq-core with several producers, without a channel.

use cq_core::queue::mpsc::{Consumer, HeapCq, Producer};
use cq_core::transport::PollCq;
use cq_core::wc::Wc;

use super::soft::sides;
use crate::common::peer::{Peer, Receiver, Sender};

/// `cq_core::queue::mpsc`.
pub struct Shared;

impl Peer for Shared {
    const NAME: &'static str = "queue, several producers";
    type Memory = usize;
    type Sender<'a> = Producer<'static>;
    type Receiver<'a> = Consumer<'static>;

    fn memory(capacity: usize) -> usize {
        capacity
    }

    fn open(capacity: &mut usize) -> (Self::Sender<'_>, Self::Receiver<'_>) {
        HeapCq::new(*capacity as u32).expect("a capacity that can be").split()
    }
}

sides!(Producer<'_>, Consumer<'_>);
