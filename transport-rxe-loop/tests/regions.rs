//! Memory that comes with its registration: bytes in and out at any offset.

use transport_rxe_loop::{Access, Context};

#[test]
fn every_range_inside_is_copied_and_none_outside() {
    const LEN: usize = 26;
    let pd = Context::open("loop0").unwrap().alloc_pd();
    let region = pd.allocate(LEN, Access::LOCAL_WRITE).unwrap();
    let mut expected = [0; LEN];
    let mut next = 0_u8;
    for offset in 0..=LEN + 2 {
        for len in 0..=LEN + 2 {
            let bytes: Vec<u8> = (0..len).map(|_| (next, next = next.wrapping_add(1)).0).collect();
            let inside = offset + len <= LEN;
            assert_eq!(region.write(offset, &bytes).is_ok(), inside, "{len} bytes at {offset}");
            if inside {
                expected[offset..offset + len].copy_from_slice(&bytes);
            }
            let mut all = [0; LEN];
            region.read(0, &mut all).unwrap();
            assert_eq!(all, expected, "{len} bytes written at {offset}");
            let mut back = vec![0; len];
            assert_eq!(region.read(offset, &mut back).is_ok(), inside, "{len} bytes at {offset}");
            assert!(!inside || back == bytes);
        }
    }
}
