//! The near process' hold on the far one.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;

use serde::de::DeserializeOwned;
use transport_rxe_loop::{Context, ProtectionDomain};

use super::end::{self, Address, End};
use super::far::{self, FABRIC, Order};

/// The far process, and the device that it shares.
pub struct Near {
    // Before the far process, which then ends.
    lines: Option<Lines>,
    child: Child,
    context: Context,
    pd: ProtectionDomain,
}

struct Lines {
    to: ChildStdin,
    from: BufReader<ChildStdout>,
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
        let to = child.stdin.take().expect("it is piped");
        let from = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { lines: Some(Lines { to, from }), child, context, pd }
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
        far::say(&mut self.lines().to, &order);
    }

    /// Waits until what was told is done.
    pub fn answer<T: DeserializeOwned>(&mut self) -> T {
        let mut line = String::new();
        self.lines().from.read_line(&mut line).expect("the far process speaks");
        far::parse(&line)
    }

    /// The far process, as the system calls it.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn lines(&mut self) -> &mut Lines {
        self.lines.as_mut().expect("it has not ended")
    }
}

impl Drop for Near {
    fn drop(&mut self) {
        self.lines = None;
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
