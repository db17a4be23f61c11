//! An event loop of mio, which watches for edges, with two completion queues on one channel.
//!
//! `cargo run -p transport-rxe-loop --example mio`

use std::error::Error;
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd};
use std::thread;
use std::time::Duration;

use cq_core::cq::CompletionQueue;
use cq_core::wc::Wc;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use transport_rxe_loop::verbs::queue_set::{QueueId, QueueSet};
use transport_rxe_loop::verbs::wr::{RecvWr, SendWr};
use transport_rxe_loop::{CompletionChannel, Context, Cq, QueuePair as Qp};

type Failure = Box<dyn Error + Send + Sync>;
type Set = QueueSet<Cq, CompletionChannel>;

const CALLS: usize = 1_000;
const ENDED: Token = Token(1);

/// The peer: sends numbers as immediate data, and compares what the loop returns.
fn call(qp: &mut Qp, mut cq: CompletionQueue<Cq>) -> Result<(), Failure> {
    let mut wcs = [Wc::default(); 2];
    for number in (0..CALLS as u32).map(u32::to_be_bytes) {
        qp.post_recv(&[RecvWr::new(0, &[])])?;
        qp.post_send(&[SendWr::send_inline(1, &[]).with_imm(number)])?;
        let mut completed = 0;
        while completed < 2 {
            for done in cq.poll(&mut wcs)?.iter().map(Wc::result) {
                assert!(done?.wr_id() == 1 || done?.imm() == Some(number));
                completed += 1;
            }
            thread::yield_now();
        }
    }
    Ok(())
}

/// Returns what it receives until the peer has ended. Returns how often.
fn serve(set: &mut Set, sends: QueueId, qp: &mut Qp, poll: &mut Poll) -> Result<usize, Failure> {
    let (mut wcs, mut events) = ([Wc::default(); 8], Events::with_capacity(8));
    let (mut received, mut sent, mut has_ended) = (0, 0, false);
    loop {
        // An edge comes once. So the set takes all events, arms, and is polled until all queues are empty and armed.
        while let Some((queue, batch)) = set.poll_or_arm(&mut wcs)? {
            sent += if queue == sends { batch.len() } else { 0 };
            for done in batch.iter().map(Wc::result) {
                let Some(number) = done?.imm() else { continue };
                qp.post_recv(&[RecvWr::new(0, &[])])?;
                qp.post_send(&[SendWr::send_inline(0, &[]).with_imm(number)])?;
                received += 1;
            }
        }
        if has_ended && sent == received {
            return Ok(received);
        }
        match poll.poll(&mut events, Some(Duration::from_secs(10))) {
            Ok(()) if events.is_empty() => return Err("nothing has come for 10 s".into()),
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error.into()),
            _ => has_ended |= events.iter().any(|event| event.token() == ENDED),
        }
    }
}

fn main() -> Result<(), Failure> {
    let context = Context::open("loop0")?;
    let (pd, port, channel) = (context.alloc_pd()?, context.port(1)?, context.create_channel()?);
    let [send_cq, recv_cq] =
        [context.cq(128).channel(&channel).create()?, context.cq(128).channel(&channel).create()?];
    let mut qp = pd.qp(&recv_cq).send_cq(&send_cq).create()?;
    let peer_cq = context.cq(2).create()?;
    let mut peer = pd.qp(&peer_cq).create()?;
    qp.connect(&port, &peer.endpoint(&port))?;
    peer.connect(&port, &qp.endpoint(&port))?;
    qp.post_recv(&[RecvWr::new(0, &[]); 2])?;

    let (mut poll, fd) = (Poll::new()?, channel.as_fd().as_raw_fd());
    poll.registry().register(&mut SourceFd(&fd), Token(0), Interest::READABLE)?;
    let (waker, mut set) = (Waker::new(poll.registry(), ENDED)?, QueueSet::new());
    set.add_channel(channel);
    let [sends, _] = [send_cq, recv_cq].map(|cq| set.add_queue(CompletionQueue::new(cq)));
    // The queue pair and the waker stay until the loop has ended.
    let peer = thread::spawn(move || {
        (call(&mut peer, CompletionQueue::new(peer_cq)), waker.wake(), waker, peer)
    });
    assert_eq!(serve(&mut set, sends, &mut qp, &mut poll)?, CALLS);
    peer.join().map_err(|_| "the peer panicked")?.0?;
    println!("{CALLS} calls were answered");
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Failure> {
    main()
}
