//! Error numbers.

use core::fmt;

/// A number of `<errno.h>`, as the system or a device returned it. The names are Linux'.
///
/// ```
/// use cq_verbs::setup::Errno;
///
/// assert_eq!(Errno::EINVAL.to_string(), "invalid argument (EINVAL, errno 22)");
/// assert_eq!(Errno(4000).to_string(), "errno 4000");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Errno(pub i32);

macro_rules! numbers {
    ($($name:ident = $number:literal, $text:literal;)+) => {
        impl Errno {
            $(#[doc = $text]
            pub const $name: Self = Self($number);)+

            /// The name; `None` for a number that has none here.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some(stringify!($name)),)+
                    _ => None,
                }
            }

            const fn text(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($text),)+
                    _ => None,
                }
            }
        }
    };
}

numbers! {
    EPERM = 1, "operation not permitted";
    ENOENT = 2, "no such object";
    EAGAIN = 11, "resource temporarily unavailable";
    ENOMEM = 12, "no memory, or too many objects";
    EACCES = 13, "permission denied";
    EFAULT = 14, "bad address";
    EBUSY = 16, "in use, or locked";
    EEXIST = 17, "already exists";
    ENODEV = 19, "no such device";
    ENOTDIR = 20, "not a directory";
    EINVAL = 22, "invalid argument";
    ENFILE = 23, "too many open files in the system";
    EMFILE = 24, "too many open files";
    EFBIG = 27, "file too large";
    ENOSPC = 28, "no space left";
    EROFS = 30, "read-only file system";
    ENOSYS = 38, "function not implemented";
    EOPNOTSUPP = 95, "not supported";
    EAFNOSUPPORT = 97, "address family not supported";
    EADDRINUSE = 98, "address already in use";
    EADDRNOTAVAIL = 99, "address not available";
    ENETUNREACH = 101, "network is unreachable";
    ECONNRESET = 104, "connection reset by peer";
    ENOTCONN = 107, "not connected";
    ETIMEDOUT = 110, "timed out";
    ECONNREFUSED = 111, "connection refused";
    EHOSTUNREACH = 113, "no route to host";
    EDQUOT = 122, "quota exceeded";
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.text(), self.name()) {
            (Some(text), Some(name)) => write!(f, "{text} ({name}, errno {})", self.0),
            _ => write!(f, "errno {}", self.0),
        }
    }
}

#[cfg(feature = "std")]
impl From<Errno> for std::io::Error {
    fn from(Errno(number): Errno) -> Self {
        Self::from_raw_os_error(number)
    }
}
