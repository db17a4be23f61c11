//! A server of tokio: a task for each client, which awaits its own requests on a queue pair of its own. All share one
//! completion queue, which one task polls. Clients come by a TCP socket and exchange endpoints there; half of them go away
//! in the middle of a call.
//!
//! `cargo run -p transport-rxe-loop --features tokio --example tokio_server`

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use cq_core::budget::{Budget, Budgeted, Reservation};
use cq_core::causes::Causes;
use cq_core::cq::CompletionQueue;
use cq_core::task::{Channel, Driver, Handle, TaskQp};
use cq_core::tracked::TrackedQp;
use cq_core::wr::SendWr;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinSet, block_in_place};
use tokio::time::timeout;
use transport_rxe_loop::{
    Access, Context, CqHandle, OwnedRegion, Port, ProtectionDomain, QpInit, QueuePair,
};

type Failure = Box<dyn Error + Send + Sync>;
/// A queue pair whose requests own a share of the memory that they use.
type Qp = TaskQp<QueuePair, Arc<OwnedRegion>, 2, 2, Reservation<Arc<Budget>>>;

const CLIENTS: u64 = 8;
const CALLS: u64 = 200;
const SIZE: usize = 64;
const LIMIT: Duration = Duration::from_secs(10);

/// What queue pairs are created with: a completion queue for `CLIENTS` of them, polled by a task.
struct Endpoints {
    pd: ProtectionDomain,
    port: Port,
    cq: CqHandle,
    budget: Arc<Budget>,
    driver: Handle,
}

impl Endpoints {
    fn new(context: &Context) -> Result<Self, Failure> {
        let (pd, port, channel) =
            (context.alloc_pd()?, context.port(1)?, context.create_channel()?);
        let queue = context.create_cq(4 * CLIENTS as u32, Some(&channel))?;
        let (cq, queue) = (queue.handle(), Budgeted::new(queue));
        let budget = queue.budget().clone();
        let driver = Driver::new(CompletionQueue::new(queue), Channel::new(channel)?);
        let endpoints = Self { pd, port, cq, budget, driver: driver.handle() };
        tokio::spawn(
            async move { eprintln!("polling has ended: {}", Causes(&driver.run().await)) },
        );
        Ok(endpoints)
    }

    /// Connects a queue pair to that at the other end of a socket. A client that is silent holds a thread of the runtime
    /// until the limit, and no other task.
    fn connect(&self, socket: &TcpStream) -> Result<Call, Failure> {
        let create = |caps| self.pd.create_qp(&QpInit { caps, ..QpInit::new(&self.cq) });
        let mut qp = TrackedQp::create([&self.budget; 2], create)?;
        block_in_place(|| qp.connect_over(socket, &self.port, LIMIT))?;
        let memory = Arc::new(self.pd.allocate(2 * SIZE, Access::LOCAL_WRITE)?);
        Ok(Call { qp: TaskQp::new(qp, &[&self.driver]), memory })
    }
}

/// A connection, with memory for a message in each direction.
struct Call {
    qp: Qp,
    memory: Arc<OwnedRegion>,
}

impl Call {
    /// Waits for a message, and returns its number.
    async fn receive(&self) -> Result<u64, Failure> {
        let sges = [self.memory.sge(0, SIZE)?];
        let received = self.qp.receive(&sges, self.memory.clone()).await?;
        let mut bytes = [0; 8];
        received.buffer.read(0, &mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    async fn send(&self, number: u64) -> Result<(), Failure> {
        self.memory.write(SIZE, &number.to_ne_bytes())?;
        let sges = [self.memory.sge(SIZE, SIZE)?];
        self.qp.send(SendWr::send(0, &sges), self.memory.clone()).await?;
        Ok(())
    }
}

/// Serves one client until it closes its socket. Dropping the futures then leaves their memory with the queue pair, which
/// is destroyed with this task.
async fn serve(
    endpoints: Arc<Endpoints>,
    mut socket: TcpStream,
    served: Arc<AtomicU64>,
) -> Result<(), Failure> {
    let call = endpoints.connect(&socket)?;
    let answers = async {
        loop {
            let number = call.receive().await?;
            call.send(number * number).await?;
            served.fetch_add(1, Relaxed);
        }
    };
    tokio::select! {
        failed = answers => failed,
        closed = socket.read_u8() => match closed {
            Ok(_) => Err("the client sends what it must not".into()),
            Err(_) => Ok(()),
        },
    }
}

/// Calls the server, and checks each answer. A client that is in a hurry leaves in the middle.
async fn client(address: std::net::SocketAddr, seed: u64) -> Result<(), Failure> {
    let context = Context::open("loop0")?;
    let endpoints = Endpoints::new(&context)?;
    let socket = TcpStream::connect(address).await?;
    let call = endpoints.connect(&socket)?;
    for number in seed..seed + CALLS {
        if seed % 2 == 1 && number == seed + CALLS / 2 {
            return call.send(number).await;
        }
        // The receive is posted first: the answer may come before the completion of the send is polled.
        let (answer, sent) = tokio::join!(call.receive(), call.send(number));
        sent?;
        if answer? != number * number {
            return Err("a wrong answer".into());
        }
    }
    Ok(())
}

async fn run() -> Result<(), Failure> {
    let endpoints = Arc::new(Endpoints::new(&Context::open("loop0")?)?);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let (address, served) = (listener.local_addr()?, Arc::new(AtomicU64::new(0)));
    let (mut clients, mut servers) = (JoinSet::new(), JoinSet::new());
    (0..CLIENTS).for_each(|seed| drop(clients.spawn(client(address, seed))));
    while !clients.is_empty() || !servers.is_empty() {
        tokio::select! {
            socket = listener.accept() => {
                let (socket, _) = socket?;
                servers.spawn(serve(endpoints.clone(), socket, served.clone()));
            }
            Some(ended) = clients.join_next() => ended??,
            // A client that leaves in the middle may fail its connection before its socket closes.
            Some(ended) = servers.join_next() => ended?.unwrap_or_else(|error| eprintln!("{}", Causes(&*error))),
        }
    }
    println!("{CLIENTS} clients, of which half left early: {} answers", served.load(Relaxed));
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    timeout(Duration::from_secs(60), run()).await?
}

#[test]
fn it_runs() -> Result<(), Failure> {
    main()
}
