//! The texts of error types.

/// Implements `Display` and `Error` for an error type: a text for each variant, and the variants that have a cause.
macro_rules! sentences {
    ($name:ident { $($pattern:pat => ($($text:tt)+);)+ } $($cause:pat => $source:expr;)*) => {
        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match *self {
                    $($pattern => write!(f, $($text)+),)+
                }
            }
        }

        impl core::error::Error for $name {
            fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
                #[allow(unreachable_patterns)]
                match self {
                    $($cause => Some($source),)*
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use sentences;
