//! Waiting on queues, descriptors and a stop handle, with real descriptors (N6, N8, N10, O3).

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::thread::JoinHandleExt;
use std::sync::OnceLock;

use cq_verbs::causes::Causes;
use cq_verbs::descriptor::{Raiser, Receiver, block, channel};
use cq_verbs::queue_set::{QueueId, SetError};
use cq_verbs::setup::{DeviceError, Errno};
use cq_verbs::wait_set::{AddChannelError, DescriptorId, Ready, StopHandle, WaitSet};

use super::queue_set::{Named, World, key};
use super::*;

type Device = Producer<'static, Wc, Raiser>;
type Queue = Consumer<'static, Wc, OnChannel<Raiser>>;
type Set = WaitSet<Queue, Receiver>;

/// More rounds than there are between two looks at the descriptors.
const MANY: u64 = 200;

fn now() -> Option<Instant> {
    Some(Instant::now())
}

/// A queue on a channel.
fn queue(raiser: Raiser, capacity: u32) -> (Device, CompletionQueue<Queue>) {
    let (device, queue) = HeapCq::new(capacity as usize).unwrap().split_with(raiser);
    (device, CompletionQueue::new(queue))
}

/// A set with `N` queues on one channel.
fn set<const N: usize>() -> (Set, [Device; N], [QueueId; N]) {
    let (_raiser, events) = channel(N).unwrap();
    let mut set = WaitSet::new().unwrap();
    let raisers = [(); N].map(|()| events.raiser());
    set.add_channel(events).unwrap();
    let mut ids = Vec::new();
    let devices = raisers.map(|raiser| {
        let (device, cq) = queue(raiser, 1024);
        ids.push(set.add_queue(cq));
        device
    });
    (set, devices, ids.try_into().unwrap())
}

/// A descriptor that is readable, and what makes it so.
fn descriptor<T, C: AsFd>(set: &mut WaitSet<T, C>) -> (DescriptorId, UnixStream, UnixStream) {
    let (mut near, far) = UnixStream::pair().unwrap();
    let id = set.add_descriptor(&far).unwrap();
    near.write_all(b"x").unwrap();
    (id, near, far)
}

/// Which queue has completions, and which.
fn batch(ready: Ready<'_>) -> (QueueId, Vec<u64>) {
    match ready {
        Ready::Completions(queue, batch) => (queue, batch.iter().map(Wc::wr_id).collect()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn n08_a_sleep_ends_with_a_completion_of_any_queue_on_any_channel() {
    let (mut set, [mut a, mut b], [a_id, b_id]) = set();
    let (raiser, events) = channel(1).unwrap();
    set.add_channel(events).unwrap();
    let (mut c, cq) = queue(raiser, 4);
    let c_id = set.add_queue(cq);
    let mut buffer = [Wc::default(); 4];
    for round in 0..100 {
        for (device, id) in [(&mut a, a_id), (&mut b, b_id), (&mut c, c_id)] {
            thread::scope(|scope| {
                scope.spawn(|| {
                    thread::yield_now();
                    device.push(&send(round)).unwrap();
                });
                assert_eq!(batch(set.wait(&mut buffer, late()).unwrap()), (id, vec![round]));
            });
        }
    }
    assert_eq!(set.wait(&mut buffer, now()), Ok(Ready::DeadlinePassed));
}

#[test]
fn a_storm_on_one_queue_delays_neither_another_nor_a_descriptor_nor_a_stop() {
    let (mut set, [mut busy, mut calm], [busy_id, calm_id]) = set();
    let (socket, _near, mut far) = descriptor(&mut set);
    let stop = set.stop_handle();
    stop.stop();
    calm.push(&send(7)).unwrap();
    let (mut buffer, mut seen) = ([Wc::default(); 2], Vec::new());
    for _ in 0..MANY {
        while busy.available() > 0 {
            busy.push(&send(1)).unwrap();
        }
        match set.wait(&mut buffer, late()).unwrap() {
            Ready::Completions(queue, batch) if queue == busy_id => assert_eq!(batch.len(), 2),
            Ready::Completions(queue, batch) => {
                assert_eq!((queue, batch), (calm_id, &[send(7)][..]));
                seen.push("calm");
            }
            Ready::Descriptor(id) => {
                assert_eq!(id, socket);
                seen.push("socket");
                far.read_exact(&mut [0]).unwrap();
            }
            Ready::Stopped => seen.push("stopped"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(seen[0], "calm");
    seen[1..].sort_unstable();
    assert_eq!(seen, ["calm", "socket", "stopped"], "each once");
}

#[test]
fn descriptors_that_stay_readable_delay_neither_queues_nor_each_other() {
    let (mut set, [mut device], [queue]) = set();
    let (one, _near, _far) = descriptor(&mut set);
    let (two, _near, _far) = descriptor(&mut set);
    let mut buffer = [Wc::default(); 1];
    let mut next = || match set.wait(&mut buffer, late()).unwrap() {
        Ready::Descriptor(id) => id,
        other => panic!("{other:?}"),
    };
    let turn = [next(), next()];
    assert!(turn == [one, two] || turn == [two, one], "{turn:?}");
    (0..4).for_each(|nth| assert_eq!(next(), turn[nth % 2]));
    (0..3).for_each(|wr_id| device.push(&send(wr_id)).unwrap());
    for wr_id in 0..3 {
        assert_eq!(batch(set.wait(&mut buffer, late()).unwrap()), (queue, vec![wr_id]));
    }
    assert!(set.remove_descriptor(one) && set.remove_descriptor(two));
    assert!(!set.remove_descriptor(one), "once");
    assert_eq!(set.wait(&mut buffer, now()), Ok(Ready::DeadlinePassed));
}

#[test]
fn a_descriptor_is_a_duplicate_and_told_until_it_is_read() {
    let (mut set, [_device], _) = set();
    let (id, near, mut far) = descriptor(&mut set);
    let mut buffer = [Wc::default()];
    for _ in 0..3 {
        assert_eq!(set.wait(&mut buffer, late()), Ok(Ready::Descriptor(id)));
    }
    far.read_exact(&mut [0]).unwrap();
    assert_eq!(set.wait(&mut buffer, now()), Ok(Ready::DeadlinePassed));
    drop(far);
    assert_eq!(set.wait(&mut buffer, now()), Ok(Ready::DeadlinePassed), "nobody closed it");
    drop(near);
    assert_eq!(set.wait(&mut buffer, late()), Ok(Ready::Descriptor(id)), "the end of a stream");
    // One that is open elsewhere, too, is removed for good.
    let (again, _near, far) = descriptor(&mut set);
    assert!(set.remove_descriptor(id) && set.remove_descriptor(again));
    assert_ne!(id, again);
    assert_eq!(set.wait(&mut buffer, now()), Ok(Ready::DeadlinePassed));
    drop(far);
}

#[test]
fn n10_a_stop_ends_a_wait_once_from_any_thread_and_the_next_one_goes_on() {
    let (mut set, [mut device], [queue]) = set();
    let (stop, mut buffer) = (set.stop_handle(), [Wc::default()]);
    for _ in 0..2 {
        let [here, there] = [stop.clone(), stop.clone()];
        here.stop();
        let stopper = thread::spawn(move || there.stop());
        stopper.join().unwrap();
        assert_eq!(set.wait(&mut buffer, late()), Ok(Ready::Stopped));
        assert_eq!(set.wait(&mut buffer, now()), Ok(Ready::DeadlinePassed), "two were one");
    }
    let waiter = thread::spawn(move || {
        let ready = set.wait(&mut [Wc::default()], late()).map(|ready| ready == Ready::Stopped);
        (set, ready)
    });
    stop.stop();
    let (mut set, stopped) = waiter.join().unwrap();
    assert_eq!(stopped, Ok(true));
    device.push(&send(1)).unwrap();
    assert_eq!(batch(set.wait(&mut buffer, late()).unwrap()), (queue, vec![1]));
    drop(set);
    stop.stop();
}

#[test]
fn completions_are_returned_after_the_deadline_and_the_deadline_ends_a_sleep() {
    let (mut set, [mut device], [queue]) = set();
    let mut buffer = [Wc::default(); 4];
    (0..6).for_each(|wr_id| device.push(&send(wr_id)).unwrap());
    assert_eq!(batch(set.wait(&mut buffer, now()).unwrap()), (queue, vec![0, 1, 2, 3]));
    assert_eq!(batch(set.wait(&mut buffer, now()).unwrap()), (queue, vec![4, 5]));
    let start = Instant::now();
    let deadline = start + Duration::from_millis(20);
    assert_eq!(set.wait(&mut buffer, Some(deadline)), Ok(Ready::DeadlinePassed));
    assert!(start.elapsed() >= Duration::from_millis(20));
    let timeout = Duration::from_millis(1);
    assert_eq!(set.wait_timeout(&mut buffer, timeout), Ok(Ready::DeadlinePassed));
    device.push(&send(6)).unwrap();
    assert_eq!(batch(set.wait_timeout(&mut buffer, Duration::MAX).unwrap()), (queue, vec![6]));
    assert_eq!(set.wait(&mut [], now()), Err(SetError::EmptyBuffer));
}

#[test]
fn n07_the_events_of_removed_queues_and_channels_are_ignored() {
    let (mut set, [mut a, mut b], [a_id, b_id]) = set();
    let mut buffer = [Wc::default()];
    assert_eq!(set.wait(&mut buffer, now()), Ok(Ready::DeadlinePassed), "both are armed");
    let mut removed = set.remove_queue(a_id).unwrap();
    a.push(&send(1)).unwrap();
    assert_eq!(set.wait(&mut buffer, now()), Ok(Ready::DeadlinePassed));
    assert_eq!(removed.poll(&mut buffer), Ok(&[send(1)][..]), "it is there");
    b.push(&send(2)).unwrap();
    assert_eq!(batch(set.wait(&mut buffer, late()).unwrap()), (b_id, vec![2]));
    // A queue that comes back has another name.
    let again = set.add_queue(removed);
    a.push(&send(3)).unwrap();
    assert_eq!(batch(set.wait(&mut buffer, late()).unwrap()), (again, vec![3]));
    assert!(set.queue(a_id).is_none() && set.queue(again).is_some());
    assert!(set.queue_mut(a_id).is_none() && set.queue_mut(again).is_some());

    let (raiser, events) = channel(1).unwrap();
    let other = set.add_channel(events).unwrap();
    assert!(set.channel(other).is_some());
    let kept = set.remove_channel(other).unwrap();
    assert!(set.channel(other).is_none() && set.remove_channel(other).is_none());
    raiser.raise();
    assert_eq!(set.wait(&mut buffer, now()), Ok(Ready::DeadlinePassed), "nobody took the event");
    assert_eq!(block(&kept, now()), Ok(Woken::Event));
}

#[test]
fn o03_an_overrun_queue_is_named_and_the_others_go_on() {
    let (mut set, [mut calm], [calm_id]) = set();
    let (raiser, events) = channel(1).unwrap();
    set.add_channel(events).unwrap();
    let (mut small, cq) = queue(raiser, 1);
    let small_id = set.add_queue(cq);
    let socket = descriptor(&mut set).0;
    let mut buffer = [Wc::default()];
    (0..3).for_each(|wr_id| _ = small.push_or_overrun(&send(wr_id)));
    assert_eq!(batch(set.wait(&mut buffer, late()).unwrap()), (small_id, vec![0]));
    let error = PollError::Overrun { dropped: Some(2) };
    let (mut told, mut served, mut looked) = (0, 0, 0);
    for wr_id in 0..MANY {
        calm.push(&send(wr_id)).unwrap();
        match set.wait(&mut buffer, late()) {
            Ok(Ready::Descriptor(id)) if id == socket => looked += 1,
            Ok(ready) => {
                assert_eq!(batch(ready).0, calm_id);
                served += 1;
            }
            Err(failed) => {
                assert_eq!(failed, SetError::Poll { queue: small_id, error });
                told += 1;
            }
        }
    }
    assert!(told > 0 && served >= told && looked > 0, "{told} {served} {looked}");
    assert!(set.remove_queue(small_id).is_some());
    while served < MANY {
        match set.wait(&mut buffer, late()).unwrap() {
            Ready::Completions(..) => served += 1,
            other => assert_eq!(other, Ready::Descriptor(socket)),
        }
    }
}

/// A channel of a scripted world, with a descriptor that nothing makes readable.
struct Silent<'w>(Named<'w>, UnixStream);

impl Events for Silent<'_> {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        self.0.take_event()
    }
}

impl AsFd for Silent<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.1.as_fd()
    }
}

/// A set of scripted queues, and the other ends of their channels.
fn scripted<'w>(
    world: &'w RefCell<World>,
    queues: &[char],
) -> (WaitSet<Named<'w>, Silent<'w>>, UnixStream) {
    let (near, far) = UnixStream::pair().unwrap();
    let mut set = WaitSet::new().unwrap();
    assert!(set.add_channel(Silent(Named('x', world), far)).is_ok());
    queues.iter().for_each(|&name| _ = set.add_queue(CompletionQueue::new(Named(name, world))));
    (set, near)
}

#[test]
fn n06_a_wait_polls_takes_events_arms_and_polls_again_before_it_sleeps() {
    let world = RefCell::default();
    let (mut set, mut near) = scripted(&world, &['A', 'B']);
    let mut buffer = [Wc::default()];
    assert_eq!(set.wait(&mut buffer, now()), Ok(Ready::DeadlinePassed));
    assert_eq!(World::said(&world), "A?B?xA!B!A?B?", "and once more at the end");
    // A spurious event (N5), then one of A, whose completion is found by the poll after the sleep.
    near.write_all(b"x").unwrap();
    world.borrow_mut().polls.insert('A', [Ok(0), Ok(0), Ok(1)].into());
    world.borrow_mut().events.insert('x', [Ok(key('A'))].into());
    assert!(matches!(set.wait(&mut buffer, late()), Ok(Ready::Completions(..))));
    assert_eq!(World::said(&world), "A?B?xA.xA!A?B?xA?");
    // What comes before the arm takes effect.
    world.borrow_mut().events.insert('x', [Ok(key('B'))].into());
    world.borrow_mut().arms.insert('B', [Ok(Armed::MayHaveMissed)].into());
    world.borrow_mut().polls.insert('B', [Ok(0), Ok(1)].into());
    assert!(matches!(set.wait(&mut buffer, late()), Ok(Ready::Completions(..))));
    assert_eq!(World::said(&world), "B?A?xB.xB!B?");
    // A descriptor ends the sleep: it is looked at before anything else.
    let (mut set, _near) = scripted(&world, &['A']);
    let (socket, _near, _far) = descriptor(&mut set);
    assert_eq!(set.wait(&mut buffer, late()), Ok(Ready::Descriptor(socket)));
    assert_eq!(World::said(&world), "A?xA!");
    // What comes as the deadline passes.
    let (mut set, _near) = scripted(&world, &['A']);
    world.borrow_mut().polls.insert('A', [Ok(0), Ok(1)].into());
    assert!(matches!(set.wait(&mut buffer, now()), Ok(Ready::Completions(..))));
    assert_eq!(World::said(&world), "A?xA!A?");
}

#[test]
fn a_spin_polls_for_its_time_and_no_longer_than_to_the_deadline() {
    let world = RefCell::default();
    let (mut set, _near) = scripted(&world, &['A']);
    let mut buffer = [Wc::default()];
    // A completion in the 30th round: nothing is armed for it.
    set.set_spin(Duration::MAX);
    world.borrow_mut().polls.insert('A', std::iter::repeat_n(Ok(0), 29).chain([Ok(1)]).collect());
    assert!(matches!(set.wait(&mut buffer, late()), Ok(Ready::Completions(..))));
    assert_eq!(World::said(&world), "A?".repeat(30));
    // The deadline, which the clock says every 16 rounds.
    let deadline = Instant::now() + Duration::from_millis(5);
    assert_eq!(set.wait(&mut buffer, Some(deadline)), Ok(Ready::DeadlinePassed));
    assert!(Instant::now() >= deadline);
    let said = World::said(&world);
    let (polls, arms) = said.split_once('x').unwrap();
    assert!(polls.len() > 2 * 16 && polls.len() % 32 == 2, "{}", polls.len());
    assert_eq!(arms, "A!A?");
    assert_eq!(set.wait(&mut buffer, now()), Ok(Ready::DeadlinePassed));
    assert_eq!(World::said(&world), "A?xA?", "no round after the deadline");
    // Its time, after which a failure of the channel ends the wait.
    let (limit, start) = (Duration::from_millis(5), Instant::now());
    set.set_spin(limit);
    world.borrow_mut().events.insert('x', [Err(EventError::Device(5))].into());
    assert!(matches!(set.wait(&mut buffer, late()), Err(SetError::Event { .. })));
    assert!(start.elapsed() >= limit && World::said(&world).ends_with("A?A?x"));
}

#[test]
fn a_spin_sees_what_is_not_a_queue_too() {
    let (mut set, [_device], _) = set();
    set.set_spin(Duration::MAX);
    let mut buffer = [Wc::default()];
    set.stop_handle().stop();
    assert_eq!(set.wait(&mut buffer, late()), Ok(Ready::Stopped));
    let (socket, _near, _far) = descriptor(&mut set);
    assert_eq!(set.wait(&mut buffer, late()), Ok(Ready::Descriptor(socket)));
}

/// Sends signals to a thread that waits until it returns.
fn interrupted<R: Send + 'static>(wait: impl FnOnce() -> R + Send + 'static) -> R {
    let waiter = thread::spawn(wait);
    while !waiter.is_finished() {
        // SAFETY: the thread is not joined yet. If it has ended meanwhile, there is nothing to do.
        let _ = unsafe { libc::pthread_kill(waiter.as_pthread_t(), libc::SIGUSR1) };
        thread::sleep(Duration::from_millis(1));
    }
    waiter.join().unwrap()
}

static STOPS: OnceLock<StopHandle> = OnceLock::new();

extern "C" fn stop(_: libc::c_int) {
    if let Some(handle) = STOPS.get() {
        handle.stop();
    }
}

#[test]
fn n10_a_wait_ends_after_a_signal_which_may_be_what_stops_it() {
    // SAFETY: a handler that is async-signal-safe, with all flags off.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = stop as *const () as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()), 0);
    }
    let (mut first, [_device], _) = set();
    let wait = move || first.wait(&mut [Wc::default()], late()) == Ok(Ready::Interrupted);
    assert!(interrupted(wait));
    let (_raiser, events) = channel(1).unwrap();
    assert_eq!(interrupted(move || block(&events, late())), Ok(Woken::Interrupted));

    let (mut stopped, [_device], _) = set();
    STOPS.set(stopped.stop_handle()).unwrap();
    let wait = move || stopped.wait(&mut [Wc::default()], late()) == Ok(Ready::Stopped);
    assert!(interrupted(move || std::iter::repeat_with(wait).take(20).all(|stopped| stopped)));
}

#[test]
fn what_the_system_can_not_wait_for_is_refused_and_given_back() {
    let file = || File::open(env!("CARGO_MANIFEST_PATH")).unwrap();
    let why = DeviceError::cannot("wait for this descriptor", Errno::EPERM);
    let (mut set, [_device], _) = set::<1>();
    assert_eq!(set.add_descriptor(file()), Err(why));
    assert_eq!(set.wait(&mut [Wc::default()], now()), Ok(Ready::DeadlinePassed));

    let world = RefCell::default();
    let (mut set, _near) = scripted(&world, &[]);
    let error = set.add_channel(Silent(
        Named('y', &world),
        UnixStream::from(std::os::fd::OwnedFd::from(file())),
    ));
    let refused = error.unwrap_err();
    assert_eq!((refused.channel.0.0, refused.why), ('y', why));
    assert_eq!(
        Causes(&AddChannelError { channel: (), why }).to_string(),
        "the channel was not added to the wait set: cannot wait for this descriptor: operation not permitted (EPERM, errno 1)"
    );
}
