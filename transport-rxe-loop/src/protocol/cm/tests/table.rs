//! The tables of the documentation are what the code does.

use super::*;

const STATES: [State; 14] = [
    State::Idle,
    State::Bound,
    State::AddrResolved,
    State::RouteResolved,
    State::Listening,
    State::ReqSent,
    State::ReqRcvd,
    State::RepSent,
    State::RepRcvd,
    State::Established,
    State::DreqSent,
    State::DreqRcvd,
    State::TimeWait,
    State::Over,
];

/// The calls, as the table names them.
const CALLS: [(&str, Call); 16] = [
    ("`rdma_bind_addr`", Call::Bind),
    ("`rdma_resolve_addr`", Call::ResolveAddr(OK)),
    ("the same, of another machine's address", Call::ResolveAddr(Status(-113))),
    ("`rdma_resolve_route`", Call::ResolveRoute),
    ("`rdma_listen`", Call::Listen),
    ("`rdma_connect`", Call::Connect),
    ("`rdma_accept`", Call::Accept),
    ("`rdma_reject`", Call::Reject),
    ("`rdma_establish`", Call::Establish),
    ("`rdma_disconnect`", Call::Disconnect),
    ("`rdma_notify`", Call::Notify),
    ("`rdma_init_qp_attr`, INIT", Call::Attributes(false)),
    ("the same, RTR and RTS", Call::Attributes(true)),
    ("REUSEADDR is set", Call::ReuseAddr(true)),
    ("REUSEADDR is cleared", Call::ReuseAddr(false)),
    ("AFONLY", Call::AfOnly),
];

/// The state after a call in another one, and the event, as the table of the documentation says; `None` where it has no row.
fn said(call: &str, state: State, service: Service) -> Option<(String, String)> {
    let page = include_str!("../../../internals/connecting.md");
    let table = page.lines().skip_while(|line| !line.starts_with("| call | in"));
    let rows = table.skip(2).map_while(|line| line.strip_prefix('|'));
    let mut named = "";
    for row in rows {
        let [name, states, to, event, _] = row.split('|').map(str::trim).collect::<Vec<_>>()[..]
        else {
            panic!("{row}")
        };
        named = if name.is_empty() { named } else { name };
        let own = format!("{state:?}");
        let (connected, datagram) =
            states.split_once("; for datagrams ").unwrap_or((states, states));
        let states = if service == RC { connected } else { datagram };
        let has_place = match states.strip_prefix("all but ") {
            Some(others) => others.split(", ").all(|other| other != own),
            None => states.split(", ").any(|listed| listed == own),
        };
        if named == call && has_place {
            let (connection, datagram) = to.split_once("; for datagrams ").unwrap_or((to, to));
            let to = if service == RC { connection } else { datagram };
            let to = if to == "the same" { own } else { to.to_owned() };
            return Some((to, event.to_owned()));
        }
    }
    None
}

#[test]
fn each_call_has_its_place_where_the_table_says_and_nowhere_else() {
    for (name, call) in CALLS {
        for (state, service) in STATES.iter().flat_map(|&it| [(it, RC), (it, Service::Datagram)]) {
            let called = state.call(call, service);
            let wrong = match (call, state) {
                (Call::Notify, State::Established) => Errno::ISCONN,
                _ => Errno::INVAL,
            };
            assert!(called.is_ok() || called == Err(wrong), "{name} in {state:?}");
            let called = called.ok().map(|called| {
                let event = match called.event {
                    None => "",
                    Some((EventKind::ADDR_RESOLVED, OK)) => "ADDR_RESOLVED",
                    Some((EventKind::ADDR_ERROR, Status(-113))) => "ADDR_ERROR",
                    Some((EventKind::ROUTE_RESOLVED, OK)) => "ROUTE_RESOLVED",
                    Some(event) => panic!("{event:?} without an answer"),
                };
                (format!("{:?}", called.state), event.to_owned())
            });
            assert_eq!(called, said(name, state, service), "{name} in {state:?}");
        }
        assert!(STATES.iter().any(|&state| said(name, state, RC).is_some()), "{name} has no row");
    }
}

/// So no other call has a socket that it begins to watch.
#[test]
fn what_is_watched_begins_where_an_identifier_listens_or_requests_a_connection() {
    for (name, call) in CALLS {
        for (state, service) in STATES.iter().flat_map(|&it| [(it, RC), (it, Service::Datagram)]) {
            let Ok(called) = state.call(call, service) else { continue };
            let begins = !state.is_watched(service) && called.state.is_watched(service);
            let may_begin = matches!(call, Call::Listen | Call::Connect);
            assert_eq!(begins, may_begin, "{name} in {state:?}");
        }
    }
}
