//! The clock of embassy: the timer's interrupt counts ticks, and wakes the tasks whose time has come.

use core::cell::RefCell;
use core::task::Waker;

use critical_section::Mutex;
use embassy_time_driver::{Driver, time_driver_impl};
use embassy_time_queue_utils::Queue;
use firmware::board::Timer;

/// The cycles of a tick, which the feature `tick-hz-1_000` of embassy-time declares to be a millisecond: at 10 MHz, as QEMU's
/// RISC-V machine has.
const CYCLES: u32 = 10_000;

struct Clock {
    timer: Option<Timer>,
    now: u64,
    queue: Queue,
}

struct Ticks(Mutex<RefCell<Clock>>);

time_driver_impl!(static TICKS: Ticks = Ticks(Mutex::new(RefCell::new(Clock {
    timer: None,
    now: 0,
    queue: Queue::new(),
}))));

impl Ticks {
    fn with<R>(&self, access: impl FnOnce(&mut Clock) -> R) -> R {
        critical_section::with(|cs| access(&mut self.0.borrow_ref_mut(cs)))
    }
}

impl Driver for Ticks {
    fn now(&self) -> u64 {
        self.with(|clock| clock.now)
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        // Each tick looks at the queue, so no alarm is set.
        self.with(|clock| clock.queue.schedule_wake(at, waker));
    }
}

/// Starts the clock.
pub fn start() {
    TICKS.with(|clock| clock.timer.insert(Timer::take()).start(CYCLES));
}

/// The timer's interrupt.
pub fn on_timer() {
    TICKS.with(|clock| {
        clock.timer.iter_mut().for_each(|timer| timer.start(CYCLES));
        clock.now += 1;
        clock.queue.next_expiration(clock.now);
    });
}
