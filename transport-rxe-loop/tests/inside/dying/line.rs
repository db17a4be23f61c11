//! The survivor: its ends connected to one victim, what it expects when the victim dies, and what has to hold after
//! each death.

use super::work::moderate;
use super::*;

/// A victim, and the ends that are connected to it.
pub struct Line {
    pub victim: Actor,
    /// How to reach the victim's ends, as far as it has written them.
    addresses: Vec<Address>,
    pub ends: Vec<End>,
    commons: Rc<RefCell<Commons>>,
    pub cq: Cq,
    pub channel: CompletionChannel,
}

/// Ends, and the shared receive queue of some of them.
pub type Ends = (Vec<End>, Rc<RefCell<Commons>>);

impl Line {
    pub fn new(
        context: &Context,
        victim: impl FnOnce() -> Actor,
        ends: impl FnOnce(&Cq) -> Outcome<Ends>,
    ) -> Outcome<Self> {
        let channel = context.create_channel()?;
        let cq = context.cq(2 * LINES as u32 * OUTSTANDING).channel(&channel).create()?;
        let (ends, commons) = ends(&cq)?;
        Ok(Self { victim: victim(), addresses: Vec::new(), ends, commons, cq, channel })
    }

    /// Reads what the victim writes; true if it has just written the last.
    pub fn greets(&mut self) -> bool {
        let before = self.addresses.len();
        while let Some(said) = self.victim.heard() {
            self.addresses.push(said.parse().unwrap());
        }
        let greets = before <= LINES && self.addresses.len() == LINES + 1;
        if greets {
            for (which, end) in self.ends.iter_mut().enumerate() {
                end.connect_to(self.addresses[which]).unwrap();
                self.victim.order(format!("{which} {}", end.address()));
            }
        }
        greets
    }

    /// How another victim connects to this one.
    pub fn mesh(&self) -> Option<Address> {
        self.addresses.get(LINES).copied()
    }

    pub fn work(&mut self, chance: &mut Chance) -> Outcome<()> {
        moderate(&mut self.cq, chance)?;
        let _ = self.cq.arm(Notify::Next)?;
        self.ends.iter_mut().try_for_each(|end| end.work(chance))?;
        poll(&mut self.cq, &mut self.ends)?;
        Ok(())
    }

    fn poll(&mut self) -> usize {
        poll(&mut self.cq, &mut self.ends).unwrap()
    }

    /// Whether each end has sent and received something.
    pub fn has_talked(&self) -> bool {
        self.ends.iter().all(|end| end.arrived > 0 && end.received() > 0)
    }

    /// The victim is dead, or about to be: its peers fail once they send to it.
    pub fn expect_the_end(&mut self, asleep: bool) {
        if self.mesh().is_none() {
            return;
        }
        let deadline = Instant::now() + PATIENCE;
        while !self.ends.iter().all(|end| end.is_done() && end.failure.is_some()) {
            assert!(Instant::now() < deadline, "not everything completes: {:#?}", self.ends);
            // A send that finds a receive still succeeds, dead or not.
            for end in self.ends.iter_mut().filter(|end| end.failure.is_none()) {
                end.post_send(true, true).unwrap();
            }
            if asleep {
                self.sleep();
            }
            self.poll();
            thread::yield_now();
        }
        while !self.commons.borrow().is_whole() {
            assert!(Instant::now() < deadline, "shared receives are lost: {:#?}", self.ends);
            self.poll();
            thread::yield_now();
        }
        for end in &self.ends {
            assert_eq!(end.failure, Some(WcStatus::RETRY_EXC_ERR), "{end:?}");
        }
    }

    /// Waits for an event (N6).
    fn sleep(&mut self) {
        while self.channel.take_event().unwrap().is_some() {}
        let _ = self.cq.arm(Notify::Next).unwrap();
        if self.poll() > 0 || self.ends.iter().all(End::is_done) {
            return;
        }
        let woken = self.channel.block(Some(Instant::now() + PATIENCE / 2)).unwrap();
        let came = self.poll();
        assert_eq!(
            woken,
            Woken::Event,
            "{came} completions came to a sleeper that nobody woke: {:?}",
            self.ends
        );
    }

    /// Another victim, for the same queue pairs or for others.
    pub fn replace(&mut self, pd: &ProtectionDomain, victim: Actor, anew: bool) {
        self.poll();
        self.victim = victim;
        self.addresses.clear();
        if anew {
            (self.ends, self.commons) = work::ends(pd, &self.cq, LINES).unwrap();
        }
    }
}

/// The surviving process, with all its lines.
pub struct Survivor {
    context: Context,
    pub pd: ProtectionDomain,
    pub device: &'static Device,
    pub lines: Vec<Line>,
    pub chance: Chance,
    /// What this process owns while it has its lines.
    pub estate: Estate,
}

impl Survivor {
    /// A survivor with lines to victims that `start` starts.
    pub fn new(lines: usize, seed: u64, start: impl Fn() -> Actor) -> Self {
        let context = open();
        let (pd, device) = (context.alloc_pd().unwrap(), context.device);
        let line = |_| Line::new(&context, &start, |cq| work::ends(&pd, cq, LINES)).unwrap();
        let lines = (0..lines).map(line).collect();
        let estate = Estate::mine(device);
        Self { context, pd, device, lines, chance: Chance::new(seed), estate }
    }

    /// Works with all, and connects new victims.
    pub fn work(&mut self) {
        for at in 0..self.lines.len() {
            if self.lines[at].greets() {
                self.introduce(at);
            }
            self.lines[at].work(&mut self.chance).unwrap();
        }
    }

    /// Connects a victim to its neighbour, if it has one.
    fn introduce(&mut self, at: usize) {
        let neighbour = at ^ 1;
        let mesh = |at| self.lines.get(at).and_then(Line::mesh);
        let both = (mesh(at), mesh(neighbour));
        if let (Some(one), Some(other)) = both {
            self.lines[at].victim.order(format!("{LINES} {other}"));
            self.lines[neighbour].victim.order(format!("{LINES} {one}"));
        }
    }

    pub fn work_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.work();
        }
    }

    /// The device of this process, and a new pair in it.
    pub fn use_device(&mut self) {
        let cq = &mut self.context.cq(2 * OUTSTANDING).create().unwrap();
        let mut ends = [(); 2].map(|()| End::new(&self.pd, cq, Memory::No).unwrap());
        let addresses = [1, 0].map(|other: usize| ends[other].address());
        for (end, peer) in ends.iter_mut().zip(addresses) {
            end.connect_to(peer).unwrap();
            end.post_recvs(2).unwrap();
        }
        ends.iter_mut().for_each(|end| end.post_send(true, false).unwrap());
        until("a new pair works", || {
            poll(cq, &mut ends).unwrap();
            ends.iter().all(|end| end.arrived == 1 && end.received() == 1)
        });
    }

    pub fn nothing_is_left_of_the_dead(&mut self) {
        let mut last = Vec::new();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = audit::ownerless(self.device);
            if left.is_empty() {
                return;
            }
            // An object that a live victim creates or destroys right now is incomplete for a moment.
            if Instant::now() > deadline {
                panic!("this is left of the dead: {left:#?}, before: {last:#?}");
            }
            last = left;
            // The death of a process connected to no other may go unnoticed; a process that opens the device checks.
            drop(open());
            self.work_for(Duration::from_millis(1));
        }
    }
}
