//! The texts of errors that C has numbers for.

/// Implements `Display` and `Error` for an error type: a text for each variant, with the error number of C, which the method
/// `errno` returns.
macro_rules! numbered_sentences {
    ($(#[$doc:meta])* $name:ident { $($pattern:pat => $errno:expr, ($($text:tt)+);)+ }) => {
        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match *self {
                    $($pattern => write!(f, $($text)+),)+
                }
            }
        }

        impl core::error::Error for $name {}

        impl $name {
            $(#[$doc])*
            #[must_use]
            #[allow(unused_variables)]
            pub const fn errno(&self) -> Errno {
                match *self {
                    $($pattern => $errno,)+
                }
            }
        }
    };
}
pub(crate) use numbered_sentences;

/// Implements `From` for the causes of errors.
macro_rules! from {
    ($($cause:ty => $error:ident::$variant:ident;)+) => {
        $(impl From<$cause> for $error {
            fn from(cause: $cause) -> Self {
                Self::$variant(cause)
            }
        })+
    };
}
pub(crate) use from;
