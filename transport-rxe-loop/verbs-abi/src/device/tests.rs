use std::ffi::CStr;
use std::os::fd::BorrowedFd;
use std::process;

use transport_rxe_loop::Limits;

use super::*;
use crate::exports::*;
use crate::test::{alone, device, open};

#[test]
fn the_list_ends_with_null_and_the_devices_outlive_it() {
    let mut count = -1;
    // SAFETY: the buffer holds the number, and the list is as long as it says.
    let (first, end) = unsafe {
        let list = ibv_get_device_list(&raw mut count);
        let ends = (list.read(), list.add(1).read());
        ibv_free_device_list(list);
        ends
    };
    assert_eq!(count, 1);
    assert!(end.is_null());
    // SAFETY: a device's name.
    let name = unsafe { CStr::from_ptr(ibv_get_device_name(first)) };
    assert_eq!(name, c"loop0");
    assert_eq!(first, device());
}

#[test]
fn what_is_no_device_has_neither_name_nor_number_and_is_not_opened() {
    let foreign = device().wrapping_add(1);
    // SAFETY: any pointer may be asked about.
    unsafe {
        for none in [ptr::null_mut(), foreign] {
            assert!(ibv_get_device_name(none).is_null());
            assert_eq!(ibv_get_device_guid(none), 0);
            assert!(ibv_open_device(none).is_null());
        }
        assert_eq!(ibv_get_device_guid(device()).to_be() >> 56, 2);
        assert_eq!(ibv_get_device_index(device()), -1);
    }
}

#[test]
fn q11_what_is_closed_is_not_closed_again() {
    let context = open();
    // SAFETY: any pointer may be closed.
    unsafe {
        assert_eq!(ibv_close_device(context), 0);
        assert_eq!(ibv_close_device(context), -1);
        assert_eq!(Errno::last(), Errno::NOENT);
        assert_eq!(ibv_close_device(ptr::null_mut()), -1);
        assert_eq!(Errno::last(), Errno::INVAL);
    }
}

#[test]
fn an_open_device_is_what_the_header_takes_for_one() {
    let context = open();
    // SAFETY: contexts stay where they are.
    let public = unsafe { context.as_ref() }.unwrap();
    assert_eq!(public.device, device());
    assert_eq!(public.abi_compat.addr(), usize::MAX);
    // SAFETY: the descriptor is open as long as the context.
    let events = unsafe { BorrowedFd::borrow_raw(public.async_fd) };
    assert!(rustix::io::fcntl_getfd(events).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
    // SAFETY: any pointer may be closed.
    assert_eq!(unsafe { ibv_close_device(context) }, 0);
}

#[test]
fn two_queues_of_the_largest_size_fit() {
    let opening = OPENINGS.find(open()).unwrap();
    let device = opening.with(|opening| opening.device.clone()).unwrap();
    let most = device.attributes().max_cqe;
    let queues = [most; 2].map(|capacity| device.create_cq(capacity, None));
    assert!(queues.iter().all(Result::is_ok), "{queues:?}");
}

#[test]
#[ignore = "limits its process: the next test runs it in one of its own"]
fn has_no_descriptors() {
    let most = std::env::var("MOST_DESCRIPTORS").unwrap().parse().unwrap();
    let few = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: a limit; a device.
    unsafe {
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const few), 0);
        if !ibv_open_device(device()).is_null() {
            process::exit(OPENED);
        }
    }
    assert_eq!(Errno::last(), Errno::of(libc::EMFILE));
}

/// How a process ends that opened the device.
const OPENED: c_int = 77;

#[test]
fn x07_with_too_few_descriptors_it_does_not_open_and_says_why() {
    let fabric = format!("abi-{}-few", std::process::id());
    for most in 3.. {
        let environment = [("RXE_LOOP_FABRIC", &*fabric), ("MOST_DESCRIPTORS", &most.to_string())];
        let run = alone("device::tests::has_no_descriptors", &environment);
        if run.status.code() == Some(OPENED) {
            assert!(most > 5, "the streams, the fabric and two for the events have one each");
            return;
        }
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{most}: {}{said}", String::from_utf8_lossy(&run.stdout));
        let lines = said.lines().filter(|line| line.starts_with("loop0: "));
        assert_eq!(lines.count(), 1, "{most}: {said}");
        assert!(said.contains("ulimit -n"), "{most}: {said}");
    }
}

#[test]
#[ignore = "limits its process: the next test runs it in one of its own"]
fn may_make_no_long_files() {
    let short = libc::rlimit { rlim_cur: 1 << 20, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: a limit; a device.
    unsafe {
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &raw const short), 0);
        assert!(ibv_open_device(device()).is_null());
    }
    assert_eq!(Errno::last(), Errno::FBIG);
}

#[test]
fn x07_a_limit_for_the_size_of_files_is_said_and_no_signal() {
    let fabric = format!("abi-{}-short", std::process::id());
    let run = alone("device::tests::may_make_no_long_files", &[("RXE_LOOP_FABRIC", &fabric)]);
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && said.contains("ulimit -f"), "{said}");
}

/// Whether the number is a descriptor, and one that the next program does not get.
fn kept(number: c_int) -> Option<bool> {
    // SAFETY: any number may be asked about.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    (flags >= 0).then_some(flags & libc::FD_CLOEXEC != 0)
}

/// Whether nothing can be written to the number, nor read from it.
fn is_closed_to_all(number: c_int) -> bool {
    let mut byte = 0_u8;
    let at = (&raw mut byte).cast();
    // SAFETY: there is a byte to write, and a buffer for one to read.
    let moved = unsafe { [libc::write(number, at, 1), libc::read(number, at, 1)] };
    moved == [-1; 2] && Errno::last() == Errno::of(libc::EBADF)
}

#[test]
#[ignore = "closes its streams: the next test runs it in a process of its own"]
fn has_no_streams() {
    let before: Vec<_> = (3..64).filter(|&number| kept(number).is_none()).collect();
    // SAFETY: nobody prints before this ends, at once.
    unsafe {
        (0..3).for_each(|number| assert_eq!(libc::close(number), 0));
        let channel = ibv_create_comp_channel(open());
        let is_kept = (0..3).all(is_closed_to_all)
            && before.into_iter().filter_map(kept).all(|is_closed| is_closed);
        process::exit((!channel.is_null() && is_kept).into());
    }
}

#[test]
fn x07_no_descriptor_of_the_device_is_a_standard_stream_or_inherited() {
    let run = alone("device::tests::has_no_streams", &[]);
    assert_eq!(run.status.code(), Some(1));
}

#[test]
#[ignore = "the environment is wrong: the next test runs it in a process of its own"]
fn does_not_open() {
    // SAFETY: a device.
    assert!(unsafe { ibv_open_device(device()) }.is_null());
    assert_eq!(Errno::last(), Errno::INVAL);
}

/// Opens the device, in a fabric that its parent made.
#[test]
#[ignore = "the next test runs it in a process of its own"]
fn opens_what_is_there() {
    // SAFETY: a device.
    assert!(!unsafe { ibv_open_device(device()) }.is_null());
}

#[test]
fn x01_who_comes_second_is_told_which_limits_are_in_force() {
    let name = format!("abi-{}-limits", process::id());
    let limits = Limits { queue_pairs: 64, ..Limits::default() };
    let _first = OpenOptions::new().fabric(&name).limits(limits).open("loop0").unwrap();
    for (asked, told) in [("queue_pairs=64", 0), ("queue_pairs=128", 1)] {
        let environment = [("RXE_LOOP_FABRIC", &*name), ("RXE_LOOP_LIMITS", asked)];
        let run = alone("device::tests::opens_what_is_there", &environment);
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{said}");
        assert_eq!(said.matches("RXE_LOOP_LIMITS").count(), told, "{said}");
        assert_eq!(said.matches("queue_pairs=64,").count(), told, "{said}");
    }
}

#[test]
fn x07_why_it_does_not_open_is_said_once() {
    for (variable, value) in [
        ("RXE_LOOP_COPY", "fast"),
        ("RXE_LOOP_FAULTS", "all"),
        ("RXE_LOOP_LIMITS", "queue_pairs=many"),
    ] {
        let run = alone("device::tests::does_not_open", &[(variable, value)]);
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{said}");
        assert_eq!(said.matches(variable).count(), 1, "{said}");
        assert!(said.starts_with("loop0: "), "{said}");
    }
}
