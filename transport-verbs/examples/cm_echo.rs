//! An echo over RDMA, connected by IP address through librdmacm.
//!
//! On one host `cargo run -p transport-verbs --example cm_echo -- --listen 0.0.0.0:7471`, on another
//! `cargo run -p transport-verbs --example cm_echo -- --connect 192.0.2.1:7471`.

use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser};
use cq_core::transport::PollCq;
use cq_core::wc::Wc;
use transport_verbs::cm::{self, Connection};
use transport_verbs::verbs::wr::{RecvWr, SendWr};
use transport_verbs::{Access, Context, Cq, OwnedRegion, QueuePair};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// How long a peer may take to answer.
const LIMIT: Duration = Duration::from_secs(10);
/// Bytes of a message at most.
const SIZE: usize = 64;

const RECV: u64 = 1;
const SEND: u64 = 2;

#[derive(Parser)]
#[command(about = "An echo over RDMA, connected through librdmacm")]
struct Options {
    #[command(flatten)]
    side: Side,
    /// How many messages to send.
    #[arg(long, default_value_t = 3)]
    count: u32,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct Side {
    /// Echo to the first peer that connects to this address.
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,
    /// Send messages to the peer at this address.
    #[arg(long, value_name = "ADDR:PORT")]
    connect: Option<SocketAddr>,
}

fn main() -> ExitCode {
    let Options { side, count } = Options::parse();
    let done = match (side.listen, side.connect) {
        (Some(addr), _) => serve(addr),
        (None, Some(addr)) => ask(addr, count),
        (None, None) => unreachable!("clap demands one"),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cm_echo: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What a connection is made of on this side.
struct End {
    qp: QueuePair,
    cq: Cq,
    region: OwnedRegion,
}

impl End {
    fn new(context: &Context) -> Result<Self> {
        let pd = context.alloc_pd()?;
        let cq = context.cq(16).create()?;
        let region = pd.allocate(SIZE, Access::LOCAL_WRITE)?;
        Ok(Self { qp: pd.qp(&cq).create()?, cq, region })
    }

    fn receive(&mut self) -> Result<()> {
        Ok(self.qp.post_recv(&[RecvWr::new(RECV, &[self.region.sge(..SIZE)?])])?)
    }

    fn send(&mut self, text: &[u8]) -> Result<()> {
        Ok(self.qp.post_send(&[SendWr::send_inline(SEND, text)])?)
    }

    /// Waits for a message; None if the peer ends the connection instead.
    fn message(&mut self, connection: &mut Connection) -> Result<Option<Vec<u8>>> {
        let mut buffer = [Wc::default()];
        loop {
            if self.cq.poll_into(&mut buffer)? == 0 {
                if connection.check_ended()? {
                    return Ok(None);
                }
                continue;
            }
            let done = buffer[0].result()?;
            if buffer[0].wr_id() == RECV {
                let mut text = vec![0; done.byte_len() as usize];
                self.region.read(0, &mut text)?;
                return Ok(Some(text));
            }
        }
    }
}

/// Sends back what the first peer sends.
fn serve(addr: SocketAddr) -> Result<()> {
    let mut listener = cm::Listener::bind(addr)?;
    println!("listening at {addr}");
    let mut request = listener.accept(Duration::MAX)?;
    let mut end = End::new(&request.device().open()?)?;
    request.init(&mut end.qp)?;
    end.receive()?;
    let mut connection = request.accept(&mut end.qp, &[], LIMIT)?;
    println!("connected");
    while let Some(text) = end.message(&mut connection)? {
        // The next message comes after the answer, so its receive has to be there before.
        end.receive()?;
        end.send(&text)?;
    }
    connection.disconnect(&mut end.qp)?;
    println!("the peer has left");
    Ok(())
}

/// Sends messages, one after the other has come back.
fn ask(addr: SocketAddr, count: u32) -> Result<()> {
    let mut route = cm::resolve(addr, LIMIT)?;
    println!("{addr} is reached through {}", route.device().name()?);
    let mut end = End::new(&route.device().open()?)?;
    route.init(&mut end.qp)?;
    end.receive()?;
    let mut connection = route.connect(&mut end.qp, &[], LIMIT)?;
    for number in 1..=count {
        let text = format!("message {number}");
        end.send(text.as_bytes())?;
        let answer = end.message(&mut connection)?.ok_or("the peer left")?;
        if answer != text.as_bytes() {
            return Err(format!("{text:?} came back as {:?}", answer.escape_ascii()).into());
        }
        println!("{text} came back");
        end.receive()?;
    }
    connection.disconnect(&mut end.qp)?;
    Ok(connection.wait_disconnected(LIMIT)?)
}
