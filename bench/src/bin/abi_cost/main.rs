//! How many instructions requests and polls take on the loopback by its Rust API, and by its C ABI, counted by
//! callgrind:
//!
//! ```console
//! $ cargo build --release -p rxe-loop-verbs
//! $ cargo run --release -p bench --features verbs --bin abi_cost
//! ```
//!
//! The program runs itself under valgrind, with the library that lies beside it loaded before libibverbs. A call is
//! counted from where it begins to where it returns, so nothing that stands between a program and the C ABI is.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use bench::Failure;
use bench::callgrind::{self, TIMES, counted_part};
use bench::calls::{Call, Calls, Ends, Job, Kind, LOOPBACK};
use bench::transport::loopback::Loopback;
use bench::transport::verbs::Verbs;
use cq_core::transport::PollCq;
use cq_verbs::post::Post;

/// The library of the C ABI.
const LIBRARY: &str = "librxe_loop_verbs.so";

/// By the C ABI, which transport-verbs calls. Its functions have a symbol each.
const C: Calls<Verbs> = Calls {
    post_send: Post::post_send,
    post_recv: Post::post_recv,
    polls: [PollCq::poll_into, PollCq::poll_into],
    symbols: ["post_send", "post_recv", "poll_cq", "poll_cq"],
};

/// What is done, and by which calls.
const JOBS: [(Job, &[Call]); 3] = [
    (job("an empty poll", Kind::Nothing), &[Call::PollSend]),
    (job("a WRITE and its completion", Kind::Write), &[Call::PostSend, Call::PollSend]),
    (
        job("a SEND, its receive, and both completions", Kind::Send),
        &[Call::PostSend, Call::PostRecv, Call::PollSend, Call::PollRecv],
    ),
];

const fn job(name: &'static str, kind: Kind) -> Job {
    Job { name, kind, bytes: 8, list: 1, base: &[] }
}

fn main() -> ExitCode {
    callgrind::main("abi_cost", work, count)
}

/// Does each thing by each API, as often as said above.
fn work() -> Result<(), Failure> {
    let mut rust = Ends::new(&Loopback::open()?)?;
    let mut c = Ends::new(&Verbs::open(Some(Loopback::DEVICE), None)?)?;
    for (job, _) in &JOBS {
        for times in TIMES {
            counted_part();
            for _ in 0..times {
                rust.work(job, &LOOPBACK)?;
                c.work(job, &C)?;
            }
        }
    }
    Ok(())
}

/// Counts, and tells.
fn count() -> Result<(), Failure> {
    let parts = callgrind::count(Some(&library()?))?;
    for (nth, (job, calls)) in JOBS.iter().enumerate() {
        let each = |symbols: [&str; 4], prefix: &str| -> Result<f64, Failure> {
            let mut symbols: Vec<_> = calls.iter().map(|&call| symbols[call as usize]).collect();
            // Polls of both ends are of one function.
            symbols.dedup();
            let each = |symbol| callgrind::each(&parts, nth, &format!("{prefix}{symbol}"));
            symbols.into_iter().map(each).sum()
        };
        let rust = each(LOOPBACK.symbols, "")?;
        let c = each(C.symbols, "rxe_loop_verbs::exports::tables::ibv_")?;
        println!("{}: {rust:.0} instructions by the Rust API, {c:.0} by the C ABI", job.name);
    }
    Ok(())
}

/// Where the library is.
fn library() -> Result<PathBuf, Failure> {
    let path = env::current_exe()?.with_file_name(LIBRARY);
    if path.exists() {
        return Ok(path);
    }
    let missing = path.display();
    Err(format!("there is no {missing}: `cargo build --release -p rxe-loop-verbs` makes it").into())
}
