//! A hash of numbers that identifies builds and fabrics.

/// The hash of numbers: FNV-1a, by words.
pub const fn mixed(numbers: &[usize]) -> u64 {
    let mut mixed: u64 = 0xcbf2_9ce4_8422_2325;
    let mut at = 0;
    while at < numbers.len() {
        mixed = mix(mixed, numbers[at]);
        at += 1;
    }
    mixed
}

/// The hash with one more number.
pub const fn mix(mixed: u64, number: usize) -> u64 {
    (mixed ^ number as u64).wrapping_mul(0x100_0000_01b3)
}
