//! An event loop in epoll(7), level-triggered, that sleeps on a completion channel and on a socket.
//!
//! `cargo run -p transport-rxe-loop --example epoll_channel`

use std::error::Error;
use std::os::unix::net::UnixStream;
use std::thread;

use cq_core::cq::CompletionQueue;
use cq_core::transport::{Events, Notify};
use cq_core::wc::Wc;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use transport_rxe_loop::verbs::wr::{RecvWr, SendWr};
use transport_rxe_loop::{CompletionChannel as Channel, Context, Cq, QueuePair as Qp};

type Failure = Box<dyn Error + Send + Sync>;

const MESSAGES: u32 = 2_000;
const RECEIVES: u32 = 16;
const COMPLETIONS: u64 = 0;
const SOCKET: u64 = 1;

/// The peer: sends numbers as immediate data. It closes its socket when it ends.
fn send(mut qp: Qp, cq: Cq, _socket: UnixStream) -> Result<(), Failure> {
    let (mut cq, mut wcs) = (CompletionQueue::new(cq), [Wc::default()]);
    for number in (0..MESSAGES).map(u32::to_be_bytes) {
        qp.post_send(&[SendWr::send_inline(0, &[]).with_imm(number)])?;
        while cq.poll(&mut wcs)?.is_empty() {
            thread::yield_now();
        }
        wcs[0].result()?;
    }
    Ok(())
}

/// Receives until all messages have come and the peer has ended.
fn serve(qp: &mut Qp, cq: Cq, channel: &mut Channel, end: &UnixStream) -> Result<(), Failure> {
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, &*channel, EventData::new_u64(COMPLETIONS), EventFlags::IN)?;
    epoll::add(&epoll, end, EventData::new_u64(SOCKET), EventFlags::IN)?;
    let (mut cq, mut wcs) = (CompletionQueue::new(cq), [Wc::default(); 8]);
    let (mut received, mut has_ended, limit) = (0, false, Timespec { tv_sec: 10, tv_nsec: 0 });
    loop {
        // 1. Poll until the queue is empty and armed.
        while let batch @ [_, ..] = cq.poll_or_arm(&mut wcs, Notify::Next)? {
            for wc in batch {
                assert_eq!(wc.result()?.imm(), Some(u32::to_be_bytes(received)));
                received += 1;
                qp.post_recv(&[RecvWr::new(0, &[])])?;
            }
        }
        if has_ended && received == MESSAGES {
            return Ok(());
        }
        // 2. Sleep.
        let mut ready = Vec::with_capacity(2);
        match epoll::wait(&epoll, spare_capacity(&mut ready), Some(&limit)) {
            Ok(0) => return Err("nothing has come for 10 s".into()),
            Err(error) if error != Errno::INTR => return Err(error.into()),
            _ => {}
        }
        // 3. Take events before the next poll. There may be none, and the poll may find nothing.
        for event in ready {
            match event.data.u64() {
                COMPLETIONS => while channel.take_event()?.is_some() {},
                _ => {
                    has_ended = true; // a socket at its end stays readable
                    epoll::delete(&epoll, end)?;
                }
            }
        }
    }
}

fn main() -> Result<(), Failure> {
    let context = Context::open("loop0")?;
    let (pd, port, mut channel) =
        (context.alloc_pd()?, context.port(1)?, context.create_channel()?);
    let (cq, peer_cq) = (context.cq(RECEIVES).channel(&channel).create()?, context.cq(1).create()?);
    let (mut qp, mut peer) = (pd.qp(&cq).create()?, pd.qp(&peer_cq).create()?);
    qp.connect(&port, &peer.endpoint(&port))?;
    peer.connect(&port, &qp.endpoint(&port))?;
    qp.post_recv(&[RecvWr::new(0, &[]); RECEIVES as usize])?;
    let (end, other) = UnixStream::pair()?;
    let sender = thread::spawn(move || send(peer, peer_cq, other));
    serve(&mut qp, cq, &mut channel, &end)?;
    sender.join().map_err(|_| "the sender panicked")??;
    println!("{MESSAGES} messages were received");
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Failure> {
    main()
}
