//! The environment of a program has any bytes in its `RXE_LOOP_*` variables. The victim is a program that opens the device. Each
//! text is a value, or an error that says something; limits that are accepted print as a text with the same value, and a name
//! leads to files of no other fabric.
#![no_main]

use std::env;
use std::error::Error;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use libfuzzer_sys::fuzz_target;
use transport_rxe_loop::observe::{FabricObserver, ObserveError};
use transport_rxe_loop::{Faults, Limits, OpenOptions, fuzzing};

const VARIABLES: [&str; 8] =
    ["FABRIC", "FAULTS", "LIMITS", "COPY", "COUNT", "IMITATE", "STRICT", "LINK_LAYER"];

fuzz_target!(|bytes: &[u8]| {
    // The first byte says which variable; the system allows no zero in a value.
    let Some((&which, value)) = bytes.split_first() else { return };
    if value.contains(&0) {
        return;
    }
    let variable = VARIABLES[usize::from(which) % VARIABLES.len()];
    set(variable, Some(value));
    match variable {
        "FABRIC" => fabric(value),
        _ => open(),
    }
    set(variable, None);
    match (variable, str::from_utf8(value)) {
        ("LIMITS", Ok(text)) => limits(text),
        ("FAULTS", Ok(text)) => faults(text),
        _ => {}
    }
});

fn set(variable: &str, value: Option<&[u8]>) {
    let variable = format!("RXE_LOOP_{variable}");
    match value {
        // SAFETY: this program has one thread.
        Some(value) => unsafe { env::set_var(variable, OsStr::from_bytes(value)) },
        // SAFETY: as above.
        None => unsafe { env::remove_var(variable) },
    }
}

/// All that an error says, and what is behind it.
fn says(error: &dyn Error) {
    assert!(!error.to_string().is_empty());
    error.source().into_iter().for_each(says);
}

/// Parses all variables, and then fails: no fabric has such a name.
fn open() {
    let error = OpenOptions::new().fabric("no fabric").open("loop0").expect_err("a blank");
    says(&error);
    assert_eq!(error.errno().0, 22);
}

fn fabric(value: &[u8]) {
    // An observer makes no fabric of the name.
    match FabricObserver::from_env() {
        Ok(observer) => assert_eq!(observer.fabric().as_bytes(), value),
        Err(ObserveError::NoSuchFabric { name }) => {
            assert_eq!(name.as_bytes(), value);
            assert!(!name.is_empty() && name.len() <= 64 && !name.contains(['/', '\n']));
        }
        Err(error) => says(&error),
    }
}

fn limits(text: &str) {
    match text.parse::<Limits>() {
        Ok(limits) => {
            assert_eq!(limits.to_string().parse(), Ok(limits));
            match fuzzing::in_force(&limits) {
                Ok(given) => assert_eq!(fuzzing::in_force(&given), Ok(given)),
                Err(error) => says(&error),
            }
        }
        Err(error) => says(&error),
    }
}

fn faults(text: &str) {
    match text.parse::<Faults>() {
        Ok(faults) => assert_eq!(text.parse(), Ok(faults)),
        Err(error) => says(&error),
    }
}
