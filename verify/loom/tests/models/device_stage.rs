//! Requests for memory that another process moves itself. An atomic is done once, or not at all, however late it is
//! answered (X5); what is asked for is found; what a dead process had asked for is not done after a queue pair was
//! reset (X3); and a receive that was given back is not written to by what was given up with it (X7).

use std::sync::Arc;

use loom::sync::Mutex;
use transport_rxe_loop::protocol::lock::AttachmentId;
use transport_rxe_loop::protocol::stage::{Abandoned, Clients, Recalled, Seen, State, Word};
use transport_rxe_loop::sync::{self, AtomicU32};
use verify_loom::harness::{UNORDERED, model};
use verify_loom::mortal::{Mortal, VICTIM};
use verify_loom::threads::{Watched, spawn};

const TWICE: &str = "done twice, or said to be done and not";
const LEFT: &str = "nobody has found it";
const KEPT: &str = "a stage is nobody's";

const CLIENT: AttachmentId = VICTIM.attachment();
const SERVER: AttachmentId = AttachmentId::new(1);

/// Stages of a client, and the process that it asks.
#[derive(Default)]
struct World {
    words: [Word; 2],
    /// What is asked, and then what is answered.
    requests: [Watched<u32>; 2],
    clients: Clients,
    abandoned: Abandoned,
    /// Held by the thread that serves.
    serving: Mutex<()>,
    /// How often it was done.
    done: AtomicU32,
    /// What it is done to.
    memory: Watched,
    client: Mortal,
}

/// What the client does about a request that is not answered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Care {
    /// As the protocol has it.
    Recalls,
    /// Gives it up, and asks again by another stage.
    GivesUp,
}

impl World {
    /// Writes a request down, and asks.
    fn ask(&self) -> (usize, Seen) {
        let claimed = (0..2).find_map(|nth| Some((nth, self.words[nth].claim(CLIENT, SERVER)?)));
        let (nth, mine) = claimed.unwrap();
        self.requests[nth].set(5);
        let seen = self.words[nth].ask(mine).unwrap();
        self.clients.add(CLIENT);
        (nth, seen)
    }

    /// Reads the answer, and leaves.
    fn read(&self, nth: usize, seen: Seen) {
        assert_eq!(self.requests[nth].get(), 6, "{TWICE}");
        self.words[nth].give_up(seen);
    }

    /// Tries twice, and does not wait for long; whether it was told that it is done.
    fn tries(&self, care: Care) -> bool {
        let mut begun = None;
        for _ in 0..2 {
            let (nth, seen) = begun.take().unwrap_or_else(|| self.ask());
            let word = &self.words[nth];
            match word.recall(seen) {
                Recalled::Answered(seen) => {
                    self.read(nth, seen);
                    return true;
                }
                Recalled::Begun if care == Care::Recalls => begun = Some((nth, seen)),
                Recalled::Begun | Recalled::Back(_) => _ = word.give_up(seen),
                Recalled::Lost => panic!("it lives"),
            }
        }
        if let Some((nth, seen)) = begun {
            self.words[nth].give_up(seen);
        }
        false
    }

    /// Serves whoever has asked.
    fn serve(&self) {
        let _serving = self.serving.lock().unwrap();
        if self.clients.take().count() == 0 {
            return;
        }
        for (word, request) in self.words.iter().zip(&self.requests) {
            let Some(serving) = word.serve(SERVER) else { continue };
            self.memory.write();
            sync::store(&self.done, sync::load(&self.done) + 1);
            request.set(request.get() + 1);
            word.answer(serving);
        }
    }

    /// What the process that was asked does before its memory is the program's again.
    fn reset(&self, cancels: bool) {
        let _serving = self.serving.lock().unwrap();
        let is_dead = self.client.is_dead();
        for word in &self.words {
            let seen = word.seen();
            if cancels && is_dead && seen.state() == Some(State::Asked) {
                word.cancel(seen);
            }
        }
    }

    fn expect_all_free(&self) {
        assert!(self.words.iter().all(|word| word.seen().state().is_none()), "{KEPT}");
    }
}

/// What is left out of giving a receive back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hasty {
    No,
    /// The request is not marked as abandoned.
    MarksNothing,
    /// A thread of the asked clears the mark, whatever another one does.
    ClearsAtOnce,
}

/// A receive is given back with a request to write to it, and then taken by somebody who writes to it himself.
fn given_back(hasty: Hasty) {
    let world = Arc::new(World::default());
    let server = spawn(&world, |world| world.serve());
    let (nth, seen) = world.ask();
    if world.words[nth].give_up(seen) && hasty != Hasty::MarksNothing {
        world.abandoned.mark();
    }
    // As a thread of the asked does that would write to it.
    let serving = world.serving.try_lock();
    if serving.is_ok() || hasty == Hasty::ClearsAtOnce {
        world.abandoned.clear();
    }
    drop(serving);
    if !world.abandoned.is_marked() {
        world.memory.write();
    }
    server.join().unwrap();
    world.expect_all_free();
}

/// The same, where another thread of the asked clears the mark, and who takes the receive only looks.
fn cleared_by_another() {
    let world = Arc::new(World::default());
    let server = spawn(&world, |world| {
        world.serve();
        let _serving = world.serving.lock().unwrap();
        world.abandoned.clear();
    });
    let (nth, seen) = world.ask();
    if world.words[nth].give_up(seen) {
        world.abandoned.mark();
    }
    if !world.abandoned.is_marked() {
        world.memory.write();
    }
    server.join().unwrap();
}

#[test]
fn x07_who_finds_nothing_abandoned_comes_after_what_was() {
    model("a mark is cleared by another", cleared_by_another);
}

#[test]
fn x07_a_receive_that_was_given_back_is_not_written_to_by_what_was_given_up_with_it() {
    let all = || given_back(Hasty::No);
    model("a receive is given back and taken", all)
        .must_fail_as("that it is marked as abandoned", UNORDERED, || {
            given_back(Hasty::MarksNothing)
        })
        .must_fail_as("that nothing is in flight when the mark is cleared", UNORDERED, || {
            given_back(Hasty::ClearsAtOnce)
        });
}

fn an_atomic(care: Care) {
    let world = Arc::new(World::default());
    let asked = spawn(&world, |world| world.serve());
    let is_told = world.tries(care);
    asked.join().unwrap();
    world.serve();
    let done = sync::load(&world.done);
    assert!(if is_told { done == 1 } else { done <= 1 }, "{TWICE}");
    world.expect_all_free();
}

#[test]
fn x05_an_atomic_is_done_once_or_not_at_all_however_late_its_answer_is() {
    model("an atomic is tried again", || an_atomic(Care::Recalls)).must_fail_as(
        "that what is begun is waited for",
        TWICE,
        || an_atomic(Care::GivesUp),
    );
}

/// Asks, in this order, while others are looked for.
fn is_found(tells_after: bool) {
    let world = Arc::new(World::default());
    let asked = spawn(&world, |world| world.serve());
    if !tells_after {
        world.clients.add(CLIENT);
    }
    let mine = world.words[1].claim(CLIENT, SERVER).unwrap();
    let seen = world.words[1].ask(mine).unwrap();
    if tells_after {
        world.clients.add(CLIENT);
    }
    asked.join().unwrap();
    // Who asks has called: the other looks once more.
    world.serve();
    assert_eq!(sync::load(&world.done), 1, "{LEFT}");
    world.words[1].give_up(seen);
}

#[test]
fn x05_what_is_asked_for_is_found() {
    model("a request is looked for", || is_found(true)).must_fail_as(
        "that who asks is told after the request",
        LEFT,
        || is_found(false),
    );
}

/// The client is killed at a step; the other one serves, and takes its memory back.
fn dies(step: u32, cancels: bool) {
    let world = Arc::new(World::default());
    let victim = spawn(&world, move |world| {
        world.client.live(step, || {
            let (nth, seen) = world.ask();
            if let Recalled::Answered(seen) = world.words[nth].recall(seen) {
                world.read(nth, seen);
            }
        });
    });
    let server = spawn(&world, |world| world.serve());
    victim.join().unwrap();
    world.reset(cancels);
    world.memory.write();
    // Whoever sweeps up comes when he comes.
    world.words.iter().for_each(|word| _ = word.recover(CLIENT));
    server.join().unwrap();
    assert!(sync::load(&world.done) <= 1, "{TWICE}");
    world.expect_all_free();
}

#[test]
fn x03_what_a_dead_process_had_asked_for_is_not_done_after_reset() {
    for step in 0..6 {
        model(format!("the client is killed at step {step}"), move || dies(step, true));
    }
    model("the client is killed once it has asked", || dies(3, true)).must_fail_as(
        "that what it had asked for is cancelled",
        UNORDERED,
        || dies(3, false),
    );
}
