//! A macro for numbers written by a device, a driver or a peer.

/// For transports: declares a newtype for a number that a device, a driver or a peer writes. Known values get constants,
/// names and texts; any other value is kept as it is ([C3](crate::contract#c3)). With a text for such values behind the
/// name, numbers are displayed as their texts.
///
/// ```
/// cq_core::foreign_number! {
///     /// The state of a link.
///     LinkState, "unknown" {
///         /// The link is down.
///         DOWN = 1, "down";
///         /// The link carries messages.
///         UP = 4, "up";
///     }
/// }
/// assert_eq!(LinkState::UP.name(), Some("UP"));
/// assert_eq!(format!("{:?} {:?}", LinkState(4), LinkState(9)), "UP LinkState(9)");
/// assert_eq!(format!("{} {}", LinkState(1), LinkState(9)), "down unknown");
/// ```
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
    };
}
