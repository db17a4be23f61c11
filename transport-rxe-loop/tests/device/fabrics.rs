//! Two fabrics in one process have nothing to do with each other; and what a fabric holds.

use crate::common::process::say;
use crate::common::*;
use cq_verbs::causes::Causes;
use transport_rxe_loop::AddressError;

fn open(which: &str) -> Context {
    let name = format!("{which}-{}", std::process::id());
    OpenOptions::new().fabric(&name).open("loop0").unwrap()
}

#[test]
fn x01_what_is_of_one_fabric_is_not_taken_in_another() {
    let (here, there) = (open("here"), open("there"));
    let (pd, cq) = (here.alloc_pd().unwrap(), here.cq(4).create().unwrap());
    let far = there.cq(4).create().unwrap();
    for (send_cq, recv_cq) in [(&cq, &far), (&far, &cq), (&far, &far)] {
        let init = pd.qp(&cq).send_cq(send_cq).recv_cq(recv_cq);
        assert_eq!(init.create().unwrap_err(), CreateError::OtherContext);
    }
    let srq = there.alloc_pd().unwrap().create_srq(&SrqInit::new(1)).unwrap();
    let init = pd.qp(&cq).srq(&srq);
    assert_eq!(init.create().unwrap_err(), CreateError::OtherContext);
    let channel = there.create_channel().unwrap();
    assert_eq!(here.cq(4).channel(&channel).create().unwrap_err(), CreateError::OtherContext);
    assert!(pd.qp(&cq).create().is_ok());
    assert!(there.cq(4).channel(&channel).create().is_ok());
}

#[test]
fn x01_numbers_and_addresses_of_another_fabric_are_nobodys() {
    let [(near, numbers, pd), (away, others, _)] = ["near", "far"].map(|name| {
        let context = open(name);
        let (pd, cq) = (context.alloc_pd().unwrap(), context.cq(4).create().unwrap());
        let srq = pd.create_srq(&SrqInit::new(1)).unwrap();
        let qp = pd.qp(&cq).create().unwrap();
        (context.port(1).unwrap(), (qp.number(), srq.number()), pd)
    });
    assert!(numbers.0 != others.0 && numbers.1 != others.1);
    assert!(near.lid != away.lid && near.gid != away.gid);
    let unknown = pd.create_ah(&AddressVector::new(&away, away.gid, 0)).unwrap_err();
    assert_eq!(unknown, AddressError::UnknownGid { gid: away.gid });
    for lid in [0, near.lid] {
        assert!(pd.create_ah(&AddressVector::new(&near, near.gid, lid)).is_ok());
    }
    assert_eq!(open("near").port(1).unwrap(), near, "by all names it is the same");
}

#[test]
fn a_fabric_of_usual_limits_holds_as_many_usual_queue_pairs_as_it_says() {
    let context = open("usual");
    let (most, pd) = (context.attributes(), context.alloc_pd().unwrap());
    let all: Vec<_> = (0..most.max_qp.min(most.max_cq))
        .map(|nth| {
            // For all that its queues hold.
            let cq = context.cq(2 * 128).create().unwrap_or_else(|why| panic!("{nth}: {why}"));
            (pd.qp(&cq).create().unwrap_or_else(|why| panic!("{nth}: {why}")), cq)
        })
        .collect();
    assert_eq!(all.len(), 1024);
    assert_eq!((all[0].0.caps().max_send_wr, all[0].0.caps().max_recv_wr), (128, 128));
    let srq = || pd.create_srq(&SrqInit::new(1));
    let all: Vec<_> = (0..most.max_srq).map(|_| srq().unwrap()).collect();
    let (what, max) = (LimitKind::SharedReceiveQueues, most.max_srq);
    assert_eq!(srq().unwrap_err(), CreateError::TableFull { what, max });
    drop(all);
}

#[test]
fn x01_a_table_is_used_from_any_number_on_and_whole() {
    let name = format!("whole-{}", std::process::id());
    let limits = Limits::default().queue_pairs(64);
    let context = OpenOptions::new().fabric(&name).limits(limits).open("loop0").unwrap();
    let (pd, cq) = (context.alloc_pd().unwrap(), context.cq(4).create().unwrap());
    let mut numbers = Vec::new();
    for _ in 0..5 {
        let all: Vec<_> = (0..64).map(|_| pd.qp(&cq).create().unwrap()).collect();
        assert!(pd.qp(&cq).create().is_err(), "the table is full");
        numbers.extend(all.iter().map(QueuePair::number));
    }
    let given = numbers.len();
    assert!(numbers.iter().all(|number| (2..1 << 24).contains(number)));
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), given, "each is another's than the one before it");
}

/// Says what the device has that is opened with nothing but the environment.
#[test]
#[ignore = "a process of the tests below"]
fn as_the_environment_says() {
    match Context::open("loop0") {
        Ok(context) => {
            let (most, other) = (context.limits(), context.other_limits());
            let capacity = context.cq(2).create().unwrap().capacity();
            let (most, bytes) = (most.queue_pairs, most.bytes >> 20);
            let injected = context.injected().map(|injected| injected.seed);
            say(format!("{most} {bytes} {} {capacity} {injected:?}", other.is_some()));
        }
        Err(error) => say(Causes(&error)),
    }
}

/// What it says with this variable, in the fabric of this name.
fn with(name: &str, variable: &str, value: &str) -> String {
    let name = format!("environment-{}-{name}", std::process::id());
    let environment = [("RXE_LOOP_FABRIC", &*name), (variable, value)];
    said_by("fabrics::as_the_environment_says", &environment)
}

#[test]
fn the_environment_asks_for_imitation_and_faults_where_the_program_does_not() {
    for (variable, value, said) in [
        ("RXE_LOOP_IMITATE", "rxe", "2048 53 false 3 None"),
        ("RXE_LOOP_IMITATE", "siw", "siw"),
        ("RXE_LOOP_IMITATE", "", "RXE_LOOP_IMITATE"),
        ("RXE_LOOP_COUNT", "polls", "2048 53 false 2 None"),
        ("RXE_LOOP_COUNT", "sends", "RXE_LOOP_COUNT is \"sends\": say `polls`, or unset it"),
        ("RXE_LOOP_FAULTS", "seed=3,fail=#2:FATAL_ERR", "2048 53 false 2 Some(3)"),
        ("RXE_LOOP_FAULTS", "seed=3,fail=#2", "with which status"),
    ] {
        let says = with("asks", variable, value);
        assert!(says.contains(said), "{variable}={value}: {says}");
    }
}

#[test]
fn x01_the_environment_has_limits_for_a_program_that_asks_for_none() {
    let run = |name: &str, limits: &str| with(name, "RXE_LOOP_LIMITS", limits);
    assert_eq!(run("a", "queue_pairs=4000,bytes=20M"), "4096 20 false 2 None");
    assert_eq!(run("b", ""), "2048 53 false 2 None");
    assert_eq!(
        run("c", "queue_pairs=few"),
        "RXE_LOOP_LIMITS can't be read: `queue_pairs=few` is not a number: give one such as `4096`, or of bytes `64M` or `1G`"
    );
    let none = run("d", "queue_pairs=0");
    assert!(none.ends_with("a fabric can't have 0 queue pairs: from 1 to 65536"), "{none}");
    // Who comes second, and asks for something else, or for nothing.
    let name = format!("environment-{}-first", std::process::id());
    let limits = Limits::default().queue_pairs(64);
    let first = OpenOptions::new().fabric(&name).limits(limits).open("loop0").unwrap();
    assert_eq!(run("first", "queue_pairs=2000"), "64 53 true 2 None");
    assert_eq!(run("first", "queue_pairs=60"), "64 53 false 2 None");
    assert_eq!(first.other_limits(), None);
    let second = OpenOptions::new().fabric(&name).open("loop0").unwrap();
    assert_eq!(second.other_limits(), None, "it asks for nothing");
    let asking = OpenOptions::new().fabric(&name).limits(limits.channels(8));
    let other = asking.open("loop0").unwrap().other_limits().unwrap();
    assert_eq!((other.asked.channels, other.in_force.channels), (8, limits.channels));
    let said = other.to_string();
    assert!(said.contains("queue_pairs=64,") && said.contains("channels=512"), "{said}");
}
