use super::*;
use crate::inside::prelude::*;

#[test]
fn x03_what_is_opened_is_registered_before_a_fork() {
    let null = File::open("/dev/null").unwrap();
    // As in a thread that forks.
    begin();
    thread::scope(|scope| {
        let opens = Waiting::new(scope, || Opened::by(|| Ok(null.into())));
        let waits = opens.has_to_wait();
        end();
        assert!(waits && opens.join().unwrap().is_ok());
    });
}

#[test]
fn x07_a_fork_that_ends_twice_lets_nobody_fork_who_is_held_off() {
    let held = hold_off().unwrap();
    end();
    thread::scope(|scope| {
        let forks = Waiting::new(scope, begin);
        assert!(forks.has_to_wait());
        drop(held);
        forks.join().unwrap();
    });
    end();
}
