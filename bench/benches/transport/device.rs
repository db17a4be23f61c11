//! The device that is measured beside the loopback, where there is one.

#[cfg(feature = "verbs")]
use bench::transport::verbs::{Verbs, VerbsError};

/// The device that is asked for, or the first if there is one.
///
/// # Errors
/// The device that is asked for can't be had.
#[cfg(feature = "verbs")]
pub fn open() -> Result<Option<Verbs>, VerbsError> {
    match std::env::var("VERBS_DEVICE") {
        Ok(name) => Verbs::open(Some(&name), None).map(Some),
        Err(_) => Ok(Verbs::open(None, None).inspect_err(|why| alone(why)).ok()),
    }
}

/// None, in the type of the other transport.
///
/// # Errors
/// None.
#[cfg(not(feature = "verbs"))]
pub fn open() -> Result<Option<bench::transport::loopback::Loopback>, std::convert::Infallible> {
    alone(&"bench was built without its feature `verbs`");
    Ok(None)
}

fn alone(why: &dyn std::fmt::Display) {
    println!("the loopback runs alone: {why}");
}
