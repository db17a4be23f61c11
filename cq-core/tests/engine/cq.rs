//! `CompletionQueue` over scripted transports: what it believes, and how it waits (P2–P4, P6, P7, N2, N5,
//! N8, N11).

use super::send as wc;
use super::*;

const ARM: Call = Call::Arm(Notify::Next);

fn script() -> Script<16> {
    Script::new(KEY)
}

#[test]
fn p04_the_room_past_the_count_is_untouched() {
    let script = script().on_poll(Ok(&[wc(7)]));
    let mut buffer = [wc(1), wc(2), wc(3)];
    assert_eq!(CompletionQueue::new(&script).poll(&mut buffer), Ok(&[wc(7)][..]));
    assert_eq!(buffer, [wc(7), wc(2), wc(3)]);
}

#[test]
fn p06_no_room_is_no_error_and_no_wait() {
    let script = script();
    let mut cq = CompletionQueue::new(&script);
    assert_eq!(cq.poll(&mut []), Ok(&[][..]));
    assert_eq!(cq.poll_or_arm(&mut [], Notify::Next), Ok(&[][..]));
    assert_eq!(cq.wait(&mut [], &mut &script, None), Ok(&[][..]), "or it would sleep for ever");
    assert!(!script.calls().contains(&ARM));
}

#[test]
fn p07_a_transport_that_claims_more_than_asked_is_not_believed() {
    let script =
        script().on_poll_claim(3).on_arm(Ok(Armed::MayHaveMissed)).on_poll_claim(usize::MAX);
    let mut cq = CompletionQueue::new(&script);
    let error = |returned| PollError::Misbehaved { asked: 2, returned };
    let mut buffer = [wc(0); 2];
    assert_eq!(cq.poll(&mut buffer), Err(error(3)));
    let again = cq.poll_or_arm(&mut buffer, Notify::Next);
    assert_eq!(again, Err(WaitError::Poll(error(usize::MAX))));
}

#[test]
fn n02_arms_only_when_empty_and_polls_again_when_it_may_have_missed() {
    let found = script().on_poll(Ok(&[wc(1)]));
    let missed = script().on_arm(Ok(Armed::MayHaveMissed)).on_poll(Ok(&[wc(1), wc(2)]));
    let armed = script().on_arm(Ok(Armed::Armed));
    let cases = [
        (found, 1, &[Call::Poll(2)][..]),
        (missed, 2, &[Call::Poll(2), ARM, Call::Poll(2)]),
        (armed, 0, &[Call::Poll(2), ARM]),
    ];
    for (script, count, calls) in cases {
        let mut buffer = [wc(0); 2];
        let got = CompletionQueue::new(&script).poll_or_arm(&mut buffer, Notify::Next).unwrap();
        assert_eq!(got.len(), count);
        assert_eq!(script.calls(), calls);
    }
}

#[test]
fn n03_what_to_arm_for_is_handed_on() {
    let script = script();
    let mut buffer = [wc(0)];
    let none = CompletionQueue::new(&script).poll_or_arm(&mut buffer, Notify::Solicited);
    assert_eq!(none, Ok(&[][..]));
    assert_eq!(script.calls(), [Call::Poll(1), Call::Arm(Notify::Solicited)]);
}

/// What a wait for up to two completions finds, up to this time of the script's clock.
fn wait(script: &Script<16>, end: Option<Duration>) -> Result<Vec<u64>, WaitError> {
    let (mut cq, mut buffer, mut channel) = (CompletionQueue::new(script), [wc(0); 2], script);
    Ok(cq.wait(&mut buffer, &mut channel, end)?.iter().map(Wc::wr_id).collect())
}

#[test]
fn n05_an_event_that_finds_nothing_is_waited_past() {
    let script = script().on_arm(Ok(Armed::Armed)).on_event(Ok(KEY)).on_poll(Ok(&[]));
    let script = script.on_block(Ok(Duration::ZERO)).on_event(Ok(KEY)).on_poll(Ok(&[wc(1)]));
    assert_eq!(wait(&script, None), Ok(vec![1]));
    assert_eq!(script.done(), Ok(()));
}

#[test]
fn the_deadline_is_for_the_whole_wait_and_ends_with_a_last_poll() {
    let second = Duration::from_secs(1);
    let (script, end) = (script().on_block(Ok(second)).on_event(Ok(KEY)), Some(3 * second));
    let script = script.on_block(Ok(second)).on_block(Ok(second)).on_poll(Ok(&[wc(1)]));
    assert_eq!(wait(&script, end), Ok(vec![1]), "woken for nothing twice");
    let calls = script.calls();
    let deadlines = calls.iter().filter(|call| matches!(call, Call::Block(_)));
    assert!(deadlines.eq(&[Call::Block(end); 3]), "no longer than to the deadline");
    assert_eq!(script.now(), 3 * second);
}

#[test]
fn errors_come_out_as_they_are() {
    let overrun = PollError::Overrun { dropped: Some(2) };
    for (script, error) in [
        (script().on_poll(Err(overrun)), overrun.into()),
        (script().on_arm(Err(ArmError::NoChannel)), ArmError::NoChannel.into()),
        (script().on_event(Err(EventError::Device(5))), EventError::Device(5).into()),
        // Another queue's event is handed over and not lost (N8).
        (script().on_event(Ok(OTHER)), WaitError::OtherQueue(OTHER)),
    ] {
        assert_eq!(wait(&script, None), Err(error));
    }
    let polled = script().on_poll(Err(overrun));
    assert_eq!(CompletionQueue::new(&polled).poll(&mut [wc(0)]), Err(overrun));
}

#[test]
fn an_interrupted_wait_says_so_where_a_last_poll_finds_nothing() {
    let script = script().on_interrupt().on_poll(Ok(&[wc(1)])).on_interrupt();
    assert_eq!(wait(&script, None), Ok(vec![1]), "what came wins");
    assert_eq!(wait(&script, None), Err(WaitError::Interrupted));
    assert_eq!(script.calls().last(), Some(&Call::Poll(2)));
    assert_eq!(script.done(), Ok(()));
}

#[test]
fn p01_a_queue_gives_its_transport_back() {
    let script = script().on_poll(Ok(&[wc(1), wc(2)]));
    let mut cq = CompletionQueue::new(&script);
    assert_eq!(cq.poll(&mut [wc(0)]), Ok(&[wc(1)][..]));
    assert_eq!(cq.get_mut().poll_into(&mut [wc(0)]), Ok(1));
    assert_eq!(cq.into_inner().poll_into(&mut [wc(0)]), Ok(0));
}

#[test]
fn p01_n06_a_boxed_transport_and_a_boxed_channel_get_every_call() {
    const fn is_send<T: Send>() {}
    type Polled<'a> = Box<dyn PollCq<Entry = Wc> + 'a>;
    type Armed<'a> = Box<dyn Arm<Entry = Wc> + 'a>;
    const {
        is_send::<CompletionQueue<Box<dyn PollCq<Entry = Wc> + Send>>>();
        is_send::<CompletionQueue<Box<dyn Arm<Entry = Wc> + Send>>>();
    }
    let script = script().on_poll(Ok(&[wc(1)])).on_poll(Ok(&[])).on_block(Ok(Duration::ZERO));
    let script = script.on_event(Ok(KEY)).on_poll(Ok(&[wc(2)]));
    let mut buffer = [wc(0); 2];
    let mut cq = CompletionQueue::new(Box::new(&script) as Polled<'_>);
    assert_eq!(cq.poll(&mut buffer), Ok(&[wc(1)][..]));
    let mut cq = CompletionQueue::new(Box::new(&script) as Armed<'_>);
    let mut channel: Box<dyn Block<Instant = Duration>> = Box::new(&script);
    assert_eq!(cq.wait(&mut buffer, &mut channel, None), Ok(&[wc(2)][..]));
    assert!(script.calls().contains(&ARM));
    assert_eq!(script.done(), Ok(()));
}

#[test]
fn n06_a_wait_looks_takes_events_arms_and_looks_again_before_each_sleep() {
    let second = Duration::from_secs(1);
    let script = script().on_arm(Ok(Armed::MayHaveMissed)).on_poll(Ok(&[])).on_block(Ok(second));
    let script = script.on_event(Ok(KEY)).on_poll(Ok(&[])).on_arm(Ok(Armed::Armed));
    let script = script.on_block(Ok(second));
    assert_eq!(wait(&script, Some(2 * second)), Ok(vec![]));
    let look = [Call::Poll(2), Call::Event, ARM];
    let sleep = Call::Block(Some(2 * second));
    let again = [Call::Poll(2), sleep, Call::Event];
    let calls = [&look[..], &again, &look, &[sleep, Call::Poll(2)]].concat();
    assert_eq!(script.calls(), &calls[..]);
    assert_eq!(script.done(), Ok(()));
}

/// A queue that a completion reaches between the empty poll and the arm, each time.
struct Busy<'a> {
    device: Producer<'a, Wc, &'a EventCount>,
    queue: Consumer<'a, Wc, OnChannel<&'a EventCount>>,
}

impl PollCq for Busy<'_> {
    type Entry = Wc;

    fn poll_into(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        self.queue.poll_into(out)
    }
}

impl Arm for Busy<'_> {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        self.device.push(&wc(1)).unwrap();
        self.queue.arm(on)
    }

    fn key(&self) -> CqKey {
        self.queue.key()
    }
}

#[test]
fn n09_waits_that_find_completions_by_polling_leave_two_unread_events_at_most() {
    const WAITS: u64 = many(100_000);
    let (mut storage, event_count) = (SoftCq::<4>::new(), EventCount::default());
    let (device, queue) = storage.split_with(&event_count);
    let mut cq = CompletionQueue::new(Busy { device, queue });
    let (mut buffer, mut channel, mut most) = ([wc(0); 4], &event_count, 0);
    for nth in 0..WAITS {
        if nth % 2 == 1 {
            cq.get_mut().device.push(&wc(1)).unwrap(); // raises the event of the last arm
        }
        assert_eq!(cq.wait(&mut buffer, &mut channel, None), Ok(&[wc(1)][..]));
        most = most.max(event_count.unread());
    }
    assert!(most <= 2, "{most} events were unread");
}
