//! How fast rates are. A rate is so many lanes of a generation of InfiniBand.
//!
//! Lanes of 14.0625 and 25.78125 Gb/s are no multiples of 2.5; nor are two of the former, which libibverbs takes
//! for eleven times that.

use std::ffi::c_int;

use crate::sys::*;

/// How fast a lane is.
struct Lane {
    /// In Kb/s, all that is signalled.
    kbps: c_int,
    /// In multiples of 2.5 Gb/s, of the speed that it is called by; `None` if that is none.
    multiple: Option<c_int>,
}

const SDR: Lane = Lane { kbps: 2_500_000, multiple: Some(1) };
const DDR: Lane = Lane { kbps: 5_000_000, multiple: Some(2) };
const QDR: Lane = Lane { kbps: 10_000_000, multiple: Some(4) };
const FDR: Lane = Lane { kbps: 14_062_500, multiple: None };
const EDR: Lane = Lane { kbps: 25_781_250, multiple: None };
const HDR: Lane = Lane { kbps: 53_125_000, multiple: Some(20) };
const NDR: Lane = Lane { kbps: 106_250_000, multiple: Some(40) };

const RATES: [(ibv_rate, c_int, Lane); 23] = [
    (IBV_RATE_2_5_GBPS, 1, SDR),
    (IBV_RATE_10_GBPS, 4, SDR),
    (IBV_RATE_30_GBPS, 12, SDR),
    (IBV_RATE_5_GBPS, 1, DDR),
    (IBV_RATE_20_GBPS, 4, DDR),
    (IBV_RATE_60_GBPS, 12, DDR),
    (IBV_RATE_40_GBPS, 4, QDR),
    (IBV_RATE_80_GBPS, 8, QDR),
    (IBV_RATE_120_GBPS, 12, QDR),
    (IBV_RATE_14_GBPS, 1, FDR),
    (IBV_RATE_28_GBPS, 2, FDR),
    (IBV_RATE_56_GBPS, 4, FDR),
    (IBV_RATE_112_GBPS, 8, FDR),
    (IBV_RATE_168_GBPS, 12, FDR),
    (IBV_RATE_25_GBPS, 1, EDR),
    (IBV_RATE_100_GBPS, 4, EDR),
    (IBV_RATE_200_GBPS, 8, EDR),
    (IBV_RATE_300_GBPS, 12, EDR),
    (IBV_RATE_50_GBPS, 1, HDR),
    (IBV_RATE_600_GBPS, 12, HDR),
    (IBV_RATE_400_GBPS, 4, NDR),
    (IBV_RATE_800_GBPS, 8, NDR),
    (IBV_RATE_1200_GBPS, 12, NDR),
];

fn find(rate: ibv_rate) -> Option<&'static (ibv_rate, c_int, Lane)> {
    RATES.iter().find(|(number, ..)| *number == rate)
}

fn mbps(lanes: c_int, lane: &Lane) -> c_int {
    lanes * lane.kbps / 1000
}

fn multiple(lanes: c_int, lane: &Lane) -> Option<c_int> {
    lane.multiple.map(|each| lanes * each)
}

/// `ibv_rate_to_mult(3)`; -1 for what is no multiple of 2.5 Gb/s, or no rate.
pub fn to_mult(rate: ibv_rate) -> c_int {
    find(rate).and_then(|(_, lanes, lane)| multiple(*lanes, lane)).unwrap_or(-1)
}

/// `mult_to_ibv_rate(3)`; `IBV_RATE_MAX` for what is no rate.
pub fn of_mult(mult: c_int) -> ibv_rate {
    let found = RATES.iter().find(|(_, lanes, lane)| multiple(*lanes, lane) == Some(mult));
    found.map_or(IBV_RATE_MAX, |(rate, ..)| *rate)
}

/// `ibv_rate_to_mbps(3)`, rounded down; -1 for what is no rate.
pub fn to_mbps(rate: ibv_rate) -> c_int {
    find(rate).map_or(-1, |(_, lanes, lane)| mbps(*lanes, lane))
}

/// `mbps_to_ibv_rate(3)`; `IBV_RATE_MAX` for what is no rate.
pub fn of_mbps(mbps: c_int) -> ibv_rate {
    let found = RATES.iter().find(|(_, lanes, lane)| self::mbps(*lanes, lane) == mbps);
    found.map_or(IBV_RATE_MAX, |(rate, ..)| *rate)
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
