//! A further process with an end of its own, which does what it is told, line by line.

mod late;
mod memory;
mod windows;

use std::process::Command;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use rustix::process::{Signal, getpid, kill_process};
use transport_rxe_loop::MemoryWindow;

use self::late::Late;
pub use self::memory::Memory;
use self::memory::pattern;
use super::process::say;
use super::*;

const MEMORY: &str = "TEST_MEMORY";

/// How processes reach each other's memory.
pub const COPY: &str = "RXE_LOOP_COPY";

/// Bytes that each end has.
pub const LEN: usize = 5 << 19;

/// Requests that are posted before any is waited for.
const AHEAD: usize = 2;

/// Queue pairs that each end has.
const QPS: usize = 3;

const FLUSH: Access = Access::FLUSH_GLOBAL.union(Access::FLUSH_PERSISTENT);

/// What an actor has.
struct Stage {
    qps: [QueuePair; QPS],
    /// Which of them is meant.
    qp: usize,
    cq: Cq,
    memory: Option<Memory>,
    window: MemoryWindow,
    pd: ProtectionDomain,
    late: Option<Late>,
}

/// What an actor does, in a process of its own.
#[test]
#[ignore = "a process of the other tests"]
fn act() {
    let is_fabric = std::env::var(MEMORY).expect("started by another test") == "fabric";
    let context = open();
    let (pd, cq) = (context.alloc_pd().unwrap(), context.cq(256).create().unwrap());
    let caps = QpCaps::USUAL
        .max_send_wr(64)
        .max_recv_wr(64)
        .max_send_sge(16)
        .max_recv_sge(16)
        .max_inline(64);
    let qps = [(); QPS].map(|()| pd.qp(&cq).caps(caps).create().unwrap());
    let memory = Memory::new(&pd, is_fabric, ALL | FLUSH | Access::MW_BIND);
    let window = pd.alloc_mw().unwrap();
    let remote = memory.remote();
    let [first, second, third] = qps.each_ref().map(QueuePair::number);
    say(format_args!("{} {} {first} {second} {third}", remote.addr, remote.rkey));
    let mut stage = Stage { qps, qp: 0, cq, memory: Some(memory), window, pd, late: None };
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let (verb, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let numbers: Vec<u64> = rest.split(' ').filter_map(|word| word.parse().ok()).collect();
        say(stage.obey(verb, &numbers));
    }
}

impl Stage {
    fn obey(&mut self, verb: &str, numbers: &[u64]) -> String {
        let at = |i: usize| numbers[i] as usize;
        match verb {
            "connect" => {
                let qp = &mut self.qps[self.qp];
                let rights = QpAttr::init(&Port::new(1), Access::REMOTE | FLUSH);
                let way = [
                    QpAttr::new().state(QpState::RESET),
                    rights,
                    QpAttr::rtr(&Port::new(1), &Endpoint::new(numbers[0] as u32)),
                ];
                way.iter().chain([&QpAttr::rts()]).for_each(|attr| qp.modify(attr).unwrap());
            }
            "use" => self.qp = at(0),
            "fill" => {
                let bytes: Vec<_> = pattern(at(2), at(1)).collect();
                self.memory().write(at(0), &bytes);
            }
            "check" => return self.check(at(0), at(1), at(2)),
            "recv" => {
                let sges = self.sges(numbers);
                self.qps[self.qp].post_recv(&[RecvWr::new(1, &sges)]).unwrap();
            }
            "poll" => return self.outcome(),
            "deregister" => self.memory = None,
            "unmap" => self.unmap(),
            "late" => return self.be_late(),
            "wanted" => self.late.as_ref().expect("late").is_wanted(),
            "reset" | "error" | "destroy" => return self.end_late(verb),
            "bind" => return self.bind(numbers),
            "invalidate" => return self.invalidate(numbers[0] as u32),
            "shut" => return self.shut(numbers[0] as u32),
            "add" => self.add(numbers),
            "lock" => self.add_locked(numbers),
            "hammer" => return self.hammer(numbers),
            "withdraw" => return self.withdraw(),
            "stale" => {
                let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
                let stale = |line: &&str| line.contains(".mem.") && line.ends_with("(deleted)");
                return maps.lines().filter(stale).count().to_string();
            }
            "word" => return self.word(at(0)).to_string(),
            "die" => kill_process(getpid(), Signal::KILL).unwrap(),
            verb => return self.request(verb, numbers),
        }
        "done".to_owned()
    }

    fn memory(&self) -> &Memory {
        self.memory.as_ref().expect("not deregistered")
    }

    fn sges(&self, numbers: &[u64]) -> Vec<Sge> {
        let sges = numbers.chunks(2).map(|sge| (sge[0] as usize, sge[1] as usize));
        sges.map(|(at, len)| self.memory().sge(at..at + len).unwrap()).collect()
    }

    /// "same", or where bytes are not as `fill` with this seed left them.
    fn check(&self, at: usize, len: usize, seed: usize) -> String {
        let bytes = self.memory().read(at, len);
        let wrong = bytes.iter().zip(pattern(seed, len)).position(|(&is, should)| is != should);
        wrong.map_or("same".to_owned(), |at| format!("differs at {at}"))
    }

    /// Posts a request, whose remote address and key come first, and whose SGEs come last.
    fn request(&mut self, verb: &str, numbers: &[u64]) -> String {
        let remote = RemoteAddr { addr: numbers[0], rkey: numbers[1] as u32 };
        let sges = self.sges(&numbers[2..]);
        let wr = match verb {
            "send" => SendWr::send(1, &sges),
            "inline" => SendWr::send_inline(1, b"inlined!"),
            "write" => SendWr::write(1, &sges, remote),
            "imm" => SendWr::write(1, &sges, remote).with_imm([1; 4]),
            "store" => SendWr::atomic_write(1, &sges, remote),
            "flush" | "flushall" => {
                let length = sges.iter().map(|sge| sge.length).sum();
                let whole = verb == "flushall";
                let what = if whole { Selectivity::Region } else { Selectivity::Range };
                SendWr::flush(1, remote, length, Placement::all(), what)
            }
            "read" => SendWr::read(1, &sges, remote),
            "swap" => SendWr::compare_swap(1, &sges, remote, 5, 9),
            verb => panic!("nobody knows how to {verb}"),
        };
        self.qps[self.qp].post_send(&[wr]).unwrap();
        self.outcome()
    }

    /// The status of the next completion, and its length if it succeeded.
    fn outcome(&mut self) -> String {
        let wc = settle(&mut self.cq, 1)[0];
        let Ok(done) = wc.result() else { return format!("{:?}", wc.status()) };
        format!("ok {}", done.byte_len())
    }

    /// Adds to a word of another process, so many times.
    fn add(&mut self, numbers: &[u64]) {
        let word = RemoteAddr { addr: numbers[0], rkey: numbers[1] as u32 };
        let held = [self.memory().sge(..8).unwrap()];
        for _ in 0..numbers[2] {
            self.do_now(SendWr::fetch_add(1, &held, word, 1));
        }
    }

    /// The same by READ and WRITE, under a lock, which is the word behind it.
    fn add_locked(&mut self, numbers: &[u64]) {
        let (word, rkey) = (numbers[0], numbers[1] as u32);
        let (word, lock) = (RemoteAddr { addr: word, rkey }, RemoteAddr { addr: word + 8, rkey });
        let held = [self.memory().sge(..8).unwrap()];
        for round in 0..numbers[2] {
            while self.do_now(SendWr::compare_swap(1, &held, lock, 0, 1)) != 0 {
                thread::yield_now();
            }
            let next = self.do_now(SendWr::read(1, &held, word)) + 1;
            self.memory().write(0, &next.to_ne_bytes());
            self.do_now(SendWr::write(1, &held, word));
            self.do_now(match round % 2 {
                0 => SendWr::compare_swap(1, &held, lock, 1, 0),
                _ => SendWr::atomic_write_inline(1, &[0; 8], lock),
            });
        }
    }

    /// Has a request succeed; says what is in the first word then.
    fn do_now(&mut self, wr: SendWr<'_>) -> u64 {
        self.qps[self.qp].post_send(&[wr]).unwrap();
        let outcome = self.outcome();
        assert!(outcome.starts_with("ok"), "{outcome}");
        self.word(0)
    }

    fn word(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.memory().read(at, 8).try_into().unwrap())
    }

    /// Writes to all memory of another process until that fails; says how.
    fn hammer(&mut self, numbers: &[u64]) -> String {
        let remote = RemoteAddr { addr: numbers[0], rkey: numbers[1] as u32 };
        self.memory().write(0, &vec![0xff; LEN]);
        let all = [self.memory().sge(..LEN).unwrap()];
        loop {
            // One by one: a post behind one that waits has that tried again.
            for _ in 0..AHEAD {
                self.qps[self.qp].post_send(&[SendWr::write(1, &all, remote)]).unwrap();
            }
            let done = settle(&mut self.cq, AHEAD);
            if let Some(failed) = done.iter().find(|wc| wc.result().is_err()) {
                return format!("{:?}", failed.status());
            }
        }
    }

    /// Deregisters memory of this process' alone once somebody writes to it; says whether it stays as it is
    /// from then on.
    fn withdraw(&mut self) -> String {
        let Some(Memory::Heap(region, words)) = self.memory.take() else {
            panic!("not on the heap")
        };
        super::wait_for(|| words[0].load(Relaxed) != 0);
        region.deregister();
        words.iter().for_each(|word| word.store(7, Relaxed));
        for _ in 0..20 {
            thread::yield_now();
            if words.iter().any(|word| word.load(Relaxed) != 7) {
                return "written to".to_owned();
            }
        }
        "untouched".to_owned()
    }

    /// Takes the memory away that is still registered.
    fn unmap(&mut self) {
        use rustix::mm::{MprotectFlags, mprotect};
        let Some(Memory::Heap(_, words)) = &self.memory else { panic!("not on the heap") };
        let first = (words.as_ptr() as usize).next_multiple_of(4096);
        // SAFETY: nobody of this process looks at the memory any more.
        unsafe { mprotect(first as *mut _, LEN - 8192, MprotectFlags::empty()) }.unwrap();
    }
}

/// How many regions of fabric memory there are where this actor is.
pub fn files_of_regions(actor: &Actor) -> usize {
    let part = format!(".{}.mem.", actor.fabric);
    let names = std::fs::read_dir("/dev/shm").unwrap().flatten().map(|entry| entry.file_name());
    names.filter(|name| name.to_string_lossy().contains(&part)).count()
}

/// An actor, as seen by the test that has started it.
pub struct Actor {
    process: process::Actor,
    fabric: String,
    /// The numbers of its queue pairs.
    pub numbers: [u32; QPS],
    /// Its memory.
    pub addr: u64,
    pub rkey: u64,
}

impl Actor {
    /// Starts one, with memory of a kind, that reaches that of others in a way.
    pub fn start(memory: &str, copy: &str) -> Self {
        Self::start_by(Command::new(std::env::current_exe().unwrap()), memory, copy)
    }

    /// The same, by this command, which executes this binary.
    pub fn start_by(command: Command, memory: &str, copy: &str) -> Self {
        let fabric = fabric();
        let environment = [(FABRIC, fabric.as_str()), (MEMORY, memory), (COPY, copy)];
        let process = process::Actor::start_by(command, "common::actor::act", &environment);
        let first = process.hear();
        let mut numbers = first.split(' ').map(|word| word.parse::<u64>().unwrap());
        let mut next = || numbers.next().unwrap();
        let (addr, rkey) = (next(), next());
        let numbers = [(); QPS].map(|()| next() as u32);
        Self { process, fabric, numbers, addr, rkey }
    }

    /// Tells it to do something.
    pub fn tell(&mut self, order: &str) {
        self.process.order(order);
    }

    /// What it says next.
    #[track_caller]
    pub fn hear(&self) -> String {
        self.process.hear()
    }

    /// Has it do something; says what came of it.
    #[track_caller]
    pub fn ask(&mut self, order: &str) -> String {
        self.tell(order);
        self.hear()
    }

    /// The same, of which nothing else can come.
    #[track_caller]
    pub fn expect(&mut self, order: &str, outcome: &str) {
        assert_eq!(self.ask(order), outcome, "{order}");
    }

    pub fn pid(&self) -> i32 {
        self.process.pid()
    }

    pub fn stop(&self) {
        self.process.signal(Signal::STOP);
        super::wait_for(|| self.process.is_stopped());
    }

    pub fn resume(&self) {
        self.process.signal(Signal::CONT);
    }

    pub fn kill(&mut self) {
        self.process.kill();
        self.process.status();
    }
}

/// Connects queue pairs of two of them, which are those that are meant from then on.
pub fn connect((a, i): (&mut Actor, usize), (b, k): (&mut Actor, usize)) {
    let numbers = (a.numbers[i], b.numbers[k]);
    for (actor, qp, peer) in [(a, i, numbers.1), (b, k, numbers.0)] {
        actor.expect(&format!("use {qp}"), "done");
        actor.expect(&format!("connect {peer}"), "done");
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        // Without orders it ends, and the last of all removes the fabric.
        if !thread::panicking() {
            self.process.leave();
        }
    }
}
