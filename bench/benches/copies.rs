//! READ and WRITE on memory of another process beside the system calls that move it, as ratios: `cargo bench -p
//! bench --bench copies -- [--quick]`. It starts its peer itself.
//!
//! The two take turns on the same memory, and each turn is compared with the one beside it only, so that
//! whatever happens to the machine happens to both. A request is posted and its completion polled before the
//! next one.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bench::cores::Cores;
use comfy_table::{Table, presets};
use cq_core::transport::{Poll, Post};
use cq_core::wc::Wc;
use cq_core::wr::{RemoteAddr, SendWr, Sge};
use transport_rxe_loop::{
    Access, Cq, MemoryRegion, OpenOptions, ProtectionDomain, QpInit, QueuePair,
};

const FABRIC: &str = "BENCH_COPIES_FABRIC";
const SIZES: [usize; 4] = [64, 4 << 10, 64 << 10, 1 << 20];
/// Bytes that each side has.
const LEN: usize = 1 << 20;
/// How long a turn is.
const TURN: Duration = Duration::from_micros(500);

type Fallible<T> = Result<T, Box<dyn Error>>;

/// Memory of this process, and a queue pair for it.
struct End {
    qp: QueuePair,
    cq: Cq,
    region: MemoryRegion,
    _pd: ProtectionDomain,
}

impl End {
    fn new(fabric: &str) -> Fallible<Self> {
        let context = OpenOptions::new().fabric(fabric).open("loop0")?;
        let (pd, cq) = (context.alloc_pd(), context.create_cq(16, None)?);
        let qp = pd.create_qp(&QpInit::new(&cq))?;
        let memory = Box::leak(vec![1_u8; LEN].into_boxed_slice());
        let access = Access::LOCAL_WRITE | Access::REMOTE;
        // SAFETY: the memory stays, and nobody looks at it.
        let region = unsafe { pd.register(memory.as_mut_ptr(), LEN, access) }?;
        Ok(Self { qp, cq, region, _pd: pd })
    }

    fn run(&mut self, op: Op, remote: RemoteAddr, len: usize) -> Fallible<()> {
        let sge: [Sge; 1] = [self.region.sge(0, len)?];
        self.qp.post_send(&[match op {
            Op::Write => SendWr::write(1, &sge, remote),
            Op::Read => SendWr::read(1, &sge, remote),
        }])?;
        let mut room = [Wc::default()];
        while self.cq.poll(&mut room)? == 0 {}
        room[0].result()?;
        Ok(())
    }
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Write,
    Read,
}

/// What the device is measured against.
fn bare(op: Op, pid: i32, here: u64, there: u64, len: usize) -> Fallible<()> {
    let vector = |addr: u64| libc::iovec { iov_base: addr as *mut _, iov_len: len };
    let (here, there) = (vector(here), vector(there));
    // SAFETY: registered memory of this process, which nobody looks at; the system checks the peer's.
    let moved = unsafe {
        match op {
            Op::Write => libc::process_vm_writev(pid, &here, 1, &there, 1, 0),
            Op::Read => libc::process_vm_readv(pid, &here, 1, &there, 1, 0),
        }
    };
    if usize::try_from(moved) == Ok(len) {
        return Ok(());
    }
    Err(std::io::Error::last_os_error().into())
}

/// The process that has the memory: says what to reach it by, and waits for the end.
fn peer(fabric: &str) -> Fallible<()> {
    let mut end = End::new(fabric)?;
    let remote = end.region.remote(0)?;
    println!("{} {} {}", end.qp.number(), remote.addr, remote.rkey);
    let mut lines = std::io::stdin().lines();
    let number = lines.next().ok_or("nobody is there")??;
    end.qp.connect(number.parse()?)?;
    println!("connected");
    lines.next();
    Ok(())
}

fn start_peer(end: &mut End, fabric: &str) -> Fallible<(Child, RemoteAddr)> {
    let mut command = Command::new(std::env::current_exe()?);
    command.env(FABRIC, fabric).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
    let first = lines.next().ok_or("the peer ended")??;
    let [number, addr, rkey] = first.split(' ').collect::<Vec<_>>()[..] else {
        return Err(first.into());
    };
    end.qp.connect(number.parse()?)?;
    writeln!(child.stdin.as_mut().ok_or("no input")?, "{}", end.qp.number())?;
    lines.next().ok_or("the peer ended")??;
    Ok((child, RemoteAddr { addr: addr.parse()?, rkey: rkey.parse()? }))
}

/// Nanoseconds that each of so many takes.
fn time(count: u32, mut each: impl FnMut() -> Fallible<()>) -> Fallible<f64> {
    let start = Instant::now();
    for _ in 0..count {
        each()?;
    }
    Ok(start.elapsed().as_nanos() as f64 / f64::from(count))
}

fn quantile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(part * (values.len() - 1) as f64).round() as usize]
}

fn main() -> Fallible<()> {
    if let Ok(fabric) = std::env::var(FABRIC) {
        return peer(&fabric);
    }
    Cores::allowed().settle_first();
    let rounds = if std::env::args().any(|arg| arg == "--quick") { 20 } else { 300 };
    let fabric = format!("copies-{}", std::process::id());
    let mut end = End::new(&fabric)?;
    let (mut child, remote) = start_peer(&mut end, &fabric)?;
    let (pid, here) = (i32::try_from(child.id())?, end.region.addr());
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED);
    table.set_header([
        "operation",
        "bytes",
        "bare, ns",
        "device, ns",
        "bare / device",
        "quartiles",
    ]);
    for op in [Op::Write, Op::Read] {
        for len in SIZES {
            let one = time(20, || bare(op, pid, here, remote.addr, len))?;
            let count = (TURN.as_nanos() as f64 / one).max(1.0) as u32;
            let (mut bares, mut ours, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..rounds {
                let a = time(count, || bare(op, pid, here, remote.addr, len))?;
                let b = time(count, || end.run(op, remote, len))?;
                bares.push(a);
                ours.push(b);
                ratios.push(a / b);
            }
            let nanos = [&mut bares, &mut ours].map(|all| format!("{:.0}", quantile(all, 0.5)));
            let [low, median, high] = [0.25, 0.5, 0.75].map(|part| quantile(&mut ratios, part));
            let [bare, device] = nanos;
            let (op, len) = (format!("{op:?}"), len.to_string());
            let quartiles = format!("{low:.2} – {high:.2}");
            table.add_row([op, len, bare, device, format!("{median:.2}"), quartiles]);
        }
    }
    println!("{table}");
    drop(child.stdin.take());
    child.wait()?;
    Ok(())
}
