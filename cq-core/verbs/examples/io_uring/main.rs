//! A custom transport over io_uring(7): reads of files as completions. The program reads its own executable, several
//! blocks at a time. `ring` is the transport, `reads` owns the buffers, `kit` checks the transport by the rules.
//!
//! `cargo run -p cq-verbs --example io_uring`. It needs Linux 6.0.

mod kit;
mod reads;
mod ring;

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use cq_core::cq::CompletionQueue;
use cq_core::wc::{Failed, Wc, WcStatus};
use rustix::io::Errno;

use self::reads::{Block, Reads};
use self::ring::{Channel, DEPTH, Queue, Ring};

const EXECUTABLE: &str = "/proc/self/exe";
const BLOCK: usize = 64 << 10;

struct Reader {
    cq: CompletionQueue<Queue>,
    channel: Channel,
    reads: Reads,
}

impl Reader {
    /// Sleeps until reads have completed. Passes on the block of each, and how many bytes were read.
    fn wait(
        &mut self,
        mut each: impl FnMut(&mut Reads, Block, Result<usize, Failed>) -> Result<(), anyhow::Error>,
    ) -> Result<(), anyhow::Error> {
        let (mut wcs, end) = ([Wc::default(); DEPTH], Instant::now() + Duration::from_secs(60));
        let batch = self.cq.wait(&mut wcs, &mut self.channel, Some(end))?;
        if batch.is_empty() {
            bail!("no read has completed for a minute");
        }
        for wc in batch {
            let read = self.reads.retire(wc).context("a completion of no read")?;
            each(&mut self.reads, read.token, read.result.map(|done| done.byte_len() as usize))?;
        }
        Ok(())
    }

    /// Reads a file while `others` other reads are in flight. Returns its bytes and the number of reads.
    fn read_all(&mut self, file: &File, others: usize) -> Result<(Vec<u8>, usize), anyhow::Error> {
        let (mut copy, mut count) = (vec![0; file.metadata()?.len() as usize], 0);
        let mut offsets = (0..copy.len()).step_by(BLOCK);
        for offset in offsets.by_ref().take(DEPTH - others) {
            self.reads.post(file.as_fd(), Block { offset, bytes: vec![0; BLOCK] })?;
        }
        while self.reads.outstanding() > others {
            self.wait(|reads, block, result| {
                let bytes = &block.bytes[..result?];
                copy[block.offset..][..bytes.len()].copy_from_slice(bytes);
                count += 1;
                // The buffer is used for another block.
                match offsets.next() {
                    Some(offset) => Ok(reads.post(file.as_fd(), Block { offset, ..block })?),
                    None => Ok(()),
                }
            })?;
        }
        Ok((copy, count))
    }
}

fn main() -> Result<(), anyhow::Error> {
    let ring = Ring::new()?;
    let (cq, channel) = (CompletionQueue::new(Queue(Rc::clone(&ring))), Channel(Rc::clone(&ring)));
    let mut reader = Reader { cq, channel, reads: Reads::new(ring) };

    // The pipe is empty, so the read that is posted first ends after all others.
    let (pipe, filled) = rustix::pipe::pipe()?;
    reader.reads.post(pipe.as_fd(), Block { offset: 0, bytes: vec![0; BLOCK] })?;
    let (copy, count) = reader.read_all(&File::open(EXECUTABLE)?, 1)?;
    assert!(copy == fs::read(EXECUTABLE)?, "the bytes are not those of a plain read");
    println!("{} bytes in {count} reads are those of a plain read", copy.len());

    rustix::io::write(&filled, b"late")?;
    reader.wait(|_, block, result| {
        assert_eq!(&block.bytes[..result?], b"late");
        println!("the read that was posted first has completed last");
        Ok(())
    })?;

    // This end of the pipe can't be read.
    reader.reads.post(filled.as_fd(), Block { offset: 0, bytes: vec![0; BLOCK] })?;
    reader.wait(|_, _, result| {
        let failed = result.err().context("the wrong end of a pipe was read")?;
        assert_eq!(failed.vendor_err(), Errno::BADF.raw_os_error() as u32);
        println!("{failed}");
        Ok(())
    })?;

    // Dropping the reads cancels what is in flight, and waits for it.
    reader.reads.post(pipe.as_fd(), Block { offset: 0, bytes: vec![0; BLOCK] })?;
    let Reader { mut cq, reads, .. } = reader;
    drop(reads);
    let cancelled: Vec<_> = cq.poll(&mut [Wc::default(); DEPTH])?.iter().map(Wc::status).collect();
    assert_eq!(cancelled, [WcStatus::WR_FLUSH_ERR]);
    Ok(kit::check()?)
}

/// Fails where io_uring is not permitted, instead of passing without a check.
#[test]
fn it_runs() -> Result<(), anyhow::Error> {
    main()
}
