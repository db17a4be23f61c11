use std::cell::RefCell;

use proptest::prelude::*;

use super::*;

/// What a device saw: the wr_ids of each chain. It stops at request `stop` of all, and names it by `bad`.
struct Device {
    seen: RefCell<Vec<Vec<u64>>>,
    stop: usize,
    bad: fn(*mut ibv_recv_wr) -> *mut ibv_recv_wr,
}

impl Device {
    fn take(&self, first: *mut ibv_recv_wr, bad: &mut *mut ibv_recv_wr) -> c_int {
        let before: usize = self.seen.borrow().iter().map(Vec::len).sum();
        let (mut chain, mut at) = (Vec::new(), first);
        let mut errno = 0;
        while !at.is_null() {
            if before + chain.len() == self.stop {
                (*bad, errno) = ((self.bad)(at), 12);
                break;
            }
            // SAFETY: `post` links requests that it has made, the last of them to none.
            let wr = unsafe { &*at };
            chain.push(wr.wr_id);
            at = wr.next;
        }
        self.seen.borrow_mut().push(chain);
        errno
    }

    /// Posts a list whose request `refused` is not handed over.
    fn post(&self, list: &[RecvWr<'_>], refused: usize) -> Result<(), Failure> {
        let make = |wr: &RecvWr<'_>, _: &mut MaybeUninit<_>| match wr.wr_id == refused as u64 {
            true => Err(WrError::WrongState),
            false => Ok(recv_wr(wr)),
        };
        // SAFETY: `take` reads the chain and keeps nothing.
        unsafe { post(list, make, |first, bad| self.take(first, bad)) }
    }
}

fn list(len: usize) -> Vec<RecvWr<'static>> {
    (0..len as u64).map(|id| RecvWr::new(id, &[])).collect()
}

proptest! {
    #[test]
    fn q04_what_came_before_the_first_bad_request_is_posted(
        len in 0..70_usize,
        stop in 0..100_usize,
        refused in 0..100_usize,
    ) {
        let device = Device { seen: RefCell::default(), stop, bad: |at| at };
        let result = device.post(&list(len), refused);
        let posted = len.min(stop).min(refused);
        let seen = device.seen.into_inner();
        prop_assert!(seen.iter().all(|chain| chain.len() <= CHAIN));
        prop_assert_eq!(seen.concat(), (0..posted as u64).collect::<Vec<_>>());
        match result {
            Ok(()) => prop_assert_eq!(posted, len),
            Err(failure) => {
                prop_assert_eq!(failure.posted, posted);
                let by_device = matches!(failure.why, Why::Device(12));
                prop_assert_eq!(by_device, stop < refused);
            }
        }
    }

    /// A device that names none of the requests, or a place between them, may have posted them all.
    #[test]
    fn q04_all_that_the_device_was_given_count_as_posted_if_it_names_none(len in 1..70_usize, stop in 0..70_usize) {
        let bads: [fn(*mut ibv_recv_wr) -> *mut ibv_recv_wr; 4] = [
            |_| ptr::null_mut(),
            |at| at.wrapping_add(CHAIN),
            |at| at.wrapping_sub(CHAIN),
            |at| at.wrapping_byte_add(1),
        ];
        for bad in bads {
            let device = Device { seen: RefCell::default(), stop, bad };
            let result = device.post(&list(len), usize::MAX);
            let is_unknown = |failure: Failure| matches!(failure.why, Why::Unknown(12));
            prop_assert!(result.map_or_else(is_unknown, |()| true));
            let posted = result.map_or_else(|failure| failure.posted, |()| len);
            prop_assert_eq!(posted, (stop / CHAIN * CHAIN + CHAIN).min(len));
        }
    }
}

/// With the bit of "inline" a device would read the memory of the SGEs.
#[test]
fn q06_only_flags_with_a_name_reach_the_device() {
    let wr = SendWr { flags: SendFlags::from_bits_retain(!0), ..SendWr::send(1, &[]) };
    let raw = send_wr(&wr, None, &mut MaybeUninit::uninit()).unwrap();
    assert_eq!(raw.send_flags, SendFlags::all().bits());
}

#[test]
fn q04_operations_that_the_binding_does_not_have_are_not_made() {
    use cq_verbs::setup::Access;
    use cq_verbs::wr::{Placement, Selectivity, WindowBind};

    let at = RemoteAddr { addr: 8, rkey: 9 };
    let bind =
        WindowBind { window: 1, rkey: 2, lkey: 3, addr: 4, length: 5, access: Access::REMOTE };
    for wr in [
        SendWr::bind_window(1, bind),
        SendWr::atomic_write_inline(1, &[0; 8], at),
        SendWr::flush(1, at, 8, Placement::GLOBAL, Selectivity::Range),
    ] {
        assert!(send_wr(&wr, None, &mut MaybeUninit::uninit()).is_none(), "{:?}", wr.op);
    }
}
