//! A first packet sequence number.

/// Packet sequence numbers have this many bits.
const BITS24: u32 = (1 << 24) - 1;

/// A packet number to begin with that a stray packet of an earlier connection is unlikely to carry.
pub fn random() -> u32 {
    use std::hash::{BuildHasher, RandomState};

    RandomState::new().hash_one(0) as u32 & BITS24
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packet_numbers_are_random_and_have_24_bits() {
        let drawn: Vec<u32> = (0..64).map(|_| random()).collect();
        assert!(drawn.iter().all(|&psn| psn <= BITS24));
        assert!(drawn.iter().any(|&psn| psn != drawn[0]));
    }
}
