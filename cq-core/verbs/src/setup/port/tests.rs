use proptest::prelude::*;

use super::*;

fn endpoints() -> impl Strategy<Value = Endpoint> {
    let mtus = (1..=5u32).prop_map(|number| Mtu::from_number(number).unwrap());
    (0..=BITS24, 0..=BITS24, any::<(u16, u8)>(), any::<[u8; 16]>(), mtus).prop_map(
        |(qp_num, psn, (lid, responder_resources), gid, mtu)| Endpoint {
            qp_num,
            psn,
            lid,
            gid: Gid(gid),
            mtu,
            responder_resources,
        },
    )
}

proptest! {
    #[test]
    fn what_is_sent_arrives(endpoint in endpoints()) {
        prop_assert_eq!(Endpoint::from_bytes(&endpoint.to_bytes()), Ok(endpoint));
    }

    /// Bytes are refused, or are those of exactly one endpoint, which is in range.
    #[test]
    fn foreign_bytes_are_judged(mut bytes in any::<[u8; Endpoint::BYTES]>(), clear in any::<[bool; 2]>(), mtu in 0..=5u32) {
        for (at, clear) in [0, 4].into_iter().zip(clear) {
            bytes[at] = if clear { 0 } else { bytes[at] };
        }
        if mtu > 0 {
            bytes[8..10].copy_from_slice(&(128_u16 << mtu).to_be_bytes());
        }
        let in_range = bytes[0] == 0 && bytes[4] == 0;
        match Endpoint::from_bytes(&bytes) {
            Ok(endpoint) => {
                prop_assert!(in_range && endpoint.qp_num <= BITS24 && endpoint.psn <= BITS24);
                prop_assert_eq!(endpoint.to_bytes(), bytes);
            }
            Err(EndpointError::Number(number)) => prop_assert!(number > BITS24),
            Err(EndpointError::Psn(psn)) => prop_assert!(psn > BITS24),
            Err(EndpointError::Mtu(MtuError(size))) => {
                prop_assert!(in_range && mtu == 0);
                prop_assert!(![256, 512, 1024, 2048, 4096].contains(&size));
            }
        }
    }
}

#[test]
fn numbers_are_in_range_to_their_last() {
    let last = Endpoint { qp_num: BITS24, psn: BITS24, ..Endpoint::new(0) };
    assert_eq!(Endpoint::from_bytes(&last.to_bytes()), Ok(last));
    let past = Endpoint { qp_num: BITS24 + 1, ..last };
    assert_eq!(Endpoint::from_bytes(&past.to_bytes()), Err(EndpointError::Number(BITS24 + 1)));
    let past = Endpoint { psn: BITS24 + 1, ..last };
    assert_eq!(Endpoint::from_bytes(&past.to_bytes()), Err(EndpointError::Psn(BITS24 + 1)));
}
