//! Who waits for a copy that is under way, and whom a process serves while it waits for another one.

use crate::protocol::number::RegionIndex;

use super::client::{NotDone, atomic};
use super::*;
use crate::inside::prelude::*;
use crate::memory::stage::Head;

/// An attachment that no process has.
pub const ANOTHER: AttachmentId = AttachmentId::new(37);

/// In a fabric where nobody else is, and no service thread.
pub fn alone() -> (Context, ProtectionDomain, &'static Device) {
    let (context, device) = OpenOptions::new().alone();
    let pd = context.alloc_pd().unwrap();
    (context, pd, device)
}

/// Deregisters memory while somebody copies who may do that through its key.
fn outlasts_the_copy<'a>(
    device: &'static Device,
    pd: &ProtectionDomain,
    copies: impl Fn() -> CopyGuard<'a>,
) {
    const ROUNDS: u32 = 5;
    for round in 0..ROUNDS {
        let region = pd.allocate(64, Access::LOCAL_WRITE).unwrap();
        let (key, window) = (&device.memory.mr(RegionIndex::new(region.lkey() >> 8)).key, copies());
        thread::scope(|scope| {
            let deregisters = scope.spawn(move || region.deregister());
            until("the key is dead", || sync::acquire(key) == 0);
            (0..200).for_each(|_| thread::yield_now());
            assert!(!deregisters.is_finished(), "round {round}: bytes may still move");
            drop(window);
            until("no bytes move any more", || deregisters.is_finished());
        });
    }
}

#[test]
fn q10_deregistering_waits_for_what_is_copied_for_another_process() {
    let (_context, pd, device) = alone();
    let in_flight = &device.memory.copier().in_flight;
    outlasts_the_copy(device, &pd, || CopyGuard::open_to_own(device.memory, in_flight));
}

#[test]
fn q10_deregistering_waits_for_what_this_process_copies_itself() {
    let (context, pd, device) = alone();
    let cq = context.create_cq(4, None).unwrap();
    let qp = pd.create_qp(&QpInit::new(&cq)).unwrap();
    outlasts_the_copy(device, &pd, || {
        device.engine.copy_guard(device.engine.qp(qp.qpn()), qp.index())
    });
}

/// Another process asks this one for something. The stage that it does this by.
pub fn is_asked(device: &'static Device) -> &'static Head {
    let stage = device.memory.stages().of(ANOTHER).next().unwrap();
    let (whose, needs) = (KeyUser::local(0), Access::empty());
    asks(device, stage, Request { code: Code::Read, whose, needs, operands: [0; 2] }, &[]);
    stage.head
}

/// The process at [`ANOTHER`] asks this one for something, by this stage.
pub fn asks(device: &'static Device, stage: Stage, request: Request, sges: &[Sge]) {
    let filling = stage.head.word.claim(ANOTHER, device.shm.attachment()).unwrap();
    stage.head.write(&request, sges.iter().copied());
    stage.head.word.ask(filling).unwrap();
    this(device.memory).unwrap().clients.add(ANOTHER);
}

pub fn state(head: &Head) -> Option<State> {
    head.word.seen().state()
}

#[test]
fn x03_only_what_the_dead_have_asked_of_this_process_is_taken_back() {
    let (_context, _pd, device) = alone();
    let (me, another, stages) =
        (device.shm.attachment(), AttachmentId::new(ANOTHER.get() + 1), device.memory.stages());
    let words: Vec<_> =
        stages.of(ANOTHER).take(3).chain(stages.large().take(1)).map(|it| &it.head.word).collect();
    let ask = |nth: usize, client, asked| words[nth].ask(words[nth].claim(client, asked).unwrap());
    assert!(
        [ask(0, ANOTHER, me), ask(1, ANOTHER, another), ask(3, me, me)].iter().all(Option::is_some)
    );
    assert!(words[2].claim(ANOTHER, me).is_some());
    this(device.memory).unwrap().clients.add(ANOTHER);
    wait_for_given_up(device.memory);
    let (asked, filling) = (Some(State::Asked), Some(State::Filling));
    let states: Vec<_> = words.iter().map(|word| word.seen().state()).collect();
    assert_eq!(states, [None, asked, filling, asked]);
}

#[test]
fn x07_who_is_found_as_the_time_is_over_is_served_the_next_time() {
    let (_context, _pd, device) = alone();
    let stage = device.memory.stages().large().next().unwrap();
    let (whose, needs) = (KeyUser::local(0), Access::empty());
    asks(device, stage, Request { code: Code::Read, whose, needs, operands: [0; 2] }, &[]);
    let calls = || sync::load(device.shm.calls().unwrap());
    let before = calls();
    serve_all(device.memory, 0);
    assert_eq!((state(stage.head), calls()), (Some(State::Asked), before + 1));
    serve(device.memory);
    assert_eq!((state(stage.head), calls()), (Some(State::Done), before + 1));
}

#[test]
fn x07_a_process_that_serves_nobody_has_nothing_abandoned() {
    let (_context, _pd, device) = alone();
    let is_through = carry_out_for(device.memory, ANOTHER);
    recover(device.memory, ANOTHER);
    assert!(has_abandoned(device.memory, device.shm.attachment()));
    is_through();
    assert!(!has_abandoned(device.memory, device.shm.attachment()));
    // Nor does one that looks for what it is asked, as all do that sleep.
    mark_abandoned(device.memory, device.shm.attachment());
    serve(device.memory);
    assert!(!this(device.memory).unwrap().abandoned.is_marked());
}

#[test]
fn x07_who_waits_to_have_memory_back_serves_others_meanwhile() {
    let (_context, pd, device) = alone();
    let region = pd.allocate(64, Access::LOCAL_WRITE).unwrap();
    let (index, _) = device.engine.qps().claim(ANOTHER).unwrap();
    device.engine.qp_at(index).send.in_flight.owner.open();
    let stage = is_asked(device);
    region.deregister();
    assert_eq!(state(stage), Some(State::Done), "it is served");
    device.engine.qp_at(index).life().end(ANOTHER);
}

/// Whether a stage can be had.
pub fn is_free(stage: Stage) -> bool {
    state(stage.head).is_none()
}

#[test]
fn x03_what_a_dead_process_asked_for_is_forgotten() {
    let (_context, _pd, device) = alone();
    let stage = is_asked(device);
    recover(device.memory, ANOTHER);
    assert_eq!(state(stage), None);
}

#[test]
fn x04_stages_that_nobody_of_this_process_has_to_do_with_are_freed() {
    let (_context, _pd, device) = alone();
    let stages = device.memory.stages();
    let [of_none, of_a_thread] =
        [0, 1].map(|nth| stages.of(device.shm.attachment()).nth(nth).unwrap());
    let orphan = stages.of(ANOTHER).next().unwrap();
    for stage in [of_none, of_a_thread] {
        stage.head.word.claim(device.shm.attachment(), ANOTHER).unwrap();
    }
    sync::enter(&device.memory.copier().in_use[1]);
    let word = &orphan.head.word;
    let request = word.ask(word.claim(ANOTHER, device.shm.attachment()).unwrap()).unwrap();
    word.serve(device.shm.attachment()).unwrap();
    word.give_up(request);
    assert!(!is_free(orphan), "somebody may still serve it");
    let serving = device.memory.copier().serving.lock().unwrap();
    thread::scope(|scope| {
        let tidies = Waiting::new(scope, || device.memory.tidy());
        assert!(tidies.has_to_wait() && !is_free(orphan), "this one does");
        drop(serving);
        assert!(!tidies.join().unwrap(), "nothing is left for later");
    });
    assert!(is_free(of_none) && is_free(orphan) && !is_free(of_a_thread));
}

#[test]
fn x07_one_thread_serves_at_a_time() {
    let (_context, _pd, device) = alone();
    let stage = is_asked(device);
    let serving = device.memory.copier().serving.lock().unwrap();
    thread::scope(|scope| {
        let serves = Waiting::new(scope, || serve(device.memory));
        assert!(serves.has_to_wait());
        assert_eq!(state(stage), Some(State::Asked));
        drop(serving);
        serves.join().unwrap();
    });
    assert_eq!(state(stage), Some(State::Done));
}

/// A queue pair of a kind that takes messages, and has a receive.
fn receiver(pd: &ProtectionDomain, cq: &Cq, qp_type: QpType) -> QueuePair {
    let mut qp = pd.create_qp(&QpInit { qp_type, ..QpInit::new(cq) }).unwrap();
    match qp_type {
        QpType::Ud => qp.activate(&Port::new(1), 1).unwrap(),
        QpType::Rc | QpType::Uc => qp.connect_to(qp.number()).unwrap(),
    }
    qp.post_recv(&[RecvWr::new(1, &[])]).unwrap();
    qp
}

const KINDS: [QpType; 3] = [QpType::Rc, QpType::Uc, QpType::Ud];

#[test]
fn x07_reset_waits_for_what_is_copied_for_who_has_given_up() {
    let (context, pd, device) = alone();
    let cq = context.create_cq(4, None).unwrap();
    for kind in KINDS {
        let mut qp = receiver(&pd, &cq, kind);
        let slot = device.engine.qp(qp.qpn());
        let serving = device.memory.copier().serving.lock().unwrap();
        thread::scope(|scope| {
            let resets = scope.spawn(move || qp.modify(&QpAttr::to(QpState::RESET)).map(|()| qp));
            until("it takes no more", || identity::read(slot).state() == QpState::RESET);
            (0..200).for_each(|_| thread::yield_now());
            assert!(!resets.is_finished(), "{kind:?}: bytes may still move");
            drop(serving);
            until("no bytes move any more", || resets.is_finished());
            resets.join().unwrap().unwrap();
        });
    }
}

#[test]
fn x07_a_receive_is_not_flushed_while_its_memory_is_written_for_who_has_given_up() {
    let (context, pd, device) = alone();
    let mut cq = context.create_cq(4, None).unwrap();
    for kind in KINDS {
        let qp = receiver(&pd, &cq, kind);
        let (number, mut wcs) = (qp.number(), [Wc::default()]);
        let serving = device.memory.copier().serving.lock().unwrap();
        assert!(identity::fail(device.engine.qp(QpNumber::new(number)), QpNumber::new(number)));
        thread::scope(|scope| {
            let flushes = scope.spawn(move || send_queue::run(device.engine, QpIndex::new(number)));
            let begins = || {
                flushes.is_finished() || !device.engine.ownership(QpIndex::new(number)).is_free()
            };
            until("it begins", begins);
            (0..200).for_each(|_| thread::yield_now());
            assert_eq!(cq.poll(&mut wcs), Ok(0), "{kind:?}: bytes may still move");
            drop(serving);
            until("it is flushed", || cq.poll(&mut wcs).unwrap() == 1);
        });
        assert_eq!(wcs[0].status(), WcStatus::WR_FLUSH_ERR);
    }
}

/// A word of this process' program, on which it carries atomics out for others.
pub struct Counter {
    word: &'static AtomicU64,
    region: MemoryRegion,
    far: Far,
}

impl Counter {
    #[allow(unsafe_code)]
    pub fn new(device: &'static Device, pd: &ProtectionDomain) -> Self {
        let word = &*Box::leak(Box::new(AtomicU64::new(0)));
        // SAFETY: an atomic that is there for ever.
        let region =
            unsafe { pd.register(word.as_ptr().cast(), 8, Access::LOCAL_WRITE | Access::REMOTE) };
        let (whose, needs) = (KeyUser::local(pd.domain().number()), Access::REMOTE_ATOMIC);
        Self {
            word,
            region: region.unwrap(),
            far: Far { attachment: device.shm.attachment(), whose, needs },
        }
    }

    /// The lock that an atomic on it takes.
    pub fn lock(&self, device: &'static Device) -> &'static Lock {
        &device.memory.stripes()[self.region.addr() as usize / 8 % atomic_op::STRIPES]
    }

    /// The process at [`ANOTHER`] asks this one to add, by the `nth` of its stages.
    pub fn is_asked(&self, device: &'static Device, nth: usize) -> &'static Head {
        let stage = device.memory.stages().of(ANOTHER).nth(nth).unwrap();
        let Far { whose, needs, .. } = self.far;
        let request = Request { code: Code::FetchAdd, whose, needs, operands: [1, 0] };
        asks(device, stage, request, &[self.region.sge(0, 8).unwrap()]);
        stage.head
    }

    /// This process asks itself to add.
    pub fn add(&self, device: &'static Device) -> Result<u64, NotDone> {
        let sge = Span::far(self.region.addr() as usize, 8, Key::new(self.region.lkey()));
        atomic(device.memory, self.far, sge, AtomicOp::FetchAdd { add: 1 })
    }

    pub fn value(&self) -> u64 {
        sync::load(self.word)
    }
}

#[test]
fn x03_what_a_dead_process_had_asked_for_is_not_done_once_the_queue_pair_takes_no_more() {
    let (context, pd, device) = alone();
    let (cq, counter) = (context.create_cq(4, None).unwrap(), Counter::new(device, &pd));
    // For datagrams there would be the service thread, which serves whenever it likes.
    for kind in [QpType::Rc, QpType::Uc] {
        let to = |state| move |mut qp: QueuePair| qp.modify(&QpAttr::to(state)).unwrap();
        let ends: [&dyn Fn(QueuePair); 3] = [&to(QpState::RESET), &to(QpState::ERR), &drop];
        for end in ends {
            let qp = receiver(&pd, &cq, kind);
            let stage = counter.is_asked(device, 0);
            end(qp);
            serve(device.memory);
            assert_eq!((state(stage), counter.value()), (None, 0), "{kind:?}");
        }
    }
    // Who lives is waited for elsewhere.
    let stage = device.memory.stages().of(device.shm.attachment()).next().unwrap();
    let word = &stage.head.word;
    word.ask(word.claim(device.shm.attachment(), device.shm.attachment()).unwrap()).unwrap();
    this(device.memory).unwrap().clients.add(device.shm.attachment());
    drop(receiver(&pd, &cq, QpType::Rc));
    assert_eq!(state(stage.head), Some(State::Asked));
}

#[test]
fn x07_what_is_asked_for_by_any_stage_is_served_and_then_nothing_is_left_to_look_for() {
    let (_context, _pd, device) = alone();
    let calls = || sync::load(device.shm.calls().unwrap());
    let (whose, needs) = (KeyUser::local(0), Access::empty());
    let (before, stages) = (calls(), device.memory.stages());
    for stage in stages.of(ANOTHER).chain(stages.large()) {
        asks(device, stage, Request { code: Code::Read, whose, needs, operands: [0; 2] }, &[]);
        serve(device.memory);
        assert_eq!(state(stage.head), Some(State::Done));
        assert!(!this(device.memory).unwrap().clients.any());
    }
    assert_eq!(calls(), before, "it is not called again");
}

#[test]
fn x07_this_process_has_nothing_abandoned_while_it_serves_nobody() {
    let (_context, _pd, device) = alone();
    let abandoned = &this(device.memory).unwrap().abandoned;
    abandoned.mark();
    let serving = device.memory.copier().serving();
    assert!(has_abandoned(device.memory, device.shm.attachment()));
    drop(serving);
    assert!(!has_abandoned(device.memory, device.shm.attachment()) && !abandoned.is_marked());
}

#[test]
fn x03_only_what_the_dead_have_asked_of_an_owner_is_given_up_before_its_receives_are_free() {
    let (_context, pd, device) = alone();
    let (me, srq) =
        (device.shm.attachment(), pd.create_srq(&SrqInit { max_wr: 1, max_sge: 1 }).unwrap());
    let stages: Vec<_> = device.memory.stages().of(ANOTHER).take(3).collect();
    for (stage, client, asked) in
        [(stages[0], ANOTHER, me), (stages[1], ANOTHER, ANOTHER), (stages[2], me, me)]
    {
        let word = &stage.head.word;
        word.ask(word.claim(client, asked).unwrap()).unwrap();
    }
    give_up_for_the_dead(
        device.memory,
        device.engine.srq(SrqNumber::new(srq.number())).life().attachment().unwrap(),
    );
    let asked = Some(State::Asked);
    assert_eq!([0, 1, 2].map(|nth: usize| state(stages[nth].head)), [None, asked, asked]);
}

#[test]
fn x07_who_is_suspended_over_a_word_keeps_nobody_waiting_who_asks_its_owner_for_something_else() {
    let (_context, pd, device) = alone();
    let counter = Counter::new(device, &pd);
    let suspended = device.memory.lock(counter.lock(device), || {}).unwrap();
    let asked = [is_asked(device), counter.is_asked(device, 1)];
    serve(device.memory);
    assert_eq!(asked.map(state), [Some(State::Done); 2]);
    assert_eq!(asked[1].answered().0, Outcome::Later, "while that one has the lock");
    drop(suspended);
}
