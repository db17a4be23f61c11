//! librpma's calls over scripted transports and a fake device (R1–R3), and the table of its other calls.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, AsRawFd};

use cq_core::observe::{Observed, Observer};
use cq_verbs::descriptor;
use cq_verbs::device::Device;
use cq_verbs::rpma::{Conn, Cq, RpmaError};

use super::device::{Fake, REFUSED};
use super::*;

const ARM: Call = Call::Arm(Notify::Next);
const SECOND: Duration = Duration::from_secs(1);

fn script() -> Script<16> {
    Script::new(KEY)
}

/// A queue that was armed and has a channel of its own.
fn cq(script: &Script<16>) -> Cq<&Script<16>, &Script<16>> {
    Cq::new(script, Some(script)).unwrap()
}

/// A queue that was armed and shares its channel.
fn sharing(script: &Script<16>) -> Cq<&Script<16>, &Script<16>> {
    Cq::new(script, None).unwrap()
}

#[test]
fn r01_an_empty_buffer_is_invalid_and_the_queue_is_not_polled() {
    let script = script().on_poll(Err(PollError::Failed)).on_poll(Ok(&[send(1)]));
    let mut cq = cq(&script);
    assert_eq!(cq.get_wc(&mut []), Err(RpmaError::Inval));
    assert_eq!(script.calls(), [ARM]);
    assert_eq!(cq.get_wc(&mut [send(0)]), Err(WaitError::from(PollError::Failed).into()));
}

#[test]
fn r01_the_oldest_completions_are_returned_with_their_count() {
    let script = script().on_poll(Ok(&[send(1), failed(2), recv(3)]));
    let (mut cq, mut wc) = (cq(&script), [send(0); 2]);
    assert_eq!(cq.get_wc(&mut wc), Ok(&[send(1), failed(2)][..]));
    assert_eq!(cq.get_wc(&mut wc), Ok(&[recv(3)][..]), "one of two");
    assert_eq!(cq.get_wc(&mut wc), Err(RpmaError::NoCompletion));
    assert_eq!(wc, [recv(3), failed(2)]);
    assert_eq!(script.calls(), [ARM, Call::Poll(2), Call::Poll(2), Call::Poll(2)]);
}

#[test]
fn r01_a_poll_that_fails_is_of_the_provider_and_a_count_above_the_buffer_unknown() {
    for error in [PollError::Device(5), PollError::Overrun { dropped: Some(2) }, PollError::Closed]
    {
        let script = script().on_poll(Err(error));
        let polled = Err(RpmaError::Provider(WaitError::Poll(error)));
        assert_eq!(cq(&script).get_wc(&mut [send(0); 2]), polled);
    }
    for returned in [3, usize::MAX] {
        let script = script().on_poll_claim(returned);
        let error = WaitError::Poll(PollError::Misbehaved { asked: 2, returned });
        assert_eq!(cq(&script).get_wc(&mut [send(0); 2]), Err(RpmaError::Unknown(error)));
    }
    let full = script().on_poll_claim(2);
    assert_eq!(cq(&full).get_wc(&mut [send(7); 2]), Ok(&[send(7); 2][..]));
}

#[test]
fn r02_a_queue_is_armed_from_the_start_or_is_not_made() {
    let script = script();
    let (_own, _shared) = (cq(&script), sharing(&script));
    assert_eq!(script.calls(), [ARM, ARM]);
    let refusing = self::script().on_arm(Err(ArmError::NoChannel));
    let refused = Cq::new(&refusing, Some(&refusing)).map(drop);
    assert_eq!(refused, Err(RpmaError::Provider(ArmError::NoChannel.into())));
    let (_raiser, channel) = descriptor::channel(1).unwrap();
    let script = self::script();
    let refused = Cq::new(&script, Some(channel)).map(drop);
    assert_eq!(refused, Err(RpmaError::Provider(WaitError::WrongChannel(KEY))));
    assert_eq!(script.calls(), [], "not armed");
}

/// Counts the events that the queue is told of.
struct Taken<'a>(&'a Cell<u32>);

impl Observer for Taken<'_> {
    fn polled(&mut self, _: &dyn PollCq<Entry = Wc>, _: usize, _: &[Wc]) {}

    fn took_events(&mut self, count: u32) {
        self.0.set(self.0.get() + count);
    }
}

#[test]
fn r02_a_wait_takes_one_event_and_arms_again() {
    let script = script().on_event(Ok(KEY)).on_event(Ok(KEY)).on_block(Ok(SECOND));
    let script = script.on_block(Ok(SECOND)).on_event(Ok(KEY));
    let taken = Cell::new(0);
    let mut cq = Cq::new(Observed::new(&script, Taken(&taken)), Some(&script)).unwrap();
    for count in 1..=3 {
        assert_eq!(cq.wait(None), Ok(()));
        assert_eq!(taken.get(), count);
    }
    let (take, sleep) = ([Call::Event, ARM], [Call::Event, Call::Block(None)]);
    let calls = [&[ARM][..], &take, &take, &sleep, &sleep, &take].concat();
    assert_eq!(script.calls(), &calls[..], "a spurious wake-up is slept past");
}

#[test]
fn r02_without_an_event_before_the_deadline_or_a_signal_there_is_no_completion() {
    let end = Some(SECOND);
    for script in [script(), script().on_interrupt()] {
        assert_eq!(cq(&script).wait(end), Err(RpmaError::NoCompletion));
        assert_eq!(script.calls(), [ARM, Call::Event, Call::Block(end), Call::Event]);
    }
    // One that comes at that moment is taken.
    for script in [script().on_block(Ok(2 * SECOND)), script().on_interrupt()] {
        let script = script.on_event(Ok(KEY));
        assert_eq!(cq(&script).wait(end), Ok(()));
        assert_eq!(script.calls().last(), Some(&ARM));
    }
}

#[test]
fn r02_what_fails_is_of_the_provider_and_the_event_of_another_queue_unknown() {
    let (device, arm) = (EventError::Device(5), ArmError::Device(5));
    for (script, error) in [
        (script().on_event(Err(device)), RpmaError::Provider(device.into())),
        (script(), RpmaError::Provider(ASLEEP_FOR_EVER.into())),
        (script().on_arm(Ok(Armed::Armed)).on_event(Ok(KEY)).on_arm(Err(arm)), {
            RpmaError::Provider(arm.into())
        }),
        (script().on_event(Ok(OTHER)), RpmaError::Unknown(WaitError::OtherQueue(OTHER))),
    ] {
        assert_eq!(cq(&script).wait(None), Err(error));
        assert_eq!(script.done(), Ok(()));
        let arms = script.calls().iter().filter(|call| **call == ARM).count();
        assert_eq!(arms, if error == RpmaError::Provider(arm.into()) { 2 } else { 1 });
    }
}

#[test]
fn r02_a_shared_channel_is_refused_and_nothing_is_taken_or_armed() {
    let script = script().on_event(Ok(KEY));
    let mut cq = sharing(&script);
    assert_eq!(cq.wait(Some(SECOND)), Err(RpmaError::SharedChannel));
    assert_eq!(script.calls(), [ARM]);
    // Its events are the program's, which tells the queue.
    assert_eq!((&script).take_event(), Ok(Some(KEY)));
    let unknown = RpmaError::Unknown(WaitError::OtherQueue(OTHER));
    assert_eq!((cq.took_event(OTHER), cq.took_event(KEY)), (Err(unknown), Ok(())));
    assert_eq!(script.calls(), [ARM, Call::Event, ARM]);
}

#[test]
fn r02_no_completion_is_lost_between_polls_and_waits() {
    const COUNT: u64 = 20_000;
    let (mut storage, event_count) = (SoftCq::<8>::new(), EventCount::default());
    let (mut device, queue) = storage.split_with(&event_count);
    let mut cq = Cq::new(queue, Some(&event_count)).unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            for wr_id in 0..COUNT {
                while device.push(&send(wr_id)) == Err(PushError::Full) {
                    thread::yield_now();
                }
            }
        });
        let (mut wc, mut next) = ([send(0); 3], 0);
        while next < COUNT {
            cq.wait(None).unwrap(); // the event_count has a deadline
            let error = loop {
                match cq.get_wc(&mut wc) {
                    Ok(got) => got.iter().for_each(|wc| {
                        assert_eq!(wc.wr_id(), next);
                        next += 1;
                    }),
                    Err(error) => break error,
                }
            };
            let closed = RpmaError::Provider(PollError::Closed.into());
            assert!(error == RpmaError::NoCompletion || (error == closed && next == COUNT));
        }
    });
}

#[test]
fn r02_the_descriptor_is_that_of_the_channel_which_is_not_shared() {
    let (raiser, channel) = descriptor::channel(1).unwrap();
    let (script, fd) = (Script::<1>::new(raiser.key()), channel.as_raw_fd());
    let own = Cq::new(&script, Some(channel)).unwrap();
    assert_eq!(own.get_fd().unwrap().as_raw_fd(), fd);
    let shared = Cq::<_, descriptor::Receiver>::new(&script, None).unwrap();
    assert_eq!(shared.get_fd().unwrap_err(), RpmaError::SharedChannel);
}

#[test]
fn r03_receives_complete_in_their_own_queue_if_its_size_is_not_0() {
    for (rcq_size, sizes, queues) in [(0, &[10][..], [1, 1]), (20, &[10, 20], [1, 2])] {
        let device = Fake::default();
        let mut conn = Conn::new(&device, 10, rcq_size, None).unwrap();
        conn.qp(&device).create().unwrap();
        let mut fds = vec![conn.get_cq().get_fd().ok().map(|fd| fd.as_raw_fd())];
        fds.extend(conn.get_rcq().map(|rcq| rcq.get_fd().ok().map(|fd| fd.as_raw_fd())));
        device.with(|made| {
            assert_eq!(made.cqs, sizes);
            assert_eq!(made.qps[0].0, queues, "of sends and of receives");
            assert_eq!(made.channels, fds, "each has its own");
        });
        assert_eq!(fds.iter().collect::<BTreeSet<_>>().len(), sizes.len());
    }
}

#[test]
fn r03_the_queues_of_a_connection_can_share_a_channel() {
    let device = Fake::default();
    let channel = device.create_channel().unwrap();
    let mut conn = Conn::new(&device, 10, 20, Some(&channel)).unwrap();
    assert_eq!(device.with(|made| made.channels.clone()), [Some(channel.as_fd().as_raw_fd()); 2]);
    assert_eq!(conn.get_cq().wait(None), Err(RpmaError::SharedChannel));
    assert_eq!(conn.get_rcq().unwrap().wait(None), Err(RpmaError::SharedChannel));
    device.with(|made| made.refuses = true);
    assert_eq!(Conn::new(&device, 10, 0, None).unwrap_err(), RpmaError::Create(REFUSED));
}

/// The pages of librpma 1.3, without `rpma_`, as its index lists them.
const PAGES: &str = "
    atomic_write conn_apply_remote_peer_cfg conn_cfg_delete conn_cfg_get_compl_channel conn_cfg_get_cq_size
    conn_cfg_get_rcq_size conn_cfg_get_rq_size conn_cfg_get_sq_size conn_cfg_get_srq conn_cfg_get_timeout conn_cfg_new
    conn_cfg_set_compl_channel conn_cfg_set_cq_size conn_cfg_set_rcq_size conn_cfg_set_rq_size conn_cfg_set_sq_size
    conn_cfg_set_srq conn_cfg_set_timeout conn_delete conn_disconnect conn_get_compl_fd conn_get_cq conn_get_event_fd
    conn_get_private_data conn_get_qp_num conn_get_rcq conn_next_event conn_req_connect conn_req_delete
    conn_req_get_private_data conn_req_new conn_req_recv conn_wait cq_get_fd cq_get_wc cq_wait ep_get_fd ep_listen
    ep_next_conn_req ep_shutdown err_2str flush log_get_threshold log_set_function log_set_threshold mr_advise mr_dereg
    mr_get_descriptor mr_get_descriptor_size mr_get_ptr mr_get_size mr_reg mr_remote_delete mr_remote_from_descriptor
    mr_remote_get_flush_type mr_remote_get_size peer_cfg_delete peer_cfg_from_descriptor peer_cfg_get_descriptor
    peer_cfg_get_descriptor_size peer_cfg_get_direct_write_to_pmem peer_cfg_new peer_cfg_set_direct_write_to_pmem
    peer_delete peer_new read recv send send_with_imm srq_cfg_delete srq_cfg_get_rcq_size srq_cfg_get_rq_size
    srq_cfg_new srq_cfg_set_rcq_size srq_cfg_set_rq_size srq_delete srq_get_rcq srq_new srq_recv utils_conn_event_2str
    utils_get_ibv_context utils_ibv_context_is_odp_capable write write_with_imm";

/// The names that a shell expands this to.
fn expand(name: &str) -> Vec<String> {
    let Some((before, rest)) = name.split_once('{') else { return vec![name.to_owned()] };
    let (choices, after) = rest.split_once('}').unwrap();
    let expanded = choices.split(',').map(|choice| format!("{before}{choice}{after}"));
    expanded.flat_map(|name| expand(&name)).collect()
}

#[test]
fn the_table_has_each_page_of_librpma_once() {
    let source = include_str!("../../src/rpma.rs");
    let rows = source.lines().filter_map(|line| line.strip_prefix("//! | `")?.split(" | ").next());
    let spans = rows.flat_map(|cell| cell.split('`').step_by(2).map(expand)).flatten();
    let mut listed: Vec<_> = spans.filter(|name| !name.is_empty()).collect();
    listed.sort_unstable();
    let pages: Vec<_> = PAGES.split_whitespace().collect();
    assert_eq!(listed, pages);
}
