//! Posting and polling allocate nothing (P5). Alone in its process, whose allocator counts.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Instant;

use common::{CAPS, Context, NOWHERE, exchange, open, to_itself};
use cq_core::cq::CompletionQueue;
use cq_core::wc::Wc;
use cq_verbs::cm::ConnParam;
use cq_verbs::setup::QpType;
use cq_verbs::wait_set::{Ready, WaitSet};
use cq_verbs::wr::SendWr;
use transport_rxe_loop::cm::{CmId, EventChannel, PortSpace};

/// The system's, counting what the calling thread allocates.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    /// Those while the thread blocks all signals, as it does while it holds forks off.
    static WITHOUT_SIGNALS: Cell<usize> = const { Cell::new(0) };
    static LOOKS: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread blocks a signal that nobody else blocks.
fn is_without_signals() -> bool {
    // SAFETY: a set is an array of numbers, of which zeros are one; the first call writes it, and the second reads it.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut set);
        libc::sigismember(&raw const set, libc::SIGUSR2) == 1
    }
}

// SAFETY: everything is handed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        if LOOKS.get() && is_without_signals() {
            WITHOUT_SIGNALS.set(WITHOUT_SIGNALS.get() + 1);
        }
        // SAFETY: the caller's word is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's word is handed on; the memory came from `System`.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn p05_posting_and_polling_allocate_nothing() {
    exchange(|work| {
        let before = ALLOCATIONS.get();
        assert!(before > 0, "they are counted");
        work();
        assert_eq!(ALLOCATIONS.get(), before);
    });
}

/// An allocator's lock may be held by a thread that is about to fork, which waits for this one.
#[test]
fn a_request_for_a_connection_allocates_nothing_while_forks_are_held_off() {
    let context = open();
    let passive = EventChannel::new(&context).unwrap();
    let listener = CmId::new(&passive, PortSpace::TCP, QpType::RC).unwrap();
    listener.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    listener.listen(1).unwrap();
    let channel = EventChannel::new(&context).unwrap();
    let id = CmId::new(&channel, PortSpace::TCP, QpType::RC).unwrap();
    id.resolve_addr(None, listener.local_addr().unwrap()).unwrap();
    id.resolve_route().unwrap();
    LOOKS.set(true);
    let connected = id.connect(&ConnParam::new(1, b""));
    LOOKS.set(false);
    connected.unwrap();
    assert_eq!(WITHOUT_SIGNALS.get(), 0);
}

#[test]
fn waiting_for_several_queues_allocates_nothing() {
    let context: Context = open();
    let (pd, mut set) = (context.alloc_pd().unwrap(), WaitSet::new().unwrap());
    set.add_descriptor(&context).unwrap();
    let mut qps = [(); 3].map(|()| {
        let channel = context.create_channel().unwrap();
        let cq = context.cq(64).channel(&channel).create().unwrap();
        let qp = to_itself(pd.qp(&cq).caps(CAPS));
        set.add_queue(CompletionQueue::new(cq));
        set.add_channel(channel).unwrap();
        qp
    });
    let mut buffer = [Wc::default(); 4];
    let mut before = 0;
    for round in 0..300 {
        if round == 12 {
            // Each channel has space for its events by now.
            before = ALLOCATIONS.get();
        }
        qps[round % 3].post_send(&[SendWr::write_inline(1, &[], NOWHERE)]).unwrap();
        let ready = set.wait(&mut buffer, None).unwrap();
        assert!(matches!(ready, Ready::Completions(..)));
        if round % 2 == 0 {
            // It arms the queues, and sleeps.
            let now = Some(Instant::now());
            assert_eq!(set.wait(&mut buffer, now).unwrap(), Ready::DeadlinePassed);
        }
    }
    assert_eq!(ALLOCATIONS.get(), before);
}
