//! The work of a process that is going to die: it uses everything.

use super::line::Ends;
use super::*;

/// Pairs with the survivor.
pub const LINES: usize = 4;

/// As many completions as the ends have outstanding, and may have had in their last lives.
const CAPACITY: u32 = OUTSTANDING * (2 * LINES as u32 + 2);

/// The memory of the ends of a line.
const fn memory(which: usize) -> Memory {
    match which {
        0 | 3 => Memory::Fabric,
        1 => Memory::Heap,
        _ => Memory::No,
    }
}

/// Passes the completions of a queue to their ends.
pub fn poll(cq: &mut Cq, ends: &mut [End]) -> Outcome<usize> {
    let mut wcs = [Wc::default(); 32];
    let mut all = 0;
    loop {
        let count = cq.poll_into(&mut wcs)?;
        all += count;
        for wc in &wcs[..count] {
            if let Some(end) = ends.iter_mut().find(|end| end.number() == wc.qp_num()) {
                end.completed(wc);
            }
        }
        if count < wcs.len() {
            return Ok(all);
        }
    }
}

/// Moderates a queue now and then, for a while.
pub fn moderate(cq: &mut Cq, chance: &mut Chance) -> Outcome<()> {
    if chance.one_in(4) {
        cq.moderate(chance.below(5) as u16, chance.below(3_000) as u16)?;
    }
    Ok(())
}

/// A number of ends, two of which share their receives.
pub fn ends(pd: &ProtectionDomain, cq: &Cq, count: usize) -> Outcome<Ends> {
    let commons = Commons::new(pd, Memory::Heap)?;
    let end = |which| match which {
        2 | 3 => End::sharing(pd, cq, memory(which), &commons),
        _ => End::new(pd, cq, memory(which)),
    };
    Ok(((0..count).map(end).collect::<Outcome<_>>()?, commons))
}

/// The ends connected to other processes: the first [`LINES`] to the survivor, the last to another victim.
pub struct Far {
    pub ends: Vec<End>,
    cq: Cq,
    channel: CompletionChannel,
}

impl Far {
    pub fn new(context: &Context, pd: &ProtectionDomain) -> Outcome<Self> {
        let channel = context.create_channel()?;
        let cq = context.cq(CAPACITY).channel(&channel).create()?;
        let (ends, _commons) = ends(pd, &cq, LINES + 1)?;
        ends.iter().for_each(|end| say(end.address()));
        Ok(Self { ends, cq, channel })
    }

    /// Obeys an order "which peer": connects one of the ends.
    pub fn obey(&mut self, order: &str) -> Outcome<()> {
        let (which, peer) = order.split_once(' ').expect("which, and to whom");
        self.ends[which.parse::<usize>().unwrap()].connect_to(peer.parse().unwrap())
    }

    pub fn work(&mut self, chance: &mut Chance) -> Outcome<()> {
        self.ends.iter_mut().try_for_each(|end| end.work(chance))?;
        if chance.one_in(8) {
            self.cq.resize(CAPACITY + chance.below(3) as u32)?;
        }
        moderate(&mut self.cq, chance)?;
        poll(&mut self.cq, &mut self.ends)?;
        let _ = self.cq.arm(if chance.one_in(2) { Notify::Next } else { Notify::Solicited })?;
        poll(&mut self.cq, &mut self.ends)?;
        while self.channel.take_event()?.is_some() {}
        Ok(())
    }
}

/// What the process does within itself.
pub struct Near {
    ends: Vec<End>,
    cq: Cq,
    channel: CompletionChannel,
}

impl Near {
    pub fn new(context: &Context, pd: &ProtectionDomain) -> Outcome<Self> {
        let channel = context.create_channel()?;
        let cq = context.cq(4 * OUTSTANDING).channel(&channel).create()?;
        let commons = Commons::new(pd, Memory::No)?;
        let shares = End::sharing(pd, &cq, Memory::No, &commons)?;
        let mut ends = vec![End::new(pd, &cq, Memory::No)?, shares];
        let addresses = [1, 0].map(|other: usize| ends[other].address());
        ends.iter_mut().zip(addresses).try_for_each(|(end, peer)| end.connect_to(peer))?;
        Ok(Self { ends, cq, channel })
    }

    /// Works some rounds, then destroys one of the ends.
    pub fn work(mut self, chance: &mut Chance) -> Outcome<()> {
        for _ in 0..chance.below(4) {
            self.ends.iter_mut().try_for_each(|end| end.work(chance))?;
            if chance.one_in(2) {
                self.cq.resize(self.cq.capacity() as u32 + 1)?;
            }
            moderate(&mut self.cq, chance)?;
            poll(&mut self.cq, &mut self.ends)?;
            let _ = self.cq.arm(Notify::Next)?;
        }
        while self.channel.take_event()?.is_some() {}
        match chance.below(3) {
            0 => self.ends[0].qp.modify(&QpAttr::new().state(QpState::ERR))?,
            1 => drop(self.ends.pop()),
            _ => {}
        }
        poll(&mut self.cq, &mut self.ends)?;
        Ok(())
    }
}
