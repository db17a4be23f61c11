use super::*;
use crate::inside::prelude::*;

#[test]
fn x03_what_is_opened_is_registered_before_a_fork() {
    let null = File::open("/dev/null").unwrap();
    // As in a thread that forks.
    begin();
    assert!(waits(|| Opened::by(|| Ok(null.into())), end).is_ok());
}

#[test]
fn x07_a_fork_that_ends_twice_lets_nobody_fork_who_is_held_off() {
    let held = hold_off().unwrap();
    end();
    waits(begin, || drop(held));
    end();
}
