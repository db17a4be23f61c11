//! Polling (P1–P4, P6–P8).

use std::collections::BTreeSet;
use std::mem;
use std::sync::Mutex;
use std::thread;

use cq_core::cq::CompletionQueue;
use cq_core::transport::PollError;
use cq_core::wc::Failed;
use cq_verbs::polling::PollWc;

use super::stand::*;

include!(concat!(env!("OUT_DIR"), "/polling.rs"));

fn p01_oldest_first_whatever_queue_pair<D: Device>() {
    let device = D::open();
    let (pd, mut cq) = (device.alloc_pd(), device.create_cq(64, None).unwrap());
    let mut qps: Vec<_> = (0..3).map(|_| device.create_qp(&pd, &small(&cq)).unwrap()).collect();
    let mut peers = [(); 3].map(|()| End::<D>::far(&Plan::default()));
    for (qp, peer) in qps.iter_mut().zip(&mut peers) {
        connect(qp, peer.qp.number());
        peer.connect(qp);
    }
    let order = [0, 1, 2, 2, 1, 0, 0, 2, 1];
    for (id, at) in order.into_iter().enumerate() {
        let write = SendWr::write_inline(id as u64, b"x", peers[at].remote(0));
        qps[at].post_send(&[write]).unwrap();
        // If queue pairs run in parallel, this one completes before the next one starts.
        device.pause();
    }
    let got = settle(&device, &mut cq, order.len());
    let seen: Vec<_> = got.iter().map(|wc| (wc.wr_id(), wc.qp_num())).collect();
    let wanted = order.iter().enumerate().map(|(id, at)| (id as u64, qps[*at].number()));
    assert_eq!(seen, wanted.collect::<Vec<_>>(), "in the order in which they completed");
}

fn p01_as_many_as_the_slice_holds<D: Device>() {
    let (mut a, b) = pair::<D>();
    complete(&mut a, &b, 0..8);
    let mut next = 0;
    for size in [1, 3, 2, 2] {
        let mut buffer = vec![Wc::default(); size];
        wait_until(&a.device, "there are as many as the slice holds", || {
            let polled = a.sent.poll_into(&mut buffer).unwrap();
            assert!(polled == size || polled == 0, "{polled} of {size} while 8 wait");
            polled == size
        });
        for wc in &buffer {
            assert_eq!(wc.wr_id(), next, "oldest first");
            next += 1;
        }
    }
    a.expect_nothing();
}

fn p02_what_was_polled_is_gone<D: Device>() {
    let (mut a, b) = pair::<D>();
    for round in 0..100 {
        complete(&mut a, &b, round * 3..round * 3 + 3);
        let done = all(round * 3..round * 3 + 3, S::SUCCESS);
        a.expect_sent(&done);
    }
}

fn p02_fewer_than_the_slice_holds_means_empty<D: Device>() {
    let (mut a, b) = pair::<D>();
    complete(&mut a, &b, 0..3);
    let mut buffer = [Wc::default(); 8];
    let mut polled = 0;
    wait_until(&a.device, "all three are there", || {
        polled += a.sent.poll_into(&mut buffer).unwrap();
        polled == 3
    });
    assert_eq!(a.sent.poll_into(&mut buffer), Ok(0), "nothing was posted since");
}

fn p03_empty_is_no_error<D: Device>() {
    let (mut a, b) = pair::<D>();
    let mut buffer = [Wc::default(); 4];
    assert_eq!(a.sent.poll_into(&mut buffer), Ok(0), "new");
    complete(&mut a, &b, 0..1);
    a.expect_sent(&[(0, S::SUCCESS)]);
    assert_eq!(a.sent.poll_into(&mut buffer), Ok(0), "emptied");
}

fn p04_entries_past_the_count_are_unchanged<D: Device>() {
    let (mut a, b) = pair::<D>();
    let mark = Wc::failed(Failed::new(0xdead_beef, S::GENERAL_ERR, 77, 5).unwrap());
    let mut buffer = [mark; 8];
    assert_eq!(a.sent.poll_into(&mut buffer), Ok(0));
    assert_eq!(buffer, [mark; 8], "an empty queue wrote to the caller's slice");
    complete(&mut a, &b, 0..3);
    let polled = a.sent.poll_into(&mut buffer[..6]).unwrap();
    assert!(buffer[..polled].iter().all(|wc| *wc != mark));
    assert_eq!(buffer[polled..], [mark; 8][polled..], "past the count");
}

fn p06_an_empty_slice_returns_zero<D: Device>() {
    let (mut a, b) = pair::<D>();
    assert_eq!(a.sent.poll_into(&mut []), Ok(0), "empty");
    complete(&mut a, &b, 0..2);
    assert_eq!(a.sent.poll_into(&mut []), Ok(0), "with completions waiting");
    a.expect_sent(&all(0..2, S::SUCCESS));
}

/// A transport that reports one completion more than the slice holds, while `lies` is set.
struct Liar<T> {
    transport: T,
    lies: bool,
}

impl<T: PollWc> PollCq for Liar<T> {
    type Entry = Wc;

    fn poll_into(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        if self.lies { Ok(out.len() + 1) } else { self.transport.poll_into(out) }
    }
}

fn p07_a_transport_that_claims_too_much_is_refused<D: Device>() {
    let (mut a, b) = pair::<D>();
    complete(&mut a, &b, 0..3);
    let mut cq = CompletionQueue::new(Liar { transport: a.sent, lies: true });
    let mark = Wc::new(0xdead_beef, S::GENERAL_ERR, 77);
    let mut buffer = [mark; 8];
    for asked in [0, 1, 4] {
        let claimed = PollError::Misbehaved { asked, returned: asked + 1 };
        assert_eq!(cq.poll(&mut buffer[..asked]), Err(claimed));
        assert_eq!(buffer, [mark; 8], "nothing was handed out");
    }
    cq.get_mut().lies = false;
    let mut ids = Vec::new();
    wait_until(&a.device, "all three are there", || {
        let polled = cq.poll(&mut buffer[..4]).expect("it lies no more");
        ids.extend(polled.iter().map(Wc::wr_id));
        ids.len() >= 3
    });
    assert_eq!(ids, [0, 1, 2]);
    assert_eq!(buffer[4..], [mark; 4], "past what was asked for");
}

fn p08_threads_that_share_a_queue_get_each_completion_once<D: Device>() {
    const COUNT: u64 = 2_000;
    // The poster does not wait for the pollers.
    let roomy = Plan { cqe: COUNT as u32, ..Plan::default() };
    let (mut a, mut b) = pair_with::<D>(&Plan::default(), &roomy);
    let shared = Mutex::new((&mut b.received, Vec::new()));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut buffer = [Wc::default(); 3];
                let mut seen = 0;
                // A deadline for each, because an emulated device may need long for all.
                while seen < COUNT {
                    wait_for("the queue has handed out another that was sent", || {
                        thread::yield_now();
                        let mut guard = shared.lock().unwrap();
                        let count = guard.0.poll_into(&mut buffer).unwrap();
                        guard.1.extend(buffer[..count].iter().map(Wc::wr_id));
                        let before = mem::replace(&mut seen, guard.1.len() as u64);
                        before < seen
                    });
                }
            });
        }
        let (qp, mr) = (&mut b.qp, &b.mr);
        for id in 0..COUNT {
            let sges = [mr.sge(0, 8)];
            let wr = RecvWr::new(id, &sges);
            wait_until(&a.device, "a receive can be posted", || qp.post_recv(&[wr]).is_ok());
            a.send(id);
            settle(&a.device, &mut a.sent, 1);
        }
    });
    let got = shared.into_inner().unwrap().1;
    assert_eq!(got.len() as u64, COUNT, "as many as were sent");
    let distinct: BTreeSet<_> = got.iter().collect();
    assert_eq!(distinct.len() as u64, COUNT, "each once");
}
