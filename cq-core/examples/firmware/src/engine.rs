//! The hardware, played by the timer: a DMA engine with two channels. Each channel executes a ring of
//! descriptors in order, one each time that the timer expires. On a board there is no such file.

use core::cell::RefCell;
use core::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use critical_section::Mutex;

use crate::board::{Timer, pend_interrupt};

/// The number of descriptors in the ring of a channel.
pub const DESCRIPTORS: usize = 8;
/// The number of words that a descriptor moves.
pub const WORDS: usize = 4;
/// The number of bytes that it moves.
pub const MOVED: u16 = (WORDS * size_of::<u32>()) as u16;

/// The states of a descriptor. The driver writes the first two, the engine the others.
pub const FREE: u32 = 0;
pub const POSTED: u32 = 1;
pub const DONE: u32 = 2;
pub const FAILED: u32 = 3;

/// The memory that the engine reaches. The address of a word is its index.
pub static MEMORY: [AtomicU32; 2 * DESCRIPTORS * WORDS] =
    [const { AtomicU32::new(0) }; 2 * DESCRIPTORS * WORDS];
/// The channel that raises the interrupt each time that it has finished a descriptor.
pub static INTERRUPTING: Channel = Channel::new(0, true);
/// The channel that raises none.
pub static SILENT: Channel = Channel::new(1, false);

static ENGINE: Mutex<RefCell<Option<Engine>>> = Mutex::new(RefCell::new(None));

/// A descriptor, in memory that the engine and the driver share.
pub struct Descriptor {
    pub source: AtomicU32,
    pub target: AtomicU32,
    pub state: AtomicU32,
}

impl Descriptor {
    const fn new() -> Self {
        Self { source: AtomicU32::new(0), target: AtomicU32::new(0), state: AtomicU32::new(FREE) }
    }
}

/// A channel: its ring of descriptors.
pub struct Channel {
    ring: [Descriptor; DESCRIPTORS],
    pub number: u8,
    interrupts: bool,
}

impl Channel {
    const fn new(number: u8, interrupts: bool) -> Self {
        Self { ring: [const { Descriptor::new() }; DESCRIPTORS], number, interrupts }
    }

    /// The descriptor at a position in the sequence of all that were posted.
    pub fn descriptor(&self, position: u32) -> &Descriptor {
        &self.ring[position as usize % DESCRIPTORS]
    }
}

/// The registers.
struct Engine {
    timer: Timer,
    /// How long the execution of a descriptor takes.
    cycles: u32,
    /// The position of the next descriptor, of each channel.
    next: [u32; 2],
}

/// Switches the engine on.
pub fn power_on() {
    let engine = Engine { timer: Timer::take(), cycles: 0, next: [0; 2] };
    critical_section::with(|cs| ENGINE.replace(cs, Some(engine)));
}

/// The doorbell: the engine looks at the rings after so many cycles, and executes a descriptor. It does so again each
/// time that as many cycles have passed, until no descriptor is posted.
pub fn ring_doorbell(cycles: u32) {
    with_engine(|engine| {
        engine.cycles = cycles;
        engine.timer.start(cycles);
    });
}

/// The timer's interrupt.
pub fn on_timer() {
    with_engine(|engine| {
        engine.timer.stop();
        if engine.execute_posted() {
            engine.timer.start(engine.cycles);
        }
    });
}

impl Engine {
    /// Executes a descriptor of each channel. Returns whether another one is posted.
    fn execute_posted(&mut self) -> bool {
        let mut is_posted = false;
        for (channel, next) in [&INTERRUPTING, &SILENT].into_iter().zip(&mut self.next) {
            if execute(channel, *next) {
                *next = next.wrapping_add(1);
            }
            is_posted |= channel.descriptor(*next).state.load(Relaxed) == POSTED;
        }
        is_posted
    }
}

/// Executes the descriptor at this position, and returns whether there was one.
fn execute(channel: &Channel, position: u32) -> bool {
    let Descriptor { source, target, state } = channel.descriptor(position);
    if state.load(Acquire) != POSTED {
        return false;
    }
    let words = |address: &AtomicU32| MEMORY.get(address.load(Relaxed) as usize..)?.get(..WORDS);
    let state_after = match (words(source), words(target)) {
        (Some(source), Some(target)) => {
            for (from, to) in source.iter().zip(target) {
                to.store(from.load(Relaxed), Relaxed);
            }
            DONE
        }
        _ => FAILED,
    };
    state.store(state_after, Release);
    if channel.interrupts {
        pend_interrupt();
    }
    true
}

fn with_engine(access: impl FnOnce(&mut Engine)) {
    critical_section::with(|cs| ENGINE.borrow_ref_mut(cs).as_mut().map(access));
}
