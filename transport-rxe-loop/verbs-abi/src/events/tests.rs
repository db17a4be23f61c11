use super::*;
use crate::raw::Kind;
use crate::test::*;

/// An opening whose events are not waited for.
fn hasty() -> *mut ibv_context {
    let context = open();
    // SAFETY: a context.
    never_wait_for(unsafe { (*context).async_fd });
    context
}

fn event(context: *mut ibv_context) -> Result<ibv_async_event, Errno> {
    let mut event = ibv_async_event::ZEROED;
    // SAFETY: the buffer holds one.
    let answer = unsafe { ibv_get_async_event(context, &raw mut event) };
    if answer == 0 { Ok(event) } else { Err(Errno::last()) }
}

/// The queue that an event says has overrun.
fn overrun_of(event: &ibv_async_event) -> *mut ibv_cq {
    assert_eq!(event.event_type, ibv_event_type::CQ_ERR);
    // SAFETY: an event of a completion queue.
    unsafe { event.element.cq }
}

fn acknowledge_twice(mut event: ibv_async_event) {
    for _ in 0..2 {
        // SAFETY: an event.
        unsafe { ibv_ack_async_event(&raw mut event) };
    }
}

/// A queue that has overrun, and whose queue pairs are gone.
fn overrun(context: *mut ibv_context) -> *mut ibv_cq {
    let cq = queue(context, 4, ptr::null_mut());
    End::to(cq).flush(0..20);
    cq
}

/// Destroys an object, which waits until this event of it is acknowledged.
fn destroy_named<T: Kind>(
    slot: &'static Slot<T>,
    event: ibv_async_event,
    destroy: unsafe extern "C" fn(*mut T::Face) -> c_int,
) {
    let (told, is_told) = mpsc::channel();
    thread::scope(|scope| {
        let destroying = scope.spawn(move || {
            told.send(this_thread()).unwrap();
            // SAFETY: any pointer may be handed in.
            unsafe { destroy(slot.face()) }
        });
        let thread = is_told.recv_timeout(LIMIT).unwrap();
        until("it is being destroyed", || slot.with(|_| ()).is_err());
        until("it waits, or is through", || is_at_rest(thread));
        assert!(!destroying.is_finished());
        acknowledge_twice(event);
        assert_eq!(destroying.join().unwrap(), 0);
    });
}

fn destroy(cq: *mut ibv_cq) -> c_int {
    // SAFETY: any pointer may be handed in.
    unsafe { ibv_destroy_cq(cq) }
}

#[test]
fn n7_destroying_waits_until_the_event_is_acknowledged() {
    let context = open();
    // The thread waits for the event, or finds it there.
    let (shared, (told, is_told)) = (Shared(context), mpsc::channel());
    let waiter = thread::spawn(move || told.send(Shared(event(shared.get()))).unwrap());
    let cq = overrun(context);
    let event = is_told.recv_timeout(LIMIT).unwrap().0.unwrap();
    assert_eq!(overrun_of(&event), cq);
    destroy_named(QUEUES.find(cq).unwrap(), event, ibv_destroy_cq);
    waiter.join().unwrap();
}

#[test]
fn n7_queue_pairs_and_shared_queues_go_once_their_events_are_acknowledged() {
    let mut srq = ptr::null_mut();
    let end = End::of(|init| {
        srq = shared_queue(init.pd);
        init.srq = srq;
    });
    let end = end.unwrap();
    let qp = end.qp;
    let (pair, shared) = (PAIRS.find(qp).unwrap(), SHARED.find(srq).unwrap());
    pair.side().reports.take();
    shared.side().reports.take();
    let of = |element| ibv_async_event { element, event_type: ibv_event_type::QP_FATAL };
    destroy_named(pair, of(ibv_async_event_element { qp }), ibv_destroy_qp);
    destroy_named(shared, of(ibv_async_event_element { srq }), ibv_destroy_srq);
}

#[test]
fn n7_events_that_nobody_read_go_with_their_object() {
    let context = hasty();
    let (gone, there) = (overrun(context), overrun(context));
    assert_eq!(destroy(gone), 0);
    assert_eq!(event(context).map(|told| overrun_of(&told)), Ok(there));
    assert_eq!(event(context).err(), Some(Errno::of(libc::EAGAIN)));
}

#[test]
fn n14_each_event_is_an_edge_even_if_none_is_taken() {
    let context = hasty();
    // SAFETY: a context.
    let fd = unsafe { (*context).async_fd };
    Edges::of(fd).expect(5, |_| _ = overrun(context));
    for _ in 0..5 {
        assert!(is_readable(fd, 0));
        event(context).unwrap();
    }
    assert!(!is_readable(fd, 0));
    assert_eq!(event(context).err(), Some(Errno::of(libc::EAGAIN)));
}

#[test]
fn q11_acknowledging_what_is_no_event_is_harmless() {
    let context = hasty();
    let cq = overrun(context);
    let element = ibv_async_event_element { cq };
    for event_type in (0..=20).chain([u32::MAX]).map(ibv_event_type) {
        // Of what it names, or of something else.
        acknowledge_twice(ibv_async_event { element, event_type });
    }
    // SAFETY: any pointer may be handed in.
    unsafe {
        ibv_ack_async_event(ptr::null_mut());
        // There is no place for the event, so it is not taken.
        assert_eq!(ibv_get_async_event(context, ptr::null_mut()), -1);
    }
    assert_eq!(event(context).map(|told| overrun_of(&told)), Ok(cq));
}
