//! Addresses and ports.

use super::*;

fn bind(side: &Side, addr: &str) -> Result<SocketAddr, Errno> {
    side.id.bind(addr.parse().unwrap(), false)?;
    Ok(side.id.local_addr().unwrap())
}

#[test]
fn addresses_of_this_machine_lead_to_the_device_and_others_do_not() {
    let context = open();
    let (_listener, addr) = Side::listens(&context, "::", 0);
    for ip in ["127.0.0.1", "127.1.2.3", "::1", "0.0.0.0", "::ffff:127.0.0.1"] {
        let active = Side::new(&context);
        active.resolve(SocketAddr::new(ip.parse().unwrap(), addr.port()));
        active.id.connect(&PARAM).unwrap();
        assert!(!active.id.local_addr().unwrap().ip().is_unspecified());
        assert!(_listener.next().request.is_some());
    }
    let of_many = ["224.0.0.1:1", "255.255.255.255:1", "[ff02::1]:1", "[::ffff:224.0.0.1]:1"];
    for other in ["192.0.2.1:1", "[2001:db8::1]:1", "8.8.8.8:1"].into_iter().chain(of_many) {
        let active = Side::new(&context);
        active.id.resolve_addr(None, other.parse().unwrap()).unwrap();
        active.expect(EventKind::ADDR_ERROR, -113);
        active.is_silent();
        assert_eq!(bind(&active, other), Err(Errno(99)));
    }
}

#[test]
fn a_port_has_one_holder_at_an_address_and_is_free_when_that_is_gone() {
    let context = open();
    let [first, second, third] = [(); 3].map(|()| Side::new(&context));
    let addr = bind(&first, "127.0.0.1:0").unwrap();
    drop(first);
    let port = addr.port();
    assert_eq!(bind(&second, &addr.to_string()), Ok(addr));
    let taken = Err(Errno(98));
    assert_eq!(bind(&third, &format!("127.0.0.1:{port}")), taken);
    for all in [format!("0.0.0.0:{port}"), format!("[::]:{port}")] {
        assert_eq!(bind(&third, &all), Err(Errno(99)), "{all}");
    }
    third.id.bind(format!("[::]:{port}").parse().unwrap(), true).unwrap();
    let fourth = Side::new(&context);
    let beside = format!("127.0.0.2:{port}");
    assert_eq!(bind(&fourth, &beside), Ok(beside.parse().unwrap()));
    drop(second);
    assert!(bind(&Side::new(&context), &addr.to_string()).is_ok());
    assert_eq!(bind(&Side::new(&context), &format!("[::1]:{port}")), taken);
    drop(third);
    assert!(bind(&Side::new(&context), &format!("[::1]:{port}")).is_ok());
}

#[test]
fn spaces_and_fabrics_have_ports_of_their_own() {
    let context = open();
    let other = OpenOptions::new().fabric(&format!("{}-other", fabric())).limits(SMALL);
    let other = other.open("loop0").unwrap();
    let (listener, addr) = Side::listens(&context, "127.0.0.1", 0);
    let elsewhere = Side::new(&other);
    elsewhere.id.bind(addr, false).unwrap();
    let udp = Side::of(&context, PortSpace::UDP, QpType::Ud);
    udp.id.bind(addr, false).unwrap();
    Side::requests(&other, addr).expect(EventKind::REJECTED, 8);
    listener.is_silent();
    elsewhere.id.listen(1).unwrap();
    let _active = Side::requests(&other, addr);
    elsewhere.requested(&other);
    listener.is_silent();
}

#[test]
fn a_listener_takes_the_requests_to_its_own_address() {
    let context = open();
    let (listener, addr) = Side::listens(&context, "127.0.0.1", 0);
    let elsewhere = SocketAddr::new("127.0.0.2".parse().unwrap(), addr.port());
    let active = Side::requests(&context, elsewhere);
    // The listener rejects it when it looks at its requests.
    let _another = Side::requests(&context, addr);
    listener.requested(&context);
    active.expect(EventKind::REJECTED, 8);
}
