//! Posting and polling allocate nothing (P5). Alone in its process, whose allocator counts.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Instant;

use common::{CAPS, Context, NOWHERE, exchange, open, to_itself};
use cq_core::cq::CompletionQueue;
use cq_core::transport::Post;
use cq_core::wait_set::{Ready, WaitSet};
use cq_core::wc::Wc;
use cq_core::wr::SendWr;
use transport_rxe_loop::QpInit;

/// The system's, counting what the calling thread allocates.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: everything is handed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
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

#[test]
fn waiting_for_several_queues_allocates_nothing() {
    let context: Context = open();
    let (pd, mut set) = (context.alloc_pd().unwrap(), WaitSet::new().unwrap());
    set.add_descriptor(&context).unwrap();
    let mut qps = [(); 3].map(|()| {
        let channel = context.create_channel().unwrap();
        let cq = context.create_cq(64, Some(&channel)).unwrap();
        let qp = to_itself(&pd, &QpInit { caps: CAPS, ..QpInit::new(&cq) });
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
