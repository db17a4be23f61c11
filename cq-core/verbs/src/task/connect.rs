//! Connecting over a socket.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::TaskQp;
use crate::device::QueuePair;
use crate::exchange::{ConnectError, ExchangeError, HEADER, Step, frame, judge};
use crate::setup::{Endpoint, Port};
use crate::tracked::Credit;

impl<Q, B, const SENDS: usize, const RECEIVES: usize, C> TaskQp<Q, B, SENDS, RECEIVES, C>
where
    Q: QueuePair,
    B: Send + 'static,
    C: Credit + Send + 'static,
{
    /// Connects a queue pair in RESET to that of the peer at the other end of a stream. The peer calls this, too, or
    /// [`connect_over`](crate::exchange::connect_over). Both may send when it returns. Linux.
    ///
    /// Keep the stream: it ends when the peer dies. A message that comes before this side has posted a receive waits for
    /// it; on an unreliable connection it is lost.
    ///
    /// # Cancel safety
    /// If the future is dropped, as by a timeout, drop the stream and the queue pair.
    ///
    /// # Errors
    /// The exchange failed, or the queue pair did not go to RTS.
    pub async fn connect_over<S>(
        &self,
        stream: &mut S,
        port: &Port,
    ) -> Result<Endpoint, ConnectError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mine = self.with(|qp| qp.endpoint(port).to_bytes());
        let theirs = swap(stream, Step::Endpoint, &mine).await?;
        let peer = Endpoint::from_bytes(&theirs).map_err(ExchangeError::from)?;
        self.connect(port, &peer)?;
        swap(stream, Step::Ready, &[]).await?;
        Ok(peer)
    }
}

/// Sends a frame and reads the peer's.
async fn swap<S, const N: usize>(
    stream: &mut S,
    step: Step,
    body: &[u8; N],
) -> Result<[u8; N], ExchangeError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut header, mut theirs) = ([0; HEADER], [0; N]);
    let sent = stream.write_all(&frame(step, body)).await;
    // A peer that refused the frame may have sent something before it closed the stream.
    read(stream, &mut header, 0, HEADER + N).await?;
    judge(header, step)?;
    read(stream, &mut theirs, HEADER, HEADER + N).await?;
    sent?;
    Ok(theirs)
}

/// Fills the part of a frame of `size` bytes that follows the first `before`.
async fn read(
    stream: &mut (impl AsyncRead + Unpin),
    part: &mut [u8],
    before: usize,
    size: usize,
) -> Result<(), ExchangeError> {
    let mut filled = 0;
    while filled < part.len() {
        match stream.read(&mut part[filled..]).await? {
            0 => return Err(ExchangeError::Closed { received: before + filled, size }),
            count => filled += count,
        }
    }
    Ok(())
}
