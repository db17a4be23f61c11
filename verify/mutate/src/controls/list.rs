//! The list of controls.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use serde::Deserialize;

/// Where it is, relative to the workspace.
pub const PATH: &str = "verify/controls.toml";

/// A wrong text, and who must notice it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Control {
    /// What it is called.
    pub name: String,
    /// What the right text is there for.
    pub why: String,
    /// Relative to the workspace.
    pub file: String,
    /// The right text.
    pub of: String,
    /// The wrong one.
    pub instead: String,
    /// What must fail with it.
    pub fails: Vec<Failure>,
}

/// Models that must fail.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// The test that they are in.
    pub test: String,
    /// Each of these by itself; all of the test where there is none.
    #[serde(default)]
    pub models: Vec<String>,
    /// What the panic must say.
    pub expects: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    control: Vec<Control>,
}

/// What is wrong with the list, or with one entry.
#[derive(Debug, thiserror::Error)]
pub enum Flaw {
    /// It can't be read.
    #[error("it cannot be read: {0}")]
    Read(io::Error),
    /// It is no such list.
    #[error("it is no list of controls: {0}")]
    Parse(Box<toml::de::Error>),
    /// Two have one name.
    #[error("two controls are called `{0}`: rename one")]
    Namesakes(String),
    /// An entry proves nothing.
    #[error(
        "the control `{0}` leaves something empty: it has to say why it is there, what is wrong, \
         a test, and what that is expected to say"
    )]
    Empty(String),
    /// The wrong text is the right one.
    #[error("the control `{0}` puts the same text in the place of its text")]
    Same(String),
    /// It is planted nowhere.
    #[error("the control `{name}` names {file}, which cannot be read: {error}")]
    File {
        /// Which.
        name: String,
        /// Its file.
        file: String,
        /// Why not.
        error: io::Error,
    },
    /// It is planted where no mutant can be chosen.
    #[error(
        "the control `{name}` names {file}, which is no source of cq-core or transport-rxe-loop"
    )]
    Elsewhere {
        /// Which.
        name: String,
        /// Its file.
        file: String,
    },
    /// The sources have changed.
    #[error(
        "the control `{name}` replaces a text that {file} does not have: `{of}`; \
         say how that step is written now"
    )]
    Gone {
        /// Which.
        name: String,
        /// Its file.
        file: String,
        /// Its text.
        of: String,
    },
    /// It could be planted in several places.
    #[error(
        "the control `{name}` replaces a text that {file} has {count} times: `{of}`; \
         say more of what is around it"
    )]
    Several {
        /// Which.
        name: String,
        /// Its file.
        file: String,
        /// Its text.
        of: String,
        /// How often it is there.
        count: usize,
    },
    /// No such model.
    #[error("the control `{name}` is to be noticed by `{test}`, and no loom test is called so")]
    Test {
        /// Which.
        name: String,
        /// Its test.
        test: String,
    },
    /// None is asked for.
    #[error("no control has {0} in its name")]
    None(String),
}

/// Reads the list of the workspace at `root`.
pub fn load(root: &Path) -> Result<Vec<Control>, Flaw> {
    parse(&fs::read_to_string(root.join(PATH)).map_err(Flaw::Read)?)
}

fn parse(text: &str) -> Result<Vec<Control>, Flaw> {
    let list: List = toml::from_str(text).map_err(|error| Flaw::Parse(Box::new(error)))?;
    let mut names = BTreeSet::new();
    for control in &list.control {
        if !names.insert(&control.name) {
            return Err(Flaw::Namesakes(control.name.clone()));
        }
        // A panic that says nothing would be any panic.
        let empty = |of: &Failure| of.test.is_empty() || of.expects.trim().is_empty();
        let texts = [&control.name, &control.why, &control.of];
        let is_empty = control.fails.is_empty() || control.fails.iter().any(empty);
        if is_empty || texts.iter().any(|text| text.trim().is_empty()) {
            return Err(Flaw::Empty(control.name.clone()));
        }
        if control.of == control.instead {
            return Err(Flaw::Same(control.name.clone()));
        }
    }
    Ok(list.control)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "[[control]]
        name = 'Look'
        why = 'it looks'
        file = 'cq-core/src/a.rs'
        of = 'look()'
        instead = 'false'
        [[control.fails]]
        test = 'ring::looks'
        expects = 'lost'
    ";

    fn flaw(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn an_entry_names_a_text_another_and_who_notices() {
        let [control] = &parse(ENTRY).unwrap()[..] else { panic!() };
        assert_eq!((&control.of[..], &control.instead[..]), ("look()", "false"));
        let [failure] = &control.fails[..] else { panic!() };
        assert_eq!((&failure.test[..], failure.models.len()), ("ring::looks", 0));
    }

    #[test]
    fn an_entry_is_there_once_and_proves_something() {
        assert!(flaw(&ENTRY.repeat(2)).contains("two controls are called `Look`"));
        for part in ["'it looks'", "'look()'", "'ring::looks'", "'lost'"] {
            assert!(flaw(&ENTRY.replace(part, "''")).contains("leaves something empty"), "{part}");
        }
        assert!(flaw(&ENTRY.replace("'false'", "'look()'")).contains("the same text"));
        assert!(flaw(&ENTRY.replace("expects", "expect")).contains("no list of controls"));
    }

    #[test]
    fn a_statement_may_be_replaced_by_nothing() {
        assert!(parse(&ENTRY.replace("'false'", "''")).is_ok());
    }
}
