//! The text of the help.

/// What the help of the program begins with.
pub const ABOUT: &str = "\
Measures two queue pairs that exchange messages through completion queues, and checks every byte.

Without a command: ping-pongs of 64 bytes by SEND, polled and by events, and by RDMA WRITE, and a stream of SENDs.";

/// What all helps end with.
pub const DETAILS: &str = "\
Each end runs in a thread of its own, on a core of its own if there are two. Every byte of every message is
compared with what its number and time stamp determine, which detects stale, torn and misplaced bytes.

Operations (--op), for both commands:
  send   SEND to a receive of the peer, which sends the message back, or returns credits
  write  RDMA WRITE to memory of the peer, which polls the last byte, and answers likewise; it gets no
         completion, so --events is not available
  read   RDMA READ of memory of the peer, which is idle; the bytes differ from read to read
  cas    compare and swap of a counter in memory of the peer with the next number
  faa    fetch and add of 1. Each atomic must find the value that the previous one left

Latencies of send and write are one way: half of a ping-pong's round trip; for a stream, from the start of
writing a batch until the message is found, which includes queueing. Those of read, cas and faa are of the
whole operation, from posting its batch to polling its completion. In JSON, latency_is says which. Streamed
messages of send and write below 16 bytes have no space for a time stamp, and no latencies (null in JSON). Rates include writing
and checking the messages; a round trip of send or write counts as two messages.

Two processes: with --processes 2, cqperf starts the other one on this machine. For two machines, one cqperf
listens and serves one run; the other one connects to it by TCP, chooses what is measured, and reports. It is
the client of the ping-pong, and the receiver of the stream. There are no latencies of a stream of send or
write between two processes, because they would compare two clocks. Each process has its own --transport,
--device and --gid. Anybody who can reach the port can start the run: listen on trusted networks only. A
connection from another program is refused with a line on stderr, and the listener continues.

The loopback uses a new fabric, unless RXE_LOOP_FABRIC names one.

Exit status:
  0    every message was verified
  1    a message was wrong, a request failed, the other process was lost, or the report could not be written
  2    usage
  3    the transport has no device
  130  interrupted: what was measured until then is reported, as partial (a second signal ends at once)

Examples:
  cqperf
  cqperf pingpong --size 4096 --events
  cqperf pingpong --op write --memory heap --processes 2 --json
  cqperf pingpong --op read --sweep --plot read.svg
  cqperf stream --iters 10000000 --batch 64 --signal-every 16 --json
  cqperf --transport verbs --device mlx5_0 --listen
  cqperf --transport verbs --connect 192.0.2.1 pingpong --size 4096";
