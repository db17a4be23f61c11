//! Calls that the states alone do not decide.

use std::net::SocketAddr;

use super::*;

#[test]
fn both_addresses_are_of_one_family() {
    let context = open();
    let to = "[::1]:9".parse().unwrap();
    let side = Side::new(&context);
    let from = "127.0.0.1:0".parse().unwrap();
    assert_eq!(side.id.resolve_addr(Some(from), to), Err(Errno::EINVAL));
    for ip in ["0.0.0.0:0", "127.0.0.1:0"] {
        let side = Side::new(&context);
        side.id.bind(ip.parse().unwrap()).unwrap();
        assert_eq!(side.id.resolve_addr(None, to), Err(Errno::EINVAL), "{ip}");
        side.is_silent();
        side.resolve("127.0.0.1:9".parse().unwrap());
    }
    // It is as it was.
    side.id.bind(to).unwrap();
}

#[test]
fn an_identifier_that_listens_unbound_is_at_all_addresses_of_ipv4() {
    let context = open();
    let listener = Side::new(&context);
    listener.id.listen(2).unwrap();
    let addr = listener.id.local_addr().unwrap();
    assert_eq!(addr.ip(), std::net::Ipv4Addr::UNSPECIFIED);
    let to = |ip: &str| SocketAddr::new(ip.parse().unwrap(), addr.port());
    let _active = Side::requests(&context, to("127.0.0.2"));
    listener.requested(&context);
    Side::requests(&context, to("::1")).expect(EventKind::REJECTED, 8);
}

#[test]
fn datagrams_are_rejected_with_as_much_data_as_they_are_answered_with() {
    let context = open();
    let of = || Side::of(&context, PortSpace::UDP, QpType::UD);
    let listener = of();
    listener.id.listen(2).unwrap();
    let port = listener.id.local_addr().unwrap().port();
    let active = of();
    active.resolve(SocketAddr::new("127.0.0.1".parse().unwrap(), port));
    active.id.connect(&PARAM).unwrap();
    let passive = listener.requested(&context);
    assert_eq!(passive.id.reject(&[1; 137]), Err(Errno::EINVAL));
    passive.id.reject(&[1; 136]).unwrap();
    let rejected = active.expect(EventKind::UNREACHABLE, 2);
    assert_eq!(rejected.event.param.private_data, [1; 136]);
    // An answer that nobody waits for any more is lost, as a datagram.
    let active = of();
    active.resolve(SocketAddr::new("127.0.0.1".parse().unwrap(), port));
    active.id.connect(&PARAM).unwrap();
    let passive = listener.requested(&context);
    drop(active);
    passive.id.accept(&PARAM).unwrap();
}
