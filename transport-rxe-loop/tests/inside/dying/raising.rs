//! Tests of a process that stops at each step of raising an event: the reader of the channel gets the events of all
//! others.

use std::path::PathBuf;

use cq_core::transport::CqKey;

use super::*;

/// The steps of raising an event, which a process has not raised at the first, and has half raised at the second.
const STEPS: [Step; 2] = [Step::Due, Step::Counted];

/// Sends to the queue pair that it is told, which raises an event, and stops at a step of that.
#[test]
#[ignore = "a process of another test"]
fn raises() {
    die_there();
    let mut fixture = its_fixture();
    let mut qp = fixture.qp();
    say(qp.number());
    qp.connect_to(order().parse().unwrap()).unwrap();
    qp.post_send(&[SendWr::send(1, &[])]).unwrap();
    fixture.next_wc();
}

/// Sends a message to itself, so that this process raises the event of its completion queue.
fn complete(qp: &mut QueuePair, cq: &mut Cq) {
    let mut completions = [Wc::default(); 4];
    assert_eq!(cq.poll_into(&mut completions).map(|count| count % 2), Ok(0));
    assert_eq!(cq.arm(Notify::Next), Ok(Armed::Armed));
    qp.post_recv(&[RecvWr::new(1, &[])]).unwrap();
    qp.post_send(&[SendWr::send(2, &[])]).unwrap();
}

/// Waits until the event of this queue comes; adds other events to `others`.
fn sleep_for(channel: &mut CompletionChannel, key: CqKey, others: &mut Vec<CqKey>) {
    loop {
        match channel.take_event().unwrap() {
            Some(other) if other == key => return,
            Some(other) => others.push(other),
            None => {
                let woken = channel.block(Some(Instant::now() + PATIENCE));
                assert_eq!(woken, Ok(Woken::Event), "it sleeps for ever");
            }
        }
    }
}

#[test]
fn n06_who_stops_at_whatever_step_of_raising_an_event_keeps_no_other_event_back() {
    for step in STEPS {
        let (fixture, name) = named(&format!("raising-{step:?}"), OpenOptions::new());
        let mut channel = fixture.context.create_channel().unwrap();
        let [mut theirs, mut mine] =
            [(); 2].map(|()| fixture.context.cq(16).channel(&channel).create().unwrap());
        let [mut far, mut near] = [&theirs, &mine].map(|cq| fixture.create(&fixture.pd.qp(cq)));
        let mut victim = mortal_at("inside::dying::raising::raises", &name, step, 0, Signal::STOP);
        far.connect_to(victim.number() as u32).unwrap();
        near.connect_to(near.number()).unwrap();
        far.post_recv(&[RecvWr::new(1, &[])]).unwrap();
        assert_eq!(theirs.arm(Notify::Next), Ok(Armed::Armed));
        victim.order(far.number());
        until("it stops", || victim.is_stopped());
        let mut others = Vec::new();
        for _ in 0..3 {
            complete(&mut near, &mut mine);
            sleep_for(&mut channel, mine.key(), &mut others);
        }
        assert!(others.iter().all(|&other| other == theirs.key()), "{step:?}: {others:?}");
        victim.signal(Signal::CONT);
        if others.is_empty() {
            sleep_for(&mut channel, theirs.key(), &mut Vec::new());
        }
        assert!(victim.ended().success());
    }
}

/// Waits for a message, which raises an event, and leaves.
#[test]
#[ignore = "a process of another test"]
fn comes_and_goes() {
    die_with_parent();
    let fixture = its_fixture();
    let mut channel = fixture.context.create_channel().unwrap();
    let mut cq = fixture.context.cq(16).channel(&channel).create().unwrap();
    let mut qp = fixture.create(&fixture.pd.qp(&cq));
    qp.connect_to(order().parse().unwrap()).unwrap();
    qp.post_recv(&[RecvWr::new(1, &[])]).unwrap();
    assert_eq!(cq.arm(Notify::Next), Ok(Armed::Armed));
    say(qp.number());
    // An event may be spurious: recovery from the death of the process before raises one (N5).
    while cq.poll_into(&mut [Wc::default()]) == Ok(0) {
        if cq.arm(Notify::Next) == Ok(Armed::Armed) {
            sleep_for(&mut channel, cq.key(), &mut Vec::new());
        }
    }
}

#[test]
fn who_raises_events_of_peers_that_come_and_go_keeps_no_descriptor_of_them() {
    let (mut fixture, name) = named("coming-and-going", OpenOptions::new());
    let file = fixture.device.shm.path().file();
    // Other tests of this process open what is of other fabrics.
    let open_descriptors = || {
        let fds = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let targets = fds.filter_map(|fd| std::fs::read_link(fd.path()).ok());
        let of_the_fabric =
            |target: &PathBuf| target.to_string_lossy().starts_with(&*file.to_string_lossy());
        targets.filter(of_the_fabric).count()
    };
    let mut serve = || {
        let mut qp = fixture.qp();
        let mut peer = Actor::start("inside::dying::raising::comes_and_goes", &[(FABRIC, &name)]);
        peer.order(qp.number());
        qp.connect_to(peer.number() as u32).unwrap();
        qp.post_send(&[SendWr::send(1, &[])]).unwrap();
        assert_eq!(fixture.next_wc(), (1, WcStatus::SUCCESS));
        assert!(peer.ended().success());
    };
    let before = open_descriptors();
    (0..8).for_each(|_| serve());
    until("all are closed", || open_descriptors() == before);
}

/// Overruns the queue pair that it is told, and stops when the state of one changes.
#[test]
#[ignore = "a process of another test"]
fn overruns() {
    die_there();
    let mut qp = its_fixture().qp();
    say(qp.number());
    qp.connect_to(order().parse().unwrap()).unwrap();
    say("connected");
    qp.post_send(&[SendWr::send(1, &[]); 16]).unwrap();
}

/// False if the victim does not get that far.
fn overrun_all(time: usize) -> bool {
    let (fixture, name) = named(&format!("overrunning-{time}"), OpenOptions::new());
    let cq = fixture.context.cq(1).create().unwrap();
    let [mut far, mut near, mut idle] = [(); 3].map(|()| fixture.create(&fixture.pd.qp(&cq)));
    let test = "inside::dying::raising::overruns";
    let mut victim = mortal_at(test, &name, Step::Changed, time, Signal::STOP);
    far.connect_to(victim.number() as u32).unwrap();
    near.connect_to(near.number()).unwrap();
    idle.connect_to(idle.number()).unwrap();
    far.post_recv(&[RecvWr::new(1, &[]); 16]).unwrap();
    victim.order(far.number());
    until("it stops, or ends", || victim.is_stopped() || victim.has_ended());
    let stops = victim.is_stopped();
    if stops {
        near.post_recv(&[RecvWr::new(1, &[]); 8]).unwrap();
        near.post_send(&[SendWr::send(2, &[]); 8]).unwrap();
        let states = [&near, &idle].map(|qp| qp.state().unwrap());
        assert_eq!(states, [QpState::ERR; 2], "stopped at the {time}th change");
        victim.signal(Signal::CONT);
    }
    let _ended = victim.ended();
    assert_eq!(idle.state().unwrap(), QpState::ERR);
    stops
}

#[test]
fn o04_who_stops_while_it_fails_the_queue_pairs_of_a_queue_leaves_none_that_others_do_not_fail() {
    // The first change is the creation of its queue pair.
    let stops = (1..).take_while(|&time| overrun_all(time)).count();
    assert!(stops > 3, "it connects first: {stops}");
}
