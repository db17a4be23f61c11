//! Errors where a function returns `io::Result`, and those that carry a value back.

use std::error::Error;
use std::io::{self, ErrorKind};

use cq_verbs::cm::CmError;
use cq_verbs::exchange::{ConnectError, ExchangeError};
use cq_verbs::ledger::{Generation, NotPostedError, ReapError, Sends};
use cq_verbs::queue_set::SetError;
use cq_verbs::setup::*;
use cq_verbs::wait_set::AddChannelError;
use cq_verbs::wr::SendWr;

use super::*;

const BUSY: DeviceError = DeviceError::cannot("try", Errno::EBUSY);

/// The same sentence and cause, and this kind.
#[track_caller]
fn is<E>(error: E, kind: ErrorKind)
where
    E: Into<io::Error> + Error + Clone + 'static,
{
    let converted: io::Error = error.clone().into();
    assert_eq!((converted.kind(), converted.to_string()), (kind, error.to_string()));
    assert_eq!(
        converted.source().map(ToString::to_string),
        error.source().map(ToString::to_string)
    );
    assert!(converted.get_ref().is_some_and(|inner| inner.is::<E>()));
}

#[test]
fn an_error_is_an_io_error_of_the_kind_of_its_number_with_itself_inside() {
    is(PollError::Device(13), ErrorKind::PermissionDenied);
    is(PollError::Closed, ErrorKind::Other);
    is(PollError::Device(-22), ErrorKind::Other);
    is(ArmError::Device(0), ErrorKind::Other);
    is(DeviceError::cannot("open it", Errno::ENODEV), ErrorKind::NotFound);
    is(WaitError::Event(EventError::Device(2)), ErrorKind::NotFound);
    is(WaitError::Interrupted, ErrorKind::Interrupted);
    is(send_error().unwrap_err(), ErrorKind::Other);
    is(BUSY, ErrorKind::ResourceBusy);
    is(CreateError::Refused(BUSY), ErrorKind::ResourceBusy);
    is(ModifyError::NotIn { is: QpState::RTS, claimed: QpState::RTR }, ErrorKind::InvalidInput);
    is(PostError { posted: 1, why: WrError::Device(12) }, ErrorKind::OutOfMemory);
    is(PostError { posted: 1, why: WrError::QueueFull }, ErrorKind::WouldBlock);
    is(ReapError::Poll(PollError::Device(13)), ErrorKind::PermissionDenied);
    is(SetError::System(BUSY), ErrorKind::ResourceBusy);
    is(MtuError(9), ErrorKind::InvalidInput);
    is(EndpointError::Mtu(MtuError(9)), ErrorKind::InvalidData);
    is(CmError::TimedOut { awaited: "an answer" }, ErrorKind::TimedOut);
    is(CmError::Refused(BUSY), ErrorKind::ResourceBusy);
    let number = io::Error::from(Errno::EBUSY);
    assert_eq!((number.raw_os_error(), number.kind()), (Some(16), ErrorKind::ResourceBusy));
    for (error, kind) in [
        (ExchangeError::TimedOut { received: 1, size: 2 }.into(), ErrorKind::TimedOut),
        (ExchangeError::Stream(ErrorKind::BrokenPipe.into()).into(), ErrorKind::BrokenPipe),
        (ConnectError::Modify(BUSY.into()), ErrorKind::ResourceBusy),
    ] {
        assert_eq!(io::Error::from(error).kind(), kind);
    }
}

fn send_error() -> Result<(), Failed> {
    failed(1).result().map(drop)
}

/// Posts one request more than there are slots, whose token borrows and is not `Send`.
fn overfill(bytes: &[u8]) -> Result<(), NotPostedError<(&[u8], *const u8)>> {
    let script = Script::<8>::new(KEY);
    let mut sends = Sends::with_capacity(Generation::new(1), 1);
    let token = (bytes, bytes.as_ptr());
    sends.post(&mut &script, SendWr::send_inline(0, bytes), token)?;
    sends.post(&mut &script, SendWr::send_inline(0, bytes), token)
}

#[test]
fn a_refused_post_is_returned_by_question_mark_whatever_its_token_is() {
    fn as_reason(bytes: &[u8]) -> Result<(), WrError> {
        Ok(overfill(bytes)?)
    }
    fn as_io(bytes: &[u8]) -> io::Result<()> {
        Ok(overfill(bytes)?)
    }
    fn boxed(bytes: &[u8]) -> Result<(), Box<dyn Error + '_>> {
        Ok(overfill(bytes)?)
    }
    let bytes = b"borrowed".to_vec();
    assert_eq!(as_reason(&bytes), Err(WrError::QueueFull));
    assert_eq!(as_io(&bytes).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(boxed(&bytes).unwrap_err().to_string(), "the request was not posted");
    let ((token, _), why) = overfill(&bytes).unwrap_err().into_parts();
    assert_eq!((token, why), (&bytes[..], WrError::QueueFull));
    let reaped = NotPostedError { token: &bytes, why: ReapError::Stopped };
    assert_eq!(ReapError::from(reaped), ReapError::Stopped);
}

/// What has neither `Debug` nor any other trait.
struct Opaque;

#[test]
fn an_error_that_carries_a_value_back_is_one_whatever_the_value_is() {
    fn is_error(error: &dyn Error) -> String {
        error.to_string()
    }
    let in_use = InUseError::new(Opaque, "queue", "its users");
    assert_eq!(is_error(&in_use), "the queue is still in use: destroy its users first");
    let Opaque = in_use.into_inner();
    let refused: io::Error = InUseError::new(Opaque, "queue", "its users").into();
    assert_eq!(refused.kind(), ErrorKind::ResourceBusy);
    let not_added = AddChannelError { channel: Opaque, why: BUSY };
    assert_eq!(is_error(&not_added), "the channel was not added to the wait set");
    assert!(format!("{not_added:?}").contains("EBUSY"));
    let (Opaque, why) = not_added.into_parts();
    assert_eq!(why, BUSY);
}
