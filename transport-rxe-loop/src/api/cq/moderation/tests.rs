use super::*;
use crate::completion::moderation::{self, now};
use crate::completion::queue::CqSlot;
use crate::inside::prelude::*;
use crate::protocol::moderation::PushSummary;

/// The longest period, in microseconds.
const LONG: u16 = u16::MAX;

#[test]
fn n12_the_service_thread_looks_at_queues_that_may_hold_events_back_and_no_others() {
    let Scene { device, mut cq, channel, _context: context } = Scene::new();
    let mut mute = context.cq(4).create().unwrap();
    mute.moderate(2, LONG).unwrap();
    cq.moderate(1, LONG).unwrap();
    let index = cq.handle.queue.index;
    let looks_at = |index| sync::lock(&device.completions.moderated).contains(&index);
    assert!(!looks_at(mute.handle.queue.index) && !looks_at(index));
    cq.moderate(2, LONG).unwrap();
    assert!(looks_at(index));
    cq.moderate(1, 0).unwrap();
    cq.destroy().unwrap();
    assert!(!looks_at(index));
    let mut cq = context.cq(4).channel(&channel).create().unwrap();
    cq.moderate(100, 0).unwrap();
    assert_eq!(sync::lock(&device.completions.moderated).len(), 1);
    drop(cq);
    assert!(sync::lock(&device.completions.moderated).is_empty());
}

/// As the service thread looks at a queue: for how many nanoseconds there is nothing to do.
fn look(device: &'static Device, index: CqIndex) -> Option<u64> {
    let left = moderation::look(device.completions, index, device.engine);
    complete::fail_overran(device.engine);
    left
}

/// A queue whose events are held back, in a fabric whose service thread is not there to raise them.
struct Scene {
    device: &'static Device,
    cq: Cq,
    channel: CompletionChannel,
    _context: Context,
}

impl Scene {
    fn new() -> Self {
        let (context, device) = OpenOptions::new().alone();
        let channel = context.create_channel().unwrap();
        let cq = context.cq(4).channel(&channel).create().unwrap();
        Self { device, cq, channel, _context: context }
    }

    fn slot(&self) -> &'static CqSlot {
        self.device.completions.cq(self.cq.handle.queue.index)
    }

    fn set(&self, slot: &CqSlot, setting: Setting) -> EventAction {
        let queue = ring(self.device.completions, self.slot().fanin.location()).unwrap();
        slot.moderation.set(queue.control(), setting)
    }

    /// A completion comes at a time, of which `slot` holds the event back for so many microseconds.
    fn hold(&mut self, slot: &CqSlot, at: u64, period: u16) -> EventAction {
        assert_eq!(self.cq.arm(Notify::Next), Ok(Armed::Armed));
        assert_eq!(self.set(slot, Setting { count: u16::MAX, period }), EventAction::None);
        let queue = ring(self.device.completions, self.slot().fanin.location()).unwrap();
        let push_summary = PushSummary { all: 1, ..PushSummary::default() };
        slot.moderation.event_action(queue.control(), push_summary, || at)
    }
}

#[test]
fn n12_an_event_whose_time_is_over_is_raised_and_not_looked_at_again() {
    let mut scene = Scene::new();
    assert_eq!(scene.hold(scene.slot(), now() - 1_000_000, 1), EventAction::Call);
    assert_eq!(look(scene.device, scene.cq.handle.queue.index), None);
    let events = [(); 2].map(|()| scene.channel.take_event().unwrap());
    assert_eq!(events, [Some(scene.cq.key()), None]);
}

#[test]
fn n12_an_alarm_moves_on_to_the_event_that_is_held_back_by_then() {
    // Where the machine was too slow, it is tried again.
    until("the event is not due yet", || {
        let mut scene = Scene::new();
        let (slot, start) = (scene.slot(), now() - 1_000_000);
        assert_eq!(scene.hold(slot, start, 1), EventAction::Call);
        assert_eq!(scene.set(slot, Setting::default()), EventAction::Raise);
        assert_eq!(scene.hold(slot, start + 1, LONG), EventAction::None, "the alarm is earlier");
        let left = look(scene.device, scene.cq.handle.queue.index);
        let is_early = now() <= start + u64::from(LONG) * 1_000;
        assert!(!is_early || left.is_some_and(|left| left > 0), "{left:?}");
        is_early
    });
}

#[test]
fn n12_the_events_of_other_processes_are_left_to_them() {
    let mut scene = Scene::new();
    let (index, _) = scene.device.completions.cqs.claim(ANOTHER).unwrap();
    let theirs = scene.device.completions.cq(index);
    assert_eq!(scene.hold(theirs, now() - 1_000_000, 1), EventAction::Call);
    let alarm = theirs.moderation.alarm();
    assert_eq!(look(scene.device, index), None);
    assert_eq!(theirs.moderation.alarm(), alarm);
}
