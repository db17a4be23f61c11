//! A server that waits for everything at once: two completion queues, new clients on a Unix socket, and a request to
//! stop. It adds the numbers that its clients send. `cargo run -p bench --example wait_set`

use std::collections::HashMap;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};
use std::{process, thread};

use cq_core::cq::CompletionQueue;
use cq_core::wc::Wc;
use transport_rxe_loop::verbs::exchange::connect_over;
use transport_rxe_loop::verbs::handlers::{Handlers, Then};
use transport_rxe_loop::verbs::wait_set::{Ready, WaitSet};
use transport_rxe_loop::verbs::wr::{RecvWr, SendWr};
use transport_rxe_loop::{Access, CompletionChannel, Context, Cq, OwnedRegion, QueuePair};

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Set = WaitSet<Cq, CompletionChannel>;

/// How long connecting may take: a client that is silent holds up the server for no longer.
const LIMIT: Duration = Duration::from_secs(5);

/// A connection to a client, and the memory for the next number.
struct Connection(QueuePair, OwnedRegion);

impl Connection {
    fn listen(&mut self) -> Result<(), Failure> {
        Ok(self.0.post_recv(&[RecvWr::new(0, &[self.1.sge(..8)?])])?)
    }

    /// Adds what was received. The last number of a client is 0.
    fn add(&mut self, run: &[Wc], sum: &mut u64) -> Result<Then, Failure> {
        let mut number = [0; 8];
        for wc in run {
            wc.result()?;
            self.1.read(0, &mut number)?;
            *sum += u64::from_le_bytes(number);
            self.listen()?;
        }
        Ok(if number == [0; 8] { Then::Remove } else { Then::Keep })
    }
}

/// Serves clients, each on one of two queues, until it is told to stop. Returns the sum of each queue.
fn serve(context: &Context, mut set: Set, listener: &UnixListener) -> Result<[u64; 2], Failure> {
    let channel = set.add_channel(context.create_channel()?).map_err(|refused| refused.why)?;
    let [first, second] = [(); 2].map(|()| context.cq(64).channel(set.channel(channel)).create());
    let [first, second] = [first?, second?].map(|cq| set.add_queue(CompletionQueue::new(cq)));
    set.add_descriptor(listener)?;
    let (mut buffer, mut connections, mut sums) = ([Wc::default(); 16], HashMap::new(), [0; 2]);
    let (mut next, mut deadline) = ([first, second].into_iter().cycle(), None);
    loop {
        match set.wait(&mut buffer, deadline)? {
            Ready::Completions(queue, batch) => {
                let sum = &mut sums[usize::from(queue == second)];
                connections.dispatch(batch, |connection: Option<&mut Connection>, run| {
                    connection.map_or(Then::Keep, |it| it.add(run, sum).unwrap_or(Then::Remove))
                });
            }
            Ready::Descriptor(_) => {
                let (pd, client) = (context.alloc_pd()?, listener.accept()?.0);
                let cq = next.next().and_then(|queue| set.queue(queue)).ok_or("it was removed")?;
                let qp = pd.qp(cq.get_ref()).create()?;
                let mut connection = Connection(qp, pd.allocate(8, Access::LOCAL_WRITE)?);
                connect_over(&client, &mut connection.0, &context.port(1)?, LIMIT)?;
                connection.listen()?;
                connections.insert(connection.0.number(), connection);
            }
            Ready::Stopped => deadline = Some(Instant::now()), // once what has come is served
            Ready::DeadlinePassed => return Ok(sums),
            _ => {}
        }
    }
}

/// Sends the numbers up to 100.
fn send(context: &Context, server: UnixStream) -> Result<(), Failure> {
    let mut cq = CompletionQueue::new(context.cq(1).create()?);
    let mut qp = context.alloc_pd()?.qp(cq.get_ref()).create()?;
    connect_over(&server, &mut qp, &context.port(1)?, LIMIT)?;
    for number in (1..=100_u64).chain([0]) {
        qp.post_send(&[SendWr::send_inline(0, &number.to_le_bytes())])?;
        let mut sent = [Wc::default()];
        while cq.poll(&mut sent)?.is_empty() {}
        sent[0].result()?;
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    let (context, set) = (Context::open("loop0")?, WaitSet::new()?);
    let address = SocketAddr::from_abstract_name(format!("wait_set {}", process::id()))?;
    let (listener, stop) = (UnixListener::bind_addr(&address)?, set.stop_handle());
    let sums = thread::scope(|scope| {
        let server = scope.spawn(|| serve(&context, set, &listener));
        let send = || send(&context, UnixStream::connect_addr(&address)?);
        let sent = [(); 4].map(|()| scope.spawn(send)).map(|client| client.join().unwrap());
        stop.stop();
        let sums = server.join().unwrap();
        sent.into_iter().collect::<Result<(), _>>().and(sums)
    })?;
    println!("the sums of both queues are {sums:?}");
    (sums == [2 * 5050; 2]).then_some(()).ok_or_else(|| "they are wrong".into())
}

#[test]
fn it_runs() -> Result<(), Failure> {
    main()
}
