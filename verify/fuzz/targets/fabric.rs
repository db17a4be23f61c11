//! A process of the same user writes anything anywhere into a fabric's file, between the calls of its victims and within them:
//! there it is a word that the victim is about to load.
//! The victims are two processes: one creates every kind of object, connects, posts, polls, changes and destroys; the other
//! attaches to what was overwritten, exchanges messages, and ends without cleaning up, so that the first recovers from its
//! death. Neither may panic, hang, or touch memory that was not registered, and a wait for a lock ends in time.
#![no_main]

use std::io::{Read, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process;
use std::time::{Duration, Instant};

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use transport_rxe_loop::{Context, Endpoint, OpenError, OpenOptions, fuzzing};
use verify_fuzz::fabric::{self, Edit, Edits, Hostile, LIMITS, Write};
use verify_fuzz::objects::{Act, Canary, Objects, Place};
use verify_fuzz::victim::{self, Victim};

#[derive(Arbitrary, Debug)]
struct Input {
    strict: bool,
    imitates: bool,
    by_service: bool,
    second: u8,
    /// An array: random bytes make short lists.
    rounds: [Round; 48],
    steps: Vec<Step>,
}

/// An exchange with edits of words that it is about to load.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Round {
    what: u8,
    edits: [Edit; 2],
}

#[derive(Arbitrary, Clone, Debug)]
enum Step {
    Write(Write),
    Writes([Write; 16]),
    Look,
    Edits([Edit; 4]),
    Act(Act),
    /// The other victim does something.
    Other,
    OtherDies,
    Recover,
}

/// More steps find nothing that fewer do not.
const MOST: usize = 64;
/// Other edits happen within so many loads.
const WITHIN: usize = 1 << 10;
/// How long rounds may take, all together.
const PATIENCE: Duration = Duration::from_secs(1);

fuzz_target!(|input: Input| {
    let fabric = fabric::name(process::id());
    victim::run(|| first(&fabric, input));
});

fn open(fabric: &str, input: &Input) -> Result<Context, OpenError> {
    let mut options = OpenOptions::new().fabric(fabric).limits(LIMITS);
    if input.strict {
        options = options.strict();
    }
    if input.imitates {
        options = options.imitate_rxe();
    }
    if input.by_service {
        options = options.copying_by_service();
    }
    options.open("loop0")
}

/// The victim that makes the fabric.
fn first(fabric: &str, input: Input) {
    let (near, far) = UnixStream::pair().expect("there are descriptors");
    let second = (input.second % 4 == 3).then(|| Victim::start(|| second(fabric, &input, &far)));
    drop(far);
    let mut canary = Canary::new();
    let context = open(fabric, &input).expect("nothing was written yet");
    let mut objects = Objects::new(context, &mut canary).expect("nothing was written yet");
    let mut hostile = Hostile::open(fabric).expect("it is a file");
    let mut other = Other { stream: second.is_some().then_some(near), said: None };
    let mut edits = None;
    play(&mut objects, &hostile, &input.rounds);
    for step in input.steps.into_iter().take(MOST) {
        match step {
            Step::Write(write) => hostile.write(write),
            Step::Writes(writes) => writes.iter().for_each(|write| hostile.write(*write)),
            Step::Look => hostile.look(),
            Step::Edits(new) => {
                drop(edits.take());
                edits = Some(Edits::begin(&hostile, &new, WITHIN));
            }
            Step::Other => other.act(&mut objects),
            Step::OtherDies => other.end(),
            Step::Recover => fuzzing::recover(&objects.context),
            Step::Act(act) => objects.act(&act, other.said.as_ref()),
        }
    }
    drop(edits);
    other.end();
    second.into_iter().for_each(Victim::wait);
    fuzzing::recover(&objects.context);
    drop(objects);
    canary.check();
    fuzzing::leave();
}

/// Plays rounds: each exchange once as it should be, and once with edits.
fn play(objects: &mut Objects, hostile: &Hostile, rounds: &[Round]) {
    // Each lock that seems to be held costs time.
    let end = Instant::now() + PATIENCE;
    for round in rounds.iter().filter(|it| it.edits.iter().any(Edit::is_any)) {
        let mut loads = 0;
        for edits in [&[][..], &round.edits] {
            let edits = Edits::begin(hostile, edits, loads);
            objects.exchange(round.what);
            loads = edits.loads();
            drop(edits);
            if objects.mend().is_none() || Instant::now() > end {
                return;
            }
        }
    }
}

/// What a victim says of itself.
type Said = [u8; Endpoint::BYTES + Place::BYTES];

/// The second victim, as the first one knows it.
struct Other {
    stream: Option<UnixStream>,
    said: Option<(Endpoint, Place)>,
}

impl Other {
    /// Has it do something, and waits until that is done.
    fn act(&mut self, objects: &mut Objects) {
        let Some(mut stream) = self.stream.as_ref() else { return };
        let mut said = [0; size_of::<Said>()];
        if stream.write_all(&say(objects)).and_then(|()| stream.read_exact(&mut said)).is_ok() {
            self.said = hear(&said);
        }
    }

    /// Has it die. It has this end of the stream, too.
    fn end(&mut self) {
        self.stream.take().into_iter().for_each(|stream| _ = stream.shutdown(Shutdown::Both));
    }
}

fn say(objects: &Objects) -> Said {
    let (end, place) = objects.end();
    let mut said = [0; size_of::<Said>()];
    said[..Endpoint::BYTES].copy_from_slice(&end.to_bytes());
    said[Endpoint::BYTES..].copy_from_slice(&place.to_bytes());
    said
}

fn hear(said: &Said) -> Option<(Endpoint, Place)> {
    let (end, place) = said.split_first_chunk()?;
    Some((Endpoint::from_bytes(end).ok()?, Place::from_bytes(place.first_chunk()?)))
}

/// The victim that attaches to what was overwritten, and dies.
fn second(fabric: &str, input: &Input, mut far: &UnixStream) {
    let (mut said, mut canary) = ([0; size_of::<Said>()], Canary::new());
    let Ok(()) = far.read_exact(&mut said) else { return };
    let Ok(context) = open(fabric, input) else { return };
    let Ok(mut objects) = Objects::new(context, &mut canary) else { return };
    for step in input.steps.iter().rev().take(MOST) {
        let peer = hear(&said);
        if let Step::Act(act) = step {
            objects.act(act, peer.as_ref());
        }
        if far.write_all(&say(&objects)).and_then(|()| far.read_exact(&mut said)).is_err() {
            break;
        }
    }
    canary.check();
    // What it has is left to the first.
    std::mem::forget(objects);
}
