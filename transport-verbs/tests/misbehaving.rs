//! What devices, drivers and other users of libibverbs may do, and no device here can be made to do: on a stand-in for the
//! library.
#![allow(unsafe_code)]

mod common;
mod stand_in;
#[path = "common/subscriber.rs"]
mod subscriber;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::ptr;

use cq_verbs::async_event::{AsyncEvent, AsyncEventType, AsyncEvents as _, Element};
use cq_verbs::ledger::{Generation, Receives, Sends};
use rdma_sys::{ibv_create_cq, ibv_destroy_cq};

use common::*;
use stand_in::{Bad, raise_async, raise_completion, state};
use subscriber::Recorder;

fn open() -> Context {
    state(|state| *state = stand_in::State { rd_atomic: [16; 2], ..Default::default() });
    Context::open(stand_in::NAME).unwrap()
}

/// How often a function was called.
fn calls(name: &str) -> usize {
    state(|state| state.calls.iter().filter(|call| **call == name).count())
}

#[test]
fn n07_an_event_of_a_queue_that_other_code_made_names_no_object() {
    let mut context = open();
    let mut channel = context.create_channel().unwrap();
    let cq = context.cq(4).channel(&channel).create().unwrap();
    let raw = cq.as_raw();
    // SAFETY: the context and the channel are alive. What the pointer to the program's data is, is the program's affair.
    let foreign = unsafe {
        let (of, channel) = ((*raw).context, (*raw).channel);
        ibv_create_cq(of, 4, ptr::without_provenance_mut(8), channel, 0)
    };
    for (queue, element) in [(foreign, Element::Unknown), (raw, Element::Cq(cq.key()))] {
        // SAFETY: both queues are alive.
        unsafe { raise_async((*raw).context, queue.cast(), AsyncEventType::CQ_ERR.0) };
        let event = AsyncEvent { event_type: AsyncEventType::CQ_ERR, element };
        assert_eq!(context.take_async_event(), Ok(Some(event)));
    }
    assert_eq!(context.take_async_event(), Ok(None));
    assert_eq!(calls("ibv_ack_async_event"), 2);
    // SAFETY: as above.
    unsafe {
        raise_completion(foreign);
        raise_completion(raw);
    }
    assert_eq!(channel.take_event(), Ok(Some(cq.key())));
    assert_eq!(channel.take_event(), Ok(None));
    // SAFETY: it is alive, and destroyed once.
    unsafe {
        assert_eq!((*foreign).comp_events_completed, 1, "else destroying it hangs");
        ibv_destroy_cq(foreign);
    }
}

/// Who takes the event has it taken before the poll, or after it.
#[test]
fn o03_an_overrun_is_told_as_one_as_soon_as_anybody_knows() {
    const OVERRUN: Result<usize, PollError> = Err(PollError::Overrun { dropped: None });
    let failed = |code: i32| Err(PollError::Device(code));
    for (code, before_the_event) in [
        // What the driver of a card says where it finds an overrun; and so the loopback.
        (-libc::EOVERFLOW, OVERRUN),
        // Whatever this is.
        (-libc::EIO, failed(-libc::EIO)),
        (-1, failed(-1)),
        (-2, failed(-2)),
        (0, Ok(0)),
    ] {
        let mut context = open();
        let mut cq = context.cq(4).create().unwrap();
        let mut poll = || cq.poll_into(&mut [Wc::default()]);
        state(|state| state.polls = code);
        assert_eq!([poll(), poll()], [before_the_event; 2], "{code}");
        let raw = cq.as_raw();
        // SAFETY: the queue is alive.
        unsafe { raise_async((*raw).context, raw.cast(), AsyncEventType::CQ_ERR.0) };
        assert!(context.take_async_event().unwrap().is_some());
        let mut poll = || cq.poll_into(&mut [Wc::default()]);
        assert_eq!([poll(), poll()], [OVERRUN; 2], "{code}");
        // Whatever the device does then, as some that go on.
        state(|state| state.polls = 1);
        assert_eq!([poll(), poll()], [OVERRUN; 2], "{code}");
    }
}

/// One of each object.
#[allow(dead_code)]
struct Objects {
    region: OwnedRegion,
    handle: AddressHandle,
    qp: QueuePair,
    srq: SharedReceiveQueue,
    cq: Cq,
    channel: CompletionChannel,
    pd: ProtectionDomain,
    context: Context,
}

impl Objects {
    fn new(context: Context) -> Self {
        let pd = context.alloc_pd().unwrap();
        let channel = context.create_channel().unwrap();
        let cq = context.cq(4).channel(&channel).create().unwrap();
        let srq = pd.create_srq(&SrqInit::new(4)).unwrap();
        let qp = pd.qp(&cq).caps(CAPS).create().unwrap();
        let to = AddressVector::new(&context.port(1).unwrap(), Gid::default(), 7);
        let handle = pd.create_ah(&to).unwrap();
        let region = pd.allocate(PAGE, Access::LOCAL_WRITE).unwrap();
        Self { region, handle, qp, srq, cq, channel, pd, context }
    }
}

const PAGE: usize = 4096;

/// The functions that destroy one of each.
const DESTROY: [&str; 8] = [
    "ibv_dereg_mr",
    "ibv_destroy_ah",
    "ibv_destroy_qp",
    "ibv_destroy_srq",
    "ibv_destroy_cq",
    "ibv_destroy_comp_channel",
    "ibv_dealloc_pd",
    "ibv_close_device",
];

#[test]
fn q11_an_object_that_is_not_destroyed_is_logged_with_the_number_that_the_call_has() {
    for (nth, name) in DESTROY.into_iter().enumerate() {
        let recorder: &Recorder = Box::leak(Box::default());
        let objects = Objects::new(open());
        let errno = 1 + nth as i32;
        state(|state| state.fails.push((name, errno)));
        let listening = recorder.listens();
        drop((objects, listening));
        let error = std::io::Error::from_raw_os_error(errno);
        recorder.only("object not destroyed", &[("error", &error)]);
        assert!(DESTROY.iter().all(|of| calls(of) == usize::from(*of != name)), "{name}");
    }
}

/// The six bytes at an address, if there are any.
fn peek(addr: u64) -> Option<[u8; 6]> {
    let mut bytes = [0; 6];
    File::open("/proc/self/mem").unwrap().read_exact_at(&mut bytes, addr).ok()?;
    Some(bytes)
}

#[test]
fn q10_memory_that_the_device_does_not_deregister_stays_as_it_is() {
    let pd = open().alloc_pd().unwrap();
    let dropped = |bytes: &[u8; 6]| {
        let region = pd.allocate(PAGE, Access::LOCAL_WRITE).unwrap();
        region.write(0, bytes).unwrap();
        assert_eq!(peek(region.addr()), Some(*bytes));
        region.addr()
    };
    assert_ne!(peek(dropped(b"return")), Some(*b"return"));
    state(|state| state.fails.push(("ibv_dereg_mr", libc::EBUSY)));
    assert_eq!(peek(dropped(b"leaked")), Some(*b"leaked"));
}

#[test]
fn x07_a_forked_child_destroys_nothing_of_its_parent() {
    let recorder: &Recorder = Box::leak(Box::default());
    let mut objects = Some(Objects::new(open()));
    let region = &objects.as_ref().unwrap().region;
    region.write(0, b"parent").unwrap();
    let addr = region.addr();
    // Not in the child: another thread may be registering its recorder as this one forks.
    let listening = recorder.listens();
    in_child(|| {
        let Objects { region, .. } = objects.as_ref().unwrap();
        let none = Err(RangeError { offset: 0, len: 6, available: 0 });
        let is_unreachable = (region.read(0, &mut [0; 6]), region.write(0, b"child!"));
        let inherited = peek(addr);
        drop(objects.take());
        let is_told =
            ["queue pair destroyed", "completion queue destroyed", "object not destroyed"];
        is_unreachable == (none, none)
            && inherited.is_none()
            && DESTROY.iter().all(|name| calls(name) == 0)
            && is_told.iter().all(|text| recorder.seen(text, &[]).is_empty())
    });
    drop(listening);
    // What the child makes itself it destroys.
    in_child(|| {
        drop(Objects::new(open()));
        DESTROY.iter().all(|name| calls(name) == 1)
    });
    let mut back = [0; 6];
    objects.as_ref().unwrap().region.read(0, &mut back).unwrap();
    assert_eq!(&back, b"parent");
    drop(objects);
    assert!(DESTROY.iter().all(|name| calls(name) == 1));
}

#[test]
fn q04_what_a_device_may_have_posted_stays_outstanding() {
    let objects = Objects::new(open());
    let (mut qp, mut srq) = (objects.qp, objects.srq);
    qp.modify(&QpAttr::new().state(QpState::INIT)).unwrap();
    qp.modify(&QpAttr::new().state(QpState::RTS)).unwrap();
    let mut sends = Sends::<usize>::with_capacity(Generation::new(1), 64);
    let mut receives = Receives::<usize>::with_capacity(Generation::new(1), 64);
    for (bad, posted, why) in [
        (Bad::Nth(2), 2, WrError::Device(libc::EINVAL)),
        (Bad::Foreign, 16, WrError::Unknown(libc::EINVAL)),
        (Bad::Untouched, 16, WrError::Unknown(libc::EINVAL)),
    ] {
        state(|state| state.refuses = Some((libc::EINVAL, bad)));
        let error = Err(PostError { posted, why });
        let before = sends.outstanding();
        let mut list = [SendWr::send(0, &[]); 20];
        assert_eq!(sends.post_list(&mut qp, &mut list, |nth| nth), error);
        assert_eq!(receives.post_list(&mut qp, &mut [RecvWr::new(0, &[]); 20], |nth| nth), error);
        assert_eq!(
            (sends.outstanding(), receives.outstanding()),
            (before + posted, before + posted)
        );
        let shared = srq.post_recv(&[RecvWr::new(0, &[]); 16]).unwrap_err();
        assert_eq!((shared.posted, shared.why), (posted, why));
    }
    // A single one that may have been posted is not given back.
    sends.post(&mut qp, SendWr::send(0, &[]), 7).unwrap();
    receives.post(&mut qp, &[], 7).unwrap();
    assert_eq!((sends.outstanding(), receives.outstanding()), (35, 35));
    let mut discarded = 0;
    sends.restart(Generation::new(2), |_| discarded += 1);
    assert_eq!(discarded, 35);
}

/// A queue pair of a device that answers so many READs and atomics at a time, and sends so many.
fn of_device(rd_atomic: [i32; 2]) -> (Objects, Port) {
    state(|state| state.rd_atomic = rd_atomic);
    let objects = Objects::new(Context::open(stand_in::NAME).unwrap());
    let port = objects.context.port(1).unwrap();
    (objects, port)
}

#[test]
fn q01_neither_side_uses_more_reads_than_the_other_answers() {
    open();
    // What each side answers and sends, and what is agreed on: what the first sends, and what the second does.
    for ([a, b], agreed) in [
        ([[16, 16], [16, 16]], [16, 16]),
        ([[4, 2], [1, 16]], [1, 4]),
        ([[128, 128], [0, 3]], [0, 3]),
        ([[300, 300], [255, 17]], [16, 16]),
    ] {
        let ((mut a, port), (mut b, _)) = (of_device(a), of_device(b));
        let (to_a, to_b) = (a.qp.endpoint(&port), b.qp.endpoint(&port));
        state(|state| state.modified.clear());
        a.qp.connect(&port, &to_b).unwrap();
        b.qp.connect(&port, &to_a).unwrap();
        let modified = state(|state| std::mem::take(&mut state.modified));
        let (of_a, of_b) = modified.split_at(3);
        let sent = [of_a, of_b].map(|steps| steps[2].max_rd_atomic);
        let answered = [of_b, of_a].map(|steps| steps[1].max_dest_rd_atomic);
        assert_eq!(sent, agreed);
        assert!(sent[0] <= answered[0] && sent[1] <= answered[1], "{answered:?}");
        assert_eq!(answered, [to_b, to_a].map(|end| end.responder_resources));
    }
}
