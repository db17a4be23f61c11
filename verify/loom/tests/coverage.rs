//! Every site of the engine's protocols has a control.
#![cfg(loom)]

use cq_core::sync::Site;

macro_rules! sites {
    ($($site:ident),+ $(,)?) => {
        const SITES: &[&str] = &[$(stringify!($site)),+];

        /// Does not compile while a site is missing in the list.
        const _: fn(Site) = |site| match site {
            $(Site::$site => (),)+
        };
    };
}

sites![
    Publish,
    Observe,
    ReleaseHead,
    AcquireHead,
    Latch,
    ReadLatch,
    PushFence,
    ArmFence,
    FullCheck,
    ReleaseFirst,
    LookAfterLatch,
    SecondPoll,
    NeverWeaken,
    DisarmFirst,
    OverrunWakes,
    Lock,
    Unlock,
    Reserve,
    AcquireTail,
    ReserveSeen,
    CloseInWord,
    DrainToTail,
    CountEach,
    DisarmSeen,
    LookAgain,
    Successor,
    EndWakes,
    ResizeSeen,
    DrainBeforeNew,
];

const MODELS: &[&str] = &[
    include_str!("arm.rs"),
    include_str!("handover.rs"),
    include_str!("overrun.rs"),
    include_str!("ring.rs"),
    include_str!("shared_cq.rs"),
    include_str!("shared_events.rs"),
    include_str!("shared_resize.rs"),
    include_str!("shared_ring.rs"),
    include_str!("wait.rs"),
];

#[test]
fn every_site_has_a_control() {
    for site in SITES {
        let control = format!("must_fail_without(Site::{site},");
        assert!(MODELS.iter().any(|file| file.contains(&control)), "no control of {site}");
    }
}
