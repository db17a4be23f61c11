//! Many queue pairs in one process, which send in turn.

use cq_core::transport::PollCq;
use cq_core::wc::Wc;
use cq_verbs::wr::{RecvWr, SendWr};
use transport_rxe_loop::{
    Access, Context, Cq, Limits, OpenOptions, OwnedRegion, QpCaps, QueuePair,
};

/// Bytes of a message.
const LEN: usize = 64;

/// Pairs of connected queue pairs, with one completion queue for all that is sent and one for all that is received.
pub struct Crowd {
    pairs: Vec<[QueuePair; 2]>,
    queues: [Cq; 2],
    /// A buffer for a message of each pair.
    region: OwnedRegion,
    next: usize,
    _context: Context,
}

impl Crowd {
    /// So many pairs, whose queues hold `depth` requests.
    pub fn new(count: usize, depth: u32) -> Self {
        let queue_pairs = (2 * count).next_power_of_two() as u32;
        let limits = Limits::default().queue_pairs(queue_pairs).bytes(256 << 20);
        let fabric = format!("crowd-{}-{count}", std::process::id());
        let context = OpenOptions::new().fabric(&fabric).limits(limits).open("loop0");
        let context = context.expect("the device opens");
        let pd = context.alloc_pd().unwrap();
        let queues = [(); 2].map(|()| context.cq(256).create().expect("a completion queue"));
        let caps = QpCaps::USUAL
            .max_send_wr(depth)
            .max_recv_wr(depth)
            .max_send_sge(1)
            .max_recv_sge(1)
            .max_inline(LEN as u32);
        let init = pd.qp(&queues[0]).caps(caps).recv_cq(&queues[1]);
        let pair = || {
            let [mut one, mut other] = [(); 2].map(|()| init.create().expect("a queue pair"));
            one.connect_to(other.number()).expect("it connects");
            other.connect_to(one.number()).expect("it connects");
            [one, other]
        };
        let pairs = (0..count).map(|_| pair()).collect();
        let region = pd.allocate(count * LEN, Access::LOCAL_WRITE).expect("memory of the fabric's");
        let mut crowd = Self { pairs, queues, region, next: 0, _context: context };
        // Each slot of each ring, once.
        crowd.send(count as u64 * u64::from(depth));
        crowd
    }

    /// Sends so many messages, each by the next pair, and takes both completions.
    pub fn send(&mut self, count: u64) {
        let mut wcs = [Wc::default()];
        for _ in 0..count {
            let sge =
                [self.region.sge(self.next * LEN..self.next * LEN + LEN).expect("it is inside")];
            let [sender, receiver] = &mut self.pairs[self.next];
            receiver.post_recv(&[RecvWr::new(1, &sge)]).expect("the queue is not full");
            let wr = SendWr::send_inline(2, &[7; LEN]);
            sender.post_send(&[wr]).expect("the queue is not full");
            for queue in &mut self.queues {
                assert_eq!(queue.poll_into(&mut wcs), Ok(1));
                wcs[0].result().expect("all goes well");
            }
            self.next = (self.next + 1) % self.pairs.len();
        }
    }
}
