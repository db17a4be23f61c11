//! READs and atomics against everything that ends them, at either end, while a third thread's receives let
//! them go on. What was done has completed, what has completed was done, and where a region is gone nothing
//! moves any more.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use crate::common::*;

/// Rounds of requests: a SEND, a FETCH_ADD, and a READ of what that one has counted.
const ROUNDS: u64 = 40;
const CAPS: QpCaps = QpCaps::USUAL
    .max_send_wr(3 * ROUNDS as u32)
    .max_recv_wr(ROUNDS as u32)
    .max_send_sge(1)
    .max_recv_sge(1)
    .max_inline(8);

/// What memory is filled with once it is not registered any more.
const MARK: u64 = 0x7777_7777_7777_7777;

/// What ends them.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ending {
    To(QpState),
    Destroy,
    Deregister,
}

const ENDINGS: [Ending; 4] =
    [Ending::To(QpState::ERR), Ending::To(QpState::RESET), Ending::Destroy, Ending::Deregister];

/// One end: a queue pair that another thread may take away, and memory of the test's own.
struct Side {
    qp: Mutex<Option<QueuePair>>,
    cq: Cq,
    region: Mutex<Option<MemoryRegion>>,
    memory: Vec<AtomicU64>,
    at: RemoteAddr,
}

impl Side {
    fn new(words: usize) -> Self {
        let (pd, cq) = (open().alloc_pd().unwrap(), open().cq(3 * ROUNDS as u32).create().unwrap());
        let memory: Vec<_> = (0..words).map(|_| AtomicU64::new(0)).collect();
        // SAFETY: the memory is kept for longer than the region, and is atomics.
        let region = unsafe { pd.register(memory.as_ptr() as *mut u8, words * 8, ALL) }.unwrap();
        let qp = pd.qp(&cq).caps(CAPS).create().unwrap();
        let at = RemoteAddr { addr: region.addr(), rkey: region.rkey() };
        Self { qp: Mutex::new(Some(qp)), cq, region: Mutex::new(Some(region)), memory, at }
    }

    /// Does it, unless the queue pair is gone.
    fn on_qp<R>(&self, act: impl FnOnce(&mut QueuePair) -> R) -> Option<R> {
        self.qp.lock().unwrap().as_mut().map(act)
    }

    fn connect(&self, other: &Self) {
        let number = other.on_qp(|qp| qp.number()).unwrap();
        self.on_qp(|qp| qp.connect_to(number)).unwrap().unwrap();
    }

    fn word(&self, index: u64) -> u64 {
        self.memory[index as usize].load(Relaxed)
    }

    fn sge(&self, index: u64) -> [Sge; 1] {
        [Sge { addr: self.at.addr + index * 8, length: 8, lkey: self.at.rkey }]
    }

    /// What the first word held then.
    fn end(&self, how: Ending) -> u64 {
        match how {
            Ending::To(state) => {
                self.on_qp(|qp| qp.modify(&QpAttr::new().state(state))).unwrap().unwrap()
            }
            Ending::Destroy => drop(self.qp.lock().unwrap().take()),
            Ending::Deregister => {
                self.region.lock().unwrap().take().unwrap().deregister();
                let held = self.word(0);
                self.memory.iter().for_each(|word| word.store(MARK, Relaxed));
                return held;
            }
        }
        0
    }

    /// Posts what there is to post, round by round, until it is refused; how many requests were taken.
    fn post_all(&self, mut post: impl FnMut(&mut QueuePair, u64) -> Result<(), PostError>) -> u64 {
        let mut posted = 0;
        for round in 0..ROUNDS {
            match self.on_qp(|qp| post(qp, round)) {
                Some(Ok(())) => posted += 3,
                Some(Err(error)) => {
                    assert_eq!(error.why, WrError::WrongState);
                    return posted + error.posted as u64;
                }
                None => return posted,
            }
        }
        posted
    }
}

/// Requests of `a`, carried out by its own thread or by that of `b`, until a third thread ends them, some
/// time after the counter has got that far. How many were posted, and what the counter held when they were ended.
fn race(a: &Side, b: &Side, ending: Ending, here: bool, after: u64) -> (u64, u64) {
    thread::scope(|scope| {
        let posting = scope.spawn(|| {
            a.post_all(|qp, round| {
                qp.post_send(&[
                    SendWr::send_inline(3 * round, b"go"),
                    SendWr::fetch_add(3 * round + 1, &a.sge(2 * round), b.at, 1),
                    SendWr::read(3 * round + 2, &a.sge(2 * round + 1), b.at),
                ])
            })
        });
        let sge = [Sge { addr: b.at.addr + 8, length: 8, lkey: b.at.rkey }];
        scope.spawn(move || b.post_all(|qp, round| qp.post_recv(&[RecvWr::new(round, &sge)])));
        wait_for(|| b.word(0) >= after);
        let held = if here { a } else { b }.end(ending);
        (posting.join().unwrap(), held)
    })
}

fn check(ending: Ending, here: bool, after: u64) {
    let (mut a, b) = (Side::new(2 * ROUNDS as usize), Side::new(2));
    a.connect(&b);
    b.connect(&a);
    let (posted, held) = race(&a, &b, ending, here, after);
    a.on_qp(|qp| {
        qp.state().unwrap() != QpState::RESET
            && qp.modify(&QpAttr::new().state(QpState::ERR)).is_ok()
    });

    let all = take(&mut a.cq);
    let case = format!("{ending:?}, here {here}, {after}: {all:?}");
    assert!(all.iter().map(Wc::wr_id).eq(0..all.len() as u64), "{case}");
    let dropped = here && [Ending::To(QpState::RESET), Ending::Destroy].contains(&ending);
    assert!(all.len() as u64 == posted || dropped, "{case}");
    let good = all.iter().take_while(|wc| wc.status() == S::SUCCESS).count() as u64;
    assert!(all[good as usize..].iter().all(|wc| wc.status() != S::SUCCESS), "{case}");

    let gone = |side: bool| ending == Ending::Deregister && here == side;
    let counter = if gone(false) { held } else { b.word(0) };
    // An atomic is carried out before anybody looks where its answer goes.
    let unanswered = |wc: &Wc| wc.status() == S::LOC_PROT_ERR && wc.wr_id() % 3 == 1;
    let one_more = gone(true) && all.get(good as usize).is_some_and(unanswered);
    assert_eq!(counter, (good + 1) / 3 + u64::from(one_more), "{case}");
    assert!(!gone(false) || b.word(0) == MARK, "{case}");
    for round in 0..ROUNDS {
        let answers = (a.word(2 * round), a.word(2 * round + 1));
        let wanted = match 3 * round {
            _ if gone(true) => (MARK, MARK),
            read if read + 2 < good => (round, round + 1),
            add if add + 1 < good => (round, 0),
            _ => (0, 0),
        };
        assert_eq!(answers, wanted, "round {round}, {case}");
    }
}

#[test]
fn c08_what_was_done_has_completed_and_what_has_completed_was_done() {
    for after in (0..ROUNDS).chain(0..ROUNDS) {
        for ending in ENDINGS {
            for here in [true, false] {
                check(ending, here, after);
            }
        }
    }
}
