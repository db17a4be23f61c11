use crate::inside::prelude::*;
use crate::protocol::mode::CqFlag;

/// A queue with a channel.
fn scene(options: OpenOptions) -> (Context, &'static Device, CompletionChannel, Cq) {
    let (context, device) = options.alone();
    let channel = context.create_channel().unwrap();
    let cq = context.create_cq(4, Some(&channel)).unwrap();
    (context, device, channel, cq)
}

/// Stores the completion of a WRITE of a queue pair that is its own peer.
fn write(context: &Context, cq: &Cq) {
    let mut qp = context.alloc_pd().unwrap().create_qp(&QpInit::new(cq)).unwrap();
    qp.connect_to(qp.number()).unwrap();
    let nowhere = RemoteAddr { addr: 0, rkey: 0 };
    qp.post_send(&[SendWr::write_inline(1, &[], nowhere)]).unwrap();
    until("it completes", || {
        let mut count = 0;
        cq.queue().look_through(|_, _| count += 1).unwrap();
        count == 1
    });
}

#[test]
fn n02_only_this_way_of_arming_raises_what_is_there() {
    let (context, _, mut channel, mut cq) = scene(OpenOptions::new());
    write(&context, &cq);
    assert_eq!(cq.arm(Notify::Next), Ok(Armed::MayHaveMissed));
    assert_eq!(channel.take_event(), Ok(None));
    cq.arm_or_raise(Notify::Next).unwrap();
    assert_eq!([channel.take_event(), channel.take_event()], [Ok(Some(cq.key())), Ok(None)]);
}

#[test]
fn n06_who_arms_is_woken_though_a_suspended_process_holds_the_lock() {
    let (context, device, mut channel, mut cq) = scene(OpenOptions::new());
    write(&context, &cq);
    let slot = device.completions.cq(cq.queue().index);
    let suspended = device.memory.lock(&slot.fanin.lock, || {}).unwrap();
    for is_given_up in [false, true] {
        slot.mode.set(CqFlag::GivenUp, is_given_up);
        cq.arm_or_raise(Notify::Next).unwrap();
        assert_eq!(channel.take_event(), Ok(Some(cq.key())), "given up: {is_given_up}");
    }
    drop(suspended);
}

#[test]
fn n02_a_queue_whose_polls_are_counted_raises_what_is_there_too() {
    let (context, device, mut channel, mut cq) = scene(OpenOptions::new().count_polls());
    write(&context, &cq);
    for on in [Notify::Solicited, Notify::Next] {
        cq.arm_or_raise(on).unwrap();
        let wanted = (on == Notify::Next).then(|| cq.key());
        assert_eq!(channel.take_event(), Ok(wanted));
    }
    assert_eq!(cq.poll(&mut [Wc::default(); 4]), Ok(1));
    cq.arm_or_raise(Notify::Next).unwrap();
    assert_eq!(channel.take_event(), Ok(None));
    assert!(device.completions.counts_polls);
}
