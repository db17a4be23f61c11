//! A subscriber that keeps the events of `tracing`.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::{LazyLock, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Dispatch, Event, Level, Metadata, Subscriber};

/// An event.
#[derive(Clone, Debug)]
pub struct Seen {
    pub level: Level,
    pub text: String,
    pub fields: BTreeMap<&'static str, String>,
}

impl Seen {
    /// A field; empty if there is none.
    pub fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }

    /// Whether it has this text, and these fields among others.
    pub fn is(&self, text: &str, fields: &[(&str, &dyn fmt::Display)]) -> bool {
        let has = |(name, value): &(&str, &dyn fmt::Display)| self.field(name) == value.to_string();
        self.text == text && fields.iter().all(has)
    }
}

impl Visit for Seen {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let to = match field.name() {
            "message" => &mut self.text,
            name => self.fields.entry(name).or_default(),
        };
        write!(to, "{value:?}").unwrap();
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }
}

/// Keeps all events.
#[derive(Debug, Default)]
pub struct Recorder {
    all: Mutex<Vec<Seen>>,
    /// Called at each.
    tells: Option<fn()>,
}

impl Recorder {
    pub const fn new() -> Self {
        Self { all: Mutex::new(Vec::new()), tells: None }
    }

    /// Also calls this, before anything else.
    pub const fn telling(tells: fn()) -> Self {
        Self { all: Mutex::new(Vec::new()), tells: Some(tells) }
    }

    /// Keeps what the calls of this thread tell of, until the guard is dropped. Two others are there from then on: if there is
    /// but one, the thread that comes to an event first judges for all by whether it listens itself.
    pub fn listens(&'static self) -> DefaultGuard {
        static OTHERS: [Recorder; 2] = [const { Recorder::new() }; 2];
        static KNOWN: LazyLock<[Dispatch; 2]> =
            LazyLock::new(|| OTHERS.each_ref().map(Dispatch::new));
        LazyLock::force(&KNOWN);
        tracing::subscriber::set_default(self)
    }

    /// The events with this text and these fields.
    pub fn seen(&self, text: &str, fields: &[(&str, &dyn fmt::Display)]) -> Vec<Seen> {
        let all = self.all.lock().unwrap();
        all.iter().filter(|seen| seen.is(text, fields)).cloned().collect()
    }

    /// The only event with this text and these fields.
    #[track_caller]
    pub fn only(&self, text: &str, fields: &[(&str, &dyn fmt::Display)]) -> Seen {
        let mut seen = self.seen(text, fields);
        assert_eq!(seen.len(), 1, "{text}: {seen:?}");
        seen.remove(0)
    }
}

impl Subscriber for &'static Recorder {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.tells.iter().for_each(|tells| tells());
        assert!(event.metadata().target().starts_with("transport_"));
        let (level, text, fields) = (*event.metadata().level(), String::new(), BTreeMap::new());
        let mut seen = Seen { level, text, fields };
        event.record(&mut seen);
        self.all.lock().unwrap().push(seen);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
