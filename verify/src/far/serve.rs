//! The far process: executes the calls of each socket in a thread of its own.

use std::any::Any;
use std::io;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use super::objects::Objects;
use super::wire;
use crate::device::Device;

/// Serves the process at the other end of `control`, until that is closed.
///
/// # Errors
/// A system call failed.
pub fn serve<D: Device + 'static>(control: &UnixStream) -> io::Result<()> {
    let objects = Arc::new(Objects::<D>::default());
    while let Some(wire) = wire::take_over(control)? {
        let objects = objects.clone();
        let answering = thread::Builder::new().name("far end".to_owned());
        answering.spawn(move || answer(&objects, &wire))?;
    }
    Ok(())
}

/// Executes calls until the socket is closed. The result of a call that panics is the message of the panic.
fn answer<D: Device>(objects: &Objects<D>, wire: &UnixStream) {
    while let Ok((call, raw)) = wire::read(wire) {
        let answer = catch_unwind(AssertUnwindSafe(|| objects.answer(&call, raw)));
        let (json, raw) =
            answer.unwrap_or_else(|panic| wire::encode(Err::<(), _>(text(&*panic)), Vec::new()));
        if wire::write(wire, &json, &raw).is_err() {
            return;
        }
    }
}

/// The message of a panic.
fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref().copied()).unwrap_or("panicked").to_owned()
}
