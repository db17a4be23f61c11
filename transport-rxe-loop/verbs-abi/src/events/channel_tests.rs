use super::*;
use crate::test::*;

#[test]
fn n1_each_event_goes_to_one_of_those_who_wait() {
    const EVENTS: u64 = 100;
    let (channel, cq) = channel();
    let (end, shared, (taken, is_taken)) = (End::to(cq), Shared(channel), mpsc::channel());
    thread::scope(|scope| {
        for _ in 0..4 {
            let taken = taken.clone();
            scope.spawn(move || {
                for _ in 0..EVENTS / 4 {
                    let (cq, _) = event(shared.get()).unwrap();
                    // SAFETY: any pointer may be handed in.
                    unsafe { ibv_ack_cq_events(cq, 1) };
                    taken.send(cq.addr()).unwrap();
                }
            });
        }
        for wr_id in 0..EVENTS {
            arm(cq);
            end.complete([wr_id]);
            assert_eq!(is_taken.recv_timeout(LIMIT), Ok(cq.addr()));
            assert_eq!(poll(cq, 4).unwrap().len(), 1);
        }
    });
    // SAFETY: a channel.
    never_wait_for(unsafe { (*channel).fd });
    assert_eq!(event(channel), Err(Errno::of(libc::EAGAIN)), "each once");
}

#[test]
fn n14_each_event_is_an_edge_even_if_none_is_taken() {
    let (channel, cq) = hasty_channel();
    let end = End::to(cq);
    // SAFETY: a channel.
    Edges::of(unsafe { (*channel).fd }).expect(20, |wr_id| {
        arm(cq);
        end.complete([wr_id]);
        assert_eq!(poll(cq, 4).unwrap().len(), 1);
    });
    assert_eq!((0..).take_while(|_| event(channel).is_ok()).count(), 20);
}

#[test]
fn q11_without_a_place_for_what_it_gives_no_event_is_taken() {
    let (channel, cq) = hasty_channel();
    arm(cq);
    End::to(cq).complete([1]);
    let (mut told, mut cookie) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: buffers, or null.
    unsafe {
        assert_eq!(ibv_get_cq_event(channel, &raw mut told, ptr::null_mut()), -1);
        assert_eq!(ibv_get_cq_event(channel, ptr::null_mut(), &raw mut cookie), -1);
    }
    assert_eq!(Errno::last(), Errno::INVAL);
    assert_eq!(event(channel), Ok((cq, cookie)));
    assert_eq!(event(channel), Err(Errno::of(libc::EAGAIN)));
}

#[test]
fn x7_a_channel_that_goes_takes_those_along_who_wait_for_it() {
    let (channel, cq) = channel();
    let shared = Shared(channel);
    let (woken, is_woken) = mpsc::channel();
    let (told, is_told) = mpsc::channel();
    thread::spawn(move || {
        told.send(this_thread()).unwrap();
        woken.send(event(shared.get()).err())
    });
    let thread = is_told.recv_timeout(LIMIT).unwrap();
    until("it waits for an event", || is_at_rest(thread));
    assert!(is_woken.try_recv().is_err());
    // SAFETY: any pointer may be handed in.
    let gone = unsafe { [ibv_destroy_cq(cq), ibv_destroy_comp_channel(channel)] };
    assert_eq!(gone, [0; 2]);
    let told = is_woken.recv_timeout(LIMIT).unwrap();
    let gone = [Errno::NOENT, Errno::of(libc::EBADF)];
    assert!(told.is_some_and(|why| gone.contains(&why)), "{told:?}");
}

#[test]
fn n7_so_many_events_are_acknowledged_at_once_and_a_queue_waits_for_the_rest() {
    const EVENTS: u64 = 5;
    for (before, parts) in
        [(0, &[1, 3, 1][..]), (0, &[4, 1]), (4, &[1]), (2, &[2, 1]), (0, &[5]), (1, &[u32::MAX])]
    {
        let (channel, cq) = hasty_channel();
        let end = End::to(cq);
        // SAFETY: any pointer may be handed in. Too many are harmless, before and after (Q11).
        unsafe { ibv_ack_cq_events(cq, 1000) };
        for wr_id in 0..EVENTS {
            arm(cq);
            end.complete([wr_id]);
            assert_eq!(event(channel).map(|told| told.0), Ok(cq));
        }
        // SAFETY: any pointer may be handed in. Whether it is in use is judged before it waits.
        assert_eq!(unsafe { ibv_destroy_cq(cq) }, libc::EBUSY);
        drop(end);
        // SAFETY: as above.
        unsafe { ibv_ack_cq_events(cq, before) };
        let (shared, (told, is_told)) = (Shared(cq), mpsc::channel());
        let destroyer = thread::spawn(move || {
            told.send(this_thread()).unwrap();
            // SAFETY: as above.
            told.send(unsafe { ibv_destroy_cq(shared.get()) }).unwrap();
        });
        let thread = is_told.recv_timeout(LIMIT).unwrap();
        for part in parts {
            until("it waits, or is through", || is_at_rest(thread));
            assert!(is_told.try_recv().is_err(), "{parts:?}: {part} is not acknowledged");
            // SAFETY: as above.
            unsafe { ibv_ack_cq_events(cq, *part) };
        }
        assert_eq!(is_told.recv_timeout(LIMIT), Ok(0), "{parts:?}");
        destroyer.join().unwrap();
    }
}

#[test]
fn n7_a_queue_is_destroyed_while_a_thread_takes_events_of_its_channel() {
    let (channel, cq) = channel();
    let (shared, (gone, is_gone)) = (Shared(cq), mpsc::channel());
    let as_it_takes_one = |_: &mut Channel| {
        // SAFETY: any pointer may be handed in.
        thread::spawn(move || gone.send(unsafe { ibv_destroy_cq(shared.get()) }));
        is_gone.recv_timeout(LIMIT)
    };
    let told = CHANNELS.find(channel).unwrap().with(as_it_takes_one);
    assert_eq!(told, Ok(Ok(0)));
}
