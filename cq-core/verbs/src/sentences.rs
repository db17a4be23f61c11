//! The texts of errors that C has numbers for.

/// Implements `Display` and `Error` for an error type: a text for each variant, with the error number of C, which the method
/// `errno` returns.
macro_rules! numbered_sentences {
    ($(#[$doc:meta])* $name:ident { $($pattern:pat => $errno:expr, ($($text:tt)+);)+ }) => {
        cq_core::sentences!($name { $($pattern => ($($text)+);)+ });

        #[cfg(feature = "std")]
        cq_core::io_errors!($name { error => error.errno(); });

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

pub(crate) use cq_core::from_causes as from;
