//! A macro for events of transports.

/// For transports: an event for `tracing`, if the crate that uses the macro has a feature `tracing` and it is on. If
/// not, the values are compiled and never evaluated. A level, fields as `tracing` has them, and a text:
///
/// ```
/// fn went_down(port: u8, errors: u64) {
///     cq_verbs::trace_event!(WARN, port = port, reason = %"no carrier", errors = errors, "link down");
/// }
/// went_down(1, 5);
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! trace_event {
    (@unused $($name:ident = $(?)? $(%)? $value:expr,)+ $text:literal) => {
        if false {
            $(let _ = &$value;)+
        }
    };
    ($level:ident, $($event:tt)+) => {{
        #[cfg(feature = "tracing")]
        ::tracing::event!(::tracing::Level::$level, $($event)+);
        #[cfg(not(feature = "tracing"))]
        $crate::trace_event!(@unused $($event)+);
    }};
}
