//! Macros that the crates beside this one use as well. None of them is of the public API. A feature that they ask for is one of
//! the crate that uses them.

/// The methods of `PollCq` as a type's own, which need no import.
#[doc(hidden)]
#[macro_export]
macro_rules! polled_without_import {
    ($entry:ty) => {
        /// Takes up to `buffer.len()` completions, oldest first, and returns them. Never blocks. The slice is empty if the
        /// queue is. Entries of `buffer` past the returned ones are unchanged.
        ///
        /// # Errors
        /// The queue itself failed, or the transport claimed more completions than the buffer holds.
        #[inline(always)]
        #[doc(alias("ibv_poll_cq", "ibv_start_poll", "ibv_next_poll", "ibv_end_poll"))]
        pub fn poll<'r>(
            &mut self,
            buffer: &'r mut [$entry],
        ) -> Result<&'r [$entry], $crate::transport::PollError> {
            $crate::transport::PollCq::poll(self, buffer)
        }

        /// Takes the oldest completion. `None` if the queue is empty.
        ///
        /// # Errors
        /// As for [`poll`](Self::poll).
        #[inline]
        pub fn pop(&mut self) -> Result<Option<$entry>, $crate::transport::PollError> {
            $crate::transport::PollCq::pop(self)
        }

        /// Takes completions one at a time, until the queue is empty or has failed. What the iterator has not yielded stays
        /// in the queue.
        #[inline]
        pub fn drain(&mut self) -> $crate::transport::Drain<'_, Self> {
            $crate::transport::PollCq::drain(self)
        }
    };
}

/// A newtype for a number that a device, a driver or a peer writes. Known values have constants, names and texts; any other
/// value is kept as it is ([C3](crate::contract#c3)). Numbers are displayed as their texts, others as the text behind the name of
/// the type. They are formatted in other bases, and serialized, as the numbers that they are.
///
/// The names of the type in C, and of the function that has its texts, are its aliases.
///
/// For `defmt`, names are variants of an enum whose `Format` is derived, because such names are not in the firmware.
#[doc(hidden)]
#[macro_export]
macro_rules! foreign_number {
    ($(#[$meta:meta])* $name:ident($($c:literal),+), $unknown:literal { $($(#[$doc:meta])* $constant:ident = $value:literal, $text:literal;)+ }) => {
        $(#[$meta])*
        #[doc(alias($($c),+))]
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub struct $name(pub u32);

        $crate::of_number!($name: Binary, Octal, LowerHex, UpperHex);

        impl $name {
            $($(#[$doc])* pub const $constant: Self = Self($value);)+

            /// Every named value, in ascending order.
            pub const KNOWN: &[Self] = &[$(Self::$constant),+];

            /// The name of the constant in `<infiniband/verbs.h>`, without its prefix; `None` for an unnamed value.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($constant)),)+
                    _ => None,
                }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(match self.0 {
                    $($value => $text,)+
                    _ => $unknown,
                })
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, concat!(stringify!($name), "({})"), self.0),
                }
            }
        }

        #[cfg(feature = "defmt")]
        impl defmt::Format for $name {
            fn format(&self, f: defmt::Formatter<'_>) {
                #[derive(defmt::Format)]
                #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
                enum Named {
                    $($constant,)+
                }
                let named = match self.0 {
                    $($value => Named::$constant,)+
                    number => return defmt::write!(f, "unknown ({=u32})", number),
                };
                defmt::write!(f, "{}", named);
            }
        }
    };
}

/// The traits that a newtype of a number has by the number.
#[doc(hidden)]
#[macro_export]
macro_rules! of_number {
    ($name:ident: $($base:ident),+) => {
        impl From<u32> for $name {
            fn from(number: u32) -> Self {
                Self(number)
            }
        }

        impl From<$name> for u32 {
            fn from(named: $name) -> Self {
                named.0
            }
        }

        $(impl core::fmt::$base for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::$base::fmt(&self.0, f)
            }
        })+
    };
}

/// `bitflags!` with the traits of plain data, serde's and `defmt::Format`.
#[doc(hidden)]
#[macro_export]
macro_rules! foreign_flags {
    ($(#[$meta:meta])* pub struct $name:ident($c:literal): u32 { $($(#[$doc:ident $($text:tt)*])* const $flag:ident = $bits:expr;)+ $(const _ = $unknown:expr;)? }) => {
        bitflags::bitflags! {
            $(#[$meta])*
            #[doc(alias = $c)]
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
            #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
            pub struct $name: u32 {
                $($(#[$doc $($text)*])* const $flag = $bits;)+
                $(const _ = $unknown;)?
            }
        }

        #[cfg(feature = "defmt")]
        impl defmt::Format for $name {
            fn format(&self, f: defmt::Formatter<'_>) {
                #[derive(defmt::Format)]
                #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
                enum Named {
                    $($flag,)+
                }
                $crate::macros::write_flags(self.bits(), &[$(($bits, Named::$flag)),+], f);
            }
        }
    };
}

/// `Copy` and `Clone` for a type whose parameters need not have them, as derives would require.
#[doc(hidden)]
#[macro_export]
macro_rules! copied {
    ([$($generic:tt)+] $type:ty) => {
        impl<$($generic)+> Copy for $type {}

        impl<$($generic)+> Clone for $type {
            fn clone(&self) -> Self {
                *self
            }
        }
    };
}

/// Methods that return a field.
#[doc(hidden)]
#[macro_export]
macro_rules! getters {
    ($($(#[$doc:meta])* $name:ident $(($c:literal))?: $type:ty = $($field:tt).+;)+) => {
        $($(#[$doc])*
        $(#[doc(alias = $c)])?
        #[must_use]
        pub const fn $name(&self) -> $type {
            self.$($field).+
        })+
    };
}

/// `Debug` that shows these fields only: the others have none, or are not to be looked at.
#[doc(hidden)]
#[macro_export]
macro_rules! debug_of {
    ([$($generic:tt)+] $name:ident<$($parameter:tt),+> { $($field:ident)? }) => {
        impl<$($generic)+> core::fmt::Debug for $name<$($parameter),+> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                let mut shown = f.debug_struct(stringify!($name));
                $(shown.field(stringify!($field), &self.$field);)?
                shown.finish_non_exhaustive()
            }
        }
    };
}

/// Methods of a trait that are those of the target.
#[doc(hidden)]
#[macro_export]
macro_rules! of_target {
    ($target:expr; $($name:ident(&$($receiver:ident)+ $(, $arg:ident: $type:ty)*) $(-> $returned:ty)?;)+) => {
        $(#[inline]
        fn $name(&$($receiver)+ $(, $arg: $type)*) $(-> $returned)? {
            $target.$name($($arg),*)
        })+
    };
}

/// Implements `Display` and `Error` for an error type: a text for each variant, and the variants that have a cause. One with
/// generic parameters, given behind `@`, may hold what has no `Debug`: its own is its text.
#[doc(hidden)]
#[macro_export]
macro_rules! sentences {
    ($(@[$($generic:tt)+])? $name:ty { $($pattern:pat => ($($text:tt)+);)+ } $($cause:pat => $source:expr;)*) => {
        $(impl<$($generic)+> core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(self, f)
            }
        })?

        impl$(<$($generic)+>)? core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match *self {
                    $($pattern => write!(f, $($text)+),)+
                }
            }
        }

        impl$(<$($generic)+>)? core::error::Error for $name {
            fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
                #[allow(unreachable_patterns, reason = "each variant may have a cause")]
                match self {
                    $($cause => Some($source),)*
                    _ => None,
                }
            }
        }
    };
}

/// Implements `From` for the causes of errors.
#[doc(hidden)]
#[macro_export]
macro_rules! from_causes {
    ($($cause:ty => $error:ident::$variant:ident;)+) => {
        $(impl From<$cause> for $error {
            fn from(cause: $cause) -> Self {
                Self::$variant(cause)
            }
        })+
    };
}

/// Implements `From` for `std::io::Error`: with the error itself inside, of the kind of the first cause that fits, else `Other`.
/// In the patterns the type is `This`.
#[cfg(feature = "std")]
#[doc(hidden)]
#[macro_export]
macro_rules! io_errors {
    ($($(#[$meta:meta])? $error:ty { $($pattern:pat => $cause:expr;)* })+) => {
        $($(#[$meta])?
        impl From<$error> for std::io::Error {
            #[allow(dead_code, unreachable_patterns, reason = "a pattern may fit all, or there is none")]
            fn from(error: $error) -> Self {
                type This = $error;
                let kind = match &error {
                    $($pattern => $crate::macros::kind_of(&Self::from($cause)),)*
                    _ => std::io::ErrorKind::Other,
                };
                Self::new(kind, error)
            }
        })+
    };
}

/// The kind of a cause; of a number that is no error number, `Other`.
#[cfg(feature = "std")]
pub fn kind_of(cause: &std::io::Error) -> std::io::ErrorKind {
    const ENODEV: i32 = 19;
    match cause.raw_os_error() {
        Some(ENODEV) => std::io::ErrorKind::NotFound,
        Some(..=0) => std::io::ErrorKind::Other,
        _ => cause.kind(),
    }
}

/// Writes the names of the flags that are set, and the bits that have none.
#[cfg(feature = "defmt")]
pub fn write_flags<N: defmt::Format>(bits: u32, names: &[(u32, N)], f: defmt::Formatter<'_>) {
    let mut rest = bits;
    for (bit, name) in names {
        if rest & bit == *bit {
            rest &= !bit;
            if rest == 0 {
                return defmt::write!(f, "{}", name);
            }
            defmt::write!(f, "{} | ", name);
        }
    }
    defmt::write!(f, "{=u32:#x}", rest);
}

/// How a crate's loom models weaken one of its `Site`s: `intact`, `at` and, under loom, `weaken`.
#[doc(hidden)]
#[macro_export]
macro_rules! weakened_sites {
    ($site:ty) => {
        #[cfg(loom)]
        std::thread_local! {
            static WEAKENED: core::cell::Cell<Option<$site>> = const { core::cell::Cell::new(None) };
        }

        /// Whether a site is not weakened; `false` only inside `weaken`, under loom.
        #[cfg(loom)]
        pub fn intact(site: $site) -> bool {
            WEAKENED.get() != Some(site)
        }

        /// Always `true`: sites are weakened under loom only.
        #[cfg(not(loom))]
        #[inline(always)]
        #[must_use]
        pub const fn intact(_: $site) -> bool {
            true
        }

        /// Returns `ordering`, or Relaxed if a model weakens `site`.
        #[inline(always)]
        pub fn at(site: $site, ordering: core::sync::atomic::Ordering) -> core::sync::atomic::Ordering {
            if intact(site) { ordering } else { core::sync::atomic::Ordering::Relaxed }
        }

        /// Runs `model` with one site weakened.
        #[cfg(loom)]
        pub fn weaken<R>(site: $site, model: impl FnOnce() -> R) -> R {
            $crate::sync::weaken_in(&WEAKENED, site, model)
        }
    };
}

/// Declares functions that are `const`, except under loom, whose atomics cannot be created in a constant.
#[doc(hidden)]
#[macro_export]
macro_rules! const_unless_loom {
    ($($(#[$meta:meta])* $vis:vis const fn $name:ident($($args:tt)*) -> $ret:ty $body:block)+) => {
        $(
            #[cfg(not(loom))]
            $(#[$meta])*
            $vis const fn $name($($args)*) -> $ret $body

            #[cfg(loom)]
            $(#[$meta])*
            $vis fn $name($($args)*) -> $ret $body
        )+
    };
}

/// An array of values that hold atomics.
#[doc(hidden)]
#[macro_export]
macro_rules! array_of {
    ($value:expr; $len:expr) => {{
        #[cfg(not(loom))]
        {
            [const { $value }; $len]
        }
        #[cfg(loom)]
        {
            core::array::from_fn::<_, { $len }, _>(|_| $value)
        }
    }};
}
