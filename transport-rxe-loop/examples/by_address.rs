//! A server that its clients reach by an IP address, as with sockets: `cargo run -p transport-rxe-loop --example by_address`.
//! Here both are threads; they may be processes. `cm_echo` of `transport-verbs` is the same between hosts.

use std::error::Error;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use transport_rxe_loop::cm::{Connection, Listener, resolve};
use transport_rxe_loop::{Access, Context, Cq, OwnedRegion, QueuePair, RecvWr, SendWr, Wc};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// How long a peer may take to answer.
const LIMIT: Duration = Duration::from_secs(10);
const CLIENTS: usize = 3;

const RECV: u64 = 1;
const SEND: u64 = 2;

fn main() -> Result<()> {
    let mut listener = Listener::bind("127.0.0.1:0".parse::<SocketAddr>()?)?;
    let address = listener.local_addr().ok_or("the listener has no address")?;
    println!("listening at {address}");
    thread::scope(|scope| {
        let server = scope.spawn(|| (0..CLIENTS).try_for_each(|_| serve(&mut listener)));
        (0..CLIENTS).try_for_each(|client| ask(address, client))?;
        server.join().expect("the server does not panic")
    })
}

/// Sends back what the next client sends, until it leaves.
fn serve(listener: &mut Listener) -> Result<()> {
    let mut request = listener.accept(LIMIT)?;
    let mut end = End::new(&request.device().open()?)?;
    request.init(&mut end.qp)?;
    end.receive()?; // before the client can send
    let mut connection = request.accept(&mut end.qp, &[], LIMIT)?;
    while let Some(text) = end.message(&mut connection)? {
        end.receive()?; // before the answer, after which the next message comes
        end.send(&text)?;
    }
    Ok(connection.disconnect(&mut end.qp)?)
}

/// Sends messages, each after the one before came back.
fn ask(address: SocketAddr, client: usize) -> Result<()> {
    let mut route = resolve(address, LIMIT)?;
    let mut end = End::new(&route.device().open()?)?;
    route.init(&mut end.qp)?;
    end.receive()?;
    let mut connection = route.connect(&mut end.qp, &[], LIMIT)?;
    for number in 0..1000 {
        let text = format!("message {number} of client {client}");
        end.send(text.as_bytes())?;
        let answer = end.message(&mut connection)?.ok_or("the server has left")?;
        if answer != text.as_bytes() {
            return Err(format!("{text:?} came back as {}", answer.escape_ascii()).into());
        }
        end.receive()?;
    }
    println!("client {client}: 1000 messages came back");
    connection.disconnect(&mut end.qp)?;
    Ok(connection.wait_disconnected(LIMIT)?)
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
        let region = pd.allocate(64, Access::LOCAL_WRITE)?;
        Ok(Self { qp: pd.qp(&cq).create()?, cq, region })
    }

    fn receive(&mut self) -> Result<()> {
        Ok(self.qp.post_recv(&[RecvWr::new(RECV, &[self.region.sge(..64)?])])?)
    }

    fn send(&mut self, text: &[u8]) -> Result<()> {
        Ok(self.qp.post_send(&[SendWr::send_inline(SEND, text)])?)
    }

    /// The next message; `None` if the peer has ended the connection.
    fn message(&mut self, connection: &mut Connection) -> Result<Option<Vec<u8>>> {
        let (mut wcs, deadline) = ([Wc::default()], Instant::now() + LIMIT);
        loop {
            let Some(wc) = self.cq.poll(&mut wcs)?.first() else {
                if connection.check_ended()? {
                    return Ok(None);
                }
                if Instant::now() > deadline {
                    return Err("the peer does not answer".into());
                }
                continue;
            };
            let done = wc.result()?;
            if wc.wr_id() == RECV {
                let mut text = vec![0; done.byte_len() as usize];
                self.region.read(0, &mut text)?;
                return Ok(Some(text));
            }
        }
    }
}

#[test]
fn it_runs() -> Result<()> {
    main()
}
