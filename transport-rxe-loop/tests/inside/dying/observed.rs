//! What an observer sees of a process that is stopped, or was killed, in the middle of something.

use super::*;
use crate::observe::{
    FabricObserver, HeldLock, LockName, Reason, Snapshot, Subject, Wait, WaitLimit,
};

/// Sends to the queue pair that it is told, and is stopped on the way.
#[test]
#[ignore = "a process of another test"]
fn sends() {
    die_there();
    send_one();
}

fn send_one() {
    let mut fixture = its_fixture();
    let mut qp = fixture.qp();
    say(format!("{} {}", qp.number(), fixture.device.shm.attachment().get()));
    qp.connect_to(order().parse().unwrap()).unwrap();
    qp.post_send(&[SendWr::send(9, &[])]).unwrap();
    fixture.next_wc();
}

/// The number of its queue pair, and its attachment.
fn heard(sender: &mut Actor) -> (u32, u16) {
    let said = sender.hear();
    let (number, attachment) = said.split_once(' ').unwrap();
    (number.parse().unwrap(), attachment.parse().unwrap())
}

/// A process that is stopped at a step of a SEND to this one, its queue pair and its attachment, and what is seen then.
fn stopped_at(step: Step, then: impl FnOnce(&Fixture, Actor, (u32, u16), &mut FabricObserver)) {
    let (fixture, name) = named(&format!("observed-{step:?}"), OpenOptions::new());
    let channel = fixture.context.create_channel().unwrap();
    let mut cq = fixture.context.cq(16).channel(&channel).create().unwrap();
    let mut qp = fixture.create(&fixture.pd.qp(&cq));
    let mut victim = mortal_at("inside::dying::observed::sends", &name, step, 0, Signal::STOP);
    let (number, attachment) = heard(&mut victim);
    qp.connect_to(number).unwrap();
    qp.post_recv(&[RecvWr::new(1, &[])]).unwrap();
    assert_eq!(cq.arm(Notify::Next), Ok(Armed::Armed));
    victim.order(qp.number());
    until("it stops", || victim.is_stopped());
    let mut observer = FabricObserver::open(&name).unwrap();
    then(&fixture, victim, (number, attachment), &mut observer);
}

fn lock(seen: &Snapshot) -> Option<HeldLock> {
    let is_cqs = |held: &&HeldLock| matches!(held.lock, LockName::CompletionQueue(_));
    seen.locks.iter().find(is_cqs).copied()
}

#[test]
fn the_lock_that_a_stopped_process_holds_is_seen_and_that_of_a_killed_one() {
    stopped_at(Step::Published, |fixture, mut victim, (_, attachment), observer| {
        let seen = observer.snapshot();
        let held = lock(&seen).unwrap();
        assert_eq!(held.holder.attachment, attachment);
        assert!(seen.is_alive(held.holder), "it is stopped, not dead");
        assert_eq!(seen.process(attachment).unwrap().pid, Some(victim.pid()));
        assert_eq!(observer.snapshot().locks, seen.locks, "as long as it is stopped");
        let is_held = |wait: &&Wait| wait.reason == Reason::Locked;
        let waits = seen.waits();
        let wait = waits.iter().find(is_held).unwrap_or_else(|| panic!("{waits:?}"));
        assert_eq!(
            (wait.owner, wait.blocker),
            (fixture.device.shm.attachment().get(), Some(attachment))
        );
        victim.kill();
        let mut seen = observer.snapshot();
        until("its lock is dropped", || {
            seen = observer.snapshot();
            seen.process(attachment).is_none_or(|process| !process.is_alive)
        });
        // A survivor may have recovered by now.
        if let Some(held) = lock(&seen).filter(|held| held.holder.attachment == attachment) {
            assert!(!seen.is_alive(held.holder));
            let dead = |wait: &Wait| {
                wait.subject == Subject::Process(attachment) && wait.reason == Reason::Recovery
            };
            assert!(seen.waits().iter().any(dead), "{:?}", seen.waits());
        }
        until("a survivor has recovered", || {
            deaths::look(fixture.device);
            let seen = observer.snapshot();
            seen.process(attachment).is_none() && seen.locks.is_empty()
        });
    });
}

#[test]
fn a_request_whose_process_is_stopped_while_it_carries_it_out_is_seen() {
    stopped_at(Step::Opened, |_, victim, (number, attachment), observer| {
        let seen = observer.snapshot();
        let qp = seen.queue_pair(number).unwrap();
        assert!(qp.is_copying && qp.sends.outstanding == 1, "{qp:?}");
        assert_eq!(qp.oldest.unwrap().wr_id, 9);
        let waits = seen.waits();
        let wait = waits.iter().find(|wait| wait.subject == Subject::QueuePair(number)).unwrap();
        assert_eq!(wait.reason, Reason::NotCarriedOut { requests: 1 });
        assert_eq!((wait.owner, wait.blocker), (attachment, Some(attachment)));
        assert!(observer.snapshot().waits().contains(wait), "it stays the same wait");
        victim.signal(Signal::CONT);
        until("it is carried out", || {
            let seen = observer.snapshot();
            seen.queue_pair(number).is_none_or(|qp| qp.sends.outstanding == 0 && !qp.is_copying)
        });
    });
}

/// Sends to the queue pair that it is told.
#[test]
#[ignore = "a process of another test"]
fn waits_for_a_receive() {
    die_with_parent();
    send_one();
}

#[test]
fn a_stopped_sender_whose_peer_has_a_receive_by_now_waits_for_itself() {
    for is_shared in [false, true] {
        let (fixture, name) = named(&format!("stopped-{is_shared}"), OpenOptions::new());
        let mut srq = fixture.srq(4);
        let init = fixture.pd.qp(&fixture.cq).srq(is_shared.then_some(&srq));
        let mut qp = fixture.create(&init);
        let part = "inside::dying::observed::waits_for_a_receive";
        let mut sender = Actor::start(part, &[(FABRIC, &name)]);
        let (number, attachment) = heard(&mut sender);
        qp.connect_to(number).unwrap();
        sender.order(qp.number());
        let mut observer = FabricObserver::open(&name).unwrap();
        let mut why = || {
            let waits = observer.snapshot().waits();
            let wait = waits.iter().find(|wait| wait.subject == Subject::QueuePair(number));
            wait.map(|wait| (wait.reason, wait.blocker))
        };
        let (limit, me) = (WaitLimit::Forever, fixture.device.shm.attachment().get());
        let no_receive = Some((Reason::NoReceive { limit }, Some(me)));
        until("it waits", || why() == no_receive);
        sender.signal(Signal::STOP);
        until("it is stopped", || sender.is_stopped());
        assert_eq!(why(), no_receive, "the receive is missing all the same");
        let receives = [RecvWr::new(1, &[])];
        if is_shared { srq.post_recv(&receives) } else { qp.post_recv(&receives) }.unwrap();
        assert_eq!(why(), Some((Reason::NotTriedAgain { limit }, Some(attachment))));
        sender.signal(Signal::CONT);
        until("it is sent", || why().is_none());
        sender.finish();
    }
}
