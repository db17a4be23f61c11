//! A channel with a descriptor (N7, N14).

use std::os::fd::{AsFd, AsRawFd};

use cq_verbs::descriptor::{block, channel};

use super::*;

#[test]
#[cfg_attr(miri, ignore = "Miri has no ppoll(2)")]
fn n14_a_descriptor_is_readable_exactly_while_there_is_an_event() {
    let (raiser, mut events) = channel(1).unwrap();
    let other = events.raiser();
    assert_eq!(events.as_raw_fd(), events.as_fd().as_raw_fd());
    let is_readable = |events: &dyn AsFd| match block(events.as_fd(), Some(Instant::now())) {
        Ok(Woken::Event) => true,
        other => {
            assert_eq!(other, Ok(Woken::DeadlinePassed));
            false
        }
    };
    assert!(!is_readable(&events));
    [&other, &raiser, &other].iter().for_each(|raiser| raiser.raise());
    for taken in [Some(&other), Some(&raiser), None, None] {
        assert_eq!(taken.is_some(), is_readable(&events));
        assert_eq!(events.take_event(), Ok(taken.map(Signal::key)));
    }
    assert!(!is_readable(&events));
    // Of a queue that is destroyed (N7).
    [&other, &raiser].iter().for_each(|raiser| raiser.raise());
    events.forget(other.key());
    assert!(is_readable(&events));
    events.forget(raiser.key());
    assert!(!is_readable(&events));
    assert_eq!(events.take_event(), Ok(None));
    let sleeper = thread::spawn(move || {
        let woken = events.block(late());
        (woken, events.take_event())
    });
    raiser.raise();
    assert_eq!(sleeper.join().unwrap(), (Ok(Woken::Event), Ok(Some(raiser.key()))));
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no ppoll(2)")]
fn n14_who_takes_events_alone_finds_one_whenever_the_descriptor_is_readable() {
    const EACH: u64 = many(5_000);
    let (raiser, mut events) = channel(2).unwrap();
    let other = events.raiser();
    let other_key = other.key();
    thread::scope(|scope| {
        let (begin, begun): (Vec<_>, Vec<_>) =
            [(); 2].map(|()| std::sync::mpsc::channel()).into_iter().unzip();
        for (raiser, begun) in [raiser, other].into_iter().zip(begun) {
            scope.spawn(move || begun.into_iter().for_each(|()| raiser.raise()));
        }
        begin.iter().for_each(|begin| begin.send(()).unwrap());
        for nth in 0..2 * EACH {
            assert_eq!(events.block(late()), Ok(Woken::Event));
            let key = events.take_event().unwrap().unwrap_or_else(|| panic!("the {nth}th"));
            if nth < 2 * EACH - 2 {
                begin[usize::from(key == other_key)].send(()).unwrap();
            }
        }
        drop(begin);
    });
    assert_eq!(events.block(Some(Instant::now())), Ok(Woken::DeadlinePassed));
}

#[test]
fn a_channel_for_more_queues_than_there_can_be_works() {
    assert!(channel(usize::MAX).is_ok());
}
