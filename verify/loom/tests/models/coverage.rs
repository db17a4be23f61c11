//! Every site of the engine's protocols and of the device's has a control.

use cq_core::sync::Site as Engine;
use transport_rxe_loop::sync::Site as Device;

macro_rules! sites {
    ($list:ident of $sites:ident: $($site:ident),+ $(,)?) => {
        const $list: &[&str] = &[$(stringify!($site)),+];

        /// Does not compile while a site is missing in the list.
        const _: fn($sites) = |site| match site {
            $($sites::$site => (),)+
        };
    };
}

sites![ENGINE of Engine:
    Publish,
    Observe,
    ReleaseHead,
    AcquireHead,
    Latch,
    ReadLatch,
    PushFence,
    ArmFence,
    Lock,
    Unlock,
    Reserve,
    AcquireTail,
    CountEvent,
    SeeEvents,
    Leave,
];

sites![DEVICE of Device:
    Lock,
    Unlock,
    OpenFence,
    CloseFence,
    ChangeFence,
    LeaveFence,
    PostFence,
    StarveFence,
    StoreFenced,
    SeeClosed,
    SeePosted,
    SeeCompleted,
    Settle,
    LookAgain,
    SeeFree,
    CountPolled,
    SeePolled,
    GiveGranule,
    SeeGranule,
    StepOver,
    RightLife,
    RaiseFence,
    EmptyFence,
    EmptyFirst,
    CollectAgain,
    Reschedule,
    HoldFence,
    AlarmFence,
    OpenFirst,
    CloseFirst,
    MoveLast,
    AdoptArm,
];

const MODELS: &[&str] = &[
    include_str!("arm.rs"),
    include_str!("channels.rs"),
    include_str!("closing.rs"),
    include_str!("handover.rs"),
    include_str!("overrun.rs"),
    include_str!("ring.rs"),
    include_str!("shared_cq.rs"),
    include_str!("shared_events.rs"),
    include_str!("shared_resize.rs"),
    include_str!("shared_ring.rs"),
    include_str!("wait.rs"),
];

const DEVICE_MODELS: &[&str] = &[
    include_str!("device_arena.rs"),
    include_str!("device_channel.rs"),
    include_str!("device_datagrams.rs"),
    include_str!("device_death.rs"),
    include_str!("device_fanin.rs"),
    include_str!("device_fanin_resize.rs"),
    include_str!("device_moderation.rs"),
    include_str!("device_ownership.rs"),
    include_str!("device_pool.rs"),
    include_str!("device_receives.rs"),
    include_str!("device_send_slots.rs"),
    include_str!("device_sole.rs"),
    include_str!("device_retired.rs"),
    include_str!("device_in_flight.rs"),
];

#[test]
fn every_site_has_a_control() {
    for (sites, models) in [(ENGINE, MODELS), (DEVICE, DEVICE_MODELS)] {
        for site in sites {
            let control = |of| format!("must_fail_without({of}::{site},");
            let has =
                |file: &&&str| ["Site", "Device"].iter().any(|of| file.contains(&control(of)));
            assert!(models.iter().any(|file| has(&file)), "no control of {site}");
        }
    }
}
