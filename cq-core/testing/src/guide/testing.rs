//! Testing a data plane with events that are rare: failures, late completions, overruns, spurious events, peers that are killed.
//! A seed reproduces the faults, not the times. The first three tools are in this crate; the others run unchanged programs on the
//! loopback:
//!
//! | tool | finds |
//! |---|---|
//! | [`fake::Script`](crate::fake::Script) | wrong orders of calls: a sleep without a second poll, an ignored error, a repeated post |
//! | [`fault::FaultInjector`](crate::fault::FaultInjector) | code that depends on when completions come: late, reordered between queue pairs, failed |
//! | [`rules`](crate::rules) | a transport, a software queue or an entry of your own that breaks rules of polling, arming or overrun |
//! | `RXE_LOOP_FAULTS` | as `FaultInjector`; buffers reused too early, peers that stop, overruns |
//! | `RXE_LOOP_STRICT=1` | what works on the loopback alone: queues that are too small, expected orders and times |
//! | `RXE_LOOP_IMITATE=rxe` | what fails on Linux' Soft-RoCE |
//! | `RXE_LOOP_LINK_LAYER=ethernet` | what works on InfiniBand alone: paths without a global route, a fixed GID index |
//! | killed processes | waits without a deadline, state that is lost with a connection |
//!
//! ```toml
//! [dev-dependencies]
//! cq-testing = { path = "REPOSITORY/cq-core/testing" }
//! ```
//!
//! # Scripts
//! A [`Script`](crate::fake::Script) is one timeline of a queue, its channel and a queue pair. It says what each call finds, and records
//! the calls, so it tests one interleaving exactly: a completion between an empty poll and the arm ([`fake`](crate::fake) has that
//! test), a full send queue (`.on_send(Err(WrError::QueueFull))`), an overrun.
//!
//! # Injected faults
//! A [`FaultInjector`](crate::fault::FaultInjector) wraps any transport of completions (`Wc`). The same seed gives the same faults, so
//! a test runs many seeds, and prints the one that failed:
//!
//! ```
//! use cq_core::cq::CompletionQueue;
//! use cq_core::queue::HeapCq;
//! use cq_core::wc::{Wc, WcStatus};
//! use cq_testing::fault::{FaultInjector, Faults, When};
//!
//! for seed in 0..100 {
//!     let faults = Faults::seeded(seed)
//!         .delay(When::chance(0.3), 5) // a completion is held back for 5 polls
//!         .reorder(When::chance(0.3)) // between queue pairs
//!         .fail(When::chance(0.1), WcStatus::RETRY_EXC_ERR); // and then its queue pair is flushed
//!     let (mut device, consumer) = HeapCq::new(64)?.split();
//!     for wr_id in 0..32 {
//!         device.push(&Wc::new(wr_id, WcStatus::SUCCESS, wr_id as u32 % 4))?;
//!     }
//!     let mut cq = CompletionQueue::new(FaultInjector::<_, 16>::new(consumer, &faults));
//!
//!     // The code under test. Each request must end once.
//!     let (mut buffer, mut ended) = ([Wc::default(); 8], Vec::new());
//!     while ended.len() < 32 {
//!         ended.extend(cq.poll(&mut buffer)?.iter().map(Wc::wr_id));
//!     }
//!     ended.sort_unstable();
//!     assert!(ended.into_iter().eq(0..32), "seed {seed}: {}", cq.get_mut().injected());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Below the injector nothing has failed, and the peer sees no failure. Faults of the loopback reach both:
//!
//! # Faults of the loopback
//! In the environment, for unchanged programs, or by `OpenOptions::faults`:
//!
//! ```console
//! $ RXE_LOOP_FAULTS="seed=7,defer=50us,rnr=0.01,fail=0.001:RETRY_EXC_ERR" cargo test
//! ```
//!
//! | fault | a program fails if it |
//! |---|---|
//! | `defer=50us` | reuses or frees a buffer before its completion; expects it when posting returns; ends before its sends have completed |
//! | `delay=0.1:2ms` | has deadlines that are too short, or none |
//! | `rnr=0.01` | has a small `rnr_retry`; on UC and UD, expects each message to arrive |
//! | `stop=#9:1s` | waits for a peer without a deadline |
//! | `fail=0.001:RETRY_EXC_ERR` | can't connect again (the guide `recovery` of `cq-verbs`) |
//! | `overrun=#100` | ignores a queue that fails ([O3](cq_core::contract#o3)) |
//! | `spurious=0.3` | takes an event for a completion (the guide `events` of `cq-verbs`) |
//!
//! A fault comes with a probability, or by `#9` at the ninth request of each queue pair. One seed gives every process the same faults.
//! `Context::injected` counts them: check that there were some. `Faults` of `transport-rxe-loop` describes each.
//!
//! The first opening of a fabric decides for its process, even after it was closed: a second seed has no effect. Give each seed a
//! fabric, which keeps its memory (53 MiB by default) until the process ends:
//!
//! ```rust,ignore
//! let fabric = format!("test-{seed}-{}", std::process::id());
//! let faults = Faults::seeded(seed).fail(When::chance(0.1), WcStatus::RETRY_EXC_ERR);
//! let options = OpenOptions::new().fabric(&fabric).limits(Limits::default().bytes(6 << 20));
//! let context = options.faults(faults).open("loop0")?;
//! ```
//!
//! # Strictly
//! The loopback forgives a completion queue that is too small, a receive that is posted again before its completion is polled, a buffer
//! that is reused right after posting. With `RXE_LOOP_STRICT=1` or `OpenOptions::strict` it does not. The manual of `transport-rxe-loop`
//! lists each mistake, and those that stay hidden.
//! `CqHandle::demand` reports how many entries a completion queue lacks, even if no test fills it. Requests are deferred, which
//! takes time; `RXE_LOOP_FAULTS=defer=0us` carries them out at once.
//!
//! # Soft-RoCE
//! `RXE_LOOP_IMITATE=rxe` deviates from the contract as Linux' driver does: other statuses for some errors, larger queues than asked
//! for, an overrun drops completions, and the queue stays usable. A program that keeps to the contract works with all of it.
//!
//! # Processes that are killed
//! A test starts its program's other end as a process, and kills it:
//!
//! 1. The test takes a fabric of its own: `RXE_LOOP_FABRIC=NAME-PID`.
//! 2. It starts the peer, and waits for its output or a socket, never for a time.
//! 3. It [kills](https://doc.rust-lang.org/std/process/struct.Child.html#method.kill) the peer. No handler and no destructor runs.
//! 4. Each request of the survivor must complete, at last with RETRY_EXC or WR_FLUSH ([X3](cq_core::contract#x3)). Its other connections
//!    work, and a new peer can connect.
//!
//! `cargo run -p transport-rxe-loop --example kv_store` does so. After `SIGSTOP` a peer does not answer.
//!
//! # A recipe for CI
//! ```yaml
//! strategy:
//!   matrix:
//!     env:
//!       - RXE_LOOP_FABRIC=plain
//!       - RXE_LOOP_STRICT=1
//!       - RXE_LOOP_STRICT=1 RXE_LOOP_FAULTS="seed=${{ github.run_number }},delay=0.05:1ms,rnr=0.02,spurious=0.2"
//!       - RXE_LOOP_FAULTS="seed=${{ github.run_number }},defer=50us,fail=0.0005:RETRY_EXC_ERR"
//!       - RXE_LOOP_IMITATE=rxe
//! steps:
//!   - uses: actions/checkout@v4
//!   - run: env ${{ matrix.env }} cargo test
//! ```
//!
//! - It needs no root or kernel module, and fits a container's default of 64 MiB of shared memory.
//! - A new seed in each run finds more than a fixed one. To repeat one that failed, run the job again, or the command in its log. `fail`
//!   is for programs that connect again.
//! - Each wait of a test has a deadline, so that a lost wake-up fails.
//! - C programs, and Rust programs over `transport-verbs`, run with `LD_PRELOAD=$PWD/target/release/librxe_loop_verbs.so`.
//! - When something hangs: `cargo run --release -p cqtop -- --once` shows what waits for what.
