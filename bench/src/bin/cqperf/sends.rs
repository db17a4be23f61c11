//! Which sends are signaled, and which are done: selective signalling by the rules of the send queue. A
//! completion vouches for every send before it (C9), and a send keeps its slot until a completion that
//! covers it was polled (Q5).

/// The sends of a stream, numbered from 0. Each `every`th is signaled, and the last one.
#[derive(Clone, Copy, Debug)]
pub struct Sends {
    total: u64,
    depth: u64,
    every: u64,
    /// How many were posted, which is the number of the next.
    pub posted: u64,
    /// How many are known to be done.
    pub retired: u64,
    to_signal: u64,
    /// The number of the send that has to complete next.
    pub to_complete: u64,
}

impl Sends {
    /// `total` sends through a queue of `depth`, of which each `every`th is signaled.
    ///
    /// # Panics
    /// If a queue full of sends could hold none that is signaled: nothing would ever come back.
    pub fn new(total: u64, depth: u32, every: u32) -> Self {
        assert!((1..=depth).contains(&every), "a full queue needs a signaled send");
        let (depth, every) = (depth.into(), every.into());
        let first = total.min(every).saturating_sub(1);
        Self { total, depth, every, posted: 0, retired: 0, to_signal: first, to_complete: first }
    }

    /// How many can be posted now.
    pub const fn free_slots(&self) -> u64 {
        self.depth - (self.posted - self.retired)
    }

    /// How many to post now, given so many free slots: a whole `batch`, what is left, or none.
    pub fn ready(&self, batch: u32, free: u64) -> usize {
        let batch = (self.total - self.posted).min(batch.into());
        // At most a batch, which is a u32.
        if batch <= free { batch as usize } else { 0 }
    }

    /// Whether all are known to be done.
    pub const fn done(&self) -> bool {
        self.retired == self.total
    }

    /// Posts the next one: its number, and whether it has to be signaled.
    pub fn post(&mut self) -> (u64, bool) {
        let number = self.posted;
        let signaled = number == self.to_signal;
        if signaled {
            self.to_signal = self.signaled_after(number);
        }
        self.posted += 1;
        (number, signaled)
    }

    /// The send that had to complete next has completed.
    pub fn retire(&mut self) {
        self.retired = self.to_complete + 1;
        self.to_complete = self.signaled_after(self.to_complete);
    }

    fn signaled_after(&self, number: u64) -> u64 {
        number.saturating_add(self.every).min(self.total - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Posts while there are free slots, retires one completion at a time, and lists the signaled sends.
    fn signaled(total: u64, depth: u32, every: u32) -> Vec<u64> {
        let mut sends = Sends::new(total, depth, every);
        let mut signaled = Vec::new();
        let mut completed = 0;
        while !sends.done() {
            while sends.ready(1, sends.free_slots()) > 0 {
                let (number, signal) = sends.post();
                signaled.extend(signal.then_some(number));
            }
            assert!(sends.posted - sends.retired <= depth.into(), "the queue is too short");
            assert!(completed < signaled.len(), "the queue is full and nothing will complete");
            assert_eq!(sends.to_complete, signaled[completed]);
            sends.retire();
            // A slot is free when a completion that covers it was polled.
            assert_eq!(sends.retired, signaled[completed] + 1);
            completed += 1;
        }
        signaled
    }

    #[test]
    fn c09_q05_every_nth_and_the_last_are_signaled_and_the_queue_never_gets_stuck() {
        for (total, depth, every, expected) in [
            (10, 8, 4, &[3, 7, 9][..]),
            (8, 8, 4, &[3, 7]),
            (3, 8, 4, &[2]),
            (3, 8, 1, &[0, 1, 2]),
            (20, 8, 8, &[7, 15, 19]),
            (3, 1, 1, &[0, 1, 2]),
        ] {
            assert_eq!(signaled(total, depth, every), expected, "{total} by {depth}, {every}");
        }
    }

    #[test]
    #[should_panic(expected = "a full queue needs a signaled send")]
    fn signals_further_apart_than_the_queue_is_deep_are_refused() {
        let _ = Sends::new(100, 8, 9);
    }

    #[test]
    fn the_largest_total_does_not_overflow() {
        let last = u64::MAX - 1;
        let mut sends = Sends::new(u64::MAX, 8, 8);
        assert_eq!(sends.free_slots(), 8);
        sends = Sends { posted: last, retired: last, to_signal: last, to_complete: last, ..sends };
        assert_eq!(sends.post(), (last, true));
        sends.retire();
        assert!(sends.done());
    }
}
