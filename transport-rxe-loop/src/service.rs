//! The service thread: one of a process for each fabric. It runs queue pairs when their requests have waited
//! long enough, or others left them to it, carries on where another thread should not be kept, raises events
//! that were held back, copies for processes that can't reach this one's memory, and looks whether the others
//! live.
//!
//! The first request that has to wait for a finite time starts it, the first busy queue pair that is handed
//! over, the first completion queue with a channel that is moderated, or the first queue pair that is connected
//! to another process'; a process in which nothing of that happens never has it. From then on it is there until
//! the process ends, and sleeps while there is nothing to do. As long as other processes have the fabric open, it
//! looks after them at an [interval](WATCH). It has the signal mask of the thread that started it. A forked child
//! has none, and needs none: its handles reach nothing.
//!
//! Whoever has something for it counts the word of the process' slot, and wakes it. It reads that word before
//! it looks, and sleeps only while it is the same: nothing comes unseen in between.
//!
//! # Alarms
//! A queue pair has one alarm at most: the earliest that was asked for since the last one came.
//!
//! | alarm | the thread | left by |
//! |---|---|---|
//! | none | need not look at the queue pair | the holder of its turn, whose request waits, to Set |
//! | Set | sleeps no longer than until then | the holder, who has to be back earlier, to Set; the thread once the time has come, to none |
//!
//! Nobody takes an alarm back: it may come when its request has gone on, or its queue pair is another. So
//! the thread concludes nothing from it, but runs the queue pair, like anybody who kicks; and who holds
//! the turn then finds that the time of a [wait](crate::retry) is over, or asks for the next alarm.
//!
//! The wait is written before its alarm is set, and the alarm taken after its time, so that whoever is kicked
//! for it sees both. The alarms are under a mutex. It is taken under turns, and no turn, no lock and no system
//! call but starting the thread comes under it; polls, pushes and requests that need not wait never see it.
//!
//! # Events that are held back
//! Of each [moderated](crate::protocol::moderation) completion queue of the process the thread looks whether
//! its event has waited long enough, and sleeps no longer than until then.
//!
//! # Busy queue pairs
//! Who holds a turn and finds requests posted faster than it carries them out gives the turn back with
//! work left, and only then puts the queue pair on a list, from which the thread takes it. In between
//! it is nobody's, and whoever enters does the work. The thread gives it back in the same way,
//! and looks at the alarms first, so that neither keep it from the other for long.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::futex;
use rustix::time::Timespec;

use crate::bell;
use crate::cq::moderation;
use crate::execute;
use crate::fabric::Fabric;
use crate::layout::ProcessSlot;
use crate::notes;
use crate::reach::{self, copier};
use crate::sweep;
use crate::sync;

/// How often it looks whether the other processes live.
const WATCH: Duration = Duration::from_millis(20);
/// How long somebody who is suspended is left alone before he is asked again.
const SOON: Duration = Duration::from_millis(50);

/// What the service thread and those who need it share.
pub struct Service {
    epoch: Instant,
    agenda: Mutex<Agenda>,
}

impl Service {
    /// One without its thread.
    pub fn new() -> Self {
        Self { epoch: Instant::now(), agenda: Mutex::default() }
    }

    /// The time, in nanoseconds since the device was opened. It never goes back.
    pub fn now(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    /// Has the queue pair with this number run at `deadline` or soon after, or before.
    ///
    /// # Errors
    /// The thread is not there yet, and the system refuses one: it will not be run.
    pub fn wake_at(&self, fabric: &'static Fabric, number: u32, deadline: u64) -> io::Result<()> {
        let index = fabric.tables().qps.index(number);
        if self.started(fabric)?.set_alarm(index, deadline) {
            fabric.call(fabric.place());
        }
        Ok(())
    }

    /// [`wake_at`](Self::wake_at), soon: somebody is suspended, and nobody kicks once that goes on.
    ///
    /// # Errors
    /// As there.
    pub fn wake_soon(&self, fabric: &'static Fabric, number: u32) -> io::Result<()> {
        self.wake_at(fabric, number, self.now() + SOON.as_nanos() as u64)
    }

    /// Has the queue pair with this number run by the thread, soon. Not under its turn.
    ///
    /// # Errors
    /// The thread is not there yet, and the system refuses one: it will not be run.
    pub fn hand_over(&self, fabric: &'static Fabric, number: u32) -> io::Result<()> {
        self.started(fabric)?.add_busy(fabric.tables().qps.index(number));
        fabric.call(fabric.place());
        Ok(())
    }

    /// Has the thread look at the events that this completion queue of the process holds back.
    ///
    /// # Errors
    /// The thread is not there yet, and the system refuses one: they would be held back for ever.
    pub fn moderates(&self, fabric: &'static Fabric, cq: u32) -> io::Result<()> {
        self.started(fabric)?.moderated.insert(cq);
        Ok(())
    }

    /// This completion queue is no more.
    pub fn forgets(&self, cq: u32) {
        self.lock().moderated.remove(&cq);
    }

    /// Whether the thread looks at the events that this completion queue holds back.
    #[cfg(test)]
    pub fn looks_at(&self, cq: u32) -> bool {
        self.lock().moderated.contains(&cq)
    }

    /// Keeps all others from what the thread is told, if nobody does.
    #[cfg(test)]
    pub fn keep(&self) -> Option<impl Drop + '_> {
        self.agenda.try_lock().ok()
    }

    /// Sees to it that there is the thread, and that it watches over the other processes.
    ///
    /// # Errors
    /// The system refuses one.
    pub fn watch(&self, fabric: &'static Fabric) -> io::Result<()> {
        self.started(fabric)?.watch = Some(self.now());
        fabric.call(fabric.place());
        Ok(())
    }

    /// Wakes the service thread of a process.
    pub fn wake(process: &ProcessSlot) {
        sync::count(&process.calls);
        // Nobody may be asleep, and whoever is can't be told that this failed.
        let _ = futex::wake(&process.calls, futex::Flags::empty(), 1);
    }

    /// Sees to it that there is the thread.
    fn started(&self, fabric: &'static Fabric) -> io::Result<MutexGuard<'_, Agenda>> {
        let mut agenda = self.lock();
        if !agenda.served {
            let thread = thread::Builder::new().name("rxe-loop".to_owned());
            thread.spawn(move || fabric.service().serve(fabric))?;
            agenda.served = true;
        }
        Ok(agenda)
    }

    fn serve(&self, fabric: &'static Fabric) {
        let Some(process) = fabric.tables().processes.get(usize::from(fabric.place())) else {
            return;
        };
        let calls = &process.calls;
        loop {
            // Before the looks: who calls after one ends the sleep.
            let seen = sync::acquire(calls);
            notes::take(fabric, |qp| execute::run(fabric, qp));
            copier::serve(fabric);
            bell::ring_unheard(fabric);
            let held = self.look_at_events(fabric);
            let taken = self.lock().take(self.now());
            if let Some(qp) = taken {
                execute::run(fabric, qp);
                continue;
            }
            let left = self.look(fabric).into_iter().chain(held).min();
            let limit = left.and_then(|left| Timespec::try_from(left).ok());
            let _ = futex::wait(calls, futex::Flags::empty(), seen, limit.as_ref());
        }
    }

    /// Raises the events that were held back long enough; says how long none of them will have been.
    fn look_at_events(&self, fabric: &'static Fabric) -> Option<Duration> {
        // Most processes have none, and pay nothing for it.
        let moderated: Vec<_> = self.lock().moderated.iter().copied().collect();
        let left = moderated.into_iter().filter_map(|cq| moderation::look(fabric, cq)).min()?;
        Some(Duration::from_nanos(left))
    }

    /// Looks after the other processes, if it is time to; says how long there is nothing to do.
    fn look(&self, fabric: &'static Fabric) -> Option<Duration> {
        let due = self.lock().watch.filter(|&at| at <= self.now());
        if due.is_some() {
            let (others, left) = (sweep::look(fabric), reach::tidy(fabric));
            let next = (others || left).then(|| self.now() + WATCH.as_nanos() as u64);
            let mut agenda = self.lock();
            // Somebody may have come meanwhile, and asked for another look.
            if agenda.watch == due {
                agenda.watch = next;
            }
        }
        let agenda = self.lock();
        let next = agenda.next_alarm().into_iter().chain(agenda.watch).min()?;
        Some(Duration::from_nanos(next.saturating_sub(self.now())))
    }

    fn lock(&self) -> MutexGuard<'_, Agenda> {
        self.agenda.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").finish_non_exhaustive()
    }
}

/// Which queue pairs to run, and when, and which completion queues to look at. They are known by their places here, so that there can't be more
/// alarms than places.
#[derive(Default)]
struct Agenda {
    /// Whether the thread is there.
    served: bool,
    /// When to look after the other processes.
    watch: Option<u64>,
    alarms: BTreeMap<u32, u64>,
    /// The alarms again, by their times.
    order: BTreeSet<(u64, u32)>,
    /// Those that were handed over, each once.
    busy: VecDeque<u32>,
    /// Completion queues that may hold events back.
    moderated: BTreeSet<u32>,
}

impl Agenda {
    /// Sets a queue pair's alarm, unless it is set to an earlier time; true if that is now the first of all.
    fn set_alarm(&mut self, qp: u32, at: u64) -> bool {
        if let Some(&before) = self.alarms.get(&qp) {
            if before <= at {
                return false;
            }
            self.order.remove(&(before, qp));
        }
        self.alarms.insert(qp, at);
        self.order.insert((at, qp));
        self.order.first() == Some(&(at, qp))
    }

    /// The time of the first alarm.
    fn next_alarm(&self) -> Option<u64> {
        self.order.first().map(|&(at, _)| at)
    }

    fn add_busy(&mut self, qp: u32) {
        if !self.busy.contains(&qp) {
            self.busy.push_back(qp);
        }
    }

    /// Takes what is to be run now: alarms whose time has come before what was handed over.
    fn take(&mut self, now: u64) -> Option<u32> {
        match self.order.first() {
            Some(&(at, qp)) if at <= now => {
                self.order.pop_first();
                self.alarms.remove(&qp);
                Some(qp)
            }
            _ => self.busy.pop_front(),
        }
    }
}

#[cfg(test)]
mod tests {
    use cq_core::setup::{Access, QpType};
    use cq_core::transport::{Arm, Block, Events, Notify, Post};
    use cq_core::wr::{RecvWr, SendWr};

    use super::*;
    use crate::actor::until;
    use crate::attr::QpAttr;
    use crate::fabric::{claim, header};
    use crate::facts::{Facts, Kind};
    use crate::layout::Entry;
    use crate::open::OpenOptions;
    use crate::qp::QpInit;

    /// A place where nobody lives.
    const PLACE: u16 = 44;
    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn x03_the_thread_is_there_once_a_queue_pair_may_be_reached_by_others() {
        let (context, fabric) = OpenOptions::new().alone();
        let watches = || fabric.service().lock().served;
        let (pd, cq) = (context.alloc_pd(), context.create_cq(4, None).unwrap());
        // The first of a fabric, whose index is 0, as is the destination that nobody names.
        let mut ud = pd.create_qp(&QpInit { qp_type: QpType::Ud, ..QpInit::new(&cq) }).unwrap();
        let mut rc = pd.create_qp(&QpInit::new(&cq)).unwrap();
        rc.connect(rc.number()).unwrap();
        assert!(!watches(), "it is its own peer");
        ud.activate(1).unwrap();
        assert!(watches(), "anybody can send to it");

        let (context, fabric) = OpenOptions::new().alone();
        let watches = || fabric.service().lock().served;
        let cq = context.create_cq(4, None).unwrap();
        let mut rc = context.alloc_pd().create_qp(&QpInit::new(&cq)).unwrap();
        rc.modify(&QpAttr::init(Access::empty())).unwrap();
        assert!(!watches(), "it is not connected");
        rc.modify(&QpAttr::rtr(rc.number() + 1)).unwrap();
        assert!(watches(), "that is not its own");
    }

    /// What the thread does when it is time to look after others, without it: how long there is nothing to do, and
    /// whether it will look at them again.
    fn look(fabric: &'static Fabric) -> (Option<Duration>, bool) {
        fabric.service().lock().watch = Some(0);
        let left = fabric.service().look(fabric);
        (left, fabric.service().lock().watch.is_some())
    }

    #[test]
    fn x03_others_are_looked_after_as_long_as_there_are_any() {
        let (_context, fabric) = OpenOptions::new().alone();
        let service = fabric.service();
        assert_eq!(look(fabric), (None, false), "there is nobody else");
        let in_an_hour = service.now() + HOUR.as_nanos() as u64;
        assert!(service.lock().set_alarm(0, in_an_hour));
        let word = &header::claims(fabric.memory(), fabric.limits())[usize::from(PLACE)];
        assert!(claim::take(word, claim::next(PLACE.into(), word)));
        let sweeping = fabric.try_lock(&fabric.tables().common.sweep).unwrap();
        let (left, again) = look(fabric);
        drop(sweeping);
        assert!(again && left <= Some(WATCH), "somebody died, and another one sweeps: {left:?}");
        let (left, again) = look(fabric);
        assert!(!again && left > Some(HOUR / 2), "there is nothing but the alarm: {left:?}");
    }

    #[test]
    fn x05_what_another_process_deregistered_is_looked_at_until_it_is_forgotten() {
        let (_context, fabric) = OpenOptions::new().alone();
        let (index, generation) = fabric.tables().mrs.claim(PLACE).unwrap();
        let (slot, key, domain) = (fabric.mr(index), index << 8 | 7, 1);
        let (access, kind) = (Access::empty(), Kind::Heap);
        Facts { key, access, domain, kind, base: 0, len: 64, bound: None }
            .write(slot, (PLACE, generation));
        let copies = fabric.reach().foreign().visit(1);
        assert!(copies.find(fabric, key).is_some());
        Facts::erase(slot);
        assert!(look(fabric).1, "somebody may copy to it");
        drop(copies);
        assert_eq!(look(fabric), (None, false));
        slot.life().end(PLACE);
    }

    #[test]
    fn x03_who_has_others_looked_after_wakes_the_thread() {
        let (_context, fabric) = OpenOptions::new().alone();
        let calls =
            || sync::load_u32(&fabric.tables().processes[usize::from(fabric.place())].calls);
        let before = calls();
        fabric.service().watch(fabric).unwrap();
        assert_ne!(calls(), before);
    }

    #[test]
    fn x06_a_channel_that_another_process_could_not_ring_is_rung() {
        let (context, fabric) = OpenOptions::new().alone();
        let mut channel = context.create_channel().unwrap();
        for (_, slot) in fabric.tables().channels.all_of(fabric.place()) {
            sync::release(&slot.unheard, 1);
        }
        fabric.service().watch(fabric).unwrap();
        until("it is rung", || channel.block(&mut Some(Duration::ZERO)).unwrap());
    }

    #[test]
    fn n12_an_event_is_held_back_no_longer_though_nothing_else_is_to_be_done_for_an_hour() {
        let (context, fabric) = OpenOptions::new().alone();
        let mut channel = context.create_channel().unwrap();
        let mut cq = context.create_cq(4, Some(&channel)).unwrap();
        let mut qp = context.alloc_pd().create_qp(&QpInit::new(&cq)).unwrap();
        qp.connect(qp.number()).unwrap();
        let service = fabric.service();
        let in_an_hour = service.now() + HOUR.as_nanos() as u64;
        service.wake_at(fabric, qp.number(), in_an_hour).unwrap();
        cq.moderate(100, 20_000).unwrap();
        let _armed = cq.arm(Notify::Next).unwrap();
        qp.post_recv(&[RecvWr::new(1, &[])]).unwrap();
        qp.post_send(&[SendWr::send(2, &[])]).unwrap();
        until("it is raised", || channel.next().unwrap() == Some(cq.key()));
    }

    #[test]
    fn n12_a_completion_queue_that_is_gone_is_looked_at_no_more() {
        let (context, fabric) = OpenOptions::new().alone();
        let channel = context.create_channel().unwrap();
        let mut cq = context.create_cq(4, Some(&channel)).unwrap();
        cq.moderate(100, 0).unwrap();
        assert_eq!(fabric.service().lock().moderated.len(), 1);
        drop(cq);
        assert!(fabric.service().lock().moderated.is_empty());
    }

    #[test]
    fn alarms_are_taken_in_their_order_once_their_time_has_come() {
        let mut agenda = Agenda::default();
        assert_eq!((agenda.next_alarm(), agenda.take(u64::MAX)), (None, None));
        assert!(agenda.set_alarm(1, 20));
        assert!(!agenda.set_alarm(2, 30));
        assert!(agenda.set_alarm(3, 10));
        assert_eq!((agenda.next_alarm(), agenda.take(9)), (Some(10), None));
        assert_eq!(agenda.take(10), Some(3));
        assert_eq!(agenda.take(25), Some(1));
        assert_eq!(agenda.take(25), None);
        assert_eq!((agenda.next_alarm(), agenda.take(u64::MAX)), (Some(30), Some(2)));
        assert_eq!(agenda.next_alarm(), None);
    }

    #[test]
    fn a_queue_pair_has_one_alarm_the_earliest() {
        let mut agenda = Agenda::default();
        assert!(agenda.set_alarm(1, 20));
        assert!(agenda.set_alarm(1, 10));
        assert!(!agenda.set_alarm(1, 10) && !agenda.set_alarm(1, 30), "the thread knows");
        assert_eq!((agenda.next_alarm(), agenda.take(10)), (Some(10), Some(1)));
        assert_eq!((agenda.take(u64::MAX), agenda.next_alarm()), (None, None));
        assert!(agenda.set_alarm(1, 30));
    }

    #[test]
    fn handing_over_leaves_the_alarm_alone() {
        let mut agenda = Agenda::default();
        agenda.set_alarm(1, 10);
        for qp in [1, 2, 1] {
            agenda.add_busy(qp);
        }
        assert_eq!((agenda.take(0), agenda.next_alarm()), (Some(1), Some(10)));
        assert_eq!((agenda.take(10), agenda.take(10), agenda.take(10)), (Some(1), Some(2), None));
    }
}
