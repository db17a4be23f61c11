use std::net::UdpSocket;

use super::*;

fn parsed(ip: &str) -> IpAddr {
    ip.parse().unwrap()
}

#[test]
fn this_machine_has_the_addresses_that_its_sockets_have() {
    for (ip, interface) in addresses().unwrap() {
        let scope = matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local()) as u32 * interface;
        let addr = match ip {
            IpAddr::V6(ip) => SocketAddrV6::new(ip, 0, 0, scope).into(),
            IpAddr::V4(_) => SocketAddr::new(ip, 0),
        };
        assert_eq!((UdpSocket::bind(addr).is_ok(), check(addr)), (true, Ok(())), "{ip}");
        assert!(interface > 0, "{ip}");
    }
}

/// An answer of this kind, with these bytes.
fn answered(kind: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.resize(HEADER, 0);
    bytes.extend(body);
    bytes
}

/// A route of this type, with these attributes.
fn route(kind: u8, attributes: &[(u16, u16, &[u8])]) -> Vec<u8> {
    let mut body = [0; ROUTE].to_vec();
    body[TYPE_AT - HEADER] = kind;
    for (len, kind, value) in attributes {
        body.extend(len.to_ne_bytes());
        body.extend(kind.to_ne_bytes());
        body.extend(*value);
    }
    answered(RTM_NEWROUTE, &body)
}

fn refused(number: i32) -> Vec<u8> {
    answered(NLMSG_ERROR as u16, &number.to_ne_bytes())
}

#[test]
fn a_route_to_this_machine_has_a_source_and_others_have_none() {
    let (to, source) = (parsed("10.0.0.9"), Ok(Some(parsed("10.0.0.1"))));
    let [destination, from]: [(u16, u16, &[u8]); 2] =
        [(8, RTA_DST, &[10, 0, 0, 9]), (8, RTA_PREFSRC, &[10, 0, 0, 1])];
    assert_eq!(answer(&route(RTN_LOCAL, &[destination, from]), to), source);
    // An attribute of another length is followed by padding.
    assert_eq!(answer(&route(RTN_LOCAL, &[(5, 99, &[1, 0, 0, 0]), from]), to), source);
    assert_eq!(answer(&route(RTN_LOCAL, &[destination]), to), Ok(Some(to)));
    for other in [0, libc::RTN_UNICAST, libc::RTN_BROADCAST, libc::RTN_ANYCAST, u8::MAX] {
        assert_eq!(answer(&route(other, &[from]), to), Ok(None));
    }
    let six = parsed("2001:db8::1");
    let IpAddr::V6(ip) = six else { unreachable!() };
    let from = (20, RTA_PREFSRC, &ip.octets()[..]);
    assert_eq!(answer(&route(RTN_LOCAL, &[from]), parsed("::1")), Ok(Some(six)));
}

#[test]
fn a_refused_question_keeps_its_number_unless_it_says_that_there_is_no_route() {
    let to = parsed("10.0.0.9");
    for none in [libc::ENETUNREACH, libc::EHOSTUNREACH, libc::EINVAL, libc::EACCES] {
        assert_eq!(answer(&refused(-none), to), Ok(None));
    }
    for kept in [libc::ENOBUFS, libc::ENOMEM, libc::EPERM, libc::EMFILE] {
        assert_eq!(answer(&refused(-kept), to), Err(Errno::from_raw_os_error(kept)));
    }
}

#[test]
fn a_malformed_answer_is_one_to_nothing() {
    let to = parsed("10.0.0.9");
    let whole = route(RTN_LOCAL, &[(8, RTA_PREFSRC, &[10, 0, 0, 1])]);
    for len in 0..whole.len() {
        assert_eq!(answer(&whole[..len], to), Err(Errno::BADMSG), "{len} bytes");
    }
    for (at, byte) in
        (0..whole.len()).flat_map(|at| [0, 1, 3, 7, 0x80, 0xff].map(|byte| (at, byte)))
    {
        let mut bytes = whole.clone();
        bytes[at] = byte;
        _ = answer(&bytes, to);
    }
    // The source is no address of the family, ends behind the message, or has a length of no attribute.
    for attribute in [(7, RTA_PREFSRC, &[1; 4][..]), (9, RTA_PREFSRC, &[1; 4]), (3, 0, &[1; 4])] {
        assert_eq!(answer(&route(RTN_LOCAL, &[attribute]), to), Ok(Some(to)));
    }
    for number in [0, 1, i32::MIN, i32::MAX, -4096] {
        assert_eq!(answer(&refused(number), to), Err(Errno::BADMSG), "{number}");
    }
    assert_eq!(answer(&answered(libc::NLMSG_DONE as u16, &[0; 12]), to), Err(Errno::BADMSG));
}
