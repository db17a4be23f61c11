use super::*;
use crate::inside::fixture::{values, words};
use crate::inside::prelude::*;

/// Memory of this process as if it were another's: of what the system says of processes, it is like any.
fn push_far(device: &'static Device, spans: &mut Spans<'_>, addr: usize, len: u32) {
    let attachment = device.shm.attachment();
    let far = Far { attachment, whose: KeyUser::local(0), needs: Access::empty() };
    assert!(spans.push_far(far, addr, len, Key::new(1)));
}

#[test]
fn bytes_of_here_and_of_another_process_come_together_as_far_as_there_are_any() {
    let device = Fixture::new().device;
    let (a, b, c) = (words::<2>(1), words::<2>(3), words::<1>(5));
    let mut from = Spans::new();
    from.push_words(&a, 16);
    push_far(device, &mut from, b.as_ptr() as usize, 16);
    from.push_words(&c, 8);
    for order in [Order::Any, Order::LastWordLast] {
        let there = words::<5>(0);
        copy(device.memory, &from, &Target::of_words(&there, 40), order).unwrap();
        assert_eq!(values(&there), [1, 2, 3, 4, 5]);
    }
    // It ends where the shorter list does.
    for (len, seen) in [(8, [1, 6]), (16, [1, 2])] {
        let (there, mut from) = (words::<2>(5), Spans::new());
        push_far(device, &mut from, a.as_ptr() as usize, len);
        copy(device.memory, &from, &Target::of_words(&there, 16), Order::Any).unwrap();
        assert_eq!(values(&there), seen);
    }
    let (there, mut from) = (words::<2>(0), Spans::of_words(&a, 8));
    push_far(device, &mut from, 64, 8);
    let outcome = copy(device.memory, &from, &Target::of_words(&there, 16), Order::Any);
    assert_eq!(outcome, Err(Trouble::Fault), "there is nothing");
}
