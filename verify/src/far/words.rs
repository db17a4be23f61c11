//! The words of cq-core as they go over the wire: each has a twin here, and ways there and back.

use cq_core::async_event::{AsyncEvent, AsyncEventType, Element};
use cq_core::transport::{
    ArmError, Armed, CqKey, EventError, Notify, PollError, PostError, Refused,
};
use cq_core::wr::{Data, RecvWr, RemoteAddr, SendFlags, SendOp, SendWr, Sge};
use serde::{Deserialize, Serialize};

use crate::device::QpCaps;

/// Declares twins of structs.
macro_rules! records {
    ($($name:ident = $of:ident { $($field:ident: $type:ty,)+ })+) => {$(
        #[doc = concat!("[`", stringify!($of), "`]")]
        #[derive(Clone, Copy, Debug, Serialize, Deserialize)]
        pub struct $name {
            $($field: $type,)+
        }

        impl From<$of> for $name {
            fn from(of: $of) -> Self {
                Self { $($field: of.$field.into(),)+ }
            }
        }

        impl From<$name> for $of {
            fn from(twin: $name) -> Self {
                Self { $($field: twin.$field.into(),)+ }
            }
        }
    )+};
}

records! {
    Key = CqKey { index: u32, generation: u32, }
    Report = AsyncEvent { event_type: Kind, element: About, }
    Caps = QpCaps {
        max_send_wr: u32,
        max_recv_wr: u32,
        max_send_sge: u32,
        max_recv_sge: u32,
        max_inline: u32,
    }
    Piece = Sge { addr: u64, length: u32, lkey: u32, }
    Place = RemoteAddr { addr: u64, rkey: u32, }
    Refusing = PostError { posted: usize, why: Why, }
}

/// Declares twins of enums. A field is named `name = its name there`.
macro_rules! choices {
    ($($name:ident = $of:ident {
        $($variant:ident { $($field:ident = $at:tt: $type:ty),* })+
    })+) => {$(
        #[doc = concat!("[`", stringify!($of), "`]")]
        #[derive(Clone, Copy, Debug, Serialize, Deserialize)]
        pub enum $name {
            $($variant { $($field: $type),* },)+
        }

        impl From<$of> for $name {
            fn from(of: $of) -> Self {
                match of {
                    $($of::$variant { $($at: $field),* } => {
                        Self::$variant { $($field: $field.into()),* }
                    })+
                    #[allow(unreachable_patterns)]
                    other => panic!("{other:?} has no word on the wire"),
                }
            }
        }

        impl From<$name> for $of {
            fn from(twin: $name) -> Self {
                match twin {
                    $($name::$variant { $($field),* } => {
                        Self::$variant { $($at: $field.into()),* }
                    })+
                }
            }
        }
    )+};
}

choices! {
    About = Element {
        Cq { key = 0: Key }
        Qp { number = 0: u32 }
        Srq { number = 0: u32 }
        Port { number = 0: u8 }
        Device {}
    }
    On = Notify {
        Solicited {}
        Next {}
    }
    Said = Armed {
        Armed {}
        MayHaveMissed {}
    }
    Unpolled = PollError {
        Overrun { dropped = dropped: Option<u32> }
        Device { code = 0: i32 }
        Misbehaved { asked = asked: usize, returned = returned: usize }
    }
    Unarmed = ArmError {
        NoChannel {}
        Device { code = 0: i32 }
    }
    Unread = EventError {
        Device { code = 0: i32 }
    }
    Why = Refused {
        QueueFull {}
        TooManySges { max = max: u32 }
        InlineTooLong { max = max: u32 }
        TooLong { max = max: u64 }
        WrongState {}
        Unsupported {}
        InlineResult {}
        NoReadAtomic {}
        NoDestination {}
        SharedReceives {}
        Device { code = 0: i32 }
    }
    Op = SendOp {
        Send { imm = imm: Option<[u8; 4]> }
        Write { remote = remote: Place, imm = imm: Option<[u8; 4]> }
        Read { remote = remote: Place }
        CompareSwap { remote = remote: Place, compare = compare: u64, swap = swap: u64 }
        FetchAdd { remote = remote: Place, add = add: u64 }
    }
}

/// [`AsyncEventType`]
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Kind(u32);

impl From<AsyncEventType> for Kind {
    fn from(of: AsyncEventType) -> Self {
        Self(of.0)
    }
}

impl From<Kind> for AsyncEventType {
    fn from(twin: Kind) -> Self {
        Self(twin.0)
    }
}

/// [`SendWr`]
#[derive(Debug, Serialize, Deserialize)]
pub struct Send {
    wr_id: u64,
    op: Op,
    flags: u32,
    /// The bytes, if they are inline; the pieces otherwise.
    data: Result<Vec<u8>, Vec<Piece>>,
}

impl From<&SendWr<'_>> for Send {
    fn from(wr: &SendWr<'_>) -> Self {
        let data = match wr.data {
            Data::Inline(bytes) => Ok(bytes.to_vec()),
            Data::Sges(sges) => Err(sges.iter().copied().map(Piece::from).collect()),
        };
        Self { wr_id: wr.wr_id, op: wr.op.into(), flags: wr.flags.bits(), data }
    }
}

impl Send {
    /// The pieces, to borrow from.
    pub fn sges(&self) -> Vec<Sge> {
        let pieces = self.data.as_ref().err().into_iter().flatten();
        pieces.copied().map(Sge::from).collect()
    }

    /// The request, with these pieces of its own.
    pub fn request<'a>(&'a self, sges: &'a [Sge]) -> SendWr<'a> {
        let data = match &self.data {
            Ok(bytes) => Data::Inline(bytes),
            Err(_) => Data::Sges(sges),
        };
        let flags = SendFlags::from_bits_retain(self.flags);
        SendWr { flags, ..SendWr::new(self.wr_id, self.op.into(), data) }
    }
}

/// [`RecvWr`]
#[derive(Debug, Serialize, Deserialize)]
pub struct Receive {
    wr_id: u64,
    pieces: Vec<Piece>,
}

impl From<&RecvWr<'_>> for Receive {
    fn from(wr: &RecvWr<'_>) -> Self {
        Self { wr_id: wr.wr_id, pieces: wr.sges.iter().copied().map(Piece::from).collect() }
    }
}

impl Receive {
    /// The pieces, to borrow from.
    pub fn sges(&self) -> Vec<Sge> {
        self.pieces.iter().copied().map(Sge::from).collect()
    }

    /// The request, with these pieces of its own.
    pub const fn request<'a>(&self, sges: &'a [Sge]) -> RecvWr<'a> {
        RecvWr::new(self.wr_id, sges)
    }
}
