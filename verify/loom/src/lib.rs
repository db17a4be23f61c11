//! Loom models of the engine's protocols: every interleaving of a few steps, and every value that a load
//! may see, up to a bound on preemptions. It is empty unless compiled with `--cfg loom`:
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" cargo test --release -p verify-loom -- --show-output
//! ```
//!
//! Each file of `tests/models` is a protocol. A `model` must hold; then each of its controls takes out one `Site`
//! of the protocol, as `cq_core::sync` and `transport_rxe_loop::sync` list them, and the same model must fail, at the assertion that the
//! control names. `tests/models/coverage.rs` sees to it that no site is without a control.
//!
//! The engine's sites are memory orderings and fences. A control of another step is a wrong text in `verify/controls.toml`,
//! which `cargo verify mutate` plants in a copy, so that the engine's sources hold the right algorithm alone.
//!
//! | module | owns |
//! |---|---|
//! | `harness` | runs models and controls, and prints a line for each |
//! | `threads` | spawns the threads of a model; what they sleep on, and what loom watches |
//! | `queue` | numbered completions, and a queue that threads can own together |
//! | `shared` | a queue with several producers, and what each of them pushes |
//! | `mortal` | a process that is killed, and locks that outlive it |
//! | `initiator` | a queue pair that carries requests out, as its owner and as the thread that posts |
//! | `receiver` | a queue pair whose receives somebody else takes, and what has completed of them |
//! | `pool` | receives that are shared, and what has completed of them |
//! | `fanin` | a queue that processes push to in turns, each of which can be killed |
//! | `channel` | a count of events, a channel to sleep on, and the sleeper |
//!
//! | variable | means | default |
//! |---|---|---|
//! | `LOOM_MAX_PREEMPTIONS` | preemptions in one execution | 3; 2 in a model that is large with those already |
//! | `VERIFY_LONG` | any value: no model is too large for 3 | not set |
//! | `LOOM_UNBOUNDED` | any value: no bound on them | not set |
//! | `LOOM_MAX_DURATION` | seconds after which a model fails as cut off | 120 |
//! | `LOOM_WITHOUT_CONTROLS` | any value: models alone are run | not set |
//! | `LOOM_MODEL` | a name: of the models in a test, only the one that is called so is run | not set |
#![cfg(loom)]

pub mod channel;
pub mod fanin;
pub mod harness;
pub mod initiator;
pub mod mortal;
pub mod pool;
pub mod queue;
pub mod receiver;
pub mod shared;
pub mod threads;
