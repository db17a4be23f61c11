//! A key-value server for processes that may be killed: one completion queue for all clients, with entries that are
//! reserved, so that no number of clients overruns it. The guide `transport_rxe_loop::verbs::guide::server` explains it.
//!
//! `cargo run -p transport-rxe-loop --example kv_store`
//!
//! The server starts its clients. Three of four store and check values; the fourth is killed at work. The completion queue
//! has entries for four: one more is refused until the server has noticed that the fourth is gone.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use anyhow::{Context as _, anyhow, bail};
use cq_core::cq::CompletionQueue;
use cq_core::wc::Wc;
use transport_rxe_loop::verbs::budget::{Budget, Budgeted, BudgetedHandle, OverdrawnError};
use transport_rxe_loop::verbs::device::{Device, DeviceQp, Slots};
use transport_rxe_loop::verbs::handlers::{Handlers, Then};
use transport_rxe_loop::verbs::tracked::{CreateTrackedError, Done, TrackedQp};
use transport_rxe_loop::verbs::wait_set::{DescriptorId, Ready, StopHandle, WaitSet};
use transport_rxe_loop::verbs::wr::SendWr;
// On hardware: `use transport_verbs::{…}`, and the name of the device.
use transport_rxe_loop::{Access, Context, Port};

type Failure = anyhow::Error;
/// A request, and an answer.
type Message = [u8; 64];
type Answer<'a> = dyn FnMut(&Message) -> Result<Message, Failure> + 'a;
type Queue<D> = Budgeted<<D as Device>::Cq, Arc<Budget>>;
/// The token of each request is its slot.
type Qp<D> = TrackedQp<<D as Device>::Qp, usize>;

const CLIENTS: u32 = 4;
/// The requests that a client may have outstanding.
const RECEIVES: u32 = 8;
/// Twice as many: an answer occupies its entry until a later completion was polled.
const SENDS: u32 = 2 * RECEIVES;
const SLOTS: usize = (RECEIVES + SENDS) as usize;
/// The longest that a client can block the others while it connects.
const LIMIT: Duration = Duration::from_secs(5);

struct Connection<D: Device> {
    qp: Qp<D>, // dropped before the slots, which the device uses until then
    slots: Slots<D::Memory>,
    /// Slots that no request uses.
    free: Vec<usize>,
    /// Slots with answers that are not posted yet.
    answers: VecDeque<usize>,
    /// Readable when the client's process ends.
    socket: DescriptorId,
}

impl<D: Device> Connection<D> {
    fn serve(&mut self, run: &[Wc], answer: &mut Answer<'_>) -> Result<(), Failure> {
        for done in self.qp.retire_all(run) {
            match done {
                Done::Received(received) => {
                    let (slot, mut request) = (received.token, [0; size_of::<Message>()]);
                    if received.result?.byte_len() as usize != request.len() {
                        bail!("a request has another length");
                    }
                    self.slots.read(slot, &mut request)?;
                    self.slots.write(slot, &answer(&request)?)?;
                    self.answers.push_back(slot);
                }
                Done::Sent(sent) => {
                    sent.result?;
                    self.free.push(sent.token);
                }
            }
        }
        // Receives first: an answer permits the client to send its next request.
        while self.qp.available_receives() > 0 {
            let Some(slot) = self.free.pop() else { break };
            self.qp.post_recv(&[self.slots.sge(slot)], slot)?;
        }
        while self.qp.available_sends() > 0 {
            let Some(slot) = self.answers.pop_front() else { break };
            self.qp.post_send(SendWr::send(0, &[self.slots.sge(slot)]).unsignaled(), slot)?;
        }
        Ok(())
    }
}

struct Server<D: Device> {
    connections: HashMap<u32, Connection<D>>, // by `qp_num`
    set: WaitSet<Queue<D>, D::Channel>,
    cq: BudgetedHandle<D::CqHandle, Arc<Budget>>,
    pd: D::Pd,
    port: Port,
}

impl<D: Device<Channel: AsFd>> Server<D> {
    fn new(device: &D) -> Result<Self, Failure> {
        let mut set = WaitSet::new()?;
        let channel = set.add_channel(device.create_channel()?).map_err(|refused| refused.why)?;
        let cq = device.cq(CLIENTS * (SENDS + RECEIVES)).channel(set.channel(channel)).create()?;
        let cq = Budgeted::new(cq);
        let handle = cq.handle();
        set.add_queue(CompletionQueue::new(cq));
        let (pd, port, connections) = (device.alloc_pd()?, device.port(1)?, HashMap::new());
        Ok(Self { connections, set, cq: handle, pd, port })
    }

    fn run(&mut self, listener: &UnixListener, answer: &mut Answer<'_>) -> Result<(), Failure> {
        listener.set_nonblocking(true)?;
        let arrivals = self.set.add_descriptor(listener)?;
        let mut buffer = [Wc::default(); 32];
        loop {
            match self.set.wait(&mut buffer, None)? {
                Ready::Completions(_, batch) => self.complete(batch, answer),
                Ready::Descriptor(id) if id == arrivals => {
                    self.accept(listener).unwrap_or_else(|error| eprintln!("no client: {error:#}"));
                }
                Ready::Descriptor(id) => {
                    // A client has ended: it sends nothing by its socket.
                    self.set.remove_descriptor(id);
                    self.connections.retain(|_, it| it.socket != id);
                }
                Ready::Stopped => return Ok(()),
                _ => {}
            }
        }
    }

    fn accept(&mut self, listener: &UnixListener) -> Result<(), Failure> {
        let created = Qp::<D>::create(&self.pd, &self.cq, SENDS, RECEIVES);
        if let Err(CreateTrackedError::Overdrawn(OverdrawnError { pending: true, .. })) = created {
            // Entries of a client that has ended are free after the next poll. The listener stays readable.
            return Ok(());
        }
        let (socket, _) = listener.accept()?;
        let mut qp = created?;
        let slots = Slots::allocate(&self.pd, SLOTS, size_of::<Message>(), Access::LOCAL_WRITE)?;
        qp.connect_over_with(&socket, &self.port, LIMIT, |qp| {
            qp.fill_receives(RECEIVES as usize, |slot| slots.sge(slot), |slot| slot)
        })?;
        let (number, socket) = (qp.get_ref().number(), self.set.add_descriptor(&socket)?);
        let (free, answers) = ((RECEIVES as usize..SLOTS).collect(), VecDeque::new());
        self.connections.insert(number, Connection { qp, slots, free, answers, socket });
        Ok(())
    }

    fn complete(&mut self, batch: &[Wc], answer: &mut Answer<'_>) {
        self.connections.dispatch(batch, |connection, run| {
            // Completions of a client that was removed may still be in the queue.
            let Some(it) = connection else { return Then::Keep };
            let Err(error) = it.serve(run, answer) else { return Then::Keep };
            eprintln!("a client has failed: {error:#}");
            self.set.remove_descriptor(it.socket);
            Then::Remove
        });
    }
}

/// A message: whether it is a PUT, the length of the value, the key, the value. An answer: the same without a value, or
/// with that of a GET.
fn message(is_put: bool, key: u64, value: &[u8]) -> Result<Message, Failure> {
    let mut message = [0; size_of::<Message>()];
    message[0] = is_put.into();
    message[1] = value.len().try_into()?;
    message[8..16].copy_from_slice(&key.to_ne_bytes());
    message[16..].get_mut(..value.len()).context("a value is too long")?.copy_from_slice(value);
    Ok(message)
}

fn parse(message: &Message) -> Result<(bool, u64, &[u8]), Failure> {
    let key = u64::from_ne_bytes(message[8..16].try_into()?);
    let value = message[16..].get(..message[1].into()).context("a length is wrong")?;
    Ok((message[0] == 1, key, value))
}

#[derive(Default)]
struct Store {
    values: HashMap<u64, Vec<u8>>,
    served: u64,
}

impl Store {
    fn answer(&mut self, request: &Message) -> Result<Message, Failure> {
        self.served += 1;
        let (is_put, key, value) = parse(request)?;
        if is_put {
            self.values.insert(key, value.to_vec());
            return message(false, key, &[]);
        }
        message(false, key, self.values.get(&key).map_or(&[][..], Vec::as_slice))
    }
}

/// A client: stores values of its own keys, and checks them, by as many requests at a time as the server has receives
/// for. `rounds` 0 is without end.
fn client(path: &Path, first_key: u64, rounds: u64) -> Result<(), Failure> {
    let context = Context::open("loop0")?;
    let (pd, channel) = (context.alloc_pd()?, &mut context.create_channel()?);
    let mut cq = CompletionQueue::new(context.cq(SLOTS as u32).channel(&*channel).create()?);
    let qp = pd.qp(cq.get_ref()).create()?;
    let mut qp = TrackedQp::<_, (), usize>::with_capacity(qp, SENDS, RECEIVES);
    let slots = Slots::allocate(&pd, RECEIVES as usize, size_of::<Message>(), Access::LOCAL_WRITE)?;
    let socket = UnixStream::connect(path)?; // until it is dropped, the server keeps the connection
    qp.connect_over(&socket, &context.port(1)?, LIMIT)?;

    let mut buffer = [Wc::default(); 32];
    for round in (0..).take_while(|round| rounds == 0 || *round < rounds) {
        qp.fill_receives(RECEIVES as usize, |slot| slots.sge(slot), |slot| slot)?;
        let value = (round * first_key).to_ne_bytes();
        let (is_put, key) = (|nth| nth % 2 == 0, |nth| first_key + (round + nth as u64 / 2) % 100);
        for nth in 0..RECEIVES as usize {
            let value = if is_put(nth) { &value[..] } else { &[] };
            let request = message(is_put(nth), key(nth), value)?;
            qp.post_send(SendWr::send_inline(0, &request).unsignaled(), ())?;
        }
        let deadline = Instant::now() + Duration::from_secs(10);
        while qp.receives_outstanding() > 0 {
            let batch = cq.wait(&mut buffer, channel, Some(deadline))?;
            if batch.is_empty() {
                bail!("the server does not answer");
            }
            for done in qp.retire_all(batch) {
                let Done::Received(received) = done else { continue };
                received.result?;
                let (nth, mut answer) = (received.token, [0; size_of::<Message>()]);
                slots.read(nth, &mut answer)?;
                let value = if is_put(nth) { &[] } else { &value[..] };
                if parse(&answer)? != (false, key(nth), value) {
                    bail!("the server returned another value");
                }
            }
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
        false => Err(anyhow!("a client has failed")),
    }
}

fn main() -> Result<(), Failure> {
    if let Some(path) = env::args_os().nth(1) {
        let mut numbers = env::args().skip(2).map(|number| number.parse());
        let mut next = || numbers.next().context("arguments: SOCKET KEY ROUNDS");
        return client(Path::new(&path), next()??, next()??);
    }
    let path = env::temp_dir().join(format!("kv_store.{}", process::id()));
    let listener = UnixListener::bind(&path)?;
    let mut server = Server::new(&Context::open("loop0")?)?;
    let (stop, mut store) = (server.set.stop_handle(), Store::default());
    let ended = thread::scope(|scope| {
        let clients = scope.spawn(|| supervise(&path, &stop));
        let served = server.run(&listener, &mut |request| store.answer(request));
        served.and(clients.join().map_err(|_| anyhow!("the supervisor panicked"))?)
    });
    fs::remove_file(&path)?;
    ended?;
    println!("{} requests served, {} values", store.served, store.values.len());
    Ok(())
}
