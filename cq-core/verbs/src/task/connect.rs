//! Connecting over a socket.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::TaskQp;
use crate::device::DeviceQp;
use crate::exchange::{ConnectError, ExchangeError, Next, Step, Swap};
use crate::setup::{Endpoint, Port};

impl<Q: DeviceQp, B: Send + 'static> TaskQp<Q, B> {
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
    pub async fn connect_over<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: &mut S,
        port: &Port,
    ) -> Result<Endpoint, ConnectError> {
        let mine = self.query(|qp| qp.endpoint(port).to_bytes());
        let theirs = swap(stream, Step::Endpoint, mine).await?;
        let peer = Endpoint::from_bytes(&theirs).map_err(ExchangeError::from)?;
        self.connect(port, &peer)?;
        swap(stream, Step::Ready, []).await?;
        Ok(peer)
    }
}

async fn swap<const N: usize>(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    step: Step,
    body: [u8; N],
) -> Result<[u8; N], ExchangeError> {
    let mut swap = Swap::new(step, body);
    loop {
        let bytes = match swap.next()? {
            Next::Send(bytes) => match stream.write(bytes).await {
                Ok(sent) => stream.flush().await.map(|()| sent),
                failed => failed,
            },
            Next::Receive(buffer) => stream.read(buffer).await,
            Next::Done(theirs) => return Ok(theirs),
        };
        swap.did(bytes.map(Some))?;
    }
}
