//! Annotations for ThreadSanitizer, in a program that it watches. One of the modules with `unsafe`.
//!
//! It sees the calls of the C library that it intercepts, as `memmove` and `free`, and in code that was not compiled for it
//! none of the atomics by which threads agree about them. So it would report as races the copies of the device, what the
//! device's threads do with its own objects, and buffers that threads of the program hand to each other by completions. The
//! annotations say:
//!
//! - that it should not look at what a thread does [inside](unseen) the device: as it does not see what a card does;
//! - that what a program does before it [posts](posted) comes before what follows a [completion](completed) or an event. That
//!   is so of all queues alike: with a message one thread passes to another what the two have agreed upon.
//!
//! In other programs this is one load and a branch, and nothing where requests are posted and completions polled: the C ABI
//! has other tables of functions for programs that are watched.
//!
//! Copies by instructions of the device's own would not be seen either, but are slower than `memmove`: from 1 KiB on, a loop
//! over words takes more than twice as long. And AddressSanitizer would no longer look at them.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::sync::OnceLock;
use std::{mem, ptr};

/// Says something about an address.
type About = unsafe extern "C" fn(*mut c_void);
/// Says something about this thread, from this line of this file on.
type From = unsafe extern "C" fn(*const c_char, c_int);

/// The functions of its runtime that every version exports.
struct Runtime {
    acquire: About,
    release: About,
    begin: From,
    end: From,
}

/// Any address of this library's.
static ORDER: u8 = 0;

/// The runtime, if this program has one.
fn runtime() -> Option<&'static Runtime> {
    static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();
    RUNTIME.get_or_init(find).as_ref()
}

#[cold]
fn find() -> Option<Runtime> {
    // SAFETY: functions of these names have these types. To ignore writes is to ignore reads, too.
    unsafe {
        Some(Runtime {
            acquire: mem::transmute::<*mut c_void, About>(symbol(c"__tsan_acquire")?),
            release: mem::transmute::<*mut c_void, About>(symbol(c"__tsan_release")?),
            begin: mem::transmute::<*mut c_void, From>(symbol(c"AnnotateIgnoreWritesBegin")?),
            end: mem::transmute::<*mut c_void, From>(symbol(c"AnnotateIgnoreWritesEnd")?),
        })
    }
}

fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a string of C's.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Whether ThreadSanitizer watches this program.
pub fn watches() -> bool {
    runtime().is_some()
}

/// Annotates that what this thread did comes before what follows a completion.
pub fn posted() {
    if let Some(runtime) = runtime() {
        runtime.posted();
    }
}

/// Annotates that this thread has a completion or an event.
pub fn completed() {
    if let Some(runtime) = runtime() {
        runtime.completed();
    }
}

/// Does something in the device that ThreadSanitizer should not look at.
pub fn unseen<T>(work: impl FnOnce() -> T) -> T {
    let _ignored = runtime().map(Ignored::begin);
    work()
}

impl Runtime {
    fn posted(&self) {
        // SAFETY: nothing is read or written at the address.
        unsafe { (self.release)(ptr::from_ref(&ORDER).cast_mut().cast()) };
    }

    fn completed(&self) {
        // SAFETY: as for `posted`.
        unsafe { (self.acquire)(ptr::from_ref(&ORDER).cast_mut().cast()) };
    }
}

/// While it exists, this thread is not looked at.
struct Ignored<'r>(&'r Runtime, PhantomData<*mut ()>);

impl<'r> Ignored<'r> {
    fn begin(runtime: &'r Runtime) -> Self {
        // SAFETY: a string of C's, which stays.
        unsafe { (runtime.begin)(c"".as_ptr(), 0) };
        Self(runtime, PhantomData)
    }
}

impl Drop for Ignored<'_> {
    fn drop(&mut self) {
        // SAFETY: as above; it began in this thread, since this type is not Send.
        unsafe { (self.0.end)(c"".as_ptr(), 0) };
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::panic::catch_unwind;

    use super::*;

    thread_local! {
        static TOLD: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
    }

    fn note(what: &'static str) {
        TOLD.with_borrow_mut(|told| told.push(what));
    }

    /// One that records its calls.
    const NOTES: Runtime = {
        unsafe extern "C" fn acquire(at: *mut c_void) {
            note(if at.is_null() { "nowhere" } else { "acquire" });
        }
        unsafe extern "C" fn release(at: *mut c_void) {
            note(if at.is_null() { "nowhere" } else { "release" });
        }
        unsafe extern "C" fn begin(_: *const c_char, _: c_int) {
            note("begin");
        }
        unsafe extern "C" fn end(_: *const c_char, _: c_int) {
            note("end");
        }
        Runtime { acquire, release, begin, end }
    };

    #[test]
    fn a_runtime_gets_the_order_and_the_calls_to_ignore() {
        NOTES.posted();
        NOTES.completed();
        let ignored = Ignored::begin(&NOTES);
        note("work");
        drop(ignored);
        let panicked = catch_unwind(|| {
            let _ignored = Ignored::begin(&NOTES);
            panic!("in the device");
        });
        assert!(panicked.is_err());
        let told = ["release", "acquire", "begin", "work", "end", "begin", "end"];
        assert_eq!(TOLD.take(), told);
    }

    #[test]
    fn without_a_runtime_all_is_done() {
        assert!(symbol(c"malloc").is_some() && symbol(c"no_such_function").is_none());
        assert!(!watches());
        posted();
        completed();
        assert_eq!(unseen(|| 7), 7);
    }
}
