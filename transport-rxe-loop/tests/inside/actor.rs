//! Further processes of a test: the test binary again, running an ignored test that plays a part. Tests and actors
//! exchange orders and answers line by line.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use std::{fmt, fs, thread};

use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use rustix::thread::gettid;

/// Longer than any step takes, on any machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Makes sweeping tests longer; `cargo verify --long` sets it. Without it they run fewer cases, of each kind.
pub const LONG: &str = "VERIFY_LONG";

/// The size of a sweep: `few`, or `many` if [`LONG`] is set.
pub fn few_or<T>(few: T, many: T) -> T {
    if std::env::var_os(LONG).is_some() { many } else { few }
}

/// A number that the environment names, or another one.
pub fn number(name: &str, otherwise: u64) -> u64 {
    let said = std::env::var(name).ok();
    said.map_or(otherwise, |said| said.parse().unwrap_or_else(|_| panic!("{name}: {said}?")))
}

/// Waits until a condition holds.
#[track_caller]
pub fn until(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Whether a new thread of this process waits, asleep or in a loop, before its work has ended.
#[track_caller]
pub fn has_to_wait(thread: Pid, has_ended: impl Fn() -> bool) -> bool {
    let task = format!("/proc/self/task/{}", thread.as_raw_nonzero());
    let waits = || {
        let [stat, status] =
            ["stat", "status"].map(|it| fs::read_to_string(format!("{task}/{it}")));
        let (Ok(stat), Ok(status)) = (stat, status) else { return false };
        let fields: Vec<_> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        let number = |text: &str| text.trim().parse::<u64>().unwrap();
        // The ticks that it has run, in user mode and in the kernel: only a loop takes several. Or how often it has given
        // its processor to others, on a busy machine.
        let ticks: u64 = fields[11..13].iter().map(|ticks| number(ticks)).sum();
        let switches = status.lines().filter_map(|line| line.split_once("ctxt_switches:"));
        let switches: u64 = switches.map(|(_, count)| number(count)).sum();
        fields[0] == "S" || ticks >= 3 || switches >= 20
    };
    until("it waits, or ends", || has_ended() || waits());
    !has_ended()
}

/// Has another thread do something that has to wait, for example for a lock of the standard library, until `goes_on`.
#[track_caller]
pub fn waits<T: Send>(what: impl FnOnce() -> T + Send, goes_on: impl FnOnce()) -> T {
    let (waits, outcome) = may_wait(what, goes_on);
    assert!(waits, "it has to wait");
    outcome
}

/// Has another thread do something, and calls `goes_on` once it waits or has ended. Whether it waited.
#[track_caller]
pub fn may_wait<T: Send>(what: impl FnOnce() -> T + Send, goes_on: impl FnOnce()) -> (bool, T) {
    let (teller, told) = channel();
    thread::scope(|scope| {
        let thread = scope.spawn(move || {
            teller.send(gettid()).unwrap();
            what()
        });
        let waits = has_to_wait(told.recv().unwrap(), || thread.is_finished());
        goes_on();
        (waits, thread.join().unwrap())
    })
}

/// Another process.
pub struct Actor {
    child: Child,
    orders: Option<ChildStdin>,
    said: Receiver<String>,
}

impl Actor {
    /// Starts a process that runs an ignored test, with additional environment variables.
    pub fn start(test: &str, environment: &[(&str, &str)]) -> Self {
        Self::start_by(Command::new(std::env::current_exe().unwrap()), test, environment)
    }

    /// The same, by this command, which has this binary as its last argument and executes it.
    pub fn start_by(mut command: Command, test: &str, environment: &[(&str, &str)]) -> Self {
        command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]);
        command.envs(environment.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (orders, lines) = (child.stdin.take(), BufReader::new(child.stderr.take().unwrap()));
        let (teller, said) = channel();
        thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                match line.strip_prefix('@') {
                    Some(word) => drop(teller.send(word.to_owned())),
                    None => eprintln!("{line}"),
                }
            }
        });
        Self { child, orders, said }
    }

    /// The next line that it writes.
    #[track_caller]
    pub fn hear(&self) -> String {
        self.said.recv_timeout(PATIENCE).expect("it has something to say")
    }

    /// The lines that it wrote and nobody read.
    pub fn heard(&self) -> Option<String> {
        self.said.try_recv().ok()
    }

    /// The next line that it writes, within a time.
    pub fn heard_within(&self, time: Duration) -> Option<String> {
        self.said.recv_timeout(time).ok()
    }

    /// The next line that it writes, as a number.
    #[track_caller]
    pub fn number(&self) -> u64 {
        let said = self.hear();
        said.parse().unwrap_or_else(|_| panic!("not a number: {said}"))
    }

    /// Lets it continue.
    pub fn go(&mut self) {
        self.order("");
    }

    /// Sends it an order. A dead process ignores it.
    pub fn order(&mut self, what: impl fmt::Display) {
        let _ = writeln!(self.orders.as_mut().unwrap(), "{what}");
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Kills it, which leaves a zombie.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Whether it is stopped.
    pub fn is_stopped(&self) -> bool {
        is_stopped(self.pid())
    }

    /// Its exit status.
    pub fn status(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Waits until it has ended. It gets no more orders.
    #[track_caller]
    pub fn ended(mut self) -> ExitStatus {
        self.leave()
    }

    /// The same as [`ended`](Self::ended).
    #[track_caller]
    pub fn leave(&mut self) -> ExitStatus {
        self.orders = None;
        let mut status = None;
        until("the process ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Lets it continue, and waits until it has ended successfully.
    #[track_caller]
    pub fn finish(mut self) {
        self.go();
        let status = self.ended();
        assert!(status.success(), "{status}");
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        // A failed test leaves no process behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether the process with this pid is stopped.
pub fn is_stopped(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

/// Has this process end with the one that started it.
pub fn die_with_parent() {
    set_parent_process_death_signal(Some(Signal::KILL)).unwrap();
}

/// Writes a line to the process that started this one, in one call, since a child of this process may write, too.
pub fn say(what: impl fmt::Display) {
    std::io::stderr().write_all(format!("@{what}\n").as_bytes()).unwrap();
}

/// The exit of a process that gets no more orders.
pub const NO_ORDERS: i32 = 2;

/// Waits for an order. If there are none any more, the process exits.
pub fn order() -> String {
    let mut line = String::new();
    if std::io::stdin().read_line(&mut line).unwrap_or(0) == 0 {
        std::process::exit(NO_ORDERS);
    }
    line.trim().to_owned()
}
