//! Who waits for a copy that is under way, and whom a process serves while it waits for another one.

use super::client::{NotDone, atomic};
use super::*;
use crate::inside::prelude::*;
use crate::memory::stage::Head;

/// This process.
pub fn me(device: &'static Device) -> AttachmentId {
    device.shm.attachment()
}

/// A stage of this process.
pub fn own(device: &'static Device, nth: usize) -> Stage {
    device.memory.stages.of(me(device)).nth(nth).unwrap()
}

/// A stage of the process at [`ANOTHER`].
fn its(device: &'static Device, nth: usize) -> Stage {
    device.memory.stages.of(ANOTHER).nth(nth).unwrap()
}

/// What another process asks this one for.
fn read() -> Request {
    let (whose, needs) = (KeyUser::local(0), Access::empty());
    Request { code: Code::Read, whose, needs, operands: [0; 2] }
}

/// Another process asks this one for something. The stage that it does this by.
pub fn is_asked(device: &'static Device) -> &'static Head {
    let stage = its(device, 0);
    asks(device, stage, read(), &[]);
    stage.head
}

/// The process at [`ANOTHER`] asks this one for something, by this stage.
pub fn asks(device: &'static Device, stage: Stage, request: Request, sges: &[Sge]) {
    let filling = stage.head.word.claim(ANOTHER, me(device)).unwrap();
    stage.head.write(&request, sges.iter().copied());
    stage.head.word.ask(filling).unwrap();
    this(device.memory).unwrap().clients.add(ANOTHER);
}

pub fn state(head: &Head) -> Option<State> {
    head.word.seen().state()
}

/// Whether a stage can be had.
pub fn is_free(stage: Stage) -> bool {
    state(stage.head).is_none()
}

/// Stages by which processes have asked others, with those that ask and that are asked.
fn asked<const N: usize>(stages: [(Stage, AttachmentId, AttachmentId); N]) -> [Stage; N] {
    stages.map(|(stage, client, server)| {
        let word = &stage.head.word;
        word.ask(word.claim(client, server).unwrap()).unwrap();
        stage
    })
}

#[test]
fn x03_only_what_the_dead_have_asked_of_this_process_is_taken_back() {
    let device = Fixture::new().device;
    let (me, another) = (me(device), AttachmentId::new(ANOTHER.get() + 1));
    let large = device.memory.stages.large().next().unwrap();
    let stages =
        asked([(its(device, 0), ANOTHER, me), (its(device, 1), ANOTHER, another), (large, me, me)]);
    let filling = its(device, 2);
    assert!(filling.head.word.claim(ANOTHER, me).is_some());
    this(device.memory).unwrap().clients.add(ANOTHER);
    wait_for_given_up(device.memory);
    let states = stages.map(|stage| state(stage.head));
    assert_eq!(states, [None, Some(State::Asked), Some(State::Asked)]);
    assert_eq!(state(filling.head), Some(State::Filling));
}

#[test]
fn x03_only_what_the_dead_have_asked_of_an_owner_is_given_up_before_its_receives_are_free() {
    let fixture = Fixture::new();
    let (device, srq) = (fixture.device, fixture.srq(1));
    let me = me(device);
    let [one, other, third] = [0, 1, 2].map(|nth| its(device, nth));
    let stages = asked([(one, ANOTHER, me), (other, ANOTHER, ANOTHER), (third, me, me)]);
    let owner = device.engine.srq(SrqNumber::new(srq.number())).life().attachment().unwrap();
    give_up_for_the_dead(device.memory, owner);
    let states = stages.map(|stage| state(stage.head));
    assert_eq!(states, [None, Some(State::Asked), Some(State::Asked)]);
}

#[test]
fn x07_who_is_found_as_the_time_is_over_is_served_the_next_time() {
    let device = Fixture::new().device;
    let stage = device.memory.stages.large().next().unwrap();
    asks(device, stage, read(), &[]);
    let calls = || sync::load(device.shm.calls().unwrap());
    let before = calls();
    serve_all(device.memory, 0);
    assert_eq!((state(stage.head), calls()), (Some(State::Asked), before + 1));
    serve(device.memory);
    assert_eq!((state(stage.head), calls()), (Some(State::Done), before + 1));
}

#[test]
fn x07_a_process_that_serves_nobody_has_nothing_abandoned() {
    let device = Fixture::new().device;
    let (memory, is_marked) = (device.memory, || has_abandoned(device.memory, me(device)));
    let is_through = carry_out_for(memory, ANOTHER);
    recover(memory, ANOTHER);
    assert!(is_marked());
    is_through();
    assert!(!is_marked());
    // Nor does one that looks for what it is asked, as all do that sleep.
    mark_abandoned(memory, me(device));
    serve(memory);
    let abandoned = &this(memory).unwrap().abandoned;
    assert!(!abandoned.is_marked());
    abandoned.mark();
    let serving = sync::lock(&memory.copier.serving);
    assert!(is_marked());
    drop(serving);
    assert!(!is_marked() && !abandoned.is_marked());
}

#[test]
fn x07_who_waits_to_have_memory_back_serves_others_meanwhile() {
    let fixture = Fixture::new();
    let (device, region) = (fixture.device, fixture.region(64));
    let (index, _) = device.engine.qps.claim(ANOTHER).unwrap();
    device.engine.qps.at(index).send.in_flight.owner.open();
    let stage = is_asked(device);
    region.deregister();
    assert_eq!(state(stage), Some(State::Done), "it is served");
}

#[test]
fn x04_stages_that_nobody_of_this_process_has_to_do_with_are_freed() {
    let device = Fixture::new().device;
    let [of_none, of_a_thread] = [0, 1].map(|nth| own(device, nth));
    for stage in [of_none, of_a_thread] {
        stage.head.word.claim(me(device), ANOTHER).unwrap();
    }
    sync::enter(&device.memory.copier.in_use[1]);
    let orphan = its(device, 0);
    let word = &orphan.head.word;
    let request = word.ask(word.claim(ANOTHER, me(device)).unwrap()).unwrap();
    word.serve(me(device)).unwrap();
    word.give_up(request);
    assert!(!is_free(orphan), "somebody may still serve it");
    let serving = device.memory.copier.serving.lock().unwrap();
    let is_left = waits(
        || device.memory.tidy(),
        move || {
            assert!(!is_free(orphan), "this one does");
            drop(serving);
        },
    );
    assert!(!is_left, "for later");
    assert!(is_free(of_none) && is_free(orphan) && !is_free(of_a_thread));
}

#[test]
fn x07_one_thread_serves_at_a_time() {
    let device = Fixture::new().device;
    let stage = is_asked(device);
    let serving = device.memory.copier.serving.lock().unwrap();
    waits(
        || serve(device.memory),
        move || {
            assert_eq!(state(stage), Some(State::Asked));
            drop(serving);
        },
    );
    assert_eq!(state(stage), Some(State::Done));
}

/// A queue pair of a kind that takes messages, and has a receive.
fn receiver(fixture: &Fixture, qp_type: QpType) -> QueuePair {
    let mut qp = match qp_type {
        QpType::UD => fixture.datagrams(),
        _ => fixture.own_peer_of(&fixture.init(qp_type)),
    };
    qp.post_recv(&[RecvWr::new(1, &[])]).unwrap();
    qp
}

const KINDS: [QpType; 3] = [QpType::RC, QpType::UC, QpType::UD];

#[test]
fn x07_reset_waits_for_what_is_copied_for_who_has_given_up() {
    let fixture = Fixture::new();
    for kind in KINDS {
        let mut qp = receiver(&fixture, kind);
        let slot = fixture.slot(&qp);
        let serving = fixture.device.memory.copier.serving.lock().unwrap();
        let reset = waits(
            || qp.modify(&QpAttr::new().state(QpState::RESET)),
            move || {
                until("it takes no more", || {
                    identity::read(&slot.identity).state() == QpState::RESET
                });
                drop(serving);
            },
        );
        assert_eq!(reset, Ok(()), "{kind:?}");
    }
}

#[test]
fn x07_a_receive_is_not_flushed_while_its_memory_is_written_for_who_has_given_up() {
    let mut fixture = Fixture::new();
    let Device { memory, engine, .. } = *fixture.device;
    for kind in KINDS {
        let qp = receiver(&fixture, kind);
        let index = qp.index();
        let serving = memory.copier.serving.lock().unwrap();
        assert!(identity::fail(&fixture.slot(&qp).identity, qp.qpn()));
        waits(
            || send_queue::run(engine, index),
            || {
                assert_eq!(fixture.polled(), [], "{kind:?}: bytes may still move");
                drop(serving);
            },
        );
        assert_eq!(fixture.next_wc(), (1, WcStatus::WR_FLUSH_ERR));
    }
}

/// A word of this process' program, on which it carries atomics out for others.
pub struct Counter {
    word: &'static AtomicU64,
    region: MemoryRegion,
    far: Far,
}

impl Counter {
    pub fn new(fixture: &Fixture) -> Self {
        let (words, region) = heap(&fixture.pd, 1, Access::LOCAL_WRITE | Access::REMOTE);
        let whose = KeyUser::local(fixture.pd.domain.number);
        let far = Far { attachment: me(fixture.device), whose, needs: Access::REMOTE_ATOMIC };
        Self { word: &words[0], region, far }
    }

    /// The lock that an atomic on it takes.
    pub fn lock(&self, device: &'static Device) -> &'static Lock {
        &device.memory.stripes[self.region.addr() as usize / 8 % atomic_op::STRIPES]
    }

    /// The process at [`ANOTHER`] asks this one to add, by the `nth` of its stages.
    pub fn is_asked(&self, device: &'static Device, nth: usize) -> &'static Head {
        let (stage, Far { whose, needs, .. }) = (its(device, nth), self.far);
        let request = Request { code: Code::FetchAdd, whose, needs, operands: [1, 0] };
        asks(device, stage, request, &[self.region.sge(..8).unwrap()]);
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
    let fixture = Fixture::new();
    let (device, counter) = (fixture.device, Counter::new(&fixture));
    // For datagrams there would be the service thread, which serves whenever it likes.
    for kind in [QpType::RC, QpType::UC] {
        let to = |state| move |mut qp: QueuePair| qp.modify(&QpAttr::new().state(state)).unwrap();
        let ends: [&dyn Fn(QueuePair); 3] = [&to(QpState::RESET), &to(QpState::ERR), &drop];
        for end in ends {
            let qp = receiver(&fixture, kind);
            let stage = counter.is_asked(device, 0);
            end(qp);
            serve(device.memory);
            assert_eq!((state(stage), counter.value()), (None, 0), "{kind:?}");
        }
    }
    // Who lives is waited for elsewhere.
    let [stage] = asked([(own(device, 0), me(device), me(device))]);
    this(device.memory).unwrap().clients.add(me(device));
    drop(receiver(&fixture, QpType::RC));
    assert_eq!(state(stage.head), Some(State::Asked));
}

#[test]
fn x07_what_is_asked_for_by_any_stage_is_served_and_then_nothing_is_left_to_look_for() {
    let device = Fixture::new().device;
    let calls = || sync::load(device.shm.calls().unwrap());
    let (before, stages) = (calls(), &device.memory.stages);
    for stage in stages.of(ANOTHER).chain(stages.large()) {
        asks(device, stage, read(), &[]);
        serve(device.memory);
        assert_eq!(state(stage.head), Some(State::Done));
        assert!(!this(device.memory).unwrap().clients.any());
    }
    assert_eq!(calls(), before, "it is not called again");
}

#[test]
fn x07_who_is_suspended_over_a_word_keeps_nobody_waiting_who_asks_its_owner_for_something_else() {
    let fixture = Fixture::new();
    let (device, counter) = (fixture.device, Counter::new(&fixture));
    let suspended = device.memory.lock(counter.lock(device), || {}).unwrap();
    let asked = [is_asked(device), counter.is_asked(device, 1)];
    serve(device.memory);
    assert_eq!(asked.map(state), [Some(State::Done); 2]);
    assert_eq!(asked[1].answered().0, Outcome::Later, "while that one has the lock");
    drop(suspended);
}
