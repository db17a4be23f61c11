//! What a program that waits for events sees.

use std::os::fd::AsFd;

use cq_core::transport::{Arm, Events};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use transport_rxe_loop::CompletionChannel;

use super::End;

/// Whether a program that polls its descriptor would find something now.
pub fn is_readable(waited_on: &impl AsFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(waited_on, PollFlags::IN)], Some(&now)).unwrap() == 1
}

#[track_caller]
pub fn expect_event(channel: &mut CompletionChannel, end: &End) {
    assert!(is_readable(channel));
    assert_eq!(channel.take_event(), Ok(Some(end.cq.key())));
}

#[track_caller]
pub fn expect_no_event(channel: &mut CompletionChannel) {
    assert!(!is_readable(channel));
    assert_eq!(channel.take_event(), Ok(None));
}
