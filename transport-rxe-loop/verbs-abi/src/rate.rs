//! How fast rates are. A rate is so many lanes of a generation of InfiniBand.
//!
//! Lanes of 14.0625 and 25.78125 Gb/s are no multiples of 2.5; nor are two of the former, which libibverbs takes
//! for eleven times that.

use crate::sys::*;

/// A rate with its speed in Mb/s, all that is signalled, rounded down, and how many times 2.5 Gb/s the speed is that it is
/// called by, if it is a multiple.
type Row = (ibv_rate, c_int, Option<c_int>);

const RATES: [Row; 23] = [
    // SDR
    (IBV_RATE_2_5_GBPS, 2500, Some(1)),
    (IBV_RATE_10_GBPS, 10_000, Some(4)),
    (IBV_RATE_30_GBPS, 30_000, Some(12)),
    // DDR
    (IBV_RATE_5_GBPS, 5000, Some(2)),
    (IBV_RATE_20_GBPS, 20_000, Some(8)),
    (IBV_RATE_60_GBPS, 60_000, Some(24)),
    // QDR
    (IBV_RATE_40_GBPS, 40_000, Some(16)),
    (IBV_RATE_80_GBPS, 80_000, Some(32)),
    (IBV_RATE_120_GBPS, 120_000, Some(48)),
    // FDR
    (IBV_RATE_14_GBPS, 14_062, None),
    (IBV_RATE_28_GBPS, 28_125, None),
    (IBV_RATE_56_GBPS, 56_250, None),
    (IBV_RATE_112_GBPS, 112_500, None),
    (IBV_RATE_168_GBPS, 168_750, None),
    // EDR
    (IBV_RATE_25_GBPS, 25_781, None),
    (IBV_RATE_100_GBPS, 103_125, None),
    (IBV_RATE_200_GBPS, 206_250, None),
    (IBV_RATE_300_GBPS, 309_375, None),
    // HDR
    (IBV_RATE_50_GBPS, 53_125, Some(20)),
    (IBV_RATE_600_GBPS, 637_500, Some(240)),
    // NDR
    (IBV_RATE_400_GBPS, 425_000, Some(160)),
    (IBV_RATE_800_GBPS, 850_000, Some(320)),
    (IBV_RATE_1200_GBPS, 1_275_000, Some(480)),
];

fn find(is_wanted: impl Fn(&Row) -> bool) -> Option<Row> {
    RATES.into_iter().find(is_wanted)
}

/// `ibv_rate_to_mult(3)`; -1 for what is no multiple of 2.5 Gb/s, or no rate.
pub fn to_mult(rate: ibv_rate) -> c_int {
    find(|row| row.0 == rate).and_then(|(.., times)| times).unwrap_or(-1)
}

/// `mult_to_ibv_rate(3)`; `IBV_RATE_MAX` for what is no rate.
pub fn of_mult(mult: c_int) -> ibv_rate {
    find(|row| row.2 == Some(mult)).map_or(IBV_RATE_MAX, |(rate, ..)| rate)
}

/// `ibv_rate_to_mbps(3)`, rounded down; -1 for what is no rate.
pub fn to_mbps(rate: ibv_rate) -> c_int {
    find(|row| row.0 == rate).map_or(-1, |(_, mbps, _)| mbps)
}

/// `mbps_to_ibv_rate(3)`; `IBV_RATE_MAX` for what is no rate.
pub fn of_mbps(mbps: c_int) -> ibv_rate {
    find(|row| row.1 == mbps).map_or(IBV_RATE_MAX, |(rate, ..)| rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exports::*;

    #[test]
    fn rates_lead_to_the_speeds_of_the_manual_page_and_of_their_lanes_and_back() {
        // SAFETY: any number may be asked about.
        let told = |rate| unsafe { (ibv_rate_to_mbps(rate), ibv_rate_to_mult(rate)) };
        // SAFETY: as above.
        let back = |speed, times| unsafe { (mbps_to_ibv_rate(speed), mult_to_ibv_rate(times)) };
        for (rate, speed, times) in [
            (IBV_RATE_5_GBPS, 5000, Some(2)),
            (IBV_RATE_14_GBPS, 14_062, None),
            (IBV_RATE_100_GBPS, 103_125, None),
            (IBV_RATE_600_GBPS, 637_500, Some(240)),
            (IBV_RATE_1200_GBPS, 1_275_000, Some(480)),
        ] {
            assert_eq!(told(rate), (speed, times.unwrap_or(-1)));
            assert_eq!(
                back(speed, times.unwrap_or(-1)),
                (rate, times.map_or(IBV_RATE_MAX, |_| rate))
            );
        }
        for (rate, ..) in &RATES {
            assert_eq!(back(told(*rate).0, 0).0, *rate);
        }
        assert_eq!([IBV_RATE_MAX, 1, 25, u32::MAX].map(told), [(-1, -1); 4]);
        let none = (IBV_RATE_MAX, IBV_RATE_MAX);
        assert_eq!([-1, 0, 2501, 3].map(|number| back(number, number)), [none; 4]);
    }
}
