//! Every site of the engine's protocols and of the device's has a control.

use std::fs;
use std::path::PathBuf;

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

/// The texts of the models, of the engine's or of the device's.
fn models(of_device: bool) -> String {
    let files = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/models")).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let is_asked_for = |path: &PathBuf| {
        path.file_name().unwrap().to_string_lossy().starts_with("device_") == of_device
    };
    paths.filter(is_asked_for).map(|path| fs::read_to_string(path).unwrap()).collect()
}

#[test]
fn every_site_has_a_control() {
    for (sites, models) in [(ENGINE, models(false)), (DEVICE, models(true))] {
        for site in sites {
            let control = |of| models.contains(&format!("must_fail_without({of}::{site},"));
            assert!(control("Site") || control("Device"), "no control of {site}");
        }
    }
}
