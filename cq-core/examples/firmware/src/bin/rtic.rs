//! Two queues under RTIC. Of the first the timer's task owns the producer, so its push needs no lock, and an asynchronous
//! task awaits it. Tasks of two priorities push to the second: they share its producer, and `lock` keeps the higher one from
//! interrupting a push. The idle task sleeps until it has a completion.
//!
//! `cargo run --bin rtic --features rtic --target thumbv7m-none-eabi`
#![no_std]
#![no_main]
#![deny(unsafe_code)]

#[rtic::app(device = lm3s6965, dispatchers = [SSI0])]
mod app {
    use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use cortex_m::peripheral::syst::SystClkSource;
    use cq_core::channel::Share;
    use cq_core::channel::flag::{self, Flag, Sleeper};
    use cq_core::channel::waker::{self, WakerChannel};
    use cq_core::cq::CompletionQueue;
    use cq_core::queue::{Consumer, OnChannel, Producer, SoftCq};
    use firmware::board;
    use semihosting::{println, process};

    type Waker = waker::Raiser<Share<'static, WakerChannel>>;
    type Raiser = flag::Raiser<'static>;
    type Cq<C> = CompletionQueue<Consumer<'static, u32, OnChannel<C>>>;

    /// How many transfers a task reports to a queue, at least.
    const TRANSFERS: u32 = 150;
    /// In the shared queue, the bit of those that the task of the higher priority has pushed.
    const URGENT: u32 = 1 << 31;

    /// How many transfers of the first queue the asynchronous task has got.
    static AWAITED: AtomicU32 = AtomicU32::new(0);

    #[shared]
    struct Shared {
        queue: Producer<'static, u32, Raiser>,
    }

    #[local]
    struct Local {
        owned: Producer<'static, u32, Waker>,
        awaited: Cq<Waker>,
        events: waker::Receiver<Share<'static, WakerChannel>>,
        cq: Cq<Raiser>,
        channel: Sleeper<'static, fn(&flag::Receiver<'static>)>,
    }

    #[init(local = [
        one: SoftCq<16, u32> = SoftCq::of_entries(),
        waker: WakerChannel = WakerChannel::new(),
        other: SoftCq<16, u32> = SoftCq::of_entries(),
        flag: Flag = Flag::new(),
    ])]
    fn init(cx: init::Context) -> (Shared, Local) {
        let (waker, events) = cx.local.waker.split();
        let (owned, awaited) = cx.local.one.split_with(waker);
        let (raiser, flag) = cx.local.flag.split();
        let (queue, consumer) = cx.local.other.split_with(raiser);

        let mut timer = cx.core.SYST;
        timer.set_clock_source(SystClkSource::Core);
        timer.set_reload(20_000);
        timer.enable_interrupt();
        timer.enable_counter();
        receive::spawn().expect("it is spawned once");
        let (awaited, cq) = (CompletionQueue::new(awaited), CompletionQueue::new(consumer));
        (Shared { queue }, Local { owned, awaited, events, cq, channel: flag.sleeping(sleep) })
    }

    /// Sleeps until an interrupt, unless an event is pending. The section masks by PRIMASK, so an interrupt ends the sleep; a
    /// `lock` masks by BASEPRI, and would not let it.
    fn sleep(events: &flag::Receiver<'static>) {
        critical_section::with(|_| {
            if !events.is_pending() {
                board::wait_for_interrupt();
            }
        });
        board::take_interrupts();
    }

    /// Pushes to its own queue and to the shared one. The urgent task is pended before the push, and runs after it.
    #[task(binds = SysTick, priority = 1, local = [owned, transfer: u32 = 0], shared = [queue])]
    fn on_timer(mut cx: on_timer::Context) {
        let transfer = *cx.local.transfer;
        *cx.local.transfer += 1;
        // An overrun is latched in the queue, and the consumer gets it.
        let _ = cx.local.owned.push_or_overrun(&transfer);
        cx.shared.queue.lock(|queue| {
            rtic::pend(lm3s6965::Interrupt::GPIOA);
            let _ = queue.push_or_overrun(&transfer);
        });
    }

    #[task(binds = GPIOA, priority = 2, local = [transfer: u32 = 0], shared = [queue])]
    fn on_urgent(mut cx: on_urgent::Context) {
        let transfer = *cx.local.transfer;
        *cx.local.transfer += 1;
        let _ = cx.shared.queue.lock(|queue| queue.push_or_overrun(&(transfer | URGENT)));
    }

    #[task(priority = 1, local = [awaited, events])]
    async fn receive(cx: receive::Context) {
        let mut buffer = [0; 4];
        loop {
            let batch = cx.local.awaited.next_batch(&mut buffer, cx.local.events).await;
            for &transfer in batch.expect("it keeps up") {
                assert_eq!(
                    transfer,
                    AWAITED.load(Relaxed),
                    "a completion is missing, or came twice"
                );
                AWAITED.store(transfer + 1, Relaxed);
            }
        }
    }

    #[idle(local = [cq, channel])]
    fn idle(cx: idle::Context) -> ! {
        let (mut buffer, mut done) = ([0; 4], [0, 0]);
        while done.iter().any(|&done| done < TRANSFERS) {
            let batch = cx.local.cq.wait(&mut buffer, cx.local.channel, None);
            for &transfer in batch.expect("it keeps up") {
                let done = &mut done[usize::from(transfer & URGENT != 0)];
                assert_eq!(transfer & !URGENT, *done, "a completion is missing, or came twice");
                *done += 1;
            }
        }
        let awaited = AWAITED.load(Relaxed);
        assert!(awaited >= TRANSFERS, "the task that awaits has a higher priority");
        println!("awaited: {awaited} transfers");
        println!("from two priorities: {} transfers", done[0] + done[1]);
        process::exit(0)
    }
}
