//! The strict device: its completion queues overrun with exactly one completion too many (O1–O3, O7, O8, Q12), whoever
//! pushes and however they are polled.

mod connections;
mod receives;
mod requests;

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use crate::common::process::{Actor, order, say};
use crate::common::*;
use transport_rxe_loop::OpenError;

/// A strict device, in a fabric of its own, where requests are carried out as they are posted: so it is known what is
/// pushed when.
fn strict() -> Context {
    options().strict().open("loop0").unwrap()
}

fn options() -> OpenOptions {
    static FABRICS: AtomicU32 = AtomicU32::new(0);
    let nth = FABRICS.fetch_add(1, Ordering::Relaxed);
    let limits = Limits::default().bytes(8 << 20);
    let name = format!("strict-{}-{nth}", std::process::id());
    OpenOptions::new().fabric(&name).limits(limits).faults("defer=0us".parse().unwrap())
}

/// A queue pair of these queues, for its sends and its receives, that is connected to itself.
fn loops(context: &Context, [send_cq, recv_cq]: [&Cq; 2], max_wr: u32) -> QueuePair {
    let caps = CAPS.max_send_wr(max_wr).max_recv_wr(max_wr);
    to_itself(context.alloc_pd().unwrap().qp(send_cq).recv_cq(recv_cq).caps(caps))
}

const EMPTY: SendWr<'_> = SendWr::write_inline(0, &[], NOWHERE);

/// Adds a completion to a queue.
type Add<'a> = &'a mut dyn FnMut();

/// Runs a test with a queue of this capacity, once for each way in which completions are pushed.
fn each_way(capacity: u32, test: impl Fn(&str, &mut Context, Cq, Add<'_>)) {
    let mut context = strict();
    let mut other = context.cq(4096).create().unwrap();
    let channel = context.create_channel().unwrap();
    let queue = |channel| context.cq(capacity).channel(channel).create().unwrap();

    let cq = queue(None);
    let mut qp = loops(&context, [&cq, &other], 256);
    test("by the only producer", &mut context.clone(), cq, &mut || qp.post_send(&[EMPTY]).unwrap());

    let cq = queue(None);
    let mut qps = [(); 2].map(|()| loops(&context, [&cq; 2], 256));
    let mut nth = 0;
    test("by two in turn", &mut context.clone(), cq, &mut || {
        nth += 1;
        qps[nth % 2].post_send(&[EMPTY]).unwrap();
    });

    for channel in [None, Some(&channel)] {
        let cq = queue(channel);
        let mut qp = loops(&context, [&other, &cq], 256);
        test("receives", &mut context.clone(), cq, &mut || {
            qp.post_recv(&[RecvWr::new(0, &[])]).unwrap();
            qp.post_send(&[SendWr::send(0, &[])]).unwrap();
            take(&mut other);
        });
    }

    let mut cq = queue(Some(&channel));
    cq.moderate(3, 100).unwrap();
    let mut qp = loops(&context, [&cq, &other], 256);
    test("moderated", &mut context, cq, &mut || qp.post_send(&[EMPTY]).unwrap());
}

#[test]
fn o01_a_queue_overruns_with_one_completion_more_than_its_capacity() {
    for capacity in [1, 2, 5, 13, 64, 100] {
        each_way(capacity, |way, context, mut cq, add| {
            assert_eq!(cq.capacity(), capacity as usize);
            (0..capacity).for_each(|_| add());
            assert_eq!(reports(context), [], "{way}: {capacity} fit");
            add();
            assert_eq!(reports(context).first(), Some(&cq_err(&cq)), "{way}: one more does not");
            let mut buffer = [Wc::default(); 128];
            assert_eq!(cq.poll_into(&mut buffer), Ok(capacity as usize));
            assert!(matches!(cq.poll_into(&mut buffer), Err(PollError::Overrun { .. })), "{way}");
        });
    }
}

#[test]
fn o07_a_queue_that_is_polled_in_time_never_overruns_however_little_at_a_time() {
    for (capacity, at_once) in [(1, 1), (5, 1), (5, 2), (5, 5), (64, 1), (64, 3), (64, 64)] {
        each_way(capacity, |way, context, mut cq, add| {
            (0..capacity).for_each(|_| add());
            let mut buffer = vec![Wc::default(); at_once];
            for _ in 0..50 {
                // As soon as some are polled, there is place for as many.
                assert_eq!(cq.poll_into(&mut buffer), Ok(at_once));
                (0..at_once).for_each(|_| add());
            }
            assert_eq!(reports(context), [], "{way}: {at_once} of {capacity}");
            add();
            assert_eq!(
                reports(context).first(),
                Some(&cq_err(&cq)),
                "{way}: {at_once} of {capacity}"
            );
        });
    }
}

#[test]
fn o07_many_threads_never_overrun_a_queue_that_is_as_large_as_what_they_have_outstanding() {
    const QPS: u32 = 4;
    const EACH: u64 = 2_000;
    for depth in [1, 3] {
        let mut context = strict();
        let mut cq = context.cq(QPS * depth).create().unwrap();
        let qps: Vec<_> = (0..QPS).map(|_| loops(&context, [&cq; 2], depth)).collect();
        let posters = qps.into_iter().map(|mut qp| {
            thread::spawn(move || {
                post_all(&mut qp, EMPTY, EACH);
                qp
            })
        });
        let (posters, mut polled) = (posters.collect::<Vec<_>>(), 0);
        wait_for(|| {
            polled += cq.poll_into(&mut [Wc::default()]).unwrap();
            polled as u64 == u64::from(QPS) * EACH
        });
        posters.into_iter().for_each(|poster| drop(poster.join().unwrap()));
        assert_eq!(reports(&mut context), []);
    }
}

#[test]
fn o08_a_queue_that_ignores_overruns_stores_exactly_what_it_has_capacity_for() {
    for capacity in [1, 5, 64] {
        let context = strict();
        let mut cq = context.cq(capacity).ignore_overrun().create().unwrap();
        let mut qp = loops(&context, [&cq; 2], 256);
        (0..capacity + 7).for_each(|_| qp.post_send(&[EMPTY]).unwrap());
        assert_eq!((cq.dropped(), take(&mut cq).len()), (7, capacity as usize));
    }
}

#[test]
fn q12_a_queue_is_as_exact_after_resizing() {
    let mut context = strict();
    let mut cq = context.cq(5).create().unwrap();
    let mut qp = loops(&context, [&cq; 2], 256);
    (0..5).for_each(|_| qp.post_send(&[EMPTY]).unwrap());
    for capacity in [7, 100, 9] {
        assert_eq!((cq.resize(capacity), cq.capacity()), (Ok(capacity), capacity as usize));
        (5..capacity).for_each(|_| qp.post_send(&[EMPTY]).unwrap());
        assert_eq!(
            cq.poll_into(&mut vec![Wc::default(); capacity as usize - 5]).unwrap() as u32,
            capacity - 5
        );
    }
    cq.resize(5).unwrap();
    assert_eq!(reports(&mut context), []);
    qp.post_send(&[EMPTY]).unwrap();
    assert_eq!(reports(&mut context), [cq_err(&cq), fatal(&qp)]);
}

#[test]
fn o01_a_queue_of_soft_roce_drops_what_exceeds_the_capacity_that_it_reports() {
    let mut context = options().strict().imitate_rxe().open("loop0").unwrap();
    let mut cq = context.cq(5).create().unwrap();
    assert_eq!(cq.capacity(), 7);
    let mut qp = loops(&context, [&cq; 2], 256);
    (0..7).for_each(|_| qp.post_send(&[EMPTY]).unwrap());
    assert_eq!(reports(&mut context), []);
    qp.post_send(&[EMPTY]).unwrap();
    assert_eq!((reports(&mut context), take(&mut cq).len()), (vec![cq_err(&cq)], 7));
}

/// Sends lists to a queue pair of another process, from a device that is not strict.
#[test]
#[ignore = "a process of another test"]
fn send_lists() {
    let mut end = End::with(CAPS.max_send_wr(64));
    say(end.qp.number());
    end.qp.connect_to(order().parse().unwrap()).unwrap();
    loop {
        let count = order().parse::<usize>().unwrap();
        end.qp.post_send(&vec![SendWr::send(0, &[]); count]).unwrap();
        settle(&mut end.cq, count);
        say("sent");
    }
}

#[test]
fn x01_another_process_that_is_not_strict_overruns_the_queue_as_exactly() {
    let name = format!("strict-across-{}", std::process::id());
    let mut context = options().fabric(&name).strict().open("loop0").unwrap();
    let mut cq = context.cq(10).create().unwrap();
    let pd = context.alloc_pd().unwrap();
    let caps = CAPS.max_recv_wr(64);
    let mut qp = pd.qp(&cq).caps(caps).create().unwrap();
    let mut sender = Actor::start("strict::send_lists", &[(FABRIC, &name)]);
    qp.connect_to(sender.number() as u32).unwrap();
    sender.order(qp.number());
    let mut send = |count: usize| {
        sender.order(count);
        assert_eq!(sender.hear(), "sent");
    };
    qp.post_recv(&vec![RecvWr::new(0, &[]); 64]).unwrap();
    for count in [10, 1, 3, 7, 10] {
        send(count);
        (0..count).for_each(|_| assert_eq!(cq.poll_into(&mut [Wc::default()]), Ok(1)));
    }
    send(8);
    send(2);
    assert_eq!(reports(&mut context), []);
    send(2);
    assert_eq!(reports(&mut context), [cq_err(&cq), fatal(&qp)]);
    let mut buffer = [Wc::default(); 64];
    assert_eq!(cq.poll_into(&mut buffer), Ok(10));
    assert!(cq.poll_into(&mut buffer).is_err());
    sender.leave();
}

/// Opens the device as the environment says.
#[test]
#[ignore = "a process of another test"]
fn say_whether_strict() {
    say(match try_open() {
        Ok(context) => context.is_strict().to_string(),
        Err(error) => error.to_string(),
    });
}

#[test]
fn the_environment_makes_the_device_strict_or_is_refused() {
    let said = |value| said_by("strict::say_whether_strict", &[("RXE_LOOP_STRICT", value)]);
    assert_eq!(["1", "0"].map(said), ["true", "false"]);
    let how = "yes".into();
    assert_eq!(said("yes"), OpenError::UnknownStrictness { how }.to_string());
    assert!(said("").contains("RXE_LOOP_STRICT is \"\": say `1`, or unset it"));
}
