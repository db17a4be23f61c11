//! The auto traits of the types that programs move between threads, share and unwind across. With fewer features each has the
//! same: `cargo verify api` compares the whole API of each set of features.

use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};

use cq_core::channel::{flag, thread};
use cq_core::cq::CompletionQueue;
use cq_core::queue::{Consumer, HeapCq, OnChannel, Producer, SoftCq, mpsc, raw};
use cq_core::shared_cq::{Guard, SharedCq};
use cq_core::wc::Wc;
use cq_verbs::budget::Budget;
use cq_verbs::counters::Counters;
use cq_verbs::device::Device;
use cq_verbs::post::PostError;
use cq_verbs::setup::{Endpoint, ModifyError, Port};
use cq_verbs::wait_set::{StopHandle, WaitSet};
use cq_verbs::wr::{RecvWr, SendWr};
use cq_verbs::{cm, descriptor};
use transport_rxe_loop as rxe;

/// Asks whether a type has a trait: where it has, the constant of the type hides that of [`Lacks`].
struct Asked<T>(PhantomData<T>);

#[allow(dead_code, reason = "all types have some of them")]
trait Lacks {
    const SEND: bool = false;
    const SYNC: bool = false;
    const UNPIN: bool = false;
    const UNWIND: bool = false;
    const REF_UNWIND: bool = false;
}

impl<T> Lacks for Asked<T> {}

impl<T: Send> Asked<T> {
    const SEND: bool = true;
}

impl<T: Sync> Asked<T> {
    const SYNC: bool = true;
}

impl<T: Unpin> Asked<T> {
    const UNPIN: bool = true;
}

impl<T: UnwindSafe> Asked<T> {
    const UNWIND: bool = true;
}

impl<T: RefUnwindSafe> Asked<T> {
    const REF_UNWIND: bool = true;
}

/// Compares each type with its row: `Send`, `Sync`, `Unpin`, `UnwindSafe`, `RefUnwindSafe`; a dash for one that it has not.
macro_rules! rows {
    ($($type:ty: $row:literal;)+) => {
        let rows = [$((stringify!($type), $row, [
            (Asked::<$type>::SEND, "Send"),
            (Asked::<$type>::SYNC, "Sync"),
            (Asked::<$type>::UNPIN, "Unpin"),
            (Asked::<$type>::UNWIND, "UnwindSafe"),
            (Asked::<$type>::REF_UNWIND, "RefUnwindSafe"),
        ])),+];
        let wrong = rows.into_iter().filter_map(|(name, row, traits)| {
            let has = traits.map(|(has, name)| if has { name } else { "-" }).join(" ");
            (has != row).then(|| format!("{name}: {has}"))
        });
        assert_eq!(wrong.collect::<Vec<_>>(), [""; 0]);
    };
}

#[test]
fn queues_and_their_sides_move_to_another_thread() {
    type Raised = OnChannel<thread::Raiser>;
    rows! {
        Wc: "Send Sync Unpin UnwindSafe RefUnwindSafe";
        SoftCq<4>: "Send Sync Unpin UnwindSafe RefUnwindSafe";
        HeapCq: "Send Sync Unpin UnwindSafe RefUnwindSafe";
        Producer<'static>: "Send Sync Unpin UnwindSafe RefUnwindSafe";
        Consumer<'static>: "Send Sync Unpin UnwindSafe RefUnwindSafe";
        Producer<'static, Wc, thread::Raiser>: "Send Sync Unpin UnwindSafe RefUnwindSafe";
        Consumer<'static, Wc, Raised>: "Send Sync Unpin UnwindSafe RefUnwindSafe";
        Producer<'static, [u64; 2]>: "Send Sync Unpin UnwindSafe RefUnwindSafe";
        raw::RawQueue<'static>: "Send Sync Unpin UnwindSafe RefUnwindSafe";
        mpsc::SoftCq<4>: "Send Sync Unpin UnwindSafe RefUnwindSafe";
        mpsc::HeapCq: "Send Sync Unpin UnwindSafe RefUnwindSafe";
        mpsc::SharedProducer<'static>: "Send Sync Unpin UnwindSafe RefUnwindSafe";
        mpsc::SharedConsumer<'static>: "Send Sync Unpin UnwindSafe RefUnwindSafe";
        CompletionQueue<Consumer<'static>>: "Send Sync Unpin UnwindSafe RefUnwindSafe";
        SharedCq<Consumer<'static>>: "Send Sync Unpin UnwindSafe -";
        Guard<'static, Consumer<'static>>: "Send Sync Unpin - -";
        thread::Raiser: "Send Sync Unpin UnwindSafe RefUnwindSafe";
        thread::Receiver: "Send Sync Unpin UnwindSafe RefUnwindSafe";
        flag::Raiser<'static>: "Send - Unpin UnwindSafe -";
        flag::Receiver<'static>: "Send Sync Unpin UnwindSafe RefUnwindSafe";
    }
}

#[test]
fn requests_and_accounting_move_to_another_thread() {
    rows! {
        SendWr<'static>: "Send Sync Unpin UnwindSafe RefUnwindSafe";
        RecvWr<'static>: "Send Sync Unpin UnwindSafe RefUnwindSafe";
        PostError: "Send Sync Unpin UnwindSafe RefUnwindSafe";
        ModifyError: "Send Sync Unpin UnwindSafe RefUnwindSafe";
        Endpoint: "Send Sync Unpin UnwindSafe RefUnwindSafe";
        Port: "Send Sync Unpin UnwindSafe RefUnwindSafe";
        Budget: "Send Sync Unpin UnwindSafe RefUnwindSafe";
        Counters: "Send Sync Unpin UnwindSafe RefUnwindSafe";
        StopHandle: "Send Sync Unpin UnwindSafe RefUnwindSafe";
        WaitSet<rxe::Cq, rxe::CompletionChannel>: "Send Sync Unpin - -";
        descriptor::Raiser: "Send Sync Unpin UnwindSafe RefUnwindSafe";
        descriptor::Receiver: "Send Sync Unpin UnwindSafe RefUnwindSafe";
        cm::CmEvent: "Send Sync Unpin UnwindSafe RefUnwindSafe";
    }
}

/// The handles of a transport.
macro_rules! handles {
    ($device:ty) => {
        rows! {
            $device: "Send Sync Unpin - -";
            <$device as Device>::Pd: "Send Sync Unpin - -";
            <$device as Device>::Memory: "Send Sync Unpin - -";
            <$device as Device>::Region: "Send Sync Unpin - -";
            <$device as Device>::Channel: "Send Sync Unpin - -";
            <$device as Device>::Cq: "Send Sync Unpin - -";
            <$device as Device>::CqHandle: "Send Sync Unpin - -";
            <$device as Device>::Srq: "Send Sync Unpin - -";
            <$device as Device>::Ah: "Send Sync Unpin - -";
            <$device as Device>::Qp: "Send Sync Unpin - -";
        }
    };
}

#[test]
fn the_handles_of_the_loopback_move_to_another_thread() {
    handles!(rxe::Context);
    rows! {
        rxe::MemoryWindow: "Send Sync Unpin - -";
        rxe::cm::CmId: "Send Sync Unpin - -";
        rxe::cm::EventChannel: "Send Sync Unpin - -";
        rxe::observe::FabricObserver: "Send Sync Unpin - -";
    }
}

#[cfg(feature = "verbs")]
#[test]
fn the_handles_of_libibverbs_move_to_another_thread() {
    handles!(transport_verbs::Context);
    rows! {
        transport_verbs::cm::Id: "Send Sync Unpin - -";
    }
}
