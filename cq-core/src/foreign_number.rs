//! Numbers that a device, a driver or a peer writes: constants and names for what is known, room for the
//! rest (C3).

/// Declares a newtype over a number that foreign code writes: constants and names for the known values,
/// and room for every other (C3). For transports, too.
#[doc(hidden)]
#[macro_export]
macro_rules! __foreign_number {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $constant:ident = $value:literal, $text:literal;)+ }) => {
        $(#[$meta])*
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            $($(#[$doc])* pub const $constant: Self = Self($value);)+

            /// Every value that has a name, in ascending order.
            pub const KNOWN: &[Self] = &[$(Self::$constant),+];

            /// The name of the constant in `<infiniband/verbs.h>`, without its prefix; `None` for a
            /// number that has none.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($constant)),)+
                    _ => None,
                }
            }

            const fn text(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($text),)+
                    _ => None,
                }
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
    };
}
pub use __foreign_number as foreign_number;
