use super::*;
use crate::api::device;
use crate::inside::prelude::*;
use crate::memory::domains;
use crate::policy::imitation::Imitation;
use crate::policy::strict::Strict;

#[test]
fn x03_who_opens_a_fabric_sweeps_up_after_the_dead() {
    let name = format!("swept-{}", std::process::id());
    let open = || OpenOptions::new().fabric(&name).open(device::NAME).unwrap();
    let context = open();
    let shm = context.device.shm;
    let dead = shm.die_at(ANOTHER);
    assert_eq!(shm.others().next(), Some(dead));
    let _again = open();
    assert_eq!(shm.others().next(), None);
}

#[test]
fn no_protection_domain_has_number_0() {
    let (_context, device) = OpenOptions::new().alone();
    assert_eq!(device.shm.attachment(), AttachmentId::new(0));
    let numbers = [(); 3].map(|()| device.memory.next_domain());
    assert_eq!(numbers, [1 << 24, 1 << 24 | 1, 1 << 24 | 2].map(Some));
}

/// Reads memory of a domain by a queue pair of another.
fn reads(from: &OwnedRegion, by: &ProtectionDomain, fixture: &mut Fixture) -> WcStatus {
    let mut qp = by.qp(&fixture.cq).create().unwrap();
    qp.connect_to(qp.number()).unwrap();
    let to = by.allocate(8, Access::LOCAL_WRITE).unwrap();
    let (sges, at) = ([to.sge(..8).unwrap()], from.remote(0).unwrap());
    qp.post_send(&[SendWr::read(1, &sges, at)]).unwrap();
    fixture.next_wc().1
}

#[test]
fn q10_a_new_domain_does_not_reach_the_memory_of_one_that_was_made_many_before_it() {
    let mut fixture = Fixture::new();
    let domains = &fixture.device.memory.domains;
    let old = fixture.context.alloc_pd().unwrap();
    let region = old.allocate(8, Access::LOCAL_WRITE | Access::REMOTE_READ).unwrap();
    // All others have been made, and have gone.
    domains.go_on_at(domains::MAX - 1);
    let [last, new] = [(); 2].map(|()| fixture.context.alloc_pd().unwrap());
    let (ok, refused) = (WcStatus::SUCCESS, WcStatus::REM_ACCESS_ERR);
    for (by, status) in [(&last, refused), (&new, refused), (&old, ok)] {
        assert_eq!(reads(&region, by, &mut fixture), status);
    }
    let number = old.domain.number;
    drop((region, old));
    domains.go_on_at(0);
    let again = fixture.context.alloc_pd().unwrap();
    assert_eq!(again.domain.number, number, "it is free again");
}

#[test]
fn x07_a_new_process_has_nothing_abandoned() {
    static OTHER: Registry = Registry::new();
    let (_context, device) = OpenOptions::new().alone();
    let here = OTHER.attach(device.shm.path(), device.shm.shape(), &FORMAT).unwrap();
    let place = AttachmentKey::from_word(here.owner).unwrap().attachment();
    let abandoned = &device.memory.copiers[place.index()].abandoned;
    abandoned.mark();
    let ways = DeviceOptions {
        by_service: false,
        counts_polls: false,
        policy: Policy::new(None, Imitation::new(false), Strict::new(false)),
        link_layer: None,
    };
    Device::new(here, ways).unwrap();
    assert!(!abandoned.is_marked());
}
