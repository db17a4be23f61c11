//! What the programs' words show.

use std::ops::RangeInclusive;

use super::figures::Figure;
use crate::stages::preload::DEVICE;

/// What the output of a program that ended well shows, if it shows what it must.
pub type Judge = fn(&str) -> Result<(), String>;

/// `ibv_devices` names the device, and no other, with a number that is one.
pub fn devices(output: &str) -> Result<(), String> {
    let rows = output.lines().skip_while(|line| !line.trim_start().starts_with("---")).skip(1);
    let rows: Vec<Vec<&str>> = rows.map(|line| line.split_whitespace().collect()).collect();
    let guid = |digits: &str| u64::from_str_radix(digits, 16).is_ok_and(|number| number != 0);
    match rows.iter().map(Vec::as_slice).collect::<Vec<_>>()[..] {
        [[DEVICE, digits]] if digits.len() == 16 && guid(digits) => Ok(()),
        _ => Err(format!("it lists {rows:?}")),
    }
}

/// What `ibv_devinfo` must say of the device.
const DETAILS: [(&str, &str); 4] = [
    ("hca_id", DEVICE),
    ("transport", "InfiniBand (0)"),
    ("state", "PORT_ACTIVE (4)"),
    ("link_layer", "InfiniBand"),
];

/// The LIDs of ports: each fabric has its own.
const LIDS: RangeInclusive<u16> = 1..=0xbfff;

/// `ibv_devinfo` says of the device, and of one alone, what it is.
pub fn details(output: &str) -> Result<(), String> {
    let values = |name: &str| {
        let fields = output.lines().filter_map(|line| line.trim().split_once(':'));
        let of_it = fields.filter(|(field, _)| *field == name);
        of_it.map(|(_, value)| value.trim()).collect::<Vec<&str>>()
    };
    for (name, wanted) in DETAILS {
        let values = values(name);
        if values != [wanted] {
            return Err(format!("{name} is not {wanted}: {values:?}"));
        }
    }
    match values("port_lid")[..] {
        [lid] if lid.parse().is_ok_and(|lid| LIDS.contains(&lid)) => Ok(()),
        ref lids => Err(format!("port_lid is not that of a port: {lids:?}")),
    }
}

/// `ibv_asyncwatch` has opened the device, and waits for what it tells.
pub fn watching(output: &str) -> Result<(), String> {
    let of_it = format!("{DEVICE}: async event FD ");
    let mut numbers = output.lines().filter_map(|line| line.strip_prefix(&of_it));
    let said = numbers.any(|number| number.trim().parse::<u32>().is_ok());
    said.then_some(()).ok_or_else(|| "it does not say that it watches".to_owned())
}

/// A side of `ibv_*_pingpong` has sent and received every byte, and taken a time for it.
pub fn pingpong((size, count): (u64, u64), output: &str) -> Result<Figure, String> {
    if let Some(wrong) = output.lines().find(|line| line.contains("invalid data")) {
        return Err(wrong.to_owned());
    }
    let wanted = 2 * size * count;
    let number = |line: &str| line.split_once(" bytes in ")?.0.trim().parse().ok();
    let bytes: Vec<u64> = output.lines().filter_map(number).collect();
    if bytes != [wanted] {
        return Err(format!("it does not say that {wanted} bytes went by: {bytes:?}"));
    }
    let time = output.lines().find_map(|line| {
        let (_, time) = line.strip_suffix(" usec/iter")?.rsplit_once(" = ")?;
        time.parse::<f64>().ok()
    });
    let value = time.filter(|time| *time > 0.0).ok_or("it does not say how long that took")?;
    Ok(Figure { bytes: size, what: "usec/iter".to_owned(), value })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICES: &str = "    device          \t   node GUID\n    ------          \t----------------\n    \
                           loop0           \t0200000000000001\n";

    #[test]
    fn the_list_of_devices_has_loop0_alone_with_a_guid() {
        assert_eq!(devices(DEVICES), Ok(()));
        let others = [
            DEVICES.replace("loop0", "mlx5_0"),
            DEVICES.replace("0200000000000001", "0000000000000000"),
            DEVICES.replace("0200000000000001", "200"),
            format!("{DEVICES}    rxe0            \t0200000000000002\n"),
            DEVICES.lines().take(2).map(|line| format!("{line}\n")).collect(),
            String::new(),
        ];
        for wrong in others {
            assert!(devices(&wrong).is_err(), "{wrong}");
        }
    }

    const INFO: &str = "hca_id:\tloop0\n\ttransport:\t\t\tInfiniBand (0)\n\tphys_port_cnt:\t\t\t1\n\t\tport:\t1\n\
                        \t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tsm_lid:\t\t\t1\n\t\t\tport_lid:\t\t1\n\
                        \t\t\tphys_state:\t\tLINK_UP (5)\n\t\t\tlink_layer:\t\tInfiniBand\n";

    #[test]
    fn the_details_must_be_those_of_loop0_and_given_once() {
        assert_eq!(details(INFO), Ok(()));
        for (name, value) in DETAILS {
            let fault = details(&INFO.replace(value, "other")).unwrap_err();
            assert!(fault.contains("other"), "{name}: {fault}");
        }
        for wrong in ["0", "49152", "-1", "any"] {
            let fault = details(&INFO.replace("port_lid:\t\t1", &format!("port_lid:\t\t{wrong}")));
            assert!(fault.unwrap_err().contains(wrong));
        }
        assert!(details(&INFO.repeat(2)).is_err(), "of two devices");
        assert!(details("No IB devices found\n").is_err());
    }

    #[test]
    fn watching_is_said_with_the_device_and_a_descriptor() {
        assert_eq!(watching("loop0: async event FD 4\n"), Ok(()));
        for wrong in ["", "rxe0: async event FD 4\n", "loop0: async event FD -1\n"] {
            assert!(watching(wrong).is_err(), "{wrong}");
        }
    }

    const PING: &str = "  local address:  LID 0x0001, QPN 0x000101, PSN 0x6b8b45, GID ::\n\
                        8192000 bytes in 0.01 seconds = 9362.29 Mbit/sec\n\
                        1000 iters in 0.01 seconds = 7.00 usec/iter\n";

    #[test]
    fn a_pingpong_counts_every_byte_and_takes_a_time() {
        let figure = pingpong((4096, 1000), PING).unwrap();
        assert_eq!((figure.bytes, figure.value, figure.what.as_str()), (4096, 7.0, "usec/iter"));
        assert!(pingpong((4096, 1001), PING).is_err(), "some are missing");
        assert!(pingpong((4096, 1000), "  local address:  LID 1").is_err(), "nothing was said");
        assert!(pingpong((4096, 1000), &PING.replace("7.00", "0.00")).is_err(), "in no time");
        let spoilt = format!("{PING}invalid data in page 0\n");
        assert_eq!(pingpong((4096, 1000), &spoilt).unwrap_err(), "invalid data in page 0");
    }
}
