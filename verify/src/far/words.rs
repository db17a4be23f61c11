//! The words of cq-core as they go over the wire: each has a twin here, and ways there and back.

use cq_core::async_event::{AsyncEvent, AsyncEventType, Element};
use cq_core::transport::{
    ArmError, Armed, CqKey, EventError, Notify, PollError, PostError, Refused, Woken,
};
use cq_core::wr::{
    Data, Placement, RecvWr, RemoteAddr, Selectivity, SendFlags, SendOp, SendWr, Sge, WindowBind,
};
use serde::{Deserialize, Serialize};

use crate::device::{Access, QpCaps, QpType, SrqInit};

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
    SrqCaps = SrqInit { max_wr: u32, max_sge: u32, }
    Piece = Sge { addr: u64, length: u32, lkey: u32, }
    Place = RemoteAddr { addr: u64, rkey: u32, }
    Binding = WindowBind {
        window: u32,
        rkey: u32,
        lkey: u32,
        addr: u64,
        length: u64,
        access: Rights,
    }
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
    Type = QpType {
        Rc {}
        Uc {}
        Ud {}
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
    Waking = Woken {
        Event {}
        DeadlinePassed {}
        Interrupted {}
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
        BadPlacement {}
        Device { code = 0: i32 }
    }
    Op = SendOp {
        Send { imm = imm: Option<[u8; 4]> }
        SendInvalidate { rkey = rkey: u32 }
        Write { remote = remote: Place, imm = imm: Option<[u8; 4]> }
        Read { remote = remote: Place }
        CompareSwap { remote = remote: Place, compare = compare: u64, swap = swap: u64 }
        FetchAdd { remote = remote: Place, add = add: u64 }
        AtomicWrite { remote = remote: Place }
        Flush {
            remote = remote: Place,
            length = length: u32,
            placement = placement: Where,
            selectivity = selectivity: Which
        }
        BindWindow { bind = 0: Binding }
        LocalInvalidate { rkey = rkey: u32 }
    }
    Which = Selectivity {
        Range {}
        Region {}
    }
}

/// Declares twins of words that are a number, those without a name included (C3).
macro_rules! numbers {
    ($($name:ident = $of:ident: $there:expr, $back:expr;)+) => {$(
        #[doc = concat!("[`", stringify!($of), "`]")]
        #[derive(Clone, Copy, Debug, Serialize, Deserialize)]
        pub struct $name(u32);

        impl From<$of> for $name {
            fn from(of: $of) -> Self {
                Self($there(of))
            }
        }

        impl From<$name> for $of {
            fn from(twin: $name) -> Self {
                $back(twin.0)
            }
        }
    )+};
}

numbers! {
    Kind = AsyncEventType: |of: AsyncEventType| of.0, AsyncEventType;
    Rights = Access: |of: Access| of.bits(), Access::from_bits_retain;
    Where = Placement: |of: Placement| of.bits(), Placement::from_bits_retain;
}

/// [`SendWr`]
#[derive(Debug, Serialize, Deserialize)]
pub struct Send {
    wr_id: u64,
    op: Op,
    flags: u32,
    /// The bytes, if they are inline; the SGEs otherwise.
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
    /// The SGEs, to borrow from.
    pub fn sges(&self) -> Vec<Sge> {
        let pieces = self.data.as_ref().err().into_iter().flatten();
        pieces.copied().map(Sge::from).collect()
    }

    /// The request, with these SGEs of its own.
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
    /// The SGEs, to borrow from.
    pub fn sges(&self) -> Vec<Sge> {
        self.pieces.iter().copied().map(Sge::from).collect()
    }

    /// The request, with these SGEs of its own.
    pub const fn request<'a>(&self, sges: &'a [Sge]) -> RecvWr<'a> {
        RecvWr::new(self.wr_id, sges)
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use serde::de::DeserializeOwned;

    use super::*;

    /// Each of these is the same after its way there and back.
    #[track_caller]
    fn survive<T, Twin>(words: &[T])
    where
        T: Copy + Debug + PartialEq + From<Twin>,
        Twin: From<T> + Serialize + DeserializeOwned,
    {
        for word in words {
            let sent = serde_json::to_vec(&Twin::from(*word)).unwrap();
            assert_eq!(T::from(serde_json::from_slice::<Twin>(&sent).unwrap()), *word);
        }
    }

    #[test]
    fn reasons_survive_the_trip() {
        survive::<Refused, Why>(&[
            Refused::QueueFull,
            Refused::TooManySges { max: 1 },
            Refused::InlineTooLong { max: 2 },
            Refused::TooLong { max: u64::MAX },
            Refused::WrongState,
            Refused::Unsupported,
            Refused::InlineResult,
            Refused::NoReadAtomic,
            Refused::NoDestination,
            Refused::SharedReceives,
            Refused::BadPlacement,
            Refused::Device(-1),
        ]);
        survive::<PostError, Refusing>(&[PostError { posted: 3, why: Refused::QueueFull }]);
        survive::<PollError, Unpolled>(&[
            PollError::Overrun { dropped: None },
            PollError::Overrun { dropped: Some(u32::MAX) },
            PollError::Device(-5),
            PollError::Misbehaved { asked: 1, returned: 2 },
        ]);
        survive::<ArmError, Unarmed>(&[ArmError::NoChannel, ArmError::Device(7)]);
        survive::<EventError, Unread>(&[EventError::Device(9)]);
    }

    #[test]
    fn events_survive_the_trip() {
        let key = CqKey { index: 1, generation: u32::MAX };
        let elements =
            [Element::Cq(key), Element::Qp(2), Element::Srq(3), Element::Port(4), Element::Device];
        let events =
            elements.map(|element| AsyncEvent { event_type: AsyncEventType(u32::MAX), element });
        survive::<AsyncEvent, Report>(&events);
        survive::<Notify, On>(&[Notify::Solicited, Notify::Next]);
        survive::<Armed, Said>(&[Armed::Armed, Armed::MayHaveMissed]);
    }

    #[test]
    fn what_things_are_made_of_survives_the_trip() {
        survive::<QpType, Type>(&[QpType::Rc, QpType::Uc, QpType::Ud]);
        survive::<SrqInit, SrqCaps>(&[SrqInit { max_wr: 1, max_sge: u32::MAX }]);
    }

    #[test]
    fn requests_survive_the_trip() {
        let sges = [Sge { addr: u64::MAX, length: 1, lkey: 2 }; 3];
        let at = RemoteAddr { addr: 5, rkey: u32::MAX };
        let access = Access::REMOTE_READ | Access::from_bits_retain(1 << 19);
        let bind = WindowBind { window: 1, rkey: 2, lkey: 3, addr: 4, length: u64::MAX, access };
        for wr in [
            SendWr::send(u64::MAX, &sges).solicited(),
            SendWr::send_inline(1, b"bytes").with_imm([1, 2, 3, 4]).unsignaled(),
            SendWr::write(2, &[], at).with_imm([9; 4]).fenced(),
            SendWr::read(3, &sges[..1], at),
            SendWr::compare_swap(4, &sges[..1], at, u64::MAX, 1),
            SendWr::fetch_add(5, &sges[..1], at, u64::MAX),
            SendWr::send_with_inv(6, &sges, u32::MAX),
            SendWr::atomic_write_inline(7, b"at a go!", at),
            SendWr::flush(8, at, u32::MAX, Placement::from_bits_retain(7), Selectivity::Region),
            SendWr::flush(9, at, 1, Placement::GLOBAL, Selectivity::Range),
            SendWr::bind_window(10, bind),
            SendWr::local_invalidate(11, 3),
        ] {
            let sent = serde_json::to_vec(&Send::from(&wr)).unwrap();
            let sent: Send = serde_json::from_slice(&sent).unwrap();
            assert_eq!(sent.request(&sent.sges()), wr);
        }
        let wr = RecvWr::new(6, &sges);
        let sent = serde_json::to_vec(&Receive::from(&wr)).unwrap();
        let sent: Receive = serde_json::from_slice(&sent).unwrap();
        assert_eq!(sent.request(&sent.sges()), wr);
    }
}
