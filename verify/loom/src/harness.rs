//! Runs models and controls.

use std::cell::Cell;
use std::env;
use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use loom::model::Builder;
use transport_rxe_loop::sync as device;

/// What loom says when an entry is read while it is written: the cell beside each slot was reached
/// without a happens-before.
pub const UNORDERED: &str = "Causality violation: Concurrent";

/// Preemptions in one execution, unless the environment says otherwise.
const PREEMPTIONS: usize = 3;
/// The same of a model that has more than [`MANY`] interleavings with these alone. One more gives ten times as many.
const FEWER: usize = PREEMPTIONS - 1;
const MANY: usize = 3000;
/// Where this is set, no model is too large.
const LONG: &str = "VERIFY_LONG";
const LIMIT: Duration = Duration::from_secs(120);

/// Where this is set, models are run without their controls. A fault that was planted is to be noticed by what holds
/// without it: a control that fails in another way is no proof.
const WITHOUT_CONTROLS: &str = "LOOM_WITHOUT_CONTROLS";

/// Where this is set, only the model with this name is run, of all in a test.
const ONLY: &str = "LOOM_MODEL";

/// A step that a protocol can do without in a control.
pub trait Site: Copy + fmt::Debug {
    /// Runs `model` without it.
    fn weaken<R>(self, model: impl FnOnce() -> R) -> R;
}

impl Site for cq_core::sync::Site {
    fn weaken<R>(self, model: impl FnOnce() -> R) -> R {
        cq_core::sync::weaken(self, model)
    }
}

impl Site for cq_verbs::sync::Site {
    fn weaken<R>(self, model: impl FnOnce() -> R) -> R {
        cq_verbs::sync::weaken(self, model)
    }
}

impl Site for device::Site {
    fn weaken<R>(self, model: impl FnOnce() -> R) -> R {
        device::weaken(self, model)
    }
}

/// A model that holds.
pub struct Model {
    name: String,
    body: Arc<dyn Fn() + Send + Sync>,
    limit: Duration,
    preemptions: Option<usize>,
}

/// Checks every interleaving of `body`, and prints how many there were.
///
/// # Panics
/// One of them fails, or the time is over before all were seen.
pub fn model<R>(name: impl Into<String>, body: impl Fn() -> R + Send + Sync + 'static) -> Model {
    Model::new(name.into(), body).holds()
}

impl Model {
    fn new<R>(name: String, body: impl Fn() -> R + Send + Sync + 'static) -> Self {
        let limit = Builder::new().max_duration.unwrap_or(LIMIT);
        let body = move || drop(body());
        Self { name, body: Arc::new(body), limit, preemptions: asked(PREEMPTIONS) }
    }

    /// Sees it hold, first with fewer preemptions: if there are many interleavings then, that is all.
    fn holds(mut self) -> Self {
        if !self.is_asked_for() {
            return self;
        }
        let start = Instant::now();
        let most = self.preemptions;
        if env::var_os(LONG).is_none() {
            self.preemptions = asked(FEWER);
        }
        let mut count = self.explore();
        if count <= MANY && self.preemptions != most {
            self.preemptions = most;
            count = self.explore();
        }
        let (name, seconds) = (&self.name, start.elapsed().as_secs_f64());
        let bound = self.preemptions.map_or("any number of".into(), |bound| bound.to_string());
        println!("model {name}: {seconds:.1} s, {count} interleavings with {bound} preemptions");
        self
    }

    /// The controls: without each of these sites, some interleaving of the model must fail with a text that contains
    /// `expected`.
    ///
    /// # Panics
    /// It does not, or fails elsewhere.
    pub fn must_fail_without(
        &self,
        sites: impl IntoIterator<Item = impl Site>,
        expected: &str,
    ) -> &Self {
        for site in sites {
            self.must_fail(&format!("{site:?}"), expected, || site.weaken(|| self.explore()));
        }
        self
    }

    /// The control of what no site can take out: `broken`, the model with one step in the wrong place.
    ///
    /// # Panics
    /// It does not fail, or fails elsewhere.
    pub fn must_fail_as<R>(
        &self,
        change: &str,
        expected: &str,
        broken: impl Fn() -> R + Send + Sync + 'static,
    ) -> &Self {
        let broken = Self { preemptions: self.preemptions, ..Self::new(self.name.clone(), broken) };
        self.must_fail(change, expected, || broken.explore());
        self
    }

    fn must_fail(&self, change: &str, expected: &str, explore: impl FnOnce() -> usize) {
        let name = &self.name;
        if env::var_os(WITHOUT_CONTROLS).is_some() || !self.is_asked_for() {
            return;
        }
        match failure_of(explore) {
            Ok(count) => panic!("{name}: {count} interleavings hold without {change}"),
            Err(text) if text.contains(expected) => {
                println!("control {name}: fails as it must ({change}: {expected:?})");
            }
            Err(text) => {
                panic!("{name}: without {change} it should fail with {expected:?}, not: {text}")
            }
        }
    }

    fn is_asked_for(&self) -> bool {
        env::var_os(ONLY).is_none_or(|name| name == *self.name)
    }

    /// How many interleavings there are. Loom returns in silence when a limit cuts it off, so the limit is
    /// kept here, where it fails.
    fn explore(&self) -> usize {
        let count = Arc::new(AtomicUsize::new(0));
        let (body, counted) = (Arc::clone(&self.body), Arc::clone(&count));
        let (start, limit) = (Instant::now(), self.limit);
        builder(self.preemptions).check(move || {
            assert!(start.elapsed() < limit, "cut off after {limit:?}");
            counted.fetch_add(1, Ordering::Relaxed);
            body();
        });
        count.load(Ordering::Relaxed)
    }
}

/// The bound on preemptions that the environment asks for, if it does, or else `usual`.
fn asked(usual: usize) -> Option<usize> {
    let bound = Builder::new().preemption_bound.unwrap_or(usual);
    env::var_os("LOOM_UNBOUNDED").is_none().then_some(bound)
}

/// Loom's, with its environment, but for what would end a model early.
fn builder(preemptions: Option<usize>) -> Builder {
    let mut builder = Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = builder.max_branches.max(10_000);
    builder.max_permutations = None;
    builder.max_duration = None;
    builder
}

std::thread_local! {
    static SILENT: Cell<bool> = const { Cell::new(false) };
}

/// Runs what should panic, and gives the text of its panic instead of printing it.
fn failure_of<R>(run: impl FnOnce() -> R) -> Result<R, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !SILENT.get() {
                usual(info);
            }
        }));
    });
    SILENT.set(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(run));
    SILENT.set(false);
    outcome.map_err(|panic| {
        let literal = panic.downcast_ref::<&str>().map(ToString::to_string);
        literal.or_else(|| panic.downcast().ok().map(|text| *text)).unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use cq_core::sync::{Site, intact};

    use super::{Duration, Model};

    fn needs_the_fence() -> Model {
        Model::new("a model".into(), || assert!(intact(Site::PushFence), "no fence"))
    }

    #[test]
    #[should_panic(expected = "1 interleavings hold without ArmFence")]
    fn a_control_that_holds_fails() {
        needs_the_fence().must_fail_without([Site::ArmFence], "no fence");
    }

    #[test]
    #[should_panic(expected = "should fail with \"torn\", not: no fence")]
    fn a_control_that_fails_elsewhere_fails() {
        needs_the_fence().must_fail_without([Site::PushFence], "torn");
    }

    #[test]
    #[should_panic(expected = "cut off after 0ns")]
    fn a_model_that_is_cut_off_fails() {
        Model { limit: Duration::ZERO, ..needs_the_fence() }.explore();
    }
}
