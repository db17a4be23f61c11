//! What others can do to a pool and to whoever uses it: be suspended over its lock, or write into it.

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::conditions::PEER_SUSPENDED;
use crate::inside::prelude::*;
use crate::protocol::pool::Queue;
use crate::protocol::stage::State;
use crate::shm::{claim, header, liveness};

/// A queue pair that is its own peer, waits for ever, and takes its receives from a shared queue, which has one.
struct Alone {
    qp: QueuePair,
    srq: SharedReceiveQueue,
    fixture: Fixture,
    engine: &'static Engine,
}

impl Alone {
    fn new() -> Self {
        let fixture = Fixture::new();
        let engine = fixture.device.engine;
        // The first queue pair has index 0, as has what nobody names.
        engine.qps.go_on_at(QpIndex::new(0));
        let mut srq = fixture.srq(4);
        let mut qp = fixture.create(&fixture.init(QpType::RC).srq(&srq));
        let peer = qp.number();
        connect_with(&mut qp, peer, QpAttr::rts().timeout(AckTimeout::UNLIMITED));
        srq.post_recv(&[RecvWr::new(1, &[])]).unwrap();
        Self { qp, srq, fixture, engine }
    }

    fn number(&self) -> SrqNumber {
        SrqNumber::new(self.srq.number())
    }

    fn slot(&self) -> &'static SrqSlot {
        self.engine.srq(self.number())
    }

    fn pool(&self) -> Queue<'static> {
        queue(self.engine, self.slot()).unwrap()
    }

    fn me(&self) -> AttachmentId {
        self.engine.shm.attachment()
    }

    /// The lock of the pool, as a process has it that is suspended.
    fn locked(&self) -> crate::shm::lock::Guard<'static> {
        self.engine.memory.lock(self.slot().pool.lock(), || {}).unwrap()
    }

    /// The process at a place takes the only receive, for this queue pair.
    fn is_taken_by(&self, place: AttachmentId) -> Taken {
        let _guard = self.locked();
        self.pool().take(place, self.qp.qpn()).unwrap()
    }

    /// It sends, and finds no receive.
    fn starves(&mut self) {
        self.qp.post_send(&[SendWr::send(2, &[])]).unwrap();
        assert_eq!(self.fixture.polled(), [], "it has no receive");
    }

    /// Says that a process lived at a place, waits until it is swept up after, and hands what is told meanwhile
    /// on.
    fn dies(&mut self, place: AttachmentId) -> Vec<AsyncEventType> {
        let shm = self.engine.shm;
        let word = &header::claims(shm.memory(), shm.shape())[place.index()];
        let owner = claim::next(place.get().into(), word);
        assert!(claim::take(word, owner));
        // As who is connected to another process has.
        shm.watch().unwrap();
        let mut told = Vec::new();
        until("nothing is left of the dead one", || {
            deaths::look(self.fixture.device);
            told.extend(self.fixture.told());
            shm.others().all(|other| other.to_word() != owner)
        });
        told.extend(self.fixture.told());
        told
    }

    /// Its request and its receive complete, and well.
    #[track_caller]
    fn is_served(&mut self) {
        let served = [(); 2].map(|()| self.fixture.next_wc());
        assert_eq!(served, [1, 2].map(|id| (id, WcStatus::SUCCESS)));
    }
}

#[test]
fn x07_who_could_not_have_the_lock_tries_again_though_it_waits_for_ever() {
    let mut alone = Alone::new();
    let suspended = alone.locked();
    alone.starves();
    drop(suspended);
    alone.is_served();
}

#[test]
fn q09_the_last_receive_is_told_though_the_lock_was_not_to_be_had() {
    let mut alone = Alone::new();
    let suspended = alone.locked();
    alone.qp.modify(&QpAttr::new().state(QpState::ERR)).unwrap();
    assert_eq!(alone.fixture.told(), None, "somebody lives and has the lock");
    drop(suspended);
    until("it is told", || alone.fixture.told() == Some(AsyncEventType::QP_LAST_WQE_REACHED));
}

#[test]
fn x04_what_is_said_to_be_taken_keeps_nobody_waiting_for_ever() {
    let alone = Alone::new();
    let (pool, taken) = (alone.pool(), alone.is_taken_by(alone.me()));
    let mut qp = alone.qp;
    assert!(pool.taken().eq([taken]), "no thread of this process has taken it");
    let ends = thread::spawn(move || {
        let _ = qp.modify(&QpAttr::new().state(QpState::RESET));
        drop(qp);
    });
    until("it ends", || ends.is_finished());
    ends.join().unwrap();
    assert!(pool.taken().next().is_none(), "it was waited for, and then freed");
}

#[test]
fn x03_a_limit_that_a_process_reached_is_told_once_if_it_died_before_it_told_and_not_again() {
    for has_told in [false, true] {
        let mut alone = Alone::new();
        alone.srq.arm_limit(1).unwrap();
        assert!(alone.is_taken_by(ANOTHER).reached_limit);
        assert_eq!((alone.fixture.told(), alone.slot().pool.reporter()), (None, Some(ANOTHER)));
        let event = Some(AsyncEventType::SRQ_LIMIT_REACHED);
        if has_told {
            tell_limit(alone.engine, alone.number(), ANOTHER);
            assert_eq!(alone.fixture.told(), event);
        }
        let expected = event.filter(|_| !has_told);
        assert!(alone.dies(ANOTHER).into_iter().eq(expected), "{has_told}");
        assert_eq!((alone.srq.waiting(), alone.slot().pool.reporter()), (1, None));
    }
}

#[test]
fn x03_a_limit_of_a_dead_process_is_told_once_however_many_sweep_up() {
    let mut alone = Alone::new();
    alone.srq.arm_limit(1).unwrap();
    assert!(alone.is_taken_by(ANOTHER).reached_limit);
    let (engine, slot, guard) = (alone.engine, alone.slot(), alone.locked());
    let is_told = waits(
        move || report_for(engine, slot, ANOTHER),
        || {
            tell_limit(engine, slot.number(), ANOTHER);
            drop(guard);
        },
    );
    assert!(is_told);
    let told = [(); 2].map(|()| alone.fixture.told());
    assert_eq!(told, [Some(AsyncEventType::SRQ_LIMIT_REACHED), None]);
}

#[test]
fn q09_x03_who_starved_is_served_once_there_is_a_receive_again() {
    type Frees = fn(&mut Alone, &Taken);
    let cases: [(&str, AttachmentId, Frees); 4] = [
        ("who took it dies", ANOTHER, |alone, _| drop(alone.dies(ANOTHER))),
        ("one is posted", AttachmentId::new(0), |alone, _| {
            alone.srq.post_recv(&[RecvWr::new(1, &[])]).unwrap();
        }),
        ("it is given back", AttachmentId::new(0), |alone, taken| {
            give_back(alone.engine, alone.number(), taken);
            // Who gives back holds a turn, and looks after others once it is given back.
            send_queue::run(alone.engine, QpIndex::new(alone.qp.number() + 1));
        }),
        // Its alarm comes in time, or somebody who has found what was left has it run.
        ("it was left, which is not said", AttachmentId::new(0), |alone, taken| {
            assert!(alone.pool().leave(taken));
            assert!(!alone.pool().leave(taken), "it is not taken any more");
            // As one leaves it that dies before it has said so.
            alone.slot().pool.forget_left();
            alone.dies(ANOTHER);
        }),
    ];
    for (case, place, frees) in cases {
        println!("{case}");
        let mut alone = Alone::new();
        assert_eq!(alone.me(), AttachmentId::new(0));
        let taken = alone.is_taken_by(place);
        alone.starves();
        frees(&mut alone, &taken);
        alone.is_served();
    }
}

#[test]
fn x07_nobody_writes_to_a_receive_while_its_owner_does_for_who_died() {
    let mut alone = Alone::new();
    let is_through = copier::carry_out_for(alone.engine.memory, ANOTHER);
    alone.is_taken_by(ANOTHER);
    alone.dies(ANOTHER);
    // Its owner may write to it.
    alone.starves();
    is_through();
    alone.is_served();
}

#[test]
fn x03_what_a_dead_process_had_asked_for_a_receive_is_not_begun_once_that_is_given_back() {
    let alone = Alone::new();
    let word = &alone.engine.memory.stages.of(ANOTHER).next().unwrap().head.word;
    word.ask(word.claim(ANOTHER, alone.me()).unwrap()).unwrap();
    let taken = alone.is_taken_by(ANOTHER);
    reclaim(alone.engine, alone.slot(), &taken).unwrap();
    assert_eq!(alone.srq.waiting(), 1);
    assert!(word.serve(alone.me()).is_none());
}

/// Each waits as long as any does for a lock: two seconds.
#[test]
fn x07_a_receive_that_can_not_be_given_back_is_taken_by_the_next() {
    let mut alone = Alone::new();
    alone.srq.post_recv(&[RecvWr::new(2, &[])]).unwrap();
    let all = [alone.me(), ANOTHER].map(|place| alone.is_taken_by(place));
    let (engine, slot, srq) = (alone.engine, alone.slot(), alone.number());
    let cq = alone.fixture.cq.handle.queue.index;
    let suspended = (alone.locked(), complete::lock(engine, cq));
    thread::scope(|scope| {
        scope.spawn(|| give_back(engine, srq, &all[0]));
        let reclaims = scope.spawn(|| reclaim(engine, slot, &all[1]));
        scope.spawn(|| assert!(!report_for(engine, slot, ANOTHER), "it may be left to tell"));
        assert_eq!(reclaims.join().unwrap(), Err(Stuck));
    });
    drop(suspended);
    let taken = alone.pool().taken();
    assert!(taken.eq([all[1]]), "nobody knows yet whether it has completed");
    assert_eq!(reclaim(engine, slot, &all[1]), Ok(()));
    alone.qp.post_send(&[SendWr::send(3, &[]), SendWr::send(4, &[])]).unwrap();
    let mut ids: Vec<_> = alone.fixture.polled().into_iter().map(|(id, _)| id).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3, 4]);
}

#[test]
fn x03_who_sweeps_up_has_those_run_that_may_wait_for_a_receive_that_was_left() {
    for is_left in [true, false] {
        let alone = Alone::new();
        if is_left {
            let taken = alone.is_taken_by(alone.me());
            assert!(alone.pool().leave(&taken));
        }
        assert!(!alone.engine.reminder.take());
        assert!(recover(alone.engine, ANOTHER));
        assert_eq!(alone.engine.reminder.take(), is_left);
        let mut noted = Vec::new();
        remote_requests::take(alone.engine, |index| noted.push(index));
        assert_eq!(noted, [alone.qp.index()][..is_left.into()]);
    }
}

/// Who waits for it waits two seconds.
#[test]
fn x07_what_a_process_that_lives_has_taken_stays_its() {
    let mut alone = Alone::new();
    let shm = alone.engine.shm;
    let file = File::options().read(true).write(true).open(shm.path().file()).unwrap();
    // To the end, as closing it would unlock what is locked here.
    let file = Box::leak(Box::new(file));
    assert_eq!(liveness::hold(file.as_fd(), DEAD.to_word()), Ok(true));
    assert!(shm.is_alive(ANOTHER));
    let taken = alone.is_taken_by(ANOTHER);
    assert_eq!(reclaim(alone.engine, alone.slot(), &taken), Ok(()));
    let reset = QpAttr::new().state(QpState::RESET);
    assert_eq!(alone.qp.modify(&reset), Err(PEER_SUSPENDED.into()));
    assert!(!recover(alone.engine, ANOTHER), "it has the place of one that was dead");
    assert!(alone.pool().taken().eq([taken]));
    alone.pool().settle(taken.tag(), taken.target());
    assert_eq!(alone.qp.modify(&reset), Ok(()));
}

#[test]
fn q09_who_takes_no_messages_has_nothing_taken_for_it() {
    let alone = Alone::new();
    let may = || Err(Unavailable::NotReady);
    let refused = take(alone.engine, alone.number(), alone.qp.qpn(), may);
    assert_eq!(refused.map(drop), Err(Unavailable::NotReady));
    assert_eq!(alone.srq.waiting(), 1);
}

#[test]
fn x03_who_takes_inherits_the_lock_of_who_died_taking() {
    let alone = Alone::new();
    let lock = alone.slot().pool.lock();
    assert!(lock.try_enter(DEAD));
    let (taken, _) = take(alone.engine, alone.number(), alone.qp.qpn(), || Ok(())).unwrap();
    assert_eq!(lock.holder(), None);
    give_back(alone.engine, alone.number(), &taken);
}

#[test]
fn q09_a_number_that_no_shared_receive_queue_has_leads_to_none() {
    let alone = Alone::new();
    let (engine, number) = (alone.engine, alone.srq.number());
    let is_there = |number| numbered(engine, SrqNumber::new(number)).is_some();
    assert!(is_there(number));
    assert!(!is_there(number + engine.srqs.len()), "the next one there");
    // The first place, as it is left by one.
    let (slot, free) = (alone.slot(), engine.srq(SrqNumber::new(0)));
    sync::store(&free.slots_at, sync::load(&slot.slots_at));
    sync::store(&free.capacity, sync::load(&slot.capacity));
    sync::store(&free.number, 0);
    assert!(!is_there(0));
    assert_eq!(is_taken_for(engine, SrqNumber::new(0), alone.qp.qpn()), Ok(false));
}

#[test]
fn q09_those_who_are_connected_to_a_queue_pair_of_a_shared_queue_wait_for_it() {
    let alone = Alone::new();
    let _other = alone.fixture.own_peer();
    let nobody = QpIndex::new(0);
    assert_eq!(alone.qp.index(), nobody, "who is connected to nobody is not to the first");
    let mut all = Vec::new();
    for_each_sender_to(alone.engine, alone.number(), |index| all.push(index));
    assert_eq!(all, [alone.qp.index()]);
}

#[test]
fn x03_reset_and_destroying_give_back_what_a_dead_process_had_taken() {
    let mut alone = Alone::new();
    for _ in 0..2 {
        alone.is_taken_by(ANOTHER);
        assert_eq!(alone.qp.modify(&QpAttr::new().state(QpState::RESET)), Ok(()));
        assert_eq!((alone.srq.waiting(), alone.pool().taken().count()), (1, 0));
    }
    alone.is_taken_by(ANOTHER);
    drop(alone.qp);
    assert_eq!(alone.srq.waiting(), 1);
}

/// Another thread does something, in whose midst it calls what it is handed; this one begins `meanwhile` then, and the
/// other goes on a little later in each round.
fn at_once(round: u64, other: impl FnOnce(&dyn Fn()) + Send, meanwhile: impl FnOnce()) {
    let (held, goes_on) = (AtomicU32::new(0), AtomicU32::new(0));
    thread::scope(|scope| {
        let holds = || {
            held.store(1, Ordering::Release);
            while goes_on.load(Ordering::Acquire) == 0 {
                thread::yield_now();
            }
            (0..round % 8).for_each(|_| thread::yield_now());
        };
        scope.spawn(move || other(&holds));
        until("the lock is held", || held.load(Ordering::Acquire) == 1);
        goes_on.store(1, Ordering::Release);
        meanwhile();
    });
}

#[test]
fn q05_a_slot_is_free_though_who_pushes_its_completion_is_not_through() {
    let mut alone = Alone::new();
    let (engine, target, pool) = (alone.engine, alone.qp.qpn(), alone.pool());
    let index = alone.fixture.cq.handle.queue.index;
    alone.srq.post_recv(&[RecvWr::new(1, &[]); 3]).unwrap();
    for round in 0..200 {
        let all: Vec<_> = (0..4).map(|_| alone.is_taken_by(alone.me())).collect();
        let settles = |holds: &dyn Fn()| {
            // As who has published the completions, and not settled what they cover.
            let _pushing = complete::lock(engine, index).unwrap();
            holds();
            all.iter().for_each(|taken| pool.settle(taken.tag(), target));
        };
        at_once(round, settles, || {
            assert_eq!(alone.srq.post_recv(&[RecvWr::new(1, &[]); 4]), Ok(()), "round {round}");
        });
    }
}

#[test]
fn q09_x03_reset_gives_back_what_is_just_taken_and_not_what_a_dead_process_had_completed() {
    let mut alone = Alone::new();
    let (engine, slot, target, pool) = (alone.engine, alone.slot(), alone.qp.qpn(), alone.pool());
    let index = alone.fixture.cq.handle.queue.index;
    for round in 0..100 {
        let completed = (round % 2 == 0).then(|| alone.is_taken_by(ANOTHER));
        let other = |holds: &dyn Fn()| {
            if let Some(taken) = completed {
                // As who inherited the lock, and settles what the dead one had published.
                let _repairs = complete::lock(engine, index).unwrap();
                holds();
                pool.settle(taken.tag(), target);
            } else {
                let _taking = engine.memory.lock(slot.pool.lock(), || {}).unwrap();
                holds();
                // It had seen the state before, and dies.
                let _taken = pool.take(ANOTHER, target);
            }
        };
        at_once(round / 2, other, || {
            alone.qp.modify(&QpAttr::new().state(QpState::RESET)).unwrap()
        });
        let back = usize::from(completed.is_none());
        let is = (alone.srq.waiting() as usize, pool.taken().count());
        assert_eq!(is, (back, 0), "round {round}");
        if completed.is_some() {
            alone.srq.post_recv(&[RecvWr::new(1, &[])]).unwrap();
        }
    }
}

#[test]
fn x07_who_posts_is_not_kept_by_a_suspended_taker_however_often_it_is_rescheduled() {
    let mut alone = Alone::new();
    let (engine, index) = (alone.engine, alone.qp.index());
    let suspended = alone.locked();
    thread::scope(|scope| {
        let posts = scope.spawn(|| alone.qp.post_send(&[SendWr::send(2, &[])]).unwrap());
        until("it has the queue pair", || !engine.ownership(index).is_free());
        send_queue::run(engine, index);
        until("it returns", || posts.is_finished());
    });
    drop(suspended);
    alone.is_served();
}

#[test]
fn x07_a_receive_that_was_left_is_not_taken_while_it_is_written_to_for_who_left_it() {
    let alone = Alone::new();
    let (engine, srq, target) = (alone.engine, alone.number(), alone.qp.qpn());
    let first = alone.is_taken_by(ANOTHER);
    // This process carries out what the one at `ANOTHER` has asked for: to write to that receive.
    let is_through = copier::carry_out_for(engine.memory, ANOTHER);
    // Who has just asked, under the lock, is suspended for so long that `ANOTHER` gives up, and leaves it without the lock.
    let leaves = || {
        if !copier::has_abandoned(engine.memory, alone.me()) {
            copier::recover(engine.memory, ANOTHER);
            return alone.pool().leave(&first).then_some(()).ok_or(Unavailable::Gone);
        }
        Err(Unavailable::Stuck)
    };
    assert_eq!(take(engine, srq, target, leaves).err(), Some(Unavailable::Stuck));
    assert!(alone.pool().taken().next().is_none(), "it is given back");
    is_through();
    let there = take(engine, srq, target, || Ok(())).unwrap();
    assert_eq!(there.0.slot, first.slot);
}

#[test]
fn x07_who_waits_for_a_lock_serves_others_who_ask_for_something_else() {
    let alone = Alone::new();
    let (memory, lock) = (alone.engine.memory, alone.slot().pool.lock());
    let suspended = alone.locked();
    let asked = copier::tests::is_asked(alone.fixture.device);
    thread::scope(|scope| {
        let waits = scope.spawn(|| memory.lock(lock, || {}).is_ok());
        until("they are served", || copier::tests::state(asked) == Some(State::Done));
        drop(suspended);
        assert!(waits.join().unwrap());
    });
}
