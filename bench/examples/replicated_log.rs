//! A log with a copy. The leader appends each record to the follower's memory by RDMA WRITE, which the
//! follower does not notice, and commits it by a SEND behind the WRITE, which wakes it; the follower
//! acknowledges. All code is generic over the traits of cq-core and runs unchanged on every transport: `run`
//! names the type, where it opens the device.
//!
//! ```text
//! cargo run -p bench --example replicated_log
//! cargo run -p bench --example replicated_log --features verbs -- verbs
//! ```

use std::time::Duration;
use std::{env, thread};

use anyhow::{Context as _, anyhow, bail};
use cq_core::cq::CompletionQueue;
use cq_core::wc::Wc;
use transport_rxe_loop::Context as Loopback;
use transport_rxe_loop::verbs::device::{Device, DevicePd, DeviceQp, Memory, Region};
use transport_rxe_loop::verbs::post::Post;
use transport_rxe_loop::verbs::setup::{Access, Endpoint, Port};
use transport_rxe_loop::verbs::wr::{RecvWr, RemoteAddr, SendWr, Sge};

type Failure = anyhow::Error;

fn main() -> Result<(), Failure> {
    let records =
        ["a WRITE moves the record", "a SEND commits it", "and an acknowledgement ends it"];
    let copy = match env::args().nth(1).as_deref() {
        None | Some("loop") => replicate(&Loopback::open("loop0")?, &records)?,
        #[cfg(feature = "verbs")]
        Some("verbs") => replicate(&transport_verbs::Context::open_first()?, &records)?,
        Some(other) => {
            bail!("{other}: choose loop or, with the feature, verbs");
        }
    };
    copy.iter().for_each(|record| println!("{record}"));
    Ok(())
}

/// Appends the records to the log of one end; gives what the other end has of it.
fn replicate<D: Device>(device: &D, records: &[&str]) -> Result<Vec<String>, Failure> {
    let port = device.port(1)?;
    // Both stay until both are done: a request completes only while the other end is there.
    let (mut leader, mut follower) = (Node::new(device)?, Node::new(device)?);
    let [to_leader, to_follower] = [&leader, &follower].map(|node| node.pair.endpoint(&port));
    leader.connect(&port, &to_follower)?;
    follower.connect(&port, &to_leader)?;
    thread::scope(|scope| {
        let follower = scope.spawn(|| follow(&mut follower));
        let led = lead(&mut leader, records);
        let copy = follower.join().map_err(|_| anyhow!("the follower panicked"))?;
        led.and(copy)
    })
}

fn lead<D: Device>(node: &mut Node<D>, records: &[&str]) -> Result<(), Failure> {
    let [addr, rkey] = node.hear()?;
    let mut end = 0;
    for record in records {
        let (at, len) = (LOG + end as usize, record.len());
        if len == 0 || at + len > LOG + CAPACITY {
            bail!("a record is empty, or the log is full");
        }
        node.memory.write(at, record.as_bytes())?;
        let place = RemoteAddr { addr: addr + end, rkey: u32::try_from(rkey)? };
        let record = [node.memory.sge(at..at + len)?];
        let commit = [node.message([end, len as u64])?];
        // The WRITE is done when the SEND is, which alone is signaled.
        let write = SendWr::write(0, &record, place).unsignaled();
        node.post(&[write, SendWr::send(0, &commit)])?;
        end += len as u64;
        if node.hear()? != [end, 0] {
            bail!("the follower acknowledged something else");
        }
    }
    node.say([end, 0])
}

fn follow<D: Device>(node: &mut Node<D>) -> Result<Vec<String>, Failure> {
    let RemoteAddr { addr, rkey } = node.memory.remote(LOG)?;
    node.say([addr, rkey.into()])?;
    let mut copy = Vec::new();
    let mut end = 0;
    loop {
        let [at, len] = node.hear()?;
        if at != end || len > CAPACITY as u64 - end {
            bail!("the leader committed what is not the end of the log");
        }
        if len == 0 {
            return Ok(copy);
        }
        let mut record = vec![0; len as usize];
        node.memory.read(LOG + at as usize, &mut record)?;
        copy.push(String::from_utf8(record)?);
        end += len;
        node.say([end, 0])?;
    }
}

/// What a node's memory holds: the message that it sends, the one that it receives, and the log.
const OUT: usize = 0;
const IN: usize = 64;
const LOG: usize = 128;
const CAPACITY: usize = 4096;

/// A message is two numbers.
type Message = [u64; 2];
const MESSAGE: usize = size_of::<Message>();

/// One end at work: it posts, and sleeps until what it waits for has completed.
struct Node<D: Device> {
    pair: D::Qp,
    queue: CompletionQueue<D::Cq>,
    channel: D::Channel,
    memory: D::Memory,
    /// Signaled sends, and messages, that have not completed.
    sending: u32,
    receiving: u32,
}

impl<D: Device> Node<D> {
    fn new(device: &D) -> Result<Self, Failure> {
        let (pd, channel) = (device.alloc_pd()?, device.create_channel()?);
        let queue = device.cq(4).channel(&channel).create()?;
        let pair = pd.qp(&queue).create()?;
        let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
        let memory = pd.allocate(LOG + CAPACITY, access)?;
        let queue = CompletionQueue::new(queue);
        Ok(Self { pair, queue, channel, memory, sending: 0, receiving: 0 })
    }

    fn connect(&mut self, port: &Port, peer: &Endpoint) -> Result<(), Failure> {
        self.pair.connect(port, peer)?;
        self.listen()
    }

    fn listen(&mut self) -> Result<(), Failure> {
        self.pair.post_recv(&[RecvWr::new(0, &[self.memory.sge(IN..IN + MESSAGE)?])])?;
        self.receiving += 1;
        Ok(())
    }

    /// Writes a message; where it lies.
    fn message(&mut self, [one, other]: Message) -> Result<Sge, Failure> {
        self.memory.write(OUT, &one.to_le_bytes())?;
        self.memory.write(OUT + 8, &other.to_le_bytes())?;
        Ok(self.memory.sge(OUT..OUT + MESSAGE)?)
    }

    /// Posts requests of which the last one is signaled, and waits until they are done.
    fn post(&mut self, requests: &[SendWr<'_>]) -> Result<(), Failure> {
        self.pair.post_send(requests)?;
        self.sending += 1;
        while self.sending > 0 {
            self.complete()?;
        }
        Ok(())
    }

    fn say(&mut self, message: Message) -> Result<(), Failure> {
        let message = [self.message(message)?];
        self.post(&[SendWr::send(0, &message)])
    }

    /// Waits for the next message, and listens for the one after it.
    fn hear(&mut self) -> Result<Message, Failure> {
        while self.receiving > 0 {
            self.complete()?;
        }
        let mut words = [[0; 8]; 2];
        self.memory.read(IN, words.as_flattened_mut())?;
        self.listen()?;
        Ok(words.map(u64::from_le_bytes))
    }

    fn complete(&mut self) -> Result<(), Failure> {
        const PATIENCE: Duration = Duration::from_secs(10);
        let mut buffer = [Wc::default(); 4];
        let batch = self.queue.wait_timeout(&mut buffer, &mut self.channel, PATIENCE)?;
        if batch.is_empty() {
            bail!("nothing completed for 10 s");
        }
        for wc in batch {
            let done = wc.result()?;
            let open = if done.is_recv() { &mut self.receiving } else { &mut self.sending };
            *open = open.checked_sub(1).context("more completed than was posted")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_is_the_log() {
        let records: Vec<String> = (0..100).map(|number| format!("record {number}")).collect();
        let records: Vec<&str> = records.iter().map(String::as_str).collect();
        assert_eq!(replicate(&Loopback::open("loop0").unwrap(), &records).unwrap(), records);
    }
}
