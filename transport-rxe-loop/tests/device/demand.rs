//! What the queues that complete in a completion queue can have outstanding (O7).

use crate::common::*;
use transport_rxe_loop::SharedReceiveQueue;

const DEEP: QpCaps = CAPS.max_send_wr(100).max_recv_wr(10);

struct Queues {
    pd: ProtectionDomain,
    send_cq: Cq,
    recv_cq: Cq,
}

impl Queues {
    fn new() -> Self {
        let context = open();
        let [send_cq, recv_cq] = [(); 2].map(|()| context.cq(64).create().unwrap());
        Self { pd: context.alloc_pd().unwrap(), send_cq, recv_cq }
    }

    fn qp(&self, srq: Option<&SharedReceiveQueue>) -> QueuePair {
        self.pd.qp(&self.send_cq).srq(srq).caps(DEEP).recv_cq(&self.recv_cq).create().unwrap()
    }

    #[track_caller]
    fn expect(&self, outstanding: [u64; 2]) {
        let demands = [&self.send_cq, &self.recv_cq].map(|cq| cq.handle().demand());
        assert_eq!(demands.map(|demand| demand.outstanding), outstanding);
        for demand in demands {
            assert_eq!(demand.capacity, 64);
            assert_eq!(demand.missing(), demand.outstanding.saturating_sub(64));
        }
    }
}

#[test]
fn o07_each_queue_pair_counts_its_sends_on_one_queue_and_its_receives_on_the_other() {
    let queues = Queues::new();
    queues.expect([0, 0]);
    let first = queues.qp(None);
    queues.expect([100, 10]);
    let second = queues.qp(None);
    queues.expect([200, 20]);
    first.destroy();
    queues.expect([100, 10]);
    drop(second);
    queues.expect([0, 0]);
}

#[test]
fn o07_a_shared_receive_queue_counts_once_where_its_receives_complete() {
    let queues = Queues::new();
    let [one, other] = [30, 40].map(|max_wr| queues.pd.create_srq(&SrqInit::new(max_wr)).unwrap());
    let [first, second] = [(); 2].map(|()| queues.qp(Some(&one)));
    queues.expect([200, 30]);
    let third = queues.qp(Some(&other));
    queues.expect([300, 70]);
    drop(first);
    queues.expect([200, 70]);
    drop(second);
    queues.expect([100, 40]);
    let fourth = queues.qp(Some(&one));
    queues.expect([200, 70]);
    drop((third, fourth));
    queues.expect([0, 0]);

    // On each queue that it can reach.
    let fifth = queues.pd.qp(&queues.send_cq).srq(&one).caps(DEEP).create().unwrap();
    let sixth = queues.qp(Some(&one));
    queues.expect([230, 30]);
    drop((fifth, sixth));
}

#[test]
fn o07_what_soft_roce_rounds_up_counts() {
    let name = format!("demand-rxe-{}", std::process::id());
    let context = OpenOptions::new().fabric(&name).imitate_rxe().open("loop0").unwrap();
    let (pd, cq) = (context.alloc_pd().unwrap(), context.cq(64).create().unwrap());
    let srq = pd.create_srq(&SrqInit::new(8)).unwrap();
    let caps = DEEP.max_send_wr(16);
    let _qp = pd.qp(&cq).caps(caps).create().unwrap();
    let _shares = pd.qp(&cq).caps(caps).srq(&srq).create().unwrap();
    let demand = cq.handle().demand();
    assert_eq!((demand.capacity, demand.outstanding), (127, 31 + 15 + 31 + 15));
}

#[test]
fn o07_a_queue_pair_that_can_not_be_made_does_not_count() {
    let queues = Queues::new();
    let too_many = DEEP.max_recv_wr(1 << 20);
    let other = Queues {
        pd: OpenOptions::new()
            .fabric(&format!("demand-other-{}", std::process::id()))
            .open("loop0")
            .unwrap()
            .alloc_pd()
            .unwrap(),
        ..Queues::new()
    };
    assert!(queues.pd.qp(&queues.send_cq).caps(too_many).create().is_err());
    assert!(other.pd.qp(&queues.send_cq).create().is_err());
    queues.expect([0, 0]);
}
