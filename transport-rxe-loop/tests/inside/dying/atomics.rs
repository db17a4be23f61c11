//! Tests of a process that is stopped while it carries out an atomic for another one: the atomic is done once, or not
//! at all, however late it is answered (X5, X7).

#![allow(unsafe_code)]

use super::steps::{die_there, mortal_at};
use crate::inside::prelude::*;
use crate::protocol::stage::State;

/// Has a word, and writes its value at the end.
#[test]
#[ignore = "a process of another test"]
fn counts() {
    die_there();
    let context = OpenOptions::new().fabric(&super::fabric()).copying_by_service();
    let context = context.open("loop0").unwrap();
    let (pd, cq) = (context.alloc_pd().unwrap(), context.create_cq(4, None).unwrap());
    let mut qp = pd.create_qp(&QpInit::new(&cq)).unwrap();
    // Memory that other processes cannot map.
    let word: &AtomicU64 = Box::leak(Box::default());
    let access = Access::LOCAL_WRITE | Access::REMOTE;
    // SAFETY: an atomic, there for ever.
    let region = unsafe { pd.register(word.as_ptr().cast(), 8, access) }.unwrap();
    let RemoteAddr { addr, rkey } = region.remote(0).unwrap();
    say(format!("{} {addr} {rkey}", qp.number()));
    qp.connect_to(order().parse().unwrap()).unwrap();
    say("ready");
    order();
    say(sync::load(word));
    order();
}

/// Adds to the word of a process that is stopped at a step of the first such operation.
struct Requester {
    device: &'static Device,
    remote: RemoteAddr,
    answers: OwnedRegion,
    qp: QueuePair,
    cq: Cq,
    victim: Actor,
}

impl Requester {
    fn new(step: Step, timeout: u8) -> Self {
        let name = format!("atomics-{step:?}-{timeout}-{}", std::process::id());
        let context = OpenOptions::new().fabric(&name).copying_by_service().open("loop0").unwrap();
        let (pd, cq) = (context.alloc_pd().unwrap(), context.create_cq(8, None).unwrap());
        let mut qp = pd.create_qp(&QpInit::new(&cq)).unwrap();
        let answers = pd.allocate(64, Access::LOCAL_WRITE).unwrap();
        let mut victim = mortal_at("inside::dying::atomics::counts", &name, step, 0, Signal::STOP);
        let said = victim.hear();
        let mut numbers = said.split(' ').map(|number| number.parse::<u64>().unwrap());
        let mut next = || numbers.next().unwrap();
        let peer = next() as u32;
        let remote = RemoteAddr { addr: next(), rkey: next() as u32 };
        let rts = QpAttr::rts().timeout(timeout).retry_cnt(0);
        for step in [
            QpAttr::init(&Port::new(1), Access::empty()),
            QpAttr::rtr(&Port::new(1), &Endpoint::new(peer)),
            rts,
        ] {
            qp.modify(&step).unwrap();
        }
        victim.order(qp.number());
        assert_eq!(victim.hear(), "ready");
        Self { device: context.device(), remote, answers, qp, cq, victim }
    }

    fn add(&mut self, nth: u64) {
        let to = [self.answers.sge(8 * nth as usize, 8).unwrap()];
        self.qp.post_send(&[SendWr::fetch_add(nth, &to, self.remote, 1)]).unwrap();
    }

    /// The value that the next atomic found.
    fn found(&mut self, nth: u64) -> Result<u64, WcStatus> {
        let mut wcs = [Wc::default()];
        until("it completes", || self.cq.poll(&mut wcs).unwrap() == 1);
        assert_eq!(wcs[0].wr_id(), nth);
        wcs[0].result().map_err(|failed| failed.status())?;
        let mut found = [0; 8];
        self.answers.read(8 * nth as usize, &mut found).unwrap();
        Ok(u64::from_ne_bytes(found))
    }

    /// Whether the outcome of the oldest request is still waited for.
    fn has_begun(&self) -> bool {
        sync::load(&self.device.engine.own(self.qp.index()).begun[0]) != 0
    }

    /// The victim continues, and writes its word's value once nothing is asked of it any more.
    fn goes_on(mut self) -> u64 {
        self.victim.signal(Signal::CONT);
        let stages = &self.device.memory.stages();
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
        until("it is reset", || requester.qp.modify(&QpAttr::to(state)).is_ok());
        until("its stage is left", || {
            let mut own = requester.device.memory.stages().of(requester.device.shm.attachment());
            own.all(|stage| matches!(stage.head.word.seen().state(), None | Some(State::Orphaned)))
        });
        assert!(!requester.has_begun());
        assert_eq!(requester.goes_on(), 1, "{state}");
    }
}
