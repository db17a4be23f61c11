use std::ffi::CStr;
use std::os::fd::BorrowedFd;
use std::{env, process};

use transport_rxe_loop::Limits;

use super::*;
use crate::test::name_space::where_mounts_are;
use crate::test::*;

#[test]
fn the_list_ends_with_null_and_the_devices_outlive_it() {
    let mut count = -1;
    // SAFETY: the buffer holds the number, and the list is as long as it says; any pointer may be asked about.
    unsafe {
        let list = ibv_get_device_list(&raw mut count);
        let (first, end) = (list.read(), list.add(1).read());
        ibv_free_device_list(list);
        assert_eq!((count, first, end), (1, device(), ptr::null_mut()));
        assert_eq!(CStr::from_ptr(ibv_get_device_name(first)), c"loop0");
        assert_eq!(ibv_get_device_guid(first).to_be() >> 56, 2);
        assert_eq!(ibv_get_device_index(first), -1);
        for none in [ptr::null_mut(), first.wrapping_add(1)] {
            assert!(ibv_get_device_name(none).is_null() && ibv_open_device(none).is_null());
            assert_eq!(ibv_get_device_guid(none), 0);
        }
    }
}

#[test]
fn a_device_is_of_no_drivers() {
    // SAFETY: libraries of drivers read a word behind the structure.
    assert_eq!(unsafe { device().add(1).cast::<usize>().read() }, 0);
}

#[test]
fn an_open_device_is_what_the_header_takes_for_one() {
    let context = open();
    // SAFETY: contexts stay where they are; the descriptor is open as long as this one.
    let (public, events) = unsafe { (&*context, BorrowedFd::borrow_raw((*context).async_fd)) };
    assert_eq!((public.device, public.abi_compat.addr()), (device(), usize::MAX));
    assert!(rustix::io::fcntl_getfd(events).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
}

/// Opens the device, within limits that its environment sets; ends with the errno, or 0.
#[test]
#[ignore = "limits its process: the next tests run it in one of its own"]
fn opens() {
    for (variable, resource) in
        [("MOST_DESCRIPTORS", libc::RLIMIT_NOFILE), ("LONGEST_FILE", libc::RLIMIT_FSIZE)]
    {
        if let Ok(most) = env::var(variable) {
            let most = most.parse().unwrap();
            let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
            // SAFETY: a limit.
            assert_eq!(unsafe { libc::setrlimit(resource, &raw const limit) }, 0);
        }
    }
    // SAFETY: a device.
    let is_open = unsafe { !ibv_open_device(device()).is_null() };
    process::exit(if is_open { 0 } else { Errno::last().number() });
}

/// How opening the device ends in this environment, and what it says.
fn opened(environment: &[(&str, &str)]) -> (Option<c_int>, String) {
    let run = alone("device::tests::opens", environment);
    (run.status.code(), String::from_utf8_lossy(&run.stderr).into_owned())
}

#[test]
fn x07_with_too_few_descriptors_it_does_not_open_and_says_why() {
    let fabric = format!("abi-{}-few", process::id());
    for most in 3.. {
        let environment = [("RXE_LOOP_FABRIC", &*fabric), ("MOST_DESCRIPTORS", &most.to_string())];
        let (status, said) = opened(&environment);
        if status == Some(0) {
            assert!(most > 5, "the streams, the fabric and two for the events have one each");
            // It had none left to look for what it leaves behind; the next process does so.
            assert_eq!(opened(&[("RXE_LOOP_FABRIC", &*fabric)]).0, Some(0));
            let all = std::fs::read_dir("/dev/shm").unwrap();
            let mut left = all.map(|file| file.unwrap().file_name().into_string().unwrap());
            assert_eq!(
                left.find(|name| name.contains(&fabric)),
                None,
                "it stays when all have gone"
            );
            return;
        }
        assert_eq!(status, Some(libc::EMFILE), "{most}: {said}");
        let lines = said.lines().filter(|line| line.starts_with("loop0: "));
        assert_eq!(lines.count(), 1, "{most}: {said}");
        assert!(said.contains("ulimit -n"), "{most}: {said}");
    }
}

#[test]
fn x07_why_it_does_not_open_is_said_once() {
    let fabric = format!("abi-{}-short", process::id());
    for (variable, value, errno, why) in [
        ("LONGEST_FILE", "1048576", libc::EFBIG, "ulimit -f"),
        ("RXE_LOOP_COPY", "fast", libc::EINVAL, "RXE_LOOP_COPY"),
        ("RXE_LOOP_FAULTS", "all", libc::EINVAL, "RXE_LOOP_FAULTS"),
        ("RXE_LOOP_LIMITS", "queue_pairs=many", libc::EINVAL, "RXE_LOOP_LIMITS"),
        ("RXE_LOOP_LINK_LAYER", "token-ring", libc::EINVAL, "RXE_LOOP_LINK_LAYER"),
    ] {
        let (status, said) = opened(&[("RXE_LOOP_FABRIC", &fabric), (variable, value)]);
        assert_eq!((status, said.matches(why).count()), (Some(errno), 1), "{said}");
        assert!(said.starts_with("loop0: "), "{said}");
    }
}

#[test]
#[ignore = "needs mount namespaces"]
fn x07_a_call_that_the_system_refuses_is_told_with_its_object_and_what_to_do() {
    for (script, call, errno, advice) in [
        (
            "mount -t tmpfs -o nr_inodes=1 tmpfs /dev/shm",
            "open of \"/dev/shm\"",
            libc::ENOSPC,
            "nr_inodes",
        ),
        (
            "mount -t tmpfs -o nr_inodes=2 tmpfs /dev/shm",
            "mknod of \"/dev/shm/",
            libc::ENOSPC,
            "nr_inodes",
        ),
        (
            "mount -t tmpfs -o size=8m tmpfs /dev/shm",
            " bytes of \"/dev/shm/",
            libc::ENOSPC,
            "shm-size",
        ),
        ("mount -t tmpfs tmpfs /proc", "link of \"/proc/", libc::ENOENT, "mount -t proc"),
    ] {
        let environment = [("RXE_LOOP_FABRIC", "refused")];
        let run = alone_by(where_mounts_are(script), "device::tests::opens", &environment);
        let said = String::from_utf8_lossy(&run.stderr);
        let lines: Vec<_> = said.lines().filter(|line| line.starts_with("loop0: ")).collect();
        let [line] = lines[..] else { panic!("{script}: {said}") };
        assert!(line.contains(call) && line.contains(advice), "{script}: {line}");
        assert!(line.contains(&format!("errno {errno})")), "{script}: {line}");
        assert_eq!(run.status.code(), Some(errno), "{script}: {line}");
    }
}

#[test]
fn x01_who_comes_second_is_told_which_limits_are_in_force() {
    let name = format!("abi-{}-limits", process::id());
    let limits = Limits::default().queue_pairs(64);
    let _first = OpenOptions::new().fabric(&name).limits(limits).open("loop0").unwrap();
    for (asked, told) in [("queue_pairs=64", 0), ("queue_pairs=128", 1)] {
        let environment = [("RXE_LOOP_FABRIC", &*name), ("RXE_LOOP_LIMITS", asked)];
        let (status, said) = opened(&environment);
        let counts = ["RXE_LOOP_LIMITS", "queue_pairs=64,"].map(|text| said.matches(text).count());
        assert_eq!((status, counts), (Some(0), [told; 2]), "{said}");
    }
}

#[test]
fn x01_who_asks_for_another_link_layer_is_refused_and_told_so() {
    let name = format!("abi-{}-link-layer", process::id());
    let _first = OpenOptions::new().fabric(&name).open("loop0").unwrap();
    for (asked, status, told) in [("infiniband", 0, 0), ("ethernet", libc::EINVAL, 1)] {
        let environment = [("RXE_LOOP_FABRIC", &*name), ("RXE_LOOP_LINK_LAYER", asked)];
        let (ended, said) = opened(&environment);
        assert_eq!(
            (ended, said.matches("RXE_LOOP_FABRIC").count()),
            (Some(status), told),
            "{said}"
        );
    }
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
