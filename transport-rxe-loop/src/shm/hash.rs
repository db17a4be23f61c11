//! One number for many, by which builds and fabrics are told from each other.

/// One number for many: FNV-1a, by words.
#[must_use]
pub const fn mixed(numbers: &[usize]) -> u64 {
    let mut mixed: u64 = 0xcbf2_9ce4_8422_2325;
    let mut at = 0;
    while at < numbers.len() {
        mixed = mix(mixed, numbers[at]);
        at += 1;
    }
    mixed
}

/// The same, for one number more.
#[must_use]
pub const fn mix(mixed: u64, number: usize) -> u64 {
    (mixed ^ number as u64).wrapping_mul(0x100_0000_01b3)
}
