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

mod calls;
mod ends;

use std::env;
use std::error::Error;
use std::hint::black_box;
use std::path::PathBuf;
use std::process::ExitCode;

use bench::callgrind::{self, Costs, CountError, TIMES};
use bench::transport::loopback::Loopback;
use bench::transport::verbs::Verbs;

use self::calls::{C, RUST};
use self::ends::{Ends, THINGS, Thing};

/// The library of the C ABI.
const LIBRARY: &str = "librxe_loop_verbs.so";

fn main() -> ExitCode {
    callgrind::main("abi_cost", work, count)
}

/// Does each thing by each API, as often as said above.
fn work() -> Result<(), Box<dyn Error>> {
    let mut rust = Ends::new(&Loopback::open()?)?;
    let mut c = Ends::new(&Verbs::open(Some(Loopback::DEVICE), None)?)?;
    for (_, thing) in THINGS {
        for times in TIMES {
            abi_cost_part();
            for _ in 0..times {
                rust.work(thing, &RUST)?;
                c.work(thing, &C)?;
            }
        }
    }
    Ok(())
}

/// Begins a part, for callgrind.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn abi_cost_part() {
    black_box(());
}

/// Counts, and tells.
fn count() -> Result<(), Box<dyn Error>> {
    let parts = callgrind::count("abi_cost_part", Some(&library()?))?;
    for (nth, (what, thing)) in THINGS.into_iter().enumerate() {
        let (rust, c) =
            (each(&parts, nth, thing, RUST.symbols)?, each(&parts, nth, thing, C.symbols)?);
        println!("{what}: {rust:.0} instructions by the Rust API, {c:.0} by the C ABI");
    }
    Ok(())
}

/// What one of a thing takes, in all of its calls.
fn each(parts: &[Costs], nth: usize, thing: Thing, symbols: [&str; 3]) -> Result<f64, CountError> {
    let calls = symbols.into_iter().zip(thing.calls()).filter(|&(_, is_called)| is_called);
    calls.map(|(symbol, _)| callgrind::each(parts, nth, symbol)).sum()
}

/// Where the library is.
fn library() -> Result<PathBuf, Box<dyn Error>> {
    let path = env::current_exe()?.with_file_name(LIBRARY);
    if path.exists() {
        return Ok(path);
    }
    let missing = path.display();
    Err(format!("there is no {missing}: `cargo build --release -p rxe-loop-verbs` makes it").into())
}
