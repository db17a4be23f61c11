//! A key-value server for processes that may be killed: one completion queue for all clients, replies that are mostly
//! unsignaled, and entries of the queue that are reserved, so that no number of clients overruns it.
//!
//! `cargo run -p transport-rxe-loop --example kv_store`
//!
//! The server starts its clients. Three of four store and check values; the fourth is killed at work. The completion queue
//! has entries for four: one more is refused until the server has noticed that the fourth is gone.

use std::collections::HashMap;
use std::error::Error;
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use cq_core::budget::{Budget, Budgeted, BudgetedHandle, Entries};
use cq_core::causes::Causes;
use cq_core::cq::CompletionQueue;
use cq_core::device::Slots;
use cq_core::exchange::{barrier, exchange};
use cq_core::handlers::{Handlers, Then};
use cq_core::tracked::{Credit, Done, TrackedQp};
use cq_core::wait_set::{DescriptorId, Ready, StopHandle, WaitSet};
use cq_core::wc::Wc;
use cq_core::wr::SendWr;
// On hardware: `use transport_verbs::{…}`, and the name of the device.
use transport_rxe_loop::{
    Access, CompletionChannel, Context, Cq, CqHandle, OwnedRegion, Port, ProtectionDomain, QpInit,
    QueuePair,
};

type Failure = Box<dyn Error + Send + Sync>;

/// How many clients the completion queue has entries for.
const CLIENTS: u32 = 4;
/// The requests that a client may have outstanding, and the messages of each direction.
const SLOTS: usize = 8;
/// A message: whether it is a PUT, the key, the length of the value, the value. A reply: the same without a value, or with
/// that of a GET.
const MESSAGE: usize = 64;
/// How long a step of connecting may take: a client that is silent holds up the server for no longer.
const LIMIT: Duration = Duration::from_secs(5);

/// Queue pairs whose tokens are the slots of the messages.
type Qp<C> = TrackedQp<QueuePair, usize, usize, SLOTS, SLOTS, C>;

/// Memory for the messages of a connection: those that come in, then those that go out.
struct Messages(Slots<OwnedRegion>);

impl Messages {
    fn new(pd: &ProtectionDomain) -> Result<Self, Failure> {
        Ok(Self(Slots::allocate(pd, 2 * SLOTS, MESSAGE, Access::LOCAL_WRITE)?))
    }

    fn receive<C: Credit>(&self, qp: &mut Qp<C>, slot: usize) -> Result<(), Failure> {
        Ok(qp.post_recv(&[self.0.sge(slot)], slot)?)
    }

    fn read(&self, slot: usize) -> Result<[u8; MESSAGE], Failure> {
        let mut message = [0; MESSAGE];
        self.0.read(slot, &mut message)?;
        Ok(message)
    }

    /// Sends a message without asking for its completion: the ledger does so where it is necessary.
    fn send<C: Credit>(
        &self,
        qp: &mut Qp<C>,
        slot: usize,
        message: &[u8; MESSAGE],
    ) -> Result<(), Failure> {
        self.0.write(SLOTS + slot, message)?;
        Ok(qp.post_send(SendWr::send(0, &[self.0.sge(SLOTS + slot)]).unsignaled(), slot)?)
    }
}

/// One client, as the server has it.
struct Connection {
    qp: Qp<Entries>,
    messages: Messages,
    /// Readable when the client ends, however it does.
    socket: DescriptorId,
    is_over: bool,
}

impl Connection {
    fn end(&mut self) {
        // Everything outstanding is flushed. The connection goes once all of it was polled.
        if !std::mem::replace(&mut self.is_over, true) {
            self.qp.fail().unwrap_or_else(|error| report(&error));
        }
    }
}

struct Server {
    set: WaitSet<Budgeted<Cq, Arc<Budget>>, CompletionChannel>,
    cq: BudgetedHandle<CqHandle, Arc<Budget>>,
    connections: HashMap<u32, Connection>,
    values: HashMap<u64, Vec<u8>>,
    served: u64,
    pd: ProtectionDomain,
    port: Port,
}

impl Server {
    fn new(context: &Context) -> Result<Self, Failure> {
        let mut set = WaitSet::new()?;
        let channel = set.add_channel(context.create_channel()?).map_err(|refused| refused.why)?;
        let entries = CLIENTS * Qp::<Entries>::ENTRIES;
        let queue = Budgeted::new(context.create_cq(entries, set.channel(channel))?);
        let cq = queue.handle();
        set.add_queue(CompletionQueue::new(queue));
        let (connections, values) = (HashMap::new(), HashMap::new());
        let (pd, port) = (context.alloc_pd()?, context.port(1)?);
        Ok(Self { set, cq, connections, values, served: 0, pd, port })
    }

    fn serve(&mut self, listener: &UnixListener) -> Result<(), Failure> {
        let arrivals = self.set.add_descriptor(listener)?;
        let mut buffer = [Wc::default(); 32];
        loop {
            match self.set.wait(&mut buffer, None)? {
                Ready::Completions(_, batch) => self.complete(batch),
                Ready::Descriptor(id) if id == arrivals => match listener.accept() {
                    Ok((socket, _)) => self.accept(socket).unwrap_or_else(|error| report(&*error)),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error.into()),
                },
                Ready::Descriptor(id) => {
                    // The client has ended: it sends nothing by its socket.
                    self.set.remove_descriptor(id);
                    if let Some(it) = self.connections.values_mut().find(|it| it.socket == id) {
                        it.end();
                    }
                }
                Ready::Stopped => return Ok(()),
                _ => {}
            }
        }
    }

    fn accept(&mut self, socket: UnixStream) -> Result<(), Failure> {
        let (mut qp, messages) = (Qp::create(&self.pd, &self.cq)?, Messages::new(&self.pd)?);
        let peer = exchange(&socket, &qp.get_ref().endpoint(&self.port), LIMIT)?;
        qp.connect(&self.port, &peer)?;
        (0..SLOTS).try_for_each(|slot| messages.receive(&mut qp, slot))?;
        barrier(&socket, LIMIT)?;
        let number = qp.get_ref().number();
        let socket = self.set.add_descriptor(&socket)?;
        self.connections.insert(number, Connection { qp, messages, socket, is_over: false });
        Ok(())
    }

    fn complete(&mut self, batch: &[Wc]) {
        let Self { connections, values, served, set, .. } = self;
        connections.dispatch(batch, |connection, run| {
            let Some(it) = connection else { return Then::Keep };
            for wc in run {
                while let Some(done) = it.qp.retire_next(wc) {
                    if advance(it, &done, values, served).is_err() {
                        it.end();
                    }
                }
            }
            if it.is_over && it.qp.is_idle() {
                set.remove_descriptor(it.socket);
                return Then::Remove;
            }
            Then::Keep
        });
    }
}

/// The next step of a connection: a request is answered; once the answer was sent, its slot receives again.
fn advance(
    it: &mut Connection,
    done: &Done<'_, usize, usize>,
    values: &mut HashMap<u64, Vec<u8>>,
    served: &mut u64,
) -> Result<(), Failure> {
    match done {
        Done::Sent(sent) => {
            sent.result?;
            it.messages.receive(&mut it.qp, sent.token)
        }
        Done::Received(received) => {
            received.result?;
            *served += 1;
            let answer = answer(&it.messages.read(received.token)?, values)?;
            it.messages.send(&mut it.qp, received.token, &answer)
        }
    }
}

fn answer(
    request: &[u8; MESSAGE],
    values: &mut HashMap<u64, Vec<u8>>,
) -> Result<[u8; MESSAGE], Failure> {
    let (is_put, key, value) = parse(request)?;
    if is_put {
        values.insert(key, value.to_vec());
        return message(false, key, &[]);
    }
    message(false, key, values.get(&key).map_or(&[][..], Vec::as_slice))
}

fn message(is_put: bool, key: u64, value: &[u8]) -> Result<[u8; MESSAGE], Failure> {
    let mut message = [0; MESSAGE];
    message[0] = is_put.into();
    message[1] = value.len().try_into()?;
    message[8..16].copy_from_slice(&key.to_ne_bytes());
    message[16..].get_mut(..value.len()).ok_or("a value is too long")?.copy_from_slice(value);
    Ok(message)
}

fn parse(message: &[u8; MESSAGE]) -> Result<(bool, u64, &[u8]), Failure> {
    let key = u64::from_ne_bytes(message[8..16].try_into()?);
    let value = message[16..].get(..message[1].into()).ok_or("a length is wrong")?;
    Ok((message[0] == 1, key, value))
}

/// A client: stores values of its own keys, and checks them. `rounds` 0 is without end.
fn client(path: &Path, first_key: u64, rounds: u64) -> Result<(), Failure> {
    let (context, socket) = (Context::open("loop0")?, UnixStream::connect(path)?);
    let (pd, port, channel) =
        (context.alloc_pd()?, context.port(1)?, &mut context.create_channel()?);
    let mut cq = CompletionQueue::new(context.create_cq(2 * SLOTS as u32, Some(channel))?);
    let mut qp = TrackedQp::new(pd.create_qp(&QpInit::new(cq.get_ref()))?);
    let messages = Messages::new(&pd)?;
    qp.connect_over(&socket, &port, LIMIT)?; // the server has posted receives

    let mut buffer = [Wc::default(); 16];
    for round in (0..).take_while(|round| rounds == 0 || *round < rounds) {
        let (key, value) = (first_key + round % 100, (round * first_key).to_ne_bytes());
        for (is_put, value) in [(true, &value[..]), (false, &[])] {
            messages.receive(&mut qp, 0)?;
            messages.send(&mut qp, 0, &message(is_put, key, value)?)?;
            let deadline = Instant::now() + Duration::from_secs(10);
            while qp.receives_outstanding() > 0 {
                let batch = cq.wait(&mut buffer, channel, Some(deadline))?;
                if batch.is_empty() {
                    return Err("the server does not answer".into());
                }
                for wc in batch {
                    wc.result()?;
                    qp.retire(wc).for_each(drop);
                }
            }
        }
        if parse(&messages.read(0)?)? != (false, key, &value) {
            return Err("the server returned another value".into());
        }
    }
    Ok(())
}

/// Runs the clients, kills the last one at work, and stops the server.
fn supervise(path: &Path, stop: &StopHandle) -> Result<(), Failure> {
    let start = |key: u64, rounds: u64| -> io::Result<Child> {
        let arguments = [&key.to_string(), &rounds.to_string()];
        Command::new(env::current_exe()?).arg(path).args(arguments).spawn()
    };
    let mut victim = start(4000, 0)?;
    let mut clients = [start(1000, 2000)?, start(2000, 2000)?, start(3000, 2000)?];
    let ended: Result<Vec<_>, _> = clients.iter_mut().map(Child::wait).collect();
    victim.kill()?;
    victim.wait()?;
    // Its entries are free again once the server has noticed.
    let deadline = Instant::now() + Duration::from_secs(10);
    let mut is_served = false;
    while !is_served && Instant::now() < deadline {
        is_served = start(5000, 100)?.wait()?.success();
    }
    stop.stop();
    match ended?.iter().all(ExitStatus::success) && is_served {
        true => Ok(()),
        false => Err("a client has failed".into()),
    }
}

fn run() -> Result<(), Failure> {
    if let Some(path) = env::args_os().nth(1) {
        let mut numbers = env::args().skip(2).map(|number| number.parse());
        let mut next = || numbers.next().ok_or("arguments: SOCKET KEY ROUNDS");
        return client(Path::new(&path), next()??, next()??);
    }
    let path = env::temp_dir().join(format!("kv_store.{}", process::id()));
    let listener = UnixListener::bind(&path)?;
    listener.set_nonblocking(true)?;
    let mut server = Server::new(&Context::open("loop0")?)?;
    let stop = server.set.stop_handle();
    let ended = thread::scope(|scope| {
        let clients = scope.spawn(|| supervise(&path, &stop));
        let served = server.serve(&listener);
        served.and(clients.join().map_err(|_| "the supervisor panicked")?)
    });
    fs::remove_file(&path)?;
    ended?;
    println!("{} requests served, {} values", server.served, server.values.len());
    Ok(())
}

fn report(error: &(dyn Error + 'static)) {
    eprintln!("error: {}", Causes(error));
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&*error);
            ExitCode::FAILURE
        }
    }
}
