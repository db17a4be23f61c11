//! Tests of a process that is stopped or killed as it wakes the receiver of its message: its own completion is stored
//! by then, and the receiver is woken all the same.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::steps::mortal_with;
use super::*;

/// Names how the further process sends.
const WAY: &str = "WAKING_WAY";

/// How a message is sent, what the environment of its sender has, and how many completions the sender has stored.
struct Way {
    name: &'static str,
    environment: &'static [(&'static str, &'static str)],
    qp_type: QpType,
    completions: u64,
}

const fn way(name: &'static str, completions: u64) -> Way {
    Way { name, environment: &[], qp_type: QpType::RC, completions }
}

const fn with(name: &'static str, environment: &'static [(&'static str, &'static str)]) -> Way {
    Way { environment, ..way(name, 1) }
}

const WAYS: [Way; 15] = [
    way("send", 1),
    way("channel", 1),
    way("immediate", 1),
    way("list", 3),
    way("unsignaled", 0),
    way("many SGEs", 1),
    way("too long", 1),
    way("too long, behind another", 2),
    way("wrong window", 1),
    way("retried", 1),
    Way { qp_type: QpType::UC, ..way("unreliable", 1) },
    Way { qp_type: QpType::UD, ..way("datagram", 1) },
    Way { qp_type: QpType::UD, ..way("datagrams", 1) },
    with("failed by a fault", &[("RXE_LOOP_FAULTS", "fail=#1:REM_INV_REQ_ERR")]),
    with("strict", &[("RXE_LOOP_STRICT", "1")]),
];

impl Way {
    /// The one that the parent of this process named.
    fn named() -> Self {
        let name = std::env::var(WAY).expect("started by another test");
        WAYS.into_iter().find(|way| way.name == name).unwrap()
    }

    /// Its sender, which is killed or stopped at a step.
    fn sender(&self, fabric: &str, step: Step, signal: Signal) -> Actor {
        let more = [&[(WAY, self.name)], self.environment].concat();
        mortal_with("inside::dying::waking::sends", fabric, (step, 0, signal), &more)
    }
}

const SEND: SendWr<'_> = SendWr::send_inline(1, b"hello");

/// Sends as it is told, to the queue pair and the memory that it is told.
#[test]
#[ignore = "a process of another test"]
fn sends() {
    die_there();
    let (fixture, way) = (its_fixture(), Way::named());
    let channel = fixture.context.create_channel().unwrap();
    let channel = (way.name == "channel").then_some(&channel);
    let cq = fixture.context.cq(16).channel(channel).create().unwrap();
    let caps = fixture.pd.qp(&cq).caps.max_send_sge(2);
    let mut qp = fixture.create(&fixture.pd.qp(&cq).qp_type(way.qp_type).caps(caps));
    say(qp.number());
    let [peer, rkey, addr] = [(); 3].map(|()| order().parse::<u64>().unwrap());
    if way.qp_type == QpType::UD {
        qp.activate(&Port::new(1), 1).unwrap();
        let ah = fixture.ah();
        let to = Destination::new(&ah, peer as u32, 1);
        let count = if way.name == "datagrams" { 3 } else { 1 };
        qp.to(&to).post_send(&[SEND; 3][..count]).unwrap();
    } else {
        qp.connect_to(peer as u32).unwrap();
        let region = fixture.region(64);
        let sges = [region.sge(..2).unwrap(), region.sge(8..10).unwrap()];
        let remote = RemoteAddr { addr, rkey: rkey as u32 };
        let list = match way.name {
            "immediate" => vec![SendWr::write_inline(1, b"hello", remote).with_imm([1; 4])],
            "list" => vec![SEND; 3],
            "unsignaled" => vec![SEND.unsignaled()],
            "many SGEs" => vec![SendWr::send(1, &sges)],
            "too long" => vec![SendWr::send_inline(1, &[0; 64])],
            "too long, behind another" => vec![SEND, SendWr::send_inline(2, &[0; 64])],
            "wrong window" => vec![SendWr::send_with_inv(1, &sges, rkey as u32)],
            _ => vec![SEND],
        };
        qp.post_send(&list).unwrap();
    }
    say("posted");
    order();
}

/// A receiver that waits for an event, and the sender.
struct Scene {
    fixture: Fixture,
    channel: CompletionChannel,
    cq: Cq,
    sender: Actor,
    /// The number of the sender's queue pair.
    number: QpNumber,
    _qp: QueuePair,
    _region: OwnedRegion,
}

impl Scene {
    /// The sender is killed or stopped at a step, the first time that it gets there. The receiver's queue is moderated if
    /// `count` is not 0.
    fn new(way: &Way, options: OpenOptions, count: u16, (step, signal): (Step, Signal)) -> Self {
        // One fabric for each: a sender that recovers from the death of another would be stopped by that.
        static FABRICS: AtomicUsize = AtomicUsize::new(0);
        let nth = FABRICS.fetch_add(1, Relaxed);
        let (fixture, name) = named(&format!("waking-{nth}"), options);
        let channel = fixture.context.create_channel().unwrap();
        let mut cq = fixture.context.cq(16).channel(&channel).create().unwrap();
        let mut qp = fixture.create(&fixture.pd.qp(&cq).qp_type(way.qp_type));
        let mut sender = way.sender(&name, step, signal);
        let number = sender.number() as u32;
        if way.qp_type == QpType::UD {
            qp.activate(&Port::new(1), 1).unwrap();
        } else {
            qp.connect_to(number).unwrap();
        }
        let region = fixture.region(4096);
        let sge = [region.sge(..60).unwrap()];
        let receives = [RecvWr::new(1, &sge); 3];
        cq.moderate(count, 0).unwrap();
        assert_eq!(cq.arm(Notify::Next), Ok(Armed::Armed));
        let remote = region.remote(0).unwrap();
        let is_late = way.name == "retried";
        if !is_late {
            qp.post_recv(&receives).unwrap();
        }
        for word in [u64::from(qp.number()), remote.rkey.into(), remote.addr] {
            sender.order(word);
        }
        if is_late {
            assert_eq!(sender.hear(), "posted");
            qp.post_recv(&receives).unwrap();
        }
        let number = QpNumber::new(number);
        Self { fixture, channel, cq, sender, number, _qp: qp, _region: region }
    }

    /// How many completions of the sender are stored.
    fn stored(&self) -> u64 {
        let Device { engine, completions, .. } = *self.fixture.device;
        completions.cq(engine.qp(self.number).send_cq()).fanin.position()
    }
}

/// The sender is stopped as it raises the event of its receiver.
fn is_stored_before(way: &Way, options: OpenOptions, count: u16) {
    let mut scene = Scene::new(way, options, count, (Step::Counted, Signal::STOP));
    until("it stops", || scene.sender.is_stopped());
    assert_eq!(scene.stored(), way.completions, "{}", way.name);
    let sends = &scene.fixture.device.engine.qp(scene.number).send;
    assert!(sends.done().get() > 0, "{}", way.name);
    scene.sender.signal(Signal::CONT);
    let woken = scene.channel.block(Some(Instant::now() + PATIENCE));
    assert_eq!(woken, Ok(Woken::Event), "{}", way.name);
    scene.sender.finish();
}

#[test]
fn n13_the_completion_of_the_sender_is_stored_before_its_receiver_is_woken() {
    WAYS.iter().for_each(|way| is_stored_before(way, OpenOptions::new(), 0));
    let [list, failed] = ["list", "too long"].map(|name| WAYS.iter().find(|way| way.name == name));
    is_stored_before(list.unwrap(), OpenOptions::new(), 3);
    is_stored_before(failed.unwrap(), OpenOptions::new(), 3);
    is_stored_before(list.unwrap(), OpenOptions::new().imitate_rxe(), 0);
}

/// The sender is killed once its completion is stored, and before it has raised the event of its receiver.
#[test]
fn n06_a_receiver_is_woken_whose_sender_dies_before_it_wakes_it() {
    for way in &WAYS {
        let mut scene = Scene::new(way, OpenOptions::new(), 0, (Step::Due, Signal::KILL));
        until("it dies", || scene.sender.has_ended());
        let woken = scene.channel.block(Some(Instant::now() + PATIENCE));
        assert_eq!(woken, Ok(Woken::Event), "{}", way.name);
        assert_eq!(scene.channel.take_event(), Ok(Some(scene.cq.key())), "{}", way.name);
        assert!(!polled(&mut scene.cq).is_empty(), "{}", way.name);
    }
}
