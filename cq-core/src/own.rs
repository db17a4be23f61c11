//! Macros for this crate's own numbers and flags: they also have `defmt::Format`. In a macro of another crate, the feature
//! would be that crate's.
//!
//! The names of numbers and flags are variants of an enum whose `Format` is derived, because such names are not in the
//! firmware.

/// [`foreign_number!`](crate::foreign_number!) with `defmt::Format`.
macro_rules! own_number {
    ($(#[$meta:meta])* $name:ident $(, $unknown:literal)? { $($(#[$doc:meta])* $constant:ident = $value:literal, $text:literal;)+ }) => {
        $crate::foreign_number! {
            $(#[$meta])*
            $name $(, $unknown)? { $($(#[$doc])* $constant = $value, $text;)+ }
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
pub(crate) use own_number;

/// `bitflags!` with `defmt::Format`.
macro_rules! own_flags {
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
                $crate::own::write_flags(self.bits(), &[$(($bits, Named::$flag)),+], f);
            }
        }
    };
}
pub(crate) use own_flags;

/// Writes the names of the flags that are set, and the bits that have none.
#[cfg(feature = "defmt")]
pub(crate) fn write_flags<N: defmt::Format>(
    bits: u32,
    names: &[(u32, N)],
    f: defmt::Formatter<'_>,
) {
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
