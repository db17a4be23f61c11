//! Testing a data plane with what goes wrong seldom: failures, late completions, overruns, spurious events, peers that are
//! killed. Each tool finds other mistakes, and all of them are reproducible.
//!
//! | tool | what runs | finds |
//! |---|---|---|
//! | [`fake::Script`](crate::fake::Script) | code that is generic over a transport, without a device or threads | wrong orders of calls: a sleep without a second poll, an error that is ignored, a post that is repeated |
//! | [`fault::FaultInjector`](crate::fault::FaultInjector) | the same code, around any transport | loops that depend on when completions come: late, reordered between queue pairs, failed, with spurious events |
//! | `RXE_LOOP_FAULTS` | unchanged programs on the loopback | the same, and buffers that are reused too early, peers that stop, queues that overrun |
//! | `RXE_LOOP_STRICT=1` | unchanged programs on the loopback | what works on the loopback alone: queues that are too small, expected orders and times |
//! | `RXE_LOOP_IMITATE=rxe` | unchanged programs on the loopback | what depends on the contract where Linux' Soft-RoCE deviates |
//! | `RXE_LOOP_LINK_LAYER=ethernet` | unchanged programs on the loopback | what works on InfiniBand alone: paths without a global route, a fixed GID index |
//! | processes that are killed | two or more processes on the loopback | peers that are waited for without end, state that is lost with a connection |
//! | [`rules`](crate::rules) | a transport, a software queue or an entry of your own | breaches of the rules of polling, arming and overrun |
//!
//! The first two and the last are in this crate:
//!
//! ```toml
//! [dev-dependencies]
//! cq-testing = { path = "REPOSITORY/cq-core/testing" }
//! ```
//!
//! # Scripts
//! A [`Script`](crate::fake::Script) is one timeline of a queue, its channel and a queue pair. It says what each
//! call finds, and records the calls. So it tests one interleaving exactly. Here a sender retries what is refused because
//! the queue is full, and nothing else:
//!
//! ```
//! use cq_core::transport::CqKey;
//! use cq_testing::fake::Script;
//! use cq_verbs::ledger::{Array, Generation, NotPostedError, Sends};
//! use cq_verbs::post::{Post, WrError};
//! use cq_verbs::wr::SendWr;
//!
//! /// The code under test. Keeps what the queue has no slot for.
//! fn send<Q: Post>(qp: &mut Q, sends: &mut Sends<u8, Array<8>>, later: &mut Vec<u8>, token: u8) -> Result<(), NotPostedError<u8>> {
//!     match sends.post(qp, SendWr::send_inline(0, b"ping"), token) {
//!         Err(full) if full.why == WrError::QueueFull => later.push(full.token),
//!         posted => return posted,
//!     }
//!     Ok(())
//! }
//!
//! let script = Script::<16>::new(CqKey { index: 0, generation: 1 })
//!     .on_send(Ok(1))
//!     .on_send(Err(WrError::QueueFull))
//!     .on_send(Err(WrError::TooManySges { max: 1 }));
//! let (mut sends, mut later) = (Sends::fixed(Generation::new(1)), Vec::new());
//! assert!(send(&mut &script, &mut sends, &mut later, 1).is_ok());
//! assert!(send(&mut &script, &mut sends, &mut later, 2).is_ok());
//! let refused = send(&mut &script, &mut sends, &mut later, 3).unwrap_err();
//! assert_eq!((refused.token, refused.why), (3, WrError::TooManySges { max: 1 }));
//! assert_eq!((later, sends.outstanding()), (vec![2], 1));
//! script.done()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Injected faults
//! A [`FaultInjector`](crate::fault::FaultInjector) wraps any transport: a script, a software queue, a device.
//! The same seed gives the same faults, so a test goes through many seeds, and prints the one that failed:
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
//!         .reorder(When::chance(0.3)) // those of several queue pairs come in another order
//!         .fail(When::chance(0.1), WcStatus::RETRY_EXC_ERR); // and then its queue pair is flushed
//!     let (mut device, consumer) = HeapCq::new(64)?.split();
//!     for wr_id in 0..32 {
//!         device.push(&Wc::new(wr_id, WcStatus::SUCCESS, wr_id as u32 % 4))?;
//!     }
//!     let mut cq = CompletionQueue::new(FaultInjector::<_, 16>::new(consumer, &faults));
//!
//!     // The code under test would be here. What must hold: each request ends once.
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
//! Below the injector nothing has failed: bytes were moved, the peer knows of nothing. Faults of that kind are in the
//! loopback.
//!
//! # Faults of the loopback
//! In the environment, for programs that are not changed, or by `OpenOptions::faults`:
//!
//! ```console
//! $ RXE_LOOP_FAULTS="seed=7,defer=50us,rnr=0.01,fail=0.001:RETRY_EXC_ERR" cargo test
//! ```
//!
//! | fault | a program that fails then |
//! |---|---|
//! | `defer=50us` | reuses or frees a buffer before its completion; expects a completion when posting returns; ends before its sends have completed |
//! | `delay=0.1:2ms` | has deadlines that are too short, or none |
//! | `rnr=0.01` | has a small `rnr_retry`; on UC and UD, expects each message to arrive |
//! | `stop=#9:1s` | waits for a peer without a deadline |
//! | `fail=0.001:RETRY_EXC_ERR` | has no way to connect again (the guide `recovery` of `cq-verbs`) |
//! | `overrun=#100` | ignores a queue that fails ([O3](cq_core::contract#o3)) |
//! | `spurious=0.3` | takes an event for a completion (the guide `events` of `cq-verbs`) |
//!
//! When a fault comes is a probability, or `#9` for the ninth request of each queue pair. One seed gives every process the same faults:
//! start each process with another seed for others. `Faults` of `transport-rxe-loop` has each in
//! detail, and `Context::injected` has how many there were: a test that injects faults should see that they happened.
//!
//! # Strictly
//! The loopback is faster and more regular than hardware. It forgives a completion queue that is too small, a receive that
//! is posted again before its completion is polled, a buffer that is reused right after posting. Strictly, it does not:
//!
//! ```console
//! $ RXE_LOOP_STRICT=1 cargo test
//! ```
//!
//! or `OpenOptions::strict`. A completion queue overruns at exactly its capacity; requests are carried out after posting
//! has returned; the completion of a send comes before that of its receive; the last bytes of a WRITE are visible
//! first; too many READs, another first packet number, or a wrong path fail as on a card. `CqHandle::demand` tells what the
//! queue pairs of a completion queue can have outstanding, and how many entries are missing, also in a program that never
//! comes so far in its tests. The manual of `transport-rxe-loop` lists each mistake, and those that stay hidden.
//! It costs time: four producers that send 50,000 messages each took 4.7 s instead of 0.3 s, and 1.9 s with
//! `RXE_LOOP_FAULTS=defer=0us`, which carries requests out at once.
//!
//! # Soft-RoCE
//! `RXE_LOOP_IMITATE=rxe` deviates from the contract as Linux' driver does: other statuses for some errors, queues that
//! are larger than was asked for, an overrun that drops completions and goes on. A program that keeps to the contract works
//! with all of it. Use it if the program is to run on Soft-RoCE.
//!
//! # Processes that are killed
//! Processes share the loopback, so a test starts its program's other end as a process, and kills it:
//!
//! 1. The test takes a fabric of its own, `RXE_LOOP_FABRIC=NAME-PID`, so that tests do not meet.
//! 2. It starts the peer, and waits until that is at work: by its output, or a socket; never for a time.
//! 3. [`kill`](https://doc.rust-lang.org/std/process/struct.Child.html#method.kill). No handler runs, no destructor: as if its host had lost power.
//! 4. What must hold: each request of the survivor completes, at last with RETRY_EXC or WR_FLUSH
//!    ([X3](cq_core::contract#x3)), its other connections go on, and a peer that is started again can connect.
//!
//! `cargo run -p transport-rxe-loop --example kv_store` does so: one of its clients is killed at work, and its entries of
//! the completion queue go to another. `SIGSTOP` instead of `SIGKILL` makes a peer that does not answer and comes back.
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
//!   - run: env ${{ matrix.env }} cargo test
//! ```
//!
//! - It needs no root, no kernel module, and 64 MiB of shared memory: `docker run --shm-size` has that by default.
//! - A new seed in each run finds more than one that is fixed; printing it, as above, makes the failure reproducible.
//! - The line with `fail` is for programs that connect again. For others, failing is right.
//! - Each wait of a test has a deadline, so that a lost wake-up is a failure and not a hung job.
//! - A C program, or a Rust program over `transport-verbs`, runs with
//!   `LD_PRELOAD=$PWD/target/release/librxe_loop_verbs.so` under the same variables.
//! - When something hangs: `cargo run --release -p cqtop -- --once` shows what waits for what.
