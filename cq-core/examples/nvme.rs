//! An NVMe driver and a controller, over a pair of queues: commands of 64 bytes go one way, completions of 16 bytes come back.
//! The controller, a thread, completes commands in another order than they were submitted in.
//!
//! `cargo run -p cq-core --example nvme`

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use bytemuck::{Pod, Zeroable, zeroed};
use cq_core::entry::{Entry, InArray};
use cq_core::queue::{Consumer, Producer, SoftCq};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;
/// The memory that the controller reaches: a page for each command id, here of one word. The queues order all accesses.
type Pages = [AtomicU64; DEPTH];

const DEPTH: usize = 32;
const BLOCKS: u64 = 100_000; // each has its number, inverted
const WRITE: u8 = 1;
const READ: u8 = 2;
const SUCCESS: u16 = 0;
const LBA_OUT_OF_RANGE: u16 = 0x80 << 1; // beside the phase bit

/// A submission queue entry.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Command {
    opcode: u8,
    flags: u8,
    id: u16,
    unused: [u32; 5],
    prp: [u64; 2], // addresses of the data; here the number of a page
    lba: u64,
    dwords: [u32; 4],
}

impl Entry for Command {
    type Generation = InArray;
}

/// A completion queue entry.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Completion {
    result: u64,
    sq: [u16; 2],
    id: u16,
    status: u16,
}

/// The status has one phase bit, and a generation needs two. So generations are in an array, and the phase bit stays 0.
impl Entry for Completion {
    type Generation = InArray;
}

/// The controller: executes commands until the driver is gone.
fn control(
    mut commands: Consumer<'_, Command>,
    mut completions: Producer<'_, Completion>,
    pages: &Pages,
) -> Result<()> {
    let mut disk = vec![0; BLOCKS as usize];
    while let Ok(batch) = commands.poll_in_place(DEPTH) {
        for command in batch.iter().rev() {
            // Before its slot is released: so the driver may find the queue full, and waits.
            let status = execute(command, &mut disk, pages);
            completions.push(&Completion { id: command.id, status, ..zeroed() })?;
        }
        drop(batch);
        thread::yield_now();
    }
    Ok(())
}

fn execute(command: &Command, disk: &mut [u64], pages: &Pages) -> u16 {
    let Some(block) = disk.get_mut(command.lba as usize) else { return LBA_OUT_OF_RANGE };
    let page = &pages[command.prp[0] as usize];
    match command.opcode {
        WRITE => *block = page.load(Relaxed),
        _ => page.store(*block, Relaxed),
    }
    SUCCESS
}

struct Driver<'q> {
    commands: Producer<'q, Command>,
    completions: Consumer<'q, Completion>,
    pages: &'q Pages,
    /// The block of each command in flight, by its id. So no more than `DEPTH` are, and the completion queue can't overrun.
    in_flight: [Option<u64>; DEPTH],
}

impl Driver<'_> {
    /// Submits commands for the next blocks, as many as there are free ids.
    fn submit(&mut self, opcode: u8, lbas: impl Iterator<Item = u64>) -> Result<()> {
        let free = self.in_flight.iter_mut().enumerate().filter(|(_, lba)| lba.is_none());
        for ((id, in_flight), lba) in free.zip(lbas) {
            self.pages[id].store(if opcode == WRITE { !lba } else { 0 }, Relaxed);
            let command = Command { opcode, id: id as u16, prp: [id as u64, 0], lba, ..zeroed() };
            // The controller completes commands before it releases their slots: the queue may be full for a moment.
            self.commands.push_or_wait(&command, thread::yield_now)?;
            *in_flight = Some(lba);
        }
        Ok(())
    }

    /// Takes what has completed, checks it, and returns how many commands that were.
    fn complete(&mut self) -> Result<u64> {
        let batch = self.completions.poll_in_place(DEPTH)?;
        for completion in &batch {
            // A controller's number is not trusted to be one of ours.
            let id = usize::from(completion.id);
            let lba = self.in_flight.get_mut(id).and_then(Option::take).ok_or("an unknown id")?;
            match (completion.status, lba < BLOCKS) {
                (SUCCESS, true) if self.pages[id].load(Relaxed) == !lba => {}
                (LBA_OUT_OF_RANGE, false) => {}
                (status, _) => return Err(format!("block {lba}: wrong data, or status {status}"))?,
            }
        }
        Ok(batch.len() as u64)
    }
}

fn main() -> Result<()> {
    let mut submission_queue = SoftCq::<DEPTH, Command>::of_entries();
    let mut completion_queue = SoftCq::<DEPTH, Completion>::of_entries();
    let (commands, to_execute) = submission_queue.split();
    let (executed, completions) = completion_queue.split();
    let pages = [const { AtomicU64::new(0) }; DEPTH];
    thread::scope(|threads| {
        let controller = threads.spawn(|| control(to_execute, executed, &pages));
        let mut driver = Driver { commands, completions, pages: &pages, in_flight: [None; DEPTH] };
        for opcode in [WRITE, READ] {
            let (mut lbas, mut completed) = (0..=BLOCKS, 0); // the last is behind the end: it fails
            while completed <= BLOCKS {
                driver.submit(opcode, &mut lbas)?;
                completed += driver.complete()?;
                thread::yield_now();
            }
        }
        println!("{BLOCKS} blocks are written, read and checked");
        drop(driver); // then the controller ends
        controller.join().expect("the controller does not panic")
    })
}

#[test]
fn it_runs() -> Result<()> {
    main()
}
