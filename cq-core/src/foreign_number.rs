//! The macro of numbers that a device, a driver or a peer writes.

/// For transports: declares a newtype over a number that foreign code writes, a device, a driver or a peer: constants and
/// names for the known values, and room for every other (C3).
///
/// ```
/// cq_core::foreign_number! {
///     /// What the link does.
///     LinkState {
///         /// Nothing.
///         DOWN = 1, "down";
///         /// It carries messages.
///         UP = 4, "up";
///     }
/// }
/// assert_eq!(LinkState::UP.name(), Some("UP"));
/// assert_eq!(format!("{:?} {:?}", LinkState(4), LinkState(9)), "UP LinkState(9)");
/// ```
#[macro_export]
macro_rules! foreign_number {
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

            #[allow(dead_code)]
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
