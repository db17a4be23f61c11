use super::*;
use crate::inside::prelude::*;

const ADD: AtomicOp = AtomicOp::FetchAdd { add: 2 };

/// Memory of this process as if it were another's: of what the system says of processes, it is like any.
fn of_this(device: &'static Device) -> Far {
    Far { attachment: device.shm.attachment(), whose: KeyUser::local(0), needs: Access::empty() }
}

#[test]
fn x05_a_word_that_others_map_is_changed_by_its_owner_and_any_other_from_here() {
    let (_context, device) = OpenOptions::new().alone();
    let (far, word) = (of_this(device), AtomicU64::new(5));
    let span = Span::far(word.as_ptr() as usize, LEN as u32, Key::new(1));
    assert_eq!(step_far(device.memory, far, span, false, ADD), Ok(5));
    assert_eq!(sync::load(&word), 7);
    // Who is asked knows no region of this key.
    assert_eq!(step_far(device.memory, far, span, true, ADD), Err(Trouble::Fault.into()));
    assert_eq!(sync::load(&word), 7);
}

#[test]
fn x05_a_word_that_is_not_there_is_a_fault() {
    let (_context, device) = OpenOptions::new().alone();
    let steps = || {
        step_far(device.memory, of_this(device), Span::far(64, LEN as u32, Key::new(1)), false, ADD)
    };
    // Not in this thread, nor in a scope, as it may not end.
    let steps = thread::spawn(steps);
    until("it ends", || steps.is_finished());
    assert_eq!(steps.join().unwrap(), Err(Trouble::Fault.into()));
}
