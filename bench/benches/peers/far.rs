//! Two processes that share a device. The far one does what the near one tells it, line by line.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use transport_rxe_loop::{Context, ProtectionDomain};

use crate::end::{self, Address, End};

/// Names the fabric, in the environment of the far process.
pub const FABRIC: &str = "BENCH_FAR_FABRIC";

/// What one process tells the other.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Order {
    /// Make an end whose receives have so many bytes, and which may give way to others while it waits; say where it is.
    Make { size: usize, yields: bool },
    /// Connect the latest end.
    Connect(Address),
    /// Let this end answer so many messages.
    Pong { end: usize, count: u64 },
    /// Let this end answer so many WRITEs.
    Exchange { end: usize, count: u64 },
    /// Let this end take so many messages.
    Drain { end: usize, count: u64 },
}

/// Plays the far side and does not return, if that is what this process is for.
pub fn play() {
    let Ok(fabric) = std::env::var(FABRIC) else { return };
    let context = end::open(&fabric);
    let pd = context.alloc_pd().unwrap();
    let mut ends: Vec<End> = Vec::new();
    for line in io::stdin().lock().lines() {
        match parse(&line.expect("the near process speaks")) {
            Order::Make { size, yields } => {
                let end = End::new(&context, &pd, size, yields);
                say(&mut io::stdout(), &end.address());
                ends.push(end);
                continue;
            }
            Order::Connect(peer) => ends.last_mut().expect("one was made").connect(peer),
            Order::Pong { end, count } => ends[end].ping(count, false),
            Order::Exchange { end, count } => ends[end].exchange(count, false),
            Order::Drain { end, count } => ends[end].drain(count),
        }
        say(&mut io::stdout(), &());
    }
    // Without the destructors, as if it had been killed, it would do as well.
    drop(ends);
    std::process::exit(0);
}

/// A line of it.
pub fn say(to: &mut impl Write, what: &impl Serialize) {
    let line = serde_json::to_string(what).expect("it has a text");
    writeln!(to, "{line}").and_then(|()| to.flush()).expect("the other process listens");
}

/// What a line says.
pub fn parse<T: DeserializeOwned>(line: &str) -> T {
    serde_json::from_str(line).expect("both are of one build")
}

/// The far process, and the device that it shares.
pub struct Near {
    // Before the far process, which then ends.
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    child: Child,
    context: Context,
    pd: ProtectionDomain,
}

impl Near {
    /// Starts the far process on the core that `settle` puts a thread on; this one should be where it is to
    /// stay.
    pub fn start(settle: impl FnOnce() + Send) -> Self {
        let fabric = format!("bench-{}", std::process::id());
        let context = end::open(&fabric);
        let pd = context.alloc_pd().unwrap();
        let mut command = Command::new(std::env::current_exe().expect("this is a program"));
        command.env(FABRIC, &fabric).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = on_a_core(settle, || command.spawn()).expect("it starts");
        let from = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { to: child.stdin.take(), from, child, context, pd }
    }

    /// A new pair, whose receives have so many bytes: the near end, and where the far one is. Ends may let others run while
    /// they wait for a message.
    pub fn pair(&mut self, size: usize, yields: bool) -> (End, Address) {
        let mut end = End::new(&self.context, &self.pd, size, yields);
        self.tell(Order::Make { size, yields });
        let far: Address = self.answer();
        self.order(Order::Connect(end.address()));
        end.connect(far);
        (end, far)
    }

    /// Has something done, and waits until it is.
    pub fn order(&mut self, order: Order) {
        self.tell(order);
        let () = self.answer();
    }

    /// Has something done.
    pub fn tell(&mut self, order: Order) {
        say(self.to.as_mut().expect("it has not ended"), &order);
    }

    /// Waits until what was told is done.
    pub fn answer<T: DeserializeOwned>(&mut self) -> T {
        let mut line = String::new();
        self.from.read_line(&mut line).expect("the far process speaks");
        parse(&line)
    }

    /// The far process, as the system calls it.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Near {
    fn drop(&mut self) {
        self.to = None;
        let _ = self.child.wait();
    }
}

/// Does something on the core that `settle` puts a thread on: what is started there stays there.
pub fn on_a_core<T: Send>(settle: impl FnOnce() + Send, then: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let there = scope.spawn(|| {
            settle();
            then()
        });
        there.join().expect("it does not panic")
    })
}
