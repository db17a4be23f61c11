//! Tests of a live process that lost its descriptor of the fabric, or the record locks that are dropped with any
//! descriptor of the file: it works like any other (X3, X7), and is found dead once it is.

#![allow(unsafe_code)]

use super::*;
use crate::memory::paths::AccessPath;

/// How a process loses its descriptors.
const HOW: &str = "DYING_HOW";
const ROUNDS: u64 = 60;

/// One side: ends with memory of each kind.
struct Side {
    ends: Vec<End>,
    cq: Cq,
    chance: Chance,
    device: &'static Device,
    _context: Context,
}

impl Side {
    fn new(context: Context, seed: u64) -> Self {
        let pd = context.alloc_pd().unwrap();
        let cq = context.create_cq(4 * OUTSTANDING, None).unwrap();
        let end = |memory| End::new(&pd, &cq, memory).unwrap();
        let ends = [Memory::Heap, Memory::Fabric].map(end).into();
        let device = context.device();
        Self { ends, cq, chance: Chance::new(seed), device, _context: context }
    }

    fn work(&mut self) {
        self.ends.iter_mut().for_each(|end| end.work(&mut self.chance).unwrap());
        poll(&mut self.cq, &mut self.ends).unwrap();
    }

    /// Each counts its completions, and checks their order.
    fn fails(&self) -> bool {
        self.ends.iter().any(|end| end.failure.is_some())
    }
}

/// Works a round at each order, and loses its descriptors when it is told to.
#[test]
#[ignore = "a process of another test"]
fn loses_it() {
    die_with_parent();
    let mut side = Side::new(open(), 2);
    side.ends.iter().for_each(|end| say(end.address()));
    for end in &mut side.ends {
        end.connect_to(order().parse().unwrap()).unwrap();
    }
    say("connected");
    loop {
        match order().as_str() {
            "lose" => lose(&std::env::var(HOW).unwrap(), side.device),
            "work" => side.work(),
            "make" => drop(Side::new(open(), 3)),
            "find" => {
                let shm = side.device.shm;
                let dead = shm.die_at(ANOTHER);
                assert!(shm.is_dead(dead), "it can tell");
                until("the dead is swept up after", || {
                    deaths::look(side.device);
                    shm.others().all(|other| other != dead)
                });
            }
            order => panic!("{order}?"),
        }
        say(side.fails());
    }
}

fn lose(how: &str, device: &'static Device) {
    match how {
        // SAFETY: what this process goes on with are its streams, and what is tested.
        "close_range" => unsafe { assert_eq!(libc::close_range(3, u32::MAX, 0), 0) },
        "read" => drop(File::open(device.shm.path().file()).unwrap()),
        how => panic!("{how}?"),
    }
}

fn goes_on_having_lost_it(how: &str) {
    let name = format!("lost-{how}-{}", std::process::id());
    let open_it = || OpenOptions::new().fabric(&name).open("loop0").unwrap();
    let mut side = Side::new(open_it(), 1);
    let environment = [(FABRIC, name.as_str()), (HOW, how)];
    let mut other = Actor::start("inside::dying::descriptors::loses_it", &environment);
    for end in &mut side.ends {
        end.connect_to(other.hear().parse().unwrap()).unwrap();
        other.order(end.address());
    }
    assert_eq!(other.hear(), "connected");
    let mut tell = |what: &str| {
        other.order(what);
        assert_eq!(other.hear(), "false", "{what}: nothing of its own fails");
    };
    let Device { shm, memory, .. } = *side.device;
    let owner = shm.others().next().unwrap();
    let device = side.device;
    let estate = || Estate::of(device, owner.attachment());
    let before = estate();
    tell("work");
    tell("lose");
    for nth in 0..ROUNDS {
        assert!(shm.is_alive(owner.attachment()) && !shm.is_dead(owner));
        assert!(deaths::look(side.device), "it has not left");
        assert!(shm.others().eq([owner]), "nobody takes its place");
        if nth % 10 == 0 {
            tell("make");
            // Files created by others conflict with nothing.
            drop(Side::new(open_it(), 4));
        }
        side.work();
        tell("work");
        assert!(!side.fails(), "{:?}", side.ends);
    }
    assert!(side.ends.iter().all(|end| end.arrived > 0 && end.received() > 0));
    assert_eq!(estate(), before, "nothing of it was freed");
    tell("find");
    until("its memory is reached directly again", || {
        matches!(memory.paths().of(memory, owner.attachment()), AccessPath::Direct(..))
    });
    other.signal(Signal::KILL);
    drop(other);
    recover_all(side.device);
    assert_eq!(audit::ownerless(side.device), [""; 0]);
    assert_eq!(estate(), Estate::default());
}

#[test]
fn x03_a_process_that_closes_all_its_descriptors_is_alive_and_goes_on() {
    goes_on_having_lost_it("close_range");
}

#[test]
fn x03_a_process_that_opens_and_closes_the_fabric_s_file_is_alive_and_goes_on() {
    goes_on_having_lost_it("read");
}
