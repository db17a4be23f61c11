//! Tests of a process that is stopped while it carries out an atomic for another one: the atomic is done once, or not
//! at all, however late it is answered (X5, X7).

use super::*;
use crate::protocol::stage::State;

/// Has a word, and writes its value at the end.
#[test]
#[ignore = "a process of another test"]
fn counts() {
    die_there();
    let fixture = its_fixture();
    let mut qp = fixture.qp();
    // Memory that other processes cannot map.
    let (words, region) = heap(&fixture.pd, 1, Access::LOCAL_WRITE | Access::REMOTE);
    say(Address { number: qp.number(), memory: region.remote(0).unwrap() });
    qp.connect_to(order().parse().unwrap()).unwrap();
    say("ready");
    order();
    say(sync::load(&words[0]));
    order();
}

/// Adds to the word of a process that is stopped at a step of the first such operation.
struct Requester {
    fixture: Fixture,
    remote: RemoteAddr,
    answers: OwnedRegion,
    qp: QueuePair,
    victim: Actor,
}

impl Requester {
    fn new(step: Step, timeout: u8) -> Self {
        let (fixture, name) =
            named(&format!("atomics-{step:?}-{timeout}"), OpenOptions::new().copying_by_service());
        let (mut qp, answers) = (fixture.qp(), fixture.region(64));
        let mut victim = mortal_at("inside::dying::atomics::counts", &name, step, 0, Signal::STOP);
        let Address { number, memory: remote } = victim.hear().parse().unwrap();
        connect_with(
            &mut qp,
            number,
            QpAttr::rts().timeout(AckTimeout::from_number(timeout).unwrap()).retry_cnt(0),
        );
        victim.order(qp.number());
        assert_eq!(victim.hear(), "ready");
        Self { fixture, remote, answers, qp, victim }
    }

    fn add(&mut self, nth: u64) {
        let to = [self.answers.sge(8 * nth as usize..8 * nth as usize + 8).unwrap()];
        self.qp.post_send(&[SendWr::fetch_add(nth, &to, self.remote, 1)]).unwrap();
    }

    /// The value that the next atomic found.
    fn found(&mut self, nth: u64) -> Result<u64, WcStatus> {
        let (wr_id, status) = self.fixture.next_wc();
        assert_eq!(wr_id, nth);
        if status != WcStatus::SUCCESS {
            return Err(status);
        }
        let mut found = [0; 8];
        self.answers.read(8 * nth as usize, &mut found).unwrap();
        Ok(u64::from_ne_bytes(found))
    }

    /// Whether the outcome of the oldest request is still waited for.
    fn has_begun(&self) -> bool {
        sync::load(&self.fixture.device.engine.own(self.qp.index()).begun[0]) != 0
    }

    /// The victim continues, and writes its word's value once nothing is asked of it any more.
    fn goes_on(mut self) -> u64 {
        self.victim.signal(Signal::CONT);
        let stages = &self.fixture.device.memory.stages;
        until("no stage is in use", || {
            stages.all().all(|stage| stage.head.word.seen().state().is_none())
        });
        self.victim.order("say");
        let value = self.victim.number();
        self.victim.finish();
        value
    }
}

/// Where it stops, and whether the atomic was done by then.
const STEPS: [Step; 3] = [Step::Serving, Step::Served, Step::Answered];

#[test]
fn x05_an_atomic_whose_process_is_stopped_meanwhile_is_done_once() {
    for step in STEPS {
        // For ever.
        let mut requester = Requester::new(step, 0);
        requester.add(0);
        requester.add(1);
        until("it is stopped", || requester.victim.is_stopped());
        if step != Step::Answered {
            until("nobody answers", || requester.has_begun());
            requester.victim.signal(Signal::CONT);
        }
        assert_eq!(requester.found(0), Ok(0), "{step:?}");
        requester.victim.signal(Signal::CONT);
        assert_eq!(requester.found(1), Ok(1), "{step:?}: once");
        assert_eq!(requester.goes_on(), 2, "{step:?}");
    }
}

#[test]
fn x05_an_atomic_that_fails_with_its_process_stopped_is_done_once_at_most() {
    for step in [Step::Serving, Step::Served] {
        let mut requester = Requester::new(step, 1);
        requester.add(0);
        until("it is stopped", || requester.victim.is_stopped());
        requester.add(1);
        assert_eq!(requester.found(0), Err(WcStatus::RETRY_EXC_ERR), "{step:?}");
        assert_eq!(requester.found(1), Err(WcStatus::WR_FLUSH_ERR), "{step:?}");
        assert!(!requester.has_begun());
        assert_eq!(requester.goes_on(), 1, "{step:?}: it was begun");
    }
}

#[test]
fn x05_who_resets_its_queue_pair_leaves_what_it_has_begun() {
    for state in [QpState::RESET, QpState::ERR] {
        let mut requester = Requester::new(Step::Serving, 0);
        requester.add(0);
        until("nobody answers", || requester.has_begun());
        // Its own thread runs the request, and reports that its peer does not answer.
        until("it is reset", || requester.qp.modify(&QpAttr::new().state(state)).is_ok());
        until("its stage is left", || {
            let Device { memory, shm, .. } = *requester.fixture.device;
            let mut own = memory.stages.of(shm.attachment());
            own.all(|stage| matches!(stage.head.word.seen().state(), None | Some(State::Orphaned)))
        });
        assert!(!requester.has_begun());
        assert_eq!(requester.goes_on(), 1, "{state}");
    }
}
