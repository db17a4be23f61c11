//! A raw queue against a model of one, with producers that take turns at a kept tail, consumers that go on where the last
//! one stopped, tags, and slots to spare, across every wrap (P1, P2, P4, O1, O3, S4–S6).

use super::model::Model;
use super::*;

/// Completions whose slots a poll with tags gives back at once.
const AT_ONCE: usize = 32;

#[derive(Clone, Debug)]
enum Step {
    Overrun(usize),
    Push(usize),
    /// One without a tag.
    PushPlain,
    /// One where the tail knows of a free slot.
    StoreAt,
    KeepTail,
    /// A producer goes on that has kept an earlier tail.
    Recover,
    Poll(usize),
    RenewConsumer,
    Fail,
}

#[derive(Debug)]
struct Shape {
    storage: usize,
    promised: usize,
    is_exact: bool,
    is_tagged: bool,
    start: Position,
}

impl Shape {
    /// How many unpolled completions fill it.
    fn limit(&self) -> usize {
        if self.is_exact { self.promised } else { self.storage }
    }
}

struct Both<'a> {
    shape: &'a Shape,
    parts: &'a Parts,
    consumer: raw::RawConsumer<'a>,
    tail: Tail,
    kept: Tail,
    /// What was stored since that tail was kept.
    since: Vec<(u64, u32)>,
    model: Model,
    count: u32,
}

impl<'a> Both<'a> {
    fn new(shape: &'a Shape, parts: &'a Parts) -> Self {
        let (tail, consumer) = (Tail::at(shape.start), parts.consumer(shape.start));
        let model = Model::new(shape.limit(), |_| false);
        Self { shape, parts, consumer, tail, kept: tail, since: Vec::new(), model, count: 0 }
    }

    fn entries(&mut self, count: usize) -> Vec<Tagged> {
        self.count += count as u32;
        (self.count..).take(count).map(entry).collect()
    }

    /// Has the model store some of the completions, as they are kept, and remembers which.
    fn store<T: Completion<Wc>, R>(
        &mut self,
        batch: &[T],
        store: impl FnOnce(&mut Model, &[Tagged]) -> R,
    ) -> R {
        let tag = |of: &T| if self.shape.is_tagged { of.tag() } else { 0 };
        let keep = |of: &T| Tagged { wc: *of.entry(), tag: tag(of), solicited: false };
        let kept: Vec<_> = batch.iter().map(keep).collect();
        let before = self.model.unpolled.len();
        let result = store(&mut self.model, &kept);
        let stored = self.model.unpolled.iter().skip(before);
        self.since.extend(stored.map(|entry| (entry.wc.wr_id(), entry.tag)));
        result
    }

    fn push_or_overrun<T: Completion<Wc>>(&mut self, batch: &[T]) {
        let mut producer = self.parts.producer(self.tail);
        let pushed = match batch {
            [one] => producer.push_or_overrun(one),
            batch => producer.push_batch_or_overrun(batch),
        };
        self.tail = producer.tail();
        assert_eq!(pushed, self.store(batch, Model::push_or_overrun));
    }

    fn push(&mut self, batch: &[Tagged]) {
        let mut producer = self.parts.producer(self.tail);
        let pushed = match batch {
            [one] => producer.push(one).map_err(|why| BatchError { stored: 0, why }),
            batch => producer.push_batch(batch),
        };
        self.tail = producer.tail();
        assert_eq!(pushed, self.store(batch, Model::push));
    }

    fn poll(&mut self, capacity: usize) {
        let untouched = recv(u64::MAX);
        let (mut out, mut polled) = (vec![untouched; capacity], Vec::new());
        let each = |wc: &Wc, tag| polled.push(Tagged { wc: *wc, tag, solicited: false });
        let count = self.consumer.poll_with(&mut out, each);
        assert!(out.iter().zip(&polled).all(|(wc, entry)| *wc == entry.wc));
        assert!(out[polled.len()..].iter().all(|wc| *wc == untouched), "P4");
        assert_eq!(count.unwrap_or(0), polled.len());
        let (limit, promised) = (self.shape.limit(), self.shape.promised);
        // It looks at so many at a time.
        for first in (0..polled.len()).step_by(AT_ONCE) {
            self.model.unreleased += AT_ONCE.min(polled.len() - first);
            let most =
                if size_of::<Position>() < 8 { 0 } else { (limit - promised).min(limit / 4) };
            if self.model.unreleased > most {
                self.model.unreleased = 0;
            }
        }
        assert_eq!(count.map(|_| polled), self.model.poll(capacity));
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Overrun(count) => {
                let batch = self.entries(count);
                self.push_or_overrun(&batch);
            }
            Step::Push(count) => {
                let batch = self.entries(count);
                self.push(&batch);
            }
            Step::PushPlain => self.push_or_overrun(&[recv(7)]),
            Step::StoreAt => {
                let [position, limit] = self.tail.to_words();
                let knows = limit != position && self.model.end().is_none();
                let batch = self.entries(1);
                let tail = self.parts.queue().store_at(self.tail, &batch[0]);
                assert_eq!(tail.is_some(), knows);
                if let Some(tail) = tail {
                    assert_eq!(
                        (self.store(&batch, Model::push), tail.position()),
                        (Ok(()), position.wrapping_add(1))
                    );
                    self.tail = tail;
                }
            }
            Step::KeepTail => {
                self.kept = self.tail;
                self.since.clear();
            }
            // More than a round later, its slots have been used again.
            Step::Recover if self.since.len() > self.shape.storage => {}
            Step::Recover => {
                let mut found = Vec::new();
                let each = |wc: &Wc, tag| found.push((wc.wr_id(), tag));
                let tail = self.parts.queue().recover(self.kept, each);
                assert_eq!(found, self.since);
                assert_eq!(tail.position(), self.tail.position());
                self.tail = tail;
            }
            Step::Poll(capacity) => self.poll(capacity),
            Step::RenewConsumer => {
                self.consumer = self.parts.consumer(self.consumer.position());
                self.model.unreleased = 0;
            }
            Step::Fail => {
                self.consumer.fail();
                self.model.fail();
            }
        }
        let unpolled = self.model.unpolled.len();
        assert_eq!((self.consumer.len(), self.consumer.is_empty()), (unpolled, unpolled == 0));
        assert_eq!(self.consumer.end(), self.model.end());
        let (mut queue, kept) = (self.parts.queue(), unpolled + self.model.unreleased);
        let mut found = Vec::new();
        let each = |wc: &Wc, tag| found.push((wc.wr_id(), tag));
        let end = queue.look_through(self.consumer.position(), each);
        assert_eq!(end, self.tail.position());
        assert!(found.into_iter().eq(self.model.unpolled.iter().map(|it| (it.wc.wr_id(), it.tag))));
        let producer = queue.producer(self.tail, NoChannel);
        assert_eq!((producer.len(), producer.available()), (kept, self.shape.limit() - kept));
    }
}

/// Queues of up to 128 slots that begin a little before a wrap, or at the first slot.
fn shapes() -> impl Strategy<Value = Shape> {
    let size = (0_u32..8).prop_flat_map(|log2| (Just(1 << log2), 1..=1_usize << log2));
    (size, any::<[bool; 2]>(), 0_usize..5, 0_u16..300).prop_map(
        |((storage, promised), [is_exact, is_tagged], wrap, before)| {
            let round = storage as Position;
            let wraps =
                [0, round << 15, round << 16, 1 << 31, (u32::MAX as Position).wrapping_add(1)];
            let start = wraps[wrap].wrapping_sub(before.into());
            Shape { storage, promised, is_exact, is_tagged, start }
        },
    )
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Batches of a few, or of more than some queues hold.
    let count = || prop_oneof![4 => 0_usize..5, 1 => lengths(140)];
    let step = prop_oneof![
        1 => (0_usize..3).prop_map(Step::Overrun),
        8 => count().prop_map(Step::Push),
        1 => Just(Step::PushPlain),
        3 => Just(Step::StoreAt),
        2 => Just(Step::KeepTail),
        3 => Just(Step::Recover),
        9 => count().prop_map(Step::Poll),
        2 => Just(Step::RenewConsumer),
    ];
    let steps = prop::collection::vec(step, lengths(if cfg!(miri) { 50 } else { 150 }));
    // In the end it fails, or overruns.
    let end = lengths(140).prop_map(Step::Overrun);
    let end = prop::collection::vec(prop_oneof![1 => Just(Step::Fail), 1 => end], 0..3);
    let after = prop_oneof![count().prop_map(Step::Poll), Just(Step::StoreAt)];
    let after = prop::collection::vec(after, 0..5);
    (steps.clone(), end, after, steps)
        .prop_map(|parts| [parts.0, parts.1, parts.2, parts.3].concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_raw_queue_does_as_the_model_does(shape in shapes(), steps in steps()) {
        let tagged = Parts { promised: shape.promised as u32, ..Parts::tagged(shape.storage) };
        let untagged = Parts::promising(shape.promised as u32, shape.storage);
        let parts = if shape.is_tagged { tagged } else { untagged };
        let parts = Parts { is_exact: shape.is_exact, ..parts };
        let mut both = Both::new(&shape, &parts);
        steps.iter().for_each(|step| both.step(step));
    }
}
