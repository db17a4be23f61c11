//! A channel with a descriptor (N7, N14).

use std::os::fd::{AsFd, AsRawFd};

use cq_verbs::descriptor::{block, channel};

use super::*;

#[test]
#[cfg_attr(miri, ignore = "Miri has no ppoll(2)")]
fn n14_a_descriptor_is_readable_exactly_while_there_is_an_event() {
    let (raiser, mut events) = channel(1).unwrap();
    assert_eq!(events.as_raw_fd(), events.as_fd().as_raw_fd());
    let is_readable = |events: &dyn AsFd| match block(events.as_fd(), Some(Instant::now())) {
        Ok(Woken::Event) => true,
        other => {
            assert_eq!(other, Ok(Woken::DeadlinePassed));
            false
        }
    };
    assert!(!is_readable(&events));
    for key in [OTHER, KEY, OTHER] {
        raiser.clone().raise(key);
    }
    for taken in [Some(OTHER), Some(KEY), None, None] {
        assert_eq!(taken.is_some(), is_readable(&events));
        assert_eq!(events.take_event(), Ok(taken));
    }
    assert!(!is_readable(&events));
    // Of a queue that is destroyed (N7).
    [OTHER, KEY].iter().for_each(|key| raiser.raise(*key));
    events.forget(OTHER);
    assert!(is_readable(&events));
    events.forget(KEY);
    assert!(!is_readable(&events));
    assert_eq!(events.take_event(), Ok(None));
    let sleeper = thread::spawn(move || {
        let woken = events.block(late());
        (woken, events.take_event())
    });
    raiser.raise(KEY);
    assert_eq!(sleeper.join().unwrap(), (Ok(Woken::Event), Ok(Some(KEY))));
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no ppoll(2)")]
fn n14_who_takes_events_alone_finds_one_whenever_the_descriptor_is_readable() {
    const EACH: u64 = many(5_000);
    let (raiser, mut events) = channel(2).unwrap();
    thread::scope(|scope| {
        let (begin, begun): (Vec<_>, Vec<_>) =
            [(); 2].map(|()| std::sync::mpsc::channel()).into_iter().unzip();
        for (key, begun) in [KEY, OTHER].into_iter().zip(begun) {
            let raiser = raiser.clone();
            scope.spawn(move || begun.into_iter().for_each(|()| raiser.raise(key)));
        }
        begin.iter().for_each(|begin| begin.send(()).unwrap());
        for nth in 0..2 * EACH {
            assert_eq!(events.block(late()), Ok(Woken::Event));
            let key = events.take_event().unwrap().unwrap_or_else(|| panic!("the {nth}th"));
            if nth < 2 * EACH - 2 {
                begin[usize::from(key == OTHER)].send(()).unwrap();
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
