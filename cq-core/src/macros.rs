//! Macros that the crates beside this one use as well. None of them is of the public API. A feature that they ask for is one of
//! the crate that uses them.

/// A newtype for a number that a device, a driver or a peer writes. Known values have constants, names and texts; any other
/// value is kept as it is ([C3](crate::contract#c3)). With a text for such values behind the name, numbers are displayed as
/// their texts.
///
/// For `defmt`, names are variants of an enum whose `Format` is derived, because such names are not in the firmware.
#[doc(hidden)]
#[macro_export]
macro_rules! foreign_number {
    ($(#[$meta:meta])* $name:ident $(, $unknown:literal)? { $($(#[$doc:meta])* $constant:ident = $value:literal, $text:literal;)+ }) => {
        $(#[$meta])*
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

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

            #[allow(dead_code)]
            const fn text(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($text),)+
                    _ => None,
                }
            }
        }

        $(impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(self.text().unwrap_or($unknown))
            }
        })?

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

/// `bitflags!` with `defmt::Format`.
#[doc(hidden)]
#[macro_export]
macro_rules! foreign_flags {
    ($(#[$meta:meta])* pub struct $name:ident: u32 { $($(#[$doc:ident $($text:tt)*])* const $flag:ident = $bits:expr;)+ $(const _ = $unknown:expr;)? }) => {
        bitflags::bitflags! {
            $(#[$meta])*
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
