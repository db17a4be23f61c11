//! All that is unsafe beside declarations and exports: what C hands over becomes values that safe code may use.
//!
//! | module | turns | on whose word |
//! |---|---|---|
//! | `arg` | pointers of a call into values, lists and buffers | the program's: it passes what the manual page requires |
//! | `addr_info` | lists of addresses into values, and back | the program's, as above, and the C library's |
//! | `cm` | addresses without a length, private data, values of options, waiting for an event channel | the program's, as above |
//! | `structs` | bytes of structures and unions into values | nobody's: any bytes are values |
//! | `table` | pointers to objects into places | nobody's: an address is looked up |
//! | `child` | a forked child into one that has its own objects | the system's: its only thread runs this |
//! | `system` | calls of the C library that no crate makes safe | theirs |

pub mod addr_info;
mod arg;
pub mod child;
pub mod cm;
mod structs;
pub mod system;
mod table;

pub use self::arg::*;
pub use self::structs::Functions;
pub use self::table::*;
