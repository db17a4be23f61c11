//! Tasks of tokio on the loopback: each awaits its own requests, whatever is dropped.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use cq_core::cq::CompletionQueue;
use cq_core::wc::WcStatus;
use cq_verbs::async_event::AsyncEventType;
use cq_verbs::task::{DeviceEvents, Driver, Ended, RequestError, TaskChannel, TaskQp};
use cq_verbs::tracked::TrackedQp;
use cq_verbs::wr::SendWr;
use tokio::task::yield_now;
use tokio::time::timeout;
use transport_rxe_loop::{Access, Context, Cq, OwnedRegion, QpAttr, QpState, QueuePair};

type Failure = Box<dyn Error + Send + Sync>;

/// Longer than any step here takes.
const DEADLINE: Duration = Duration::from_secs(60);
const SLOT: usize = 8;

/// A slot of a region; it owns the memory that it is in.
#[derive(Clone, Debug)]
struct Slot {
    region: Arc<OwnedRegion>,
    offset: usize,
}

impl Slot {
    fn write(&self, number: u64) -> Result<(), Failure> {
        Ok(self.region.write(self.offset, &number.to_ne_bytes())?)
    }

    fn read(&self) -> Result<u64, Failure> {
        let mut bytes = [0; SLOT];
        self.region.read(self.offset, &mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

type Qp = TaskQp<QueuePair, Slot>;

struct End {
    qp: Qp,
    region: Arc<OwnedRegion>,
    driver: tokio::task::JoinHandle<Ended<Cq>>,
}

impl End {
    fn slot(&self, nth: usize) -> Slot {
        Slot { region: Arc::clone(&self.region), offset: nth * SLOT }
    }
}

/// Two connected ends, each with a driver of its own.
fn ends() -> Result<[End; 2], Failure> {
    let one = |context: Context| -> Result<_, Failure> {
        let (pd, channel) = (context.alloc_pd()?, context.create_channel()?);
        let cq = context.cq(16).channel(&channel).create()?;
        let qp = pd.qp(&cq).create()?;
        let region = Arc::new(pd.allocate(16 * SLOT, Access::LOCAL_WRITE)?);
        Ok((qp, Driver::new(CompletionQueue::new(cq), TaskChannel::new(channel)?), region))
    };
    let context = Context::open("loop0")?;
    let port = context.port(1)?;
    let [mut a, mut b] = [one(context)?, one(Context::open("loop0")?)?];
    a.0.connect(&port, &b.0.endpoint(&port))?;
    b.0.connect(&port, &a.0.endpoint(&port))?;
    Ok([a, b].map(|(qp, driver, region)| {
        let qp = Qp::new(TrackedQp::with_capacity(qp, 4, 4), &[&driver.handle()]);
        End { qp, region, driver: tokio::spawn(driver.run()) }
    }))
}

/// Returns each message, incremented.
async fn serve(end: Arc<End>, messages: u64) -> Result<(), Failure> {
    for _ in 0..messages {
        let slot = end.slot(0);
        let received =
            end.qp.receive(&[end.region.sge(slot.offset..slot.offset + SLOT)?], slot).await?;
        let answer = received.buffer;
        answer.write(answer.read()? + 1)?;
        end.qp
            .send(SendWr::send(0, &[end.region.sge(answer.offset..answer.offset + SLOT)?]), answer)
            .await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n06_a_thousand_calls_to_a_server_task_are_answered() -> Result<(), Failure> {
    const CALLS: u64 = 1000;
    let [client, server] = ends()?;
    let server = tokio::spawn(serve(Arc::new(server), CALLS));
    let calls = async {
        for number in 0..CALLS {
            let [out, back] = [client.slot(0), client.slot(1)];
            out.write(number)?;
            let sge = client.region.sge(back.offset..back.offset + SLOT)?;
            let answer = client.qp.post_recv(&[sge], back).await?;
            client
                .qp
                .send(SendWr::send(0, &[client.region.sge(out.offset..out.offset + SLOT)?]), out)
                .await?;
            assert_eq!(answer.await?.buffer.read()?, number + 1);
        }
        Ok::<(), Failure>(())
    };
    timeout(DEADLINE, calls).await??;
    timeout(DEADLINE, server).await??
}

#[tokio::test]
async fn a_receive_whose_future_was_dropped_keeps_its_memory_until_the_message_has_arrived()
-> Result<(), Failure> {
    let [a, b] = ends()?;
    let slot = b.slot(0);
    let (sges, memory) = ([b.region.sge(..SLOT)?], Arc::downgrade(&b.region));
    let owners = memory.strong_count();
    let receive = b.qp.receive(&sges, slot);
    assert!(timeout(Duration::from_millis(1), receive).await.is_err(), "dropped");
    assert_eq!(memory.strong_count(), owners, "the queue pair has the slot");
    a.slot(0).write(7)?;
    a.qp.send(SendWr::send(0, &[a.region.sge(..SLOT)?]), a.slot(0)).await?;
    let arrived = async {
        while memory.strong_count() == owners {
            yield_now().await;
        }
    };
    timeout(DEADLINE, arrived).await?;
    assert_eq!(b.slot(0).read()?, 7);
    Ok(())
}

#[tokio::test]
async fn a_failure_ends_the_requests_of_one_queue_pair_with_their_buffers() -> Result<(), Failure> {
    let [a, b] = ends()?;
    let receive = b.qp.post_recv(&[], b.slot(0)).await?;
    b.qp.modify(&QpAttr::new().state(QpState::ERR))?;
    let flushed = timeout(DEADLINE, receive).await?.unwrap_err();
    let RequestError::Failed(failed) = flushed.why else { panic!("{flushed}") };
    assert_eq!((failed.status(), flushed.buffer.unwrap().offset), (WcStatus::WR_FLUSH_ERR, 0));
    assert!(!a.driver.is_finished() && !b.driver.is_finished());
    Ok(())
}

#[tokio::test]
async fn an_overrun_ends_the_driver_and_an_asynchronous_event_tells_it() -> Result<(), Failure> {
    let context = Context::open("loop0")?;
    let (port, channel) = (context.port(1)?, context.create_channel()?);
    let cq = context.cq(1).channel(&channel).create()?;
    let mut qp = context.alloc_pd()?.qp(&cq).create()?;
    qp.connect(&port, &qp.endpoint(&port))?;
    let driver = Driver::new(CompletionQueue::new(cq), TaskChannel::new(channel)?);
    let qp = TaskQp::<_, u32>::new(TrackedQp::with_capacity(qp, 0, 64), &[&driver.handle()]);
    // More than the queue holds, before anybody polls.
    let mut receives = Vec::new();
    for number in 0..64 {
        receives.push(qp.post_recv(&[], number).await?);
    }
    qp.fail()?;
    let ended = timeout(DEADLINE, driver.run()).await?;
    assert!(ended.why.to_string().contains("can't be polled"), "{}", ended.why);
    let mut events = DeviceEvents::new(context)?;
    while timeout(DEADLINE, events.next()).await??.event_type != AsyncEventType::CQ_ERR {}
    for receive in receives {
        let lost = receive.await.unwrap_err();
        assert!(matches!(lost.why, RequestError::Failed(_) | RequestError::NotPolled), "{lost}");
    }
    Ok(())
}
