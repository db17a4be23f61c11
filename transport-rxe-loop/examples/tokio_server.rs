//! A server of tokio: a task for each client, which awaits its own requests on a queue pair of its own. All share one
//! completion queue, which one task polls. Clients come by a TCP socket and exchange endpoints there; half of them go away
//! in the middle of a call.
//!
//! `cargo run -p transport-rxe-loop --features tokio --example tokio_server`

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{anyhow, bail};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use transport_rxe_loop::verbs::budget::{Budget, BudgetedHandle};
use transport_rxe_loop::verbs::device::Slots;
use transport_rxe_loop::verbs::task::{Driver, Handle, Inbox, Pool, PoolSlot, TaskQp};
use transport_rxe_loop::verbs::wr::SendWr;
use transport_rxe_loop::{
    Access, Context, CqHandle, OwnedRegion, Port, ProtectionDomain, QueuePair,
};

type Failure = anyhow::Error;
/// A queue pair whose requests own the memory that they use.
type Qp = TaskQp<QueuePair, PoolSlot<OwnedRegion>>;

const CLIENTS: u64 = 8;
const CALLS: u64 = 200;
const SIZE: usize = 64;
/// How long connecting may take.
const LIMIT: Duration = Duration::from_secs(5);

/// What connections are made of: a completion queue for `CLIENTS` of them, polled by a task, and memory.
struct Endpoints {
    pd: ProtectionDomain,
    port: Port,
    cq: BudgetedHandle<CqHandle, Arc<Budget>>,
    driver: Handle,
    pool: Pool<OwnedRegion>,
}

impl Endpoints {
    fn new(context: &Context) -> Result<Self, Failure> {
        let (pd, port) = (context.alloc_pd()?, context.port(1)?);
        let driver = Driver::open(context, 4 * CLIENTS as u32)?;
        let (cq, handle) = (driver.queue(), driver.handle());
        tokio::spawn(async {
            eprintln!("polling has ended: {:#}", Failure::new(driver.run().await.why))
        });
        let slots = Slots::allocate(&pd, 4 * CLIENTS as usize, SIZE, Access::LOCAL_WRITE)?;
        Ok(Self { pd, port, cq, driver: handle, pool: Pool::new(slots) })
    }

    /// Connects a queue pair to that at the other end of a socket.
    async fn connect(&self, socket: &mut TcpStream) -> Result<Call, Failure> {
        let qp = Qp::create(&self.pd, &self.cq, &self.driver, 2, 2).await?;
        timeout(LIMIT, qp.connect_over(socket, &self.port)).await??;
        Ok(Call { inbox: Inbox::new(&qp, &self.pool, 2), qp, pool: self.pool.clone() })
    }
}

/// A connection.
struct Call {
    qp: Qp,
    inbox: Inbox<QueuePair, OwnedRegion>,
    pool: Pool<OwnedRegion>,
}

impl Call {
    /// Waits for a message, and returns its number.
    async fn receive(&mut self) -> Result<u64, Failure> {
        let (message, mut bytes) = (self.inbox.next().await?, [0; 8]);
        message.buffer.read(&mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    async fn send(&self, number: u64) -> Result<(), Failure> {
        let slot = self.pool.take().await;
        slot.write(&number.to_ne_bytes())?;
        let sges = [slot.sge()];
        self.qp.send(SendWr::send(0, &sges), slot).await?;
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
    let mut call = endpoints.connect(&mut socket).await?;
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
            Ok(_) => Err(anyhow!("the client sends what it must not")),
            Err(_) => Ok(()),
        },
    }
}

/// Calls the server, and checks each answer. A client that is in a hurry leaves in the middle.
async fn client(address: std::net::SocketAddr, seed: u64) -> Result<(), Failure> {
    let context = Context::open("loop0")?;
    let endpoints = Endpoints::new(&context)?;
    let mut socket = TcpStream::connect(address).await?;
    let mut call = endpoints.connect(&mut socket).await?;
    for number in seed..seed + CALLS {
        if seed % 2 == 1 && number == seed + CALLS / 2 {
            return call.send(number).await;
        }
        call.send(number).await?;
        if call.receive().await? != number * number {
            bail!("a wrong answer");
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
            Some(ended) = servers.join_next() => ended?.unwrap_or_else(|error| eprintln!("{error:#}")),
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
