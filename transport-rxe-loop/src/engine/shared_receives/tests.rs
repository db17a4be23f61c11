//! What others can do to a pool and to whoever uses it: be suspended over its lock, or write into it.

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::inside::prelude::*;
use crate::memory::copier;
use crate::protocol::pool::Queue;
use crate::protocol::stage::State;
use crate::shm::{claim, header, liveness};

/// A queue pair that is its own peer, waits for ever, and takes its receives from a shared queue, which has one.
struct Alone {
    qp: QueuePair,
    srq: SharedReceiveQueue,
    cq: Cq,
    context: Context,
    device: &'static Device,
}

impl Alone {
    fn new() -> Self {
        Self::of((Context::open("loop0").unwrap(), Device::of_tests()))
    }

    /// In a fabric where nothing else is: what another test sweeps up after has every queue pair run.
    fn in_own_fabric() -> Self {
        let limits = Limits { bytes: 4 << 20, ..Limits::default() };
        let (context, device) = OpenOptions::new().limits(limits).alone();
        // The first queue pair has index 0, as has what nobody names.
        device.engine.qps().go_on_at(QpIndex::new(0));
        Self::of((context, device))
    }

    fn of((context, device): (Context, &'static Device)) -> Self {
        let (pd, cq) = (context.alloc_pd().unwrap(), context.create_cq(16, None).unwrap());
        let mut srq = pd.create_srq(&SrqInit { max_wr: 4, max_sge: 1 }).unwrap();
        let mut qp = pd.create_qp(&QpInit { srq: Some(&srq), ..QpInit::new(&cq) }).unwrap();
        let rts = QpAttr::rts().timeout(0);
        for step in [
            QpAttr::init(&Port::new(1), Access::REMOTE),
            QpAttr::rtr(&Port::new(1), &Endpoint::new(qp.number())),
            rts,
        ] {
            qp.modify(&step).unwrap();
        }
        srq.post_recv(&[RecvWr::new(1, &[])]).unwrap();
        Self { qp, srq, cq, context, device }
    }

    fn slot(&self) -> &'static SrqSlot {
        self.device.engine.srq(SrqNumber::new(self.srq.number()))
    }
}

#[test]
fn x07_who_could_not_have_the_lock_tries_again_though_it_waits_for_ever() {
    let mut alone = Alone::in_own_fabric();
    let suspended = alone.device.memory.lock(alone.slot().pool.lock(), || {}).unwrap();
    alone.qp.post_send(&[SendWr::send(2, &[])]).unwrap();
    let mut wcs = [Wc::default(); 2];
    assert_eq!(alone.cq.poll(&mut wcs), Ok(0), "somebody lives and has the lock");
    drop(suspended);
    let mut polled = 0;
    until("it is sent", || {
        polled += alone.cq.poll(&mut wcs[polled..]).unwrap();
        polled == 2
    });
    assert_eq!(wcs.map(|wc| wc.status()), [WcStatus::SUCCESS; 2]);
}

#[test]
fn q09_the_last_receive_is_told_though_the_lock_was_not_to_be_had() {
    let mut alone = Alone::in_own_fabric();
    let suspended = alone.device.memory.lock(alone.slot().pool.lock(), || {}).unwrap();
    alone.qp.modify(&QpAttr::to(QpState::ERR)).unwrap();
    assert_eq!(alone.context.take_async_event(), Ok(None), "somebody lives and has the lock");
    drop(suspended);
    until("it is told", || {
        let event = alone.context.take_async_event().unwrap();
        event.is_some_and(|event| event.event_type == AsyncEventType::QP_LAST_WQE_REACHED)
    });
}

#[test]
fn x04_what_is_said_to_be_taken_keeps_nobody_waiting_for_ever() {
    let Alone { mut qp, srq, device, .. } = Alone::new();
    let pool = queue(device.engine, device.engine.srq(SrqNumber::new(srq.number()))).unwrap();
    let taken = pool.take(device.shm.attachment(), qp.qpn()).unwrap();
    assert!(pool.taken().eq([taken]), "no thread of this process has taken it");
    let ends = thread::spawn(move || {
        let _ = qp.modify(&QpAttr::to(QpState::RESET));
        drop(qp);
    });
    until("it ends", || ends.is_finished());
    ends.join().unwrap();
    assert!(pool.taken().next().is_none(), "it was waited for, and then freed");
}

/// An attachment that no process has.
const ANOTHER: AttachmentId = AttachmentId::new(38);

impl Alone {
    fn pool(&self) -> Queue<'static> {
        queue(self.device.engine, self.slot()).unwrap()
    }

    /// The process at a place takes the only receive, for this queue pair.
    fn is_taken_by(&self, place: AttachmentId) -> Taken {
        let _guard = self.device.memory.lock(self.slot().pool.lock(), || {}).unwrap();
        self.pool().take(place, self.qp.qpn()).unwrap()
    }

    /// Says that a process lived at a place, waits until it is swept up after, and hands what is told meanwhile
    /// on.
    fn dies(&mut self, place: AttachmentId) -> Vec<AsyncEventType> {
        let word =
            &header::claims(self.device.shm.memory(), self.device.shm.shape())[place.index()];
        let owner = claim::next(place.get().into(), word);
        assert!(claim::take(word, owner));
        // As who is connected to another process has.
        self.device.shm.watch().unwrap();
        let mut told = Vec::new();
        until("nothing is left of the dead one", || {
            deaths::look(self.device);
            told.extend(self.reported());
            self.device.shm.others().all(|other| other.to_word() != owner)
        });
        told.extend(self.reported());
        told
    }

    fn reported(&mut self) -> Option<AsyncEventType> {
        self.context.take_async_event().unwrap().map(|event| event.event_type)
    }

    /// Its request and its receive complete, and well.
    #[track_caller]
    fn is_served(&mut self) {
        let (mut wcs, mut polled) = ([Wc::default(); 2], 0);
        until("it is served", || {
            polled += self.cq.poll(&mut wcs[polled..]).unwrap();
            polled == 2
        });
        assert_eq!(
            wcs.map(|wc| (wc.wr_id(), wc.status())),
            [1, 2].map(|id| (id, WcStatus::SUCCESS))
        );
    }
}

#[test]
fn x03_a_limit_that_a_process_reached_is_told_though_it_died_before_it_told() {
    let mut alone = Alone::in_own_fabric();
    alone.srq.arm_limit(1).unwrap();
    assert!(alone.is_taken_by(ANOTHER).reached_limit());
    assert_eq!((alone.reported(), alone.slot().pool.reporter()), (None, Some(ANOTHER)));
    assert_eq!(alone.dies(ANOTHER), [AsyncEventType::SRQ_LIMIT_REACHED], "and once");
    assert_eq!((alone.srq.waiting(), alone.slot().pool.reporter()), (1, None));
}

#[test]
fn x03_a_limit_of_a_dead_process_is_told_once_however_many_sweep_up() {
    let mut alone = Alone::in_own_fabric();
    alone.srq.arm_limit(1).unwrap();
    assert!(alone.is_taken_by(ANOTHER).reached_limit());
    let (device, slot) = (alone.device, alone.slot());
    let guard = device.memory.lock(slot.pool.lock(), || {}).unwrap();
    thread::scope(|scope| {
        let other = scope.spawn(move || report_for(device.engine, slot, ANOTHER));
        // It does not get on; if it did, it would by now.
        for _ in 0..200 {
            thread::yield_now();
        }
        tell_limit(device.engine, slot.number(), ANOTHER);
        drop(guard);
        assert!(other.join().unwrap(), "it is told");
    });
    let told = [alone.reported(), alone.reported()];
    assert_eq!(told, [Some(AsyncEventType::SRQ_LIMIT_REACHED), None]);
}

#[test]
fn x03_a_limit_that_was_told_is_not_told_again_when_who_reached_it_dies() {
    let mut alone = Alone::in_own_fabric();
    alone.srq.arm_limit(1).unwrap();
    assert!(alone.is_taken_by(ANOTHER).reached_limit());
    tell_limit(alone.device.engine, SrqNumber::new(alone.srq.number()), ANOTHER);
    assert_eq!(alone.reported(), Some(AsyncEventType::SRQ_LIMIT_REACHED));
    assert_eq!(alone.dies(ANOTHER), []);
}

#[test]
fn x03_who_starved_gets_what_a_dead_process_had_taken() {
    let mut alone = Alone::in_own_fabric();
    alone.is_taken_by(ANOTHER);
    alone.qp.post_send(&[SendWr::send(2, &[])]).unwrap();
    assert_eq!(alone.cq.poll(&mut [Wc::default()]), Ok(0), "the other one has the only receive");
    alone.dies(ANOTHER);
    alone.is_served();
}

#[test]
fn x07_nobody_writes_to_a_receive_while_its_owner_does_for_who_died() {
    let mut alone = Alone::in_own_fabric();
    let is_through = copier::carry_out_for(alone.device.memory, ANOTHER);
    alone.is_taken_by(ANOTHER);
    alone.dies(ANOTHER);
    alone.qp.post_send(&[SendWr::send(2, &[])]).unwrap();
    assert_eq!(alone.cq.poll(&mut [Wc::default()]), Ok(0), "its owner may write to it");
    is_through();
    alone.is_served();
}

#[test]
fn x03_what_a_dead_process_had_asked_for_a_receive_is_not_begun_once_that_is_given_back() {
    let alone = Alone::in_own_fabric();
    let word = &alone.device.memory.stages().of(ANOTHER).next().unwrap().head.word;
    word.ask(word.claim(ANOTHER, alone.device.shm.attachment()).unwrap()).unwrap();
    let taken = alone.is_taken_by(ANOTHER);
    reclaim(alone.device.engine, alone.slot(), &taken).unwrap();
    assert_eq!(alone.srq.waiting(), 1);
    assert!(word.serve(alone.device.shm.attachment()).is_none());
}

#[test]
fn q09_who_starved_gets_what_is_posted() {
    let mut alone = Alone::in_own_fabric();
    alone.is_taken_by(alone.device.shm.attachment());
    alone.qp.post_send(&[SendWr::send(2, &[])]).unwrap();
    assert_eq!(alone.cq.poll(&mut [Wc::default()]), Ok(0), "the other one has the only receive");
    alone.srq.post_recv(&[RecvWr::new(1, &[])]).unwrap();
    alone.is_served();
}

#[test]
fn q09_who_starved_gets_what_another_gives_back() {
    let mut alone = Alone::in_own_fabric();
    let taken = alone.is_taken_by(alone.device.shm.attachment());
    alone.qp.post_send(&[SendWr::send(2, &[])]).unwrap();
    assert_eq!(alone.cq.poll(&mut [Wc::default()]), Ok(0), "the other one has the only receive");
    give_back(alone.device.engine, SrqNumber::new(alone.srq.number()), &taken);
    // Who gives back holds a turn, and looks after others once it is given back.
    send_queue::run(alone.device.engine, QpIndex::new(alone.qp.number() + 1));
    alone.is_served();
}

/// Each waits as long as any does for a lock: two seconds.
#[test]
fn x07_a_receive_that_can_not_be_given_back_is_taken_by_the_next() {
    let mut alone = Alone::in_own_fabric();
    alone.srq.post_recv(&[RecvWr::new(2, &[])]).unwrap();
    let all = [alone.device.shm.attachment(), ANOTHER].map(|place| alone.is_taken_by(place));
    let (device, slot, pool) = (alone.device, alone.slot(), alone.pool());
    let (srq, cq) = (alone.srq.number(), device.engine.qp(alone.qp.qpn()).recv_cq());
    let suspended =
        (device.memory.lock(slot.pool.lock(), || {}), complete::lock(device.engine, cq));
    thread::scope(|scope| {
        scope.spawn(|| give_back(device.engine, SrqNumber::new(srq), &all[0]));
        let reclaims = scope.spawn(|| reclaim(device.engine, slot, &all[1]));
        scope
            .spawn(|| assert!(!report_for(device.engine, slot, ANOTHER), "it may be left to tell"));
        assert_eq!(reclaims.join().unwrap(), Err(Stuck));
    });
    drop(suspended);
    assert!(pool.taken().eq([all[1]]), "nobody knows yet whether it has completed");
    assert_eq!(reclaim(device.engine, slot, &all[1]), Ok(()));
    alone.qp.post_send(&[SendWr::send(3, &[]), SendWr::send(4, &[])]).unwrap();
    let mut completions = [Wc::default(); 8];
    assert_eq!(alone.cq.poll(&mut completions), Ok(4));
    let mut ids = [0, 1, 2, 3].map(|which| completions[which].wr_id());
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3, 4]);
}

/// Its alarm comes in time, or somebody who has found what was left has it run.
#[test]
fn x03_a_receive_that_a_dead_one_left_is_found_by_who_sweeps_up() {
    let mut alone = Alone::in_own_fabric();
    let taken = alone.is_taken_by(alone.device.shm.attachment());
    assert!(alone.pool().leave(&taken));
    assert!(!alone.pool().leave(&taken), "it is not taken any more");
    // As one leaves it that dies before it has said so.
    alone.slot().pool.forget_left();
    alone.qp.post_send(&[SendWr::send(2, &[])]).unwrap();
    assert_eq!(alone.cq.poll(&mut [Wc::default()]), Ok(0));
    alone.dies(ANOTHER);
    alone.is_served();
}

#[test]
fn x03_who_sweeps_up_has_those_run_that_may_wait_for_a_receive_that_was_left() {
    for is_left in [true, false] {
        let alone = Alone::in_own_fabric();
        if is_left {
            let taken = alone.is_taken_by(alone.device.shm.attachment());
            assert!(alone.pool().leave(&taken));
        }
        assert!(!remote_requests::any(alone.device.engine));
        assert!(recover(alone.device.engine, ANOTHER));
        assert_eq!(remote_requests::any(alone.device.engine), is_left);
        let mut noted = Vec::new();
        remote_requests::take(alone.device.engine, |index| noted.push(index));
        assert_eq!(noted, [alone.device.engine.qps().index(alone.qp.number())][..is_left.into()]);
    }
}

/// Who waits for it waits two seconds.
#[test]
fn x07_what_a_process_that_lives_has_taken_stays_its() {
    let mut alone = Alone::in_own_fabric();
    let file = File::options().read(true).write(true).open(alone.device.shm.path().file()).unwrap();
    // To the end, as closing it would unlock what is locked here.
    let file = Box::leak(Box::new(file));
    assert_eq!(
        liveness::hold(file.as_fd(), AttachmentKey::new(ANOTHER.get(), 1).to_word()),
        Ok(true)
    );
    assert!(alone.device.shm.is_alive(ANOTHER));
    let taken = alone.is_taken_by(ANOTHER);
    assert_eq!(reclaim(alone.device.engine, alone.slot(), &taken), Ok(()));
    let reset = QpAttr::to(QpState::RESET);
    assert_eq!(alone.qp.modify(&reset), Err(ModifyError::PeerSuspended));
    assert!(alone.pool().taken().eq([taken]));
    alone.pool().settle(taken.tag(), taken.target());
    assert_eq!(alone.qp.modify(&reset), Ok(()));
}

#[test]
fn x03_receives_taken_by_a_live_process_are_not_given_back() {
    let alone = Alone::in_own_fabric();
    let taken = alone.is_taken_by(alone.device.shm.attachment());
    assert_eq!(reclaim(alone.device.engine, alone.slot(), &taken), Ok(()));
    assert!(alone.pool().taken().eq([taken]));
    alone.pool().free(&taken);
    let place = alone.device.shm.attachment();
    assert!(!recover(alone.device.engine, place), "it has the place of one that was dead");
}

#[test]
fn q09_who_takes_no_messages_has_nothing_taken_for_it() {
    let Alone { qp, srq, device, context: _context, .. } = Alone::in_own_fabric();
    let refused =
        take(device.engine, SrqNumber::new(srq.number()), qp.qpn(), || Err(Unavailable::NotReady));
    assert_eq!(refused.map(drop), Err(Unavailable::NotReady));
    assert_eq!(srq.waiting(), 1);
}

#[test]
fn x03_who_takes_inherits_the_lock_of_who_died_taking() {
    let Alone { qp, srq, device, context: _context, .. } = Alone::in_own_fabric();
    let lock = device.engine.srq(SrqNumber::new(srq.number())).pool.lock();
    assert!(lock.try_enter(AttachmentKey::new(ANOTHER.get(), 1)));
    let (taken, _) =
        take(device.engine, SrqNumber::new(srq.number()), qp.qpn(), || Ok(())).unwrap();
    assert_eq!(lock.holder(), None);
    give_back(device.engine, SrqNumber::new(srq.number()), &taken);
}

#[test]
fn q09_a_number_that_no_shared_receive_queue_has_leads_to_none() {
    let alone = Alone::in_own_fabric();
    let (device, number) = (alone.device, alone.srq.number());
    let is_there = |number| numbered(device.engine, number).is_some();
    assert!(is_there(SrqNumber::new(number)));
    assert!(!is_there(SrqNumber::new(number + device.engine.srqs().len())), "the next one there");
    // The first place, as it is left by one.
    let (slot, free) = (alone.slot(), device.engine.srq(SrqNumber::new(0)));
    sync::store(&free.slots_at, sync::load(&slot.slots_at));
    sync::store(&free.capacity, sync::load(&slot.capacity));
    let number = sync::load(&free.number);
    sync::store(&free.number, 0);
    assert!(!is_there(SrqNumber::new(0)));
    assert_eq!(is_taken_for(device.engine, SrqNumber::new(0), alone.qp.qpn()), Ok(false));
    sync::store(&free.number, number);
}

#[test]
fn q09_those_who_are_connected_to_a_queue_pair_of_a_shared_queue_wait_for_it() {
    let alone = Alone::in_own_fabric();
    let (device, srq) = (alone.device, alone.srq.number());
    let mut other = alone.context.alloc_pd().unwrap().create_qp(&QpInit::new(&alone.cq)).unwrap();
    other.connect_to(other.number()).unwrap();
    let index = device.engine.qps().index(alone.qp.number());
    assert_eq!(
        index,
        QpIndex::new(0),
        "those who are connected to nobody are not connected to the first"
    );
    let mut all = Vec::new();
    for_each_sender_to(device.engine, SrqNumber::new(srq), |index| all.push(index));
    assert_eq!(all, [index]);
}

#[test]
fn x03_reset_and_destroying_give_back_what_a_dead_process_had_taken() {
    let mut alone = Alone::in_own_fabric();
    for _ in 0..2 {
        alone.is_taken_by(ANOTHER);
        assert_eq!(alone.qp.modify(&QpAttr::to(QpState::RESET)), Ok(()));
        assert_eq!((alone.srq.waiting(), alone.pool().taken().count()), (1, 0));
    }
    alone.is_taken_by(ANOTHER);
    let Alone { qp, srq, .. } = alone;
    drop(qp);
    assert_eq!(srq.waiting(), 1);
}

#[test]
fn q05_a_slot_is_free_though_who_pushes_its_completion_is_not_through() {
    const ROUNDS: u64 = 200;
    let mut alone = Alone::in_own_fabric();
    let (device, target, pool) = (alone.device, alone.qp.number(), alone.pool());
    let index = device.engine.qp(QpNumber::new(target)).recv_cq();
    alone.srq.post_recv(&[RecvWr::new(1, &[]); 3]).unwrap();
    for round in 0..ROUNDS {
        let all: Vec<_> = (0..4).map(|_| alone.is_taken_by(device.shm.attachment())).collect();
        let (held, settles) = (AtomicU32::new(0), AtomicU32::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                // As who has published the completions, and not settled what they cover.
                let _pushing = complete::lock(device.engine, index).unwrap();
                held.store(1, Ordering::Release);
                while settles.load(Ordering::Acquire) == 0 {
                    thread::yield_now();
                }
                (0..round % 8).for_each(|_| thread::yield_now());
                all.iter().for_each(|taken| pool.settle(taken.tag(), QpNumber::new(target)));
            });
            until("it pushes", || held.load(Ordering::Acquire) == 1);
            settles.store(1, Ordering::Release);
            assert_eq!(alone.srq.post_recv(&[RecvWr::new(1, &[]); 4]), Ok(()), "round {round}");
        });
    }
}

/// Lets another thread go on with something that it holds a lock for, while this one resets the queue pair.
fn resets_while(alone: &mut Alone, round: u32, other: impl FnOnce(&dyn Fn()) + Send) {
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
        alone.qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
    });
}

#[test]
fn x03_what_a_dead_process_had_completed_is_not_given_back() {
    let mut alone = Alone::in_own_fabric();
    let (device, target, pool) = (alone.device, alone.qp.number(), alone.pool());
    let index = device.engine.qp(QpNumber::new(target)).recv_cq();
    for round in 0..50 {
        let taken = alone.is_taken_by(ANOTHER);
        resets_while(&mut alone, round, |holds| {
            // As who inherited the lock, and settles what the dead one had published.
            let _repairs = complete::lock(device.engine, index).unwrap();
            holds();
            pool.settle(taken.tag(), QpNumber::new(target));
        });
        assert_eq!((alone.srq.waiting(), pool.taken().count()), (0, 0), "round {round}");
        alone.srq.post_recv(&[RecvWr::new(1, &[])]).unwrap();
    }
}

#[test]
fn q09_reset_waits_for_who_is_taking_and_gives_that_back() {
    let mut alone = Alone::in_own_fabric();
    let (device, target, pool) = (alone.device, alone.qp.number(), alone.pool());
    let slot = alone.slot();
    for round in 0..50 {
        resets_while(&mut alone, round, |holds| {
            let _taking = device.memory.lock(slot.pool.lock(), || {}).unwrap();
            holds();
            // It had seen the state before, and dies.
            let _taken = pool.take(ANOTHER, QpNumber::new(target));
        });
        assert_eq!((alone.srq.waiting(), pool.taken().count()), (1, 0), "round {round}");
    }
}

#[test]
fn x07_who_posts_is_not_kept_by_a_suspended_taker_however_often_it_is_rescheduled() {
    let Alone { mut qp, srq, mut cq, device, context: _context } = Alone::in_own_fabric();
    let number = qp.number();
    let suspended = device
        .memory
        .lock(device.engine.srq(SrqNumber::new(srq.number())).pool.lock(), || {})
        .unwrap();
    thread::scope(|scope| {
        let posts = scope.spawn(move || {
            qp.post_send(&[SendWr::send(2, &[])]).unwrap();
            qp
        });
        until("it has the queue pair", || !device.engine.ownership(QpIndex::new(number)).is_free());
        send_queue::run(device.engine, QpIndex::new(number));
        until("it returns", || posts.is_finished());
        drop(suspended);
        let mut polled = 0;
        until("it is sent", || {
            polled += cq.poll(&mut [Wc::default(); 2]).unwrap();
            polled == 2
        });
        drop(posts.join().unwrap());
    });
}

#[test]
fn x07_a_receive_that_was_left_is_not_taken_while_it_is_written_to_for_who_left_it() {
    let alone = Alone::in_own_fabric();
    let (device, srq, target) = (alone.device, alone.srq.number(), alone.qp.number());
    let first = alone.is_taken_by(ANOTHER);
    // This process carries out what the one at `ANOTHER` has asked for: to write to that receive.
    let is_through = copier::carry_out_for(device.memory, ANOTHER);
    // Who has just asked, under the lock, is suspended for so long that `ANOTHER` gives up, and leaves it without the lock.
    let leaves = || {
        if !copier::has_abandoned(device.memory, device.shm.attachment()) {
            copier::recover(device.memory, ANOTHER);
            return alone.pool().leave(&first).then_some(()).ok_or(Unavailable::Gone);
        }
        Err(Unavailable::Stuck)
    };
    assert_eq!(
        take(device.engine, SrqNumber::new(srq), QpNumber::new(target), leaves).err(),
        Some(Unavailable::Stuck)
    );
    assert!(alone.pool().taken().next().is_none(), "it is given back");
    is_through();
    let there = take(device.engine, SrqNumber::new(srq), QpNumber::new(target), || Ok(())).unwrap();
    assert_eq!(there.0.slot(), first.slot());
}

#[test]
fn x07_who_waits_for_a_lock_serves_others_who_ask_for_something_else() {
    let alone = Alone::in_own_fabric();
    let (device, lock) = (alone.device, alone.slot().pool.lock());
    let suspended = device.memory.lock(lock, || {}).unwrap();
    let asked = copier::tests::is_asked(device);
    thread::scope(|scope| {
        let waits = scope.spawn(|| device.memory.lock(lock, || {}).is_ok());
        until("they are served", || copier::tests::state(asked) == Some(State::Done));
        drop(suspended);
        assert!(waits.join().unwrap());
    });
}
