use crate::inside::prelude::*;
use crate::protocol::mode::CqFlag;

/// A queue with a channel.
fn scene(options: OpenOptions) -> (Context, &'static Device, CompletionChannel, Cq) {
    let (context, device) = options.alone();
    let channel = context.create_channel().unwrap();
    let cq = context.cq(4).channel(&channel).create().unwrap();
    (context, device, channel, cq)
}

/// Stores the completion of a WRITE of a queue pair that is its own peer.
fn write(context: &Context, cq: &Cq) {
    let mut qp = context.alloc_pd().unwrap().qp(cq).create().unwrap();
    qp.connect_to(qp.number()).unwrap();
    let nowhere = RemoteAddr { addr: 0, rkey: 0 };
    qp.post_send(&[SendWr::write_inline(1, &[], nowhere)]).unwrap();
    until("it completes", || {
        let mut count = 0;
        cq.handle.queue.look_through(|_, _| count += 1).unwrap();
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
    let slot = device.completions.cq(cq.handle.queue.index);
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
    assert_eq!(cq.poll_into(&mut [Wc::default(); 4]), Ok(1));
    cq.arm_or_raise(Notify::Next).unwrap();
    assert_eq!(channel.take_event(), Ok(None));
    assert!(device.completions.counts_polls);
}

/// What happens to a queue with a channel, and how many events each arming raises at once.
struct Story {
    qp: QueuePair,
    channel: CompletionChannel,
    cq: Cq,
    _context: Context,
}

impl Story {
    fn of(capacity: u32) -> Self {
        let (context, _) = OpenOptions::new().alone();
        let channel = context.create_channel().unwrap();
        let cq = context.cq(capacity).channel(&channel).create().unwrap();
        let mut qp = context.alloc_pd().unwrap().qp(&cq).create().unwrap();
        qp.connect_to(qp.number()).unwrap();
        Self { qp, channel, cq, _context: context }
    }

    fn events(&mut self) -> usize {
        let count = std::iter::from_fn(|| self.channel.take_event().unwrap()).count();
        if count > 0 {
            self.cq.event_taken();
        }
        count
    }

    fn arms(&mut self, on: Notify) -> usize {
        self.cq.arm_or_raise(on).unwrap();
        self.events()
    }

    /// A WRITE completes.
    fn completes(&mut self) {
        let nowhere = RemoteAddr { addr: 0, rkey: 0 };
        self.qp.post_send(&[SendWr::write_inline(1, &[], nowhere)]).unwrap();
    }

    /// A receive is flushed.
    fn fails(&mut self) {
        self.qp.modify(&QpAttr::new().state(QpState::ERR)).unwrap();
        self.qp.post_recv(&[RecvWr::new(2, &[])]).unwrap();
    }

    fn polls(&mut self) -> usize {
        self.cq.poll_into(&mut [Wc::default()]).unwrap()
    }
}

#[test]
fn n02_the_only_completion_that_came_since_raises_one_event_whenever_the_queue_is_armed() {
    let mut story = Story::of(8);
    assert_eq!(story.arms(Notify::Next), 0);
    for _ in 0..3 {
        story.completes();
        assert_eq!((story.events(), story.arms(Notify::Next), story.polls()), (1, 0, 1));
    }
    // Of two the second has had none.
    story.completes();
    story.completes();
    assert_eq!((story.events(), story.arms(Notify::Next)), (1, 1));
    // What is left of them, and what nobody polled.
    assert_eq!((story.polls(), story.arms(Notify::Next), story.arms(Notify::Next)), (1, 1, 1));
    assert_eq!((story.polls(), story.arms(Notify::Next)), (1, 0));
    story.completes();
    assert_eq!((story.events(), story.arms(Notify::Next), story.arms(Notify::Next)), (1, 0, 1));
    // The queue was disarmed by that, and not by what comes.
    assert_eq!(story.polls(), 1);
    story.completes();
    assert_eq!((story.events(), story.arms(Notify::Next)), (0, 1));
}

#[test]
fn n02_a_completion_that_the_queue_was_not_armed_for_has_had_no_event() {
    let mut story = Story::of(8);
    assert_eq!(story.arms(Notify::Solicited), 0);
    story.completes();
    assert_eq!(
        (story.events(), story.arms(Notify::Solicited), story.arms(Notify::Next)),
        (0, 0, 1)
    );
    assert_eq!((story.polls(), story.arms(Notify::Solicited)), (1, 0));
    story.fails();
    assert_eq!((story.events(), story.arms(Notify::Solicited)), (1, 0));
    assert_eq!(story.arms(Notify::Solicited), 1);
}

#[test]
fn n06_the_event_of_one_completion_is_not_taken_for_that_of_another() {
    // The second came while the first was not polled.
    let mut story = Story::of(8);
    assert_eq!(story.arms(Notify::Next), 0);
    story.completes();
    assert_eq!((story.events(), story.arms(Notify::Next)), (1, 0));
    story.completes();
    assert_eq!((story.events(), story.polls(), story.arms(Notify::Next)), (1, 1, 1));

    // The first was not armed for.
    let mut story = Story::of(8);
    story.completes();
    assert_eq!(story.arms(Notify::Solicited), 0);
    story.fails();
    assert_eq!((story.events(), story.polls(), story.arms(Notify::Solicited)), (1, 1, 1));

    // The event of the first was delayed.
    let mut story = Story::of(8);
    story.cq.moderate(4, 1_000).unwrap();
    assert_eq!(story.arms(Notify::Next), 0);
    story.completes();
    assert_eq!((story.polls(), story.arms(Notify::Next)), (1, 0));
    until("the event comes", || story.events() == 1);
    story.completes();
    assert_eq!((story.events(), story.arms(Notify::Next)), (0, 1));
}

#[test]
fn n03_every_receive_may_be_a_solicited_one() {
    let mut story = Story::of(8);
    assert_eq!(story.arms(Notify::Solicited), 0);
    story.qp.post_recv(&[RecvWr::new(2, &[])]).unwrap();
    story.qp.post_send(&[SendWr::send_inline(1, b"").unsignaled()]).unwrap();
    assert_eq!((story.events(), story.arms(Notify::Solicited), story.polls()), (0, 1, 1));
}

#[test]
fn n12_an_event_that_is_held_back_is_raised_once() {
    let mut story = Story::of(8);
    story.cq.moderate(3, u16::MAX).unwrap();
    assert_eq!(story.arms(Notify::Next), 0);
    story.completes();
    assert_eq!((story.events(), story.arms(Notify::Next)), (0, 1));
    story.cq.moderate(1, 0).unwrap();
    assert_eq!(story.events(), 0, "nothing is held back any more");
}

#[test]
fn o05_an_overrun_is_there_for_every_arm() {
    for on in [Notify::Solicited, Notify::Next] {
        let mut story = Story::of(1);
        assert_eq!(story.arms(on), 0);
        story.fails();
        story.fails();
        assert_eq!((story.events(), story.arms(on), story.arms(on)), (1, 1, 1));
        assert_eq!((story.polls(), story.arms(on)), (1, 1));
        assert!(story.cq.poll_into(&mut [Wc::default()]).is_err());
        assert_eq!(story.arms(on), 1);
    }
}
