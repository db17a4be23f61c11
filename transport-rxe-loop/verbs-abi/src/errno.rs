//! Errors as C sees them: for each reason of the Rust API the number that the manual pages name.

use std::ffi::c_int;
use std::num::NonZero;
use std::ptr;

use cq_core::transport::{ArmError, EventError, PollError};
use cq_verbs::post::WrError;
use cq_verbs::setup::{
    AddressError, ArmLimitError, CreateError, DeviceError, ModerateError, ModifyError,
    RegisterError, ResizeError,
};
use transport_rxe_loop::{OpenError, SystemError};

/// A number of `<errno.h>`, which is never 0: so what may fail and says nothing else is one number, as it is in C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(NonZero<c_int>);

impl Errno {
    /// A wrong argument.
    pub const INVAL: Self = Self::of(libc::EINVAL);
    /// No such object (any more).
    pub const NOENT: Self = Self::of(libc::ENOENT);
    /// Too many, or no memory.
    pub const NOMEM: Self = Self::of(libc::ENOMEM);
    /// Something uses it, or a lock can't be had.
    pub const BUSY: Self = Self::of(libc::EBUSY);
    /// The device does not have this.
    pub const OPNOTSUPP: Self = Self::of(libc::EOPNOTSUPP);
    /// A descriptor of another kind, or of nothing.
    pub const BADF: Self = Self::of(libc::EBADF);
    /// Memory that is not there.
    pub const FAULT: Self = Self::of(libc::EFAULT);
    /// The device, or this process' part of it, is gone: in a forked child.
    pub const NODEV: Self = Self::of(libc::ENODEV);
    /// The queue has overrun.
    pub const OVERFLOW: Self = Self::of(libc::EOVERFLOW);
    /// There is nothing at this index.
    pub const NODATA: Self = Self::of(libc::ENODATA);
    /// Something failed. The compiler sees that this is no 0.
    pub const IO: Self = Self(NonZero::new(libc::EIO).unwrap());

    /// What a number says; what is no error, and was told as one, is EIO.
    pub const fn of(number: c_int) -> Self {
        match NonZero::new(number) {
            Some(number) => Self(number),
            None => Self::IO,
        }
    }

    /// The number.
    #[inline]
    pub const fn number(self) -> c_int {
        self.0.get()
    }

    /// What the system said last.
    pub fn last() -> Self {
        Self::of(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
    }

    /// Leaves it in `errno`, for C.
    #[cold]
    fn leave(self) {
        errno::set_errno(errno::Errno(self.number()));
    }
}

/// 0, or the number, which is in `errno` then, too.
#[inline]
pub fn status(result: Result<(), Errno>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(errno) => {
            errno.leave();
            errno.number()
        }
    }
}

/// The pointer, or null, and the number in `errno`.
pub fn pointer<T>(result: Result<*mut T, Errno>) -> *mut T {
    result.unwrap_or_else(|errno| {
        errno.leave();
        ptr::null_mut()
    })
}

/// The number that was asked for, or -1, and the errno's in `errno`.
pub fn minus_one(result: Result<c_int, Errno>) -> c_int {
    result.unwrap_or_else(|errno| {
        errno.leave();
        -1
    })
}

/// What was asked for, or the errno's number below 0, as `ibv_poll_cq(3)` says it.
#[inline]
pub fn negative(result: Result<c_int, Errno>) -> c_int {
    result.unwrap_or_else(|errno| {
        errno.leave();
        -errno.number()
    })
}

/// Declares which error is which number.
macro_rules! numbers {
    ($($error:ty { $($pattern:pat => $errno:expr;)+ })+) => {
        $(impl From<$error> for Errno {
            // Off the way of what succeeds.
            #[cold]
            #[inline(never)]
            fn from(error: $error) -> Self {
                match error { $($pattern => $errno,)+ }
            }
        })+
    };
}

// `_` also stands for what an enumeration gets later, until it is told from the rest here.
numbers! {
    CreateError { error => Errno::of(error.errno().0); }
    ResizeError { error => Errno::of(error.errno().0); }
    ModerateError { error => Errno::of(error.errno().0); }
    ArmLimitError { error => Errno::of(error.errno().0); }
    RegisterError { error => Errno::of(error.errno().0); }
    ModifyError { error => Errno::of(error.errno().0); }
    AddressError { error => Errno::of(error.errno().0); }
    DeviceError { error => Errno::of(error.errno().0); }
    cq_verbs::setup::Errno { errno => Errno::of(errno.0); }
    rustix::io::Errno { errno => Errno::of(errno.raw_os_error()); }
    OpenError { error => Errno::of(error.errno().0); }
    SystemError { error => Errno::of(error.errno.0); }
    ArmError {
        ArmError::Device(code) => Errno::of(code);
        _ => Errno::INVAL;
    }
    EventError {
        EventError::Device(code) => Errno::of(code);
        _ => Errno::IO;
    }
    PollError {
        PollError::Device(code) => Errno::of(code);
        // A queue that was given up counts as one that has overrun, and is reported as one.
        PollError::Overrun { .. } | PollError::Failed => Errno::OVERFLOW;
        _ => Errno::IO;
    }
    WrError {
        WrError::QueueFull => Errno::NOMEM;
        WrError::Device(code) | WrError::Unknown(code) => Errno::of(code);
        _ => Errno::INVAL;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_function_tells_an_error_in_its_own_way() {
        for number in [libc::EINVAL, libc::ENOMEM, libc::ENODEV, libc::EIO, 1, 4000] {
            let why = Errno::of(number);
            let ways: [(&dyn Fn() -> c_int, c_int); 4] = [
                (&|| status(Err(why)), number),
                (&|| minus_one(Err(why)), -1),
                (&|| negative(Err(why)), -number),
                (&|| pointer::<u8>(Err(why)).is_null().into(), 1),
            ];
            for (tell, told) in ways {
                Errno::of(libc::EILSEQ).leave();
                assert_eq!((tell(), Errno::last()), (told, why));
            }
        }
        let fine = ptr::without_provenance_mut::<u8>(8);
        assert_eq!((status(Ok(())), pointer(Ok(fine))), (0, fine));
        assert_eq!((minus_one(Ok(7)), negative(Ok(7))), (7, 7));
    }

    #[test]
    fn what_a_device_or_a_queue_says_is_told_as_the_manual_pages_have_it() {
        for number in [libc::ENODEV, libc::EIO, libc::ENOMEM] {
            let said: [Errno; 4] = [
                PollError::Device(number).into(),
                ArmError::Device(number).into(),
                EventError::Device(number).into(),
                WrError::Device(number).into(),
            ];
            assert_eq!(said, [Errno::of(number); 4]);
        }
        // No number is none: an error stays one.
        assert_eq!(Errno::from(PollError::Device(0)), Errno::IO);
        for overrun in [PollError::Overrun { dropped: None }, PollError::Failed] {
            assert_eq!(Errno::from(overrun), Errno::OVERFLOW);
        }
        assert_eq!(Errno::from(ArmError::NoChannel), Errno::INVAL);
        assert_eq!(Errno::from(WrError::QueueFull), Errno::NOMEM);
        for refused in [
            WrError::TooManySges { max: 1 },
            WrError::InlineTooLong { max: 1 },
            WrError::WrongState,
            WrError::SharedReceives,
        ] {
            assert_eq!(Errno::from(refused), Errno::INVAL, "{refused:?}");
        }
    }
}
