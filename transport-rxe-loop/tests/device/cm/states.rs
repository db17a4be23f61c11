//! Calls out of state fail, and change nothing.

use std::net::SocketAddr;

use super::*;

type Call<'a> = (&'a str, &'a dyn Fn() -> Result<(), Errno>);

/// Every call of the state machine but one fails with EINVAL, and no event follows.
#[track_caller]
fn only(side: &Side, but: &[&str]) {
    let (v4, v6): (SocketAddr, SocketAddr) =
        ("127.0.0.1:9".parse().unwrap(), "[::1]:9".parse().unwrap());
    let id = &side.id;
    let calls: [Call<'_>; 9] = [
        ("bind", &|| id.bind(v4)),
        ("resolve_addr", &|| id.resolve_addr(None, v4)),
        ("resolve_addr of IPv6", &|| id.resolve_addr(Some(v4), v6)),
        ("resolve_route", &|| id.resolve_route()),
        ("listen", &|| id.listen(1)),
        ("connect", &|| id.connect(&PARAM)),
        ("accept", &|| id.accept(&PARAM)),
        ("reject", &|| id.reject(b"")),
        ("establish", &|| id.establish()),
    ];
    for (name, call) in calls {
        if !but.contains(&name) {
            assert_eq!(call(), Err(Errno::EINVAL), "{name}");
        }
    }
    side.is_silent();
}

#[test]
fn an_address_is_resolved_once_and_then_the_route_once() {
    let context = open();
    let (_listener, addr) = Side::listens(&context, "127.0.0.1", 0);
    let side = Side::new(&context);
    only(&side, &["bind", "resolve_addr", "listen"]);
    let other = "192.0.2.1:1".parse().unwrap();
    side.id.resolve_addr(None, other).unwrap();
    side.expect(EventKind::ADDR_ERROR, -113);
    only(&side, &["resolve_addr", "listen"]);
    side.id.resolve_addr(None, addr).unwrap();
    side.expect(EventKind::ADDR_RESOLVED, 0);
    only(&side, &["resolve_route"]);
    side.id.resolve_route().unwrap();
    side.expect(EventKind::ROUTE_RESOLVED, 0);
    only(&side, &["connect"]);
    side.id.connect(&PARAM).unwrap();
}

#[test]
fn an_identifier_connects_once() {
    let context = open();
    let (listener, addr) = Side::listens(&context, "127.0.0.1", 0);
    only(&listener, &[]);
    let active = Side::requests(&context, addr);
    only(&active, &[]);
    let passive = listener.requested(&context);
    only(&passive, &["accept", "reject"]);
    passive.id.accept(&PARAM).unwrap();
    only(&passive, &[]);
    active.expect(EventKind::CONNECT_RESPONSE, 0);
    only(&active, &["establish", "reject"]);
    active.id.establish().unwrap();
    passive.expect(EventKind::ESTABLISHED, 0);
    let both = [&active, &passive];
    both.iter().for_each(|side| only(side, &[]));
    active.id.disconnect().unwrap();
    only(&active, &[]);
    passive.expect(EventKind::DISCONNECTED, 0);
    only(&passive, &[]);
    passive.id.disconnect().unwrap();
    active.expect(EventKind::DISCONNECTED, 0);
    for side in both {
        side.expect(EventKind::TIMEWAIT_EXIT, 0);
        only(side, &[]);
    }
    let refused = Side::requests(&context, addr);
    listener.requested(&context).id.reject(b"").unwrap();
    refused.expect(EventKind::REJECTED, BY_PEER);
    only(&refused, &[]);
}

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
    let of = || Side::of(&context, PortSpace::UDP, QpType::Ud);
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
