use super::*;
use crate::inside::prelude::*;

#[test]
fn addresses_are_drawn_from_one_range_in_whole_pages() {
    for bits in NARROWER {
        for at in [(); 64].map(|()| drawn(bits) as u64) {
            let range = FROM >> bits..(FROM + SPAN) >> bits;
            assert!(range.contains(&at) && at.is_multiple_of(ALIGN), "{bits}");
        }
    }
}

#[test]
fn x04_where_addresses_have_fewer_bits_a_lower_one_is_drawn() {
    for bits in [47, 42, 39, 38] {
        let map = |at| if at < 1 << bits { Ok(at as u64) } else { Err(Errno::NOMEM) };
        assert!(somewhere(map).unwrap() >= 1 << 37, "of {bits}");
    }
    // The smallest address space.
    let map = |at| if at < 1 << 30 { Ok(at) } else { Err(Errno::NOMEM) };
    assert_eq!(somewhere(map), Ok(0), "it is the system that chooses");
}

#[test]
fn x03_nobody_lives_twice() {
    let (_context, device) = OpenOptions::new().alone();
    let path = device.shm.path().file();
    let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
    let me = device.shm.me.to_word();
    assert!(GuardPage::new(file.as_fd(), me, &path).unwrap().is_none());
    assert!(GuardPage::new(file.as_fd(), me + 1, &path).unwrap().is_some(), "nor did that one");
}
