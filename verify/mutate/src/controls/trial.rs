//! Trials: a model with a control, which must fail, or with none, which must hold.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;

use super::list::{Control, Failure, Flaw};
use super::place::FIRST;
use crate::attempt::{AttemptError, Ended, On, attempt_heard};
use crate::checks::Check;

/// More than a model takes, which fails by itself after 120 s.
const LIMIT: Duration = Duration::from_secs(150);
/// The program that the models are in.
const PROGRAM: &str = "models";

/// A model, and what is to become of it.
#[derive(Debug)]
pub struct Trial<'a> {
    check: Check,
    must: Must<'a>,
}

/// What is to become of a model.
#[derive(Clone, Copy, Debug)]
enum Must<'a> {
    /// Without a control.
    Hold,
    /// With the control of this number and name, by a panic that says this.
    Fail { number: u32, control: &'a str, expects: &'a str },
}

/// What became of it.
#[derive(Debug)]
pub struct Tried<'a> {
    trial: &'a Trial<'a>,
    ended: Ended,
    seconds: f64,
    /// Of the first panic.
    said: String,
}

/// Each model without a control, then with each of the controls that it must notice, as far as they are asked for.
pub fn all<'a>(
    controls: &'a [Control],
    models: &[Check],
    only: &[String],
) -> Result<Vec<Trial<'a>>, Flaw> {
    let is_asked =
        |control: &Control| only.is_empty() || only.iter().any(|text| control.name.contains(text));
    let (mut tests, mut trials) = (BTreeSet::new(), Vec::new());
    for (number, control) in (FIRST..).zip(controls).filter(|(_, control)| is_asked(control)) {
        for failure in &control.fails {
            let test = find(models, control, failure)?;
            tests.insert(&failure.test);
            let must = Must::Fail { number, control: &control.name, expects: &failure.expects };
            let parts = failure.models.iter().map(|model| part(test, model));
            let whole = failure.models.is_empty().then(|| test.clone());
            trials.extend(parts.chain(whole).map(|check| Trial { check, must }));
        }
    }
    if trials.is_empty() {
        return Err(Flaw::None(only.join(" or ")));
    }
    // They take longest: what comes last should not.
    let alone = models.iter().filter(|check| tests.iter().any(|test| is_of(check, test)));
    let alone = alone.map(|check| Trial { check: check.clone(), must: Must::Hold });
    Ok(alone.chain(trials).collect())
}

fn is_of(check: &Check, test: &str) -> bool {
    check.name.strip_prefix(PROGRAM).and_then(|name| name.strip_prefix("::")) == Some(test)
}

fn find<'m>(models: &'m [Check], control: &Control, failure: &Failure) -> Result<&'m Check, Flaw> {
    let (name, test) = (control.name.clone(), failure.test.clone());
    let found = models.iter().find(|check| is_of(check, &failure.test));
    found.ok_or(Flaw::Test { name, test })
}

/// One of the models of a test.
fn part(test: &Check, model: &str) -> Check {
    let mut check = test.clone();
    check.name = format!("{}: {model}", check.name);
    check.variables.push(("LOOM_MODEL", model.to_owned()));
    check
}

impl<'a> Trial<'a> {
    /// Carries it out.
    pub fn run(&'a self) -> Result<Tried<'a>, AttemptError> {
        let number = match self.must {
            Must::Hold => 0,
            Must::Fail { number, .. } => number,
        };
        let mut check = self.check.clone();
        // In a thread of its own a model takes twice as long, and what is captured of it comes too late if it aborts.
        check.arguments.extend(["--test-threads=1", "--nocapture"].map(str::to_owned));
        let (ended, taken, said) = attempt_heard(&check, On::Mutant(number), LIMIT)?;
        let said = first_panic(&said).to_owned();
        Ok(Tried { trial: self, ended, seconds: taken.as_secs_f64(), said })
    }

    fn control(&self) -> &str {
        match self.must {
            Must::Hold => "none",
            Must::Fail { control, .. } => control,
        }
    }

    fn model(&self) -> &str {
        let name = &self.check.name;
        name.strip_prefix(PROGRAM).map_or(name, |name| name.trim_start_matches("::"))
    }
}

/// What the first panic says: those that come of it say nothing about the cause.
fn first_panic(said: &str) -> &str {
    let Some((_, from_place)) = said.split_once("panicked at ") else { return said.trim() };
    let text = from_place.split_once('\n').map_or("", |(_, text)| text);
    let ends = ["\nnote: ", "\nthread '", "\nstack backtrace:"];
    let end = ends.iter().filter_map(|end| text.find(end)).min().unwrap_or(text.len());
    text[..end].trim()
}

impl Tried<'_> {
    /// Whether this is what must become of it.
    fn is_well(&self) -> bool {
        match self.trial.must {
            Must::Hold => self.ended == Ended::Passed,
            Must::Fail { expects, .. } => {
                self.ended == Ended::Failed && self.said.contains(expects)
            }
        }
    }

    fn is_control(&self) -> bool {
        matches!(self.trial.must, Must::Fail { .. })
    }

    /// On one line.
    fn outcome(&self) -> &str {
        match self.ended {
            Ended::Passed => "holds",
            Ended::Late => "does not end",
            Ended::Failed => self.said.lines().next().unwrap_or("fails without a word"),
        }
    }

    /// What is wrong.
    fn complaint(&self) -> String {
        let (control, model, said) = (self.trial.control(), self.trial.model(), &self.said);
        match (self.trial.must, self.ended) {
            (Must::Hold, Ended::Late) => format!("{model} does not end, without any control"),
            (Must::Hold, _) => format!("{model} must hold where no control is planted: {said}"),
            (Must::Fail { .. }, Ended::Passed) => {
                format!("{control}: {model} holds, or there is no such model in the test")
            }
            (Must::Fail { .. }, Ended::Late) => format!("{control}: {model} does not end"),
            (Must::Fail { expects, .. }, Ended::Failed) => {
                format!("{control}: {model} must fail with {expects:?}, not: {said}")
            }
        }
    }
}

/// What became of all.
#[derive(Debug)]
pub struct Report<'a> {
    /// In the order of the trials.
    pub tried: Vec<Tried<'a>>,
    /// What building took.
    pub built: Duration,
    /// What all of it took.
    pub taken: Duration,
}

impl Report<'_> {
    /// Whether nothing is to be mended.
    pub fn is_well(&self) -> bool {
        self.tried.iter().all(Tried::is_well)
    }

    /// A row for each model with a control.
    pub fn table(&self) -> String {
        let mut table = Table::new();
        table.load_preset(ASCII_MARKDOWN);
        table.set_header(["control", "model", "how it failed", "seconds"]);
        for tried in self.tried.iter().filter(|tried| tried.is_control()) {
            let (control, model) = (tried.trial.control(), tried.trial.model());
            table.add_row([control, model, tried.outcome(), &format!("{:.1}", tried.seconds)]);
        }
        table.to_string()
    }

    /// A line, or more, for each that is not well.
    pub fn complaints(&self) -> String {
        self.tried.iter().filter(|tried| !tried.is_well()).fold(String::new(), |mut text, tried| {
            // Writing to a string never fails.
            let _ = writeln!(text, "{}", tried.complaint());
            text
        })
    }

    /// All in one line.
    pub fn summary(&self) -> String {
        let (with, without): (Vec<_>, Vec<_>) =
            self.tried.iter().partition(|tried| tried.is_control());
        let controls: BTreeSet<_> = with.iter().map(|tried| tried.trial.control()).collect();
        let is_bad = |tried: &&&Tried<'_>| !tried.is_well();
        let (blind, broken) =
            (with.iter().filter(is_bad).count(), without.iter().filter(is_bad).count());
        let failing = with.len() - blind;
        format!(
            "{} controls: {failing} models fail as they must, {blind} do not; {broken} of {} tests fail \
             without a control; {:.0} s, {:.0} s of it building",
            controls.len(),
            without.len(),
            self.taken.as_secs_f64(),
            self.built.as_secs_f64(),
        )
    }
}

#[cfg(test)]
mod tests;
