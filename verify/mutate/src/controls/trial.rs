//! Trials: a model with a control, which must fail, or with none, which must hold.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;

use crate::attempt::{Attempt, Ended, On, attempt};
use crate::checks::Check;

/// More than a model takes, which fails by itself after 120 s.
const LIMIT: Duration = Duration::from_secs(150);

/// A model, and what is to become of it.
#[derive(Clone, Debug)]
pub struct Trial<'a> {
    /// The model.
    pub check: Check,
    /// The number and the name of the control that it must fail with, by a panic that says this; without one, it must hold.
    pub control: Option<(u32, &'a str, &'a str)>,
}

/// What became of it.
#[derive(Debug)]
pub struct Tried<'a> {
    trial: Trial<'a>,
    ended: Ended,
    seconds: f64,
    /// Of the first panic.
    said: String,
}

impl<'a> Trial<'a> {
    /// Carries it out.
    pub fn run(&self) -> Result<Tried<'a>> {
        let number = self.control.map_or(0, |(number, ..)| number);
        let mut check = self.check.clone();
        // In a thread of its own a model takes twice as long, and what is captured of it comes too late if it aborts.
        check.arguments.extend(["--test-threads=1", "--nocapture"].map(str::to_owned));
        let Attempt { ended, seconds, said } = attempt(&check, On::Mutant(number), LIMIT)?;
        Ok(Tried { trial: self.clone(), ended, seconds, said: first_panic(&said).to_owned() })
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
    fn model(&self) -> &str {
        self.trial.check.name.trim_start_matches("models::")
    }

    /// What is wrong, if anything is.
    fn complaint(&self) -> Option<String> {
        let (model, said) = (self.model(), &self.said);
        let Some((_, control, expects)) = self.trial.control else {
            return match self.ended {
                Ended::Passed => None,
                Ended::Late => Some(format!("{model} does not end, without any control")),
                Ended::Failed => {
                    Some(format!("{model} must hold where no control is planted: {said}"))
                }
            };
        };
        match self.ended {
            Ended::Failed if said.contains(expects) => None,
            Ended::Failed => {
                Some(format!("{control}: {model} must fail with {expects:?}, not: {said}"))
            }
            Ended::Late => Some(format!("{control}: {model} does not end")),
            Ended::Passed => {
                Some(format!("{control}: {model} holds, or there is no such model in the test"))
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
        self.tried.iter().all(|tried| tried.complaint().is_none())
    }

    /// A row for each model with a control.
    pub fn table(&self) -> String {
        let mut table = Table::new();
        table.load_preset(ASCII_MARKDOWN);
        table.set_header(["control", "model", "how it failed", "seconds"]);
        for tried in &self.tried {
            let Some((_, control, _)) = tried.trial.control else { continue };
            let outcome = match tried.ended {
                Ended::Passed => "holds",
                Ended::Late => "does not end",
                Ended::Failed => tried.said.lines().next().unwrap_or("fails without a word"),
            };
            table.add_row([control, tried.model(), outcome, &format!("{:.1}", tried.seconds)]);
        }
        table.to_string()
    }

    /// A line, or more, for each that is not well.
    pub fn complaints(&self) -> String {
        self.tried.iter().filter_map(Tried::complaint).map(|text| text + "\n").collect()
    }

    /// All in one line.
    pub fn summary(&self) -> String {
        let (with, without): (Vec<_>, Vec<_>) =
            self.tried.iter().partition(|tried| tried.trial.control.is_some());
        let controls: BTreeSet<_> = with.iter().filter_map(|tried| tried.trial.control).collect();
        let controls: BTreeSet<_> = controls.iter().map(|(number, ..)| number).collect();
        let bad = |all: &[&Tried<'_>]| all.iter().filter(|it| it.complaint().is_some()).count();
        format!(
            "{} controls: {} models fail as they must, {} do not; {} of {} tests fail \
             without a control; {:.0} s, {:.0} s of it building",
            controls.len(),
            with.len() - bad(&with),
            bad(&with),
            bad(&without),
            without.len(),
            self.taken.as_secs_f64(),
            self.built.as_secs_f64(),
        )
    }
}
