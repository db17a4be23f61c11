//! A device that is full says so, and is good again when something is given back. Alone in its process, since it
//! takes as many descriptors as a process may have.

mod common;

use common::{ALL, CAPS, open, try_open};
use transport_rxe_loop::{CreateError, Errno, LimitKind, OpenError, RegisterError};

#[test]
fn a_device_that_is_full_says_so() {
    a_full_device_says_what_it_is_full_of();
    a_device_without_memory_says_so();
    contexts_and_channels_share_their_places();
}

fn contexts_and_channels_share_their_places() {
    let context = open();
    let max = context.limits().channels;
    let full = CreateError::TableFull { what: LimitKind::Channels, max };
    for _ in 0..2 {
        let contexts: Vec<_> = (0..max / 2).map(|_| open()).collect();
        let channels: Vec<_> =
            (contexts.len() as u32 + 1..max).map(|_| context.create_channel().unwrap()).collect();
        assert_eq!(context.create_channel().unwrap_err(), full);
        assert_eq!(try_open().unwrap_err(), OpenError::NoChannel(full));
        drop((contexts, channels));
    }
}

fn a_full_device_says_what_it_is_full_of() {
    let context = open();
    let (pd, attributes) = (context.alloc_pd().unwrap(), context.attributes());
    for _ in 0..2 {
        let cq = context.cq(1).create().unwrap();
        let tiny = CAPS.max_send_wr(1).max_recv_wr(1);
        let init = pd.qp(&cq).caps(tiny);
        let qps: Vec<_> = (0..attributes.max_qp).map(|_| init.create().unwrap()).collect();
        let full = CreateError::TableFull { what: LimitKind::QueuePairs, max: attributes.max_qp };
        assert_eq!(init.create().unwrap_err(), full);
        drop(qps);

        let cqs: Vec<_> = (1..attributes.max_cq).map(|_| context.cq(1).create().unwrap()).collect();
        let full =
            CreateError::TableFull { what: LimitKind::CompletionQueues, max: attributes.max_cq };
        assert_eq!(context.cq(1).create().unwrap_err(), full);
        drop((cqs, cq));

        let mrs: Vec<_> = (0..attributes.max_mr).map(|_| pd.allocate(8, ALL).unwrap()).collect();
        let full = RegisterError::TableFull { max: attributes.max_mr };
        assert_eq!(pd.allocate(8, ALL).unwrap_err(), full);
        drop(mrs);

        let mws: Vec<_> = (0..attributes.max_mw).map(|_| pd.alloc_mw().unwrap()).collect();
        assert_eq!(pd.alloc_mw().unwrap_err(), full);
        // The one place that no window has.
        let last = pd.allocate(8, ALL).unwrap();
        assert_eq!(pd.allocate(8, ALL).unwrap_err(), full);
        drop((mws, last));
    }
}

fn a_device_without_memory_says_so() {
    let context = open();
    let mut cqs = Vec::new();
    let error = loop {
        match context.cq(context.attributes().max_cqe).create() {
            Ok(cq) => cqs.push(cq),
            Err(error) => break error,
        }
    };
    assert_eq!(error.errno(), Errno::ENOMEM);
    assert!(error.to_string().contains("contiguous bytes"), "{error}");
    assert!(cqs.len() >= 2, "one of the largest takes all");
    drop(cqs);
    context.cq(context.attributes().max_cqe).create().unwrap();
}
