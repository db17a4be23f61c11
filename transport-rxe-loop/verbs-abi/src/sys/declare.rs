//! Declares structures and numbers, and lists them for the comparison with the header.

/// A structure or union of C's, as the comparison sees it.
#[cfg(test)]
pub struct Layout {
    /// What C calls it.
    pub c: &'static str,
    pub size: usize,
    pub align: usize,
    /// Where newer headers add fields.
    pub grows: Grows,
    pub fields: &'static [Field],
}

#[cfg(test)]
pub struct Field {
    pub name: &'static str,
    pub offset: usize,
    pub size: usize,
}

/// An end of a structure.
#[cfg(test)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Grows {
    Nowhere,
    AtEnd,
    AtFront,
}

/// The first, or else the second.
#[cfg(test)]
macro_rules! first {
    ($given:expr; $else:expr) => {
        $given
    };
    (; $else:expr) => {
        $else
    };
}

/// Declares structures and unions: `struct name = "what C calls it, if otherwise" in Grows { fields }`. Fields
/// after `+ outside` are not in the header of libibverbs 44, and are not compared; nor are those that are called
/// `padding`, or begin so, which the header does not name.
macro_rules! structures {
    ($(
        $(#[$meta:meta])*
        $kind:ident $name:ident $(= $c:literal)? $(in $grows:ident)? {
            $($(#[$field_meta:meta])* $field:ident: $type:ty,)*
        }
        $(+ outside { $($(#[$outside_meta:meta])* $outside:ident: $outside_type:ty,)* })?
    )+) => {
        $(
            $(#[$meta])*
            #[repr(C)]
            #[derive(Clone, Copy)]
            pub $kind $name {
                $($(#[$field_meta])* pub $field: $type,)*
                $($($(#[$outside_meta])* pub $outside: $outside_type,)*)?
            }

            impl $name {
                /// Zero, in every byte.
                // SAFETY: its fields are numbers, raw pointers, optional functions, what the C library has, and
                // structures of these; all of them may be zero. The compiler refuses a constant that is no value.
                pub const ZEROED: Self = unsafe { core::mem::zeroed() };
            }
        )+

        #[cfg(test)]
        pub(super) const LAYOUTS: &[$crate::sys::declare::Layout] = {
            use $crate::sys::declare::{Field, Grows, Layout};
            &[$(Layout {
                c: first!($($c)?; concat!(stringify!($kind), " ", stringify!($name))),
                size: size_of::<$name>(),
                align: align_of::<$name>(),
                grows: first!($(Grows::$grows)?; Grows::Nowhere),
                fields: &[$(Field {
                    name: stringify!($field),
                    offset: core::mem::offset_of!($name, $field),
                    size: size_of::<$type>(),
                }),*],
            }),+]
        };
    };
}

/// Declares enumerations: `name: integer { constants }`, a type and its values. Those after `+ outside` are not
/// in the header of libibverbs 44, and are not compared.
macro_rules! numbers {
    ($(
        $(#[$meta:meta])*
        $name:ident: $type:ty {
            $($constant:ident = $value:expr,)*
        }
        $(+ outside { $($outside:ident = $outside_value:expr,)* })?
    )+) => {
        $(
            $(#[$meta])*
            pub type $name = $type;
            $(pub const $constant: $name = $value;)*
            $($(pub const $outside: $name = $outside_value;)*)?
        )+

        #[cfg(test)]
        pub(super) const NUMBERS: &[(&str, i128)] =
            &[$($((stringify!($constant), $constant as i128),)*)+];
    };
}
