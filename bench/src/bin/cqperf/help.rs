//! The text of the help.

/// What the help of the program begins with.
pub const ABOUT: &str = "\
Measures two queue pairs that exchange messages through completion queues, and checks every byte.

Without a command: a ping-pong of 64-byte messages, polled, then by events, then a stream.";

/// What all helps end with.
pub const DETAILS: &str = "\
Each end has a thread, and a core where there are two. Every byte of every message is checked against the
message's number and time stamp, so stale, torn and misplaced ones fail.

Operations (--op), for both commands:
  send   a message goes to a receive of the peer, which sends it back, or gives credit for more
  write  a message goes to memory of the peer, which looks at its last byte until that has come, and answers
         likewise: nobody is told, so there is no --events
  read   a message is fetched from memory of the peer, which sleeps; what is read changes from turn to turn
  cas    a counter of eight bytes in memory of the peer is replaced by the next number
  faa    one is added to it. Each atomic must find what the one before it left; the peer checks the last one

Latencies of send and write are of one way: half a round trip of the ping-pong, from posting to finding; for
a stream, from when the sender begins to write a batch to when the message is found, so queueing counts.
Those of read, cas and faa are of the whole operation, from posting (its batch) to polling that it is done. In
JSON, latency_is says which. Streamed messages below 16 bytes have no buffer for a time stamp: they have no
latencies (null in JSON). Rates are those of the whole loop, writing and checking included; a round trip of
send or write counts as two messages.

Two processes: with --processes 2, cqperf starts the other one itself, on this machine. Or one listens, on its host, and serves one
run; the other one connects to it by TCP, says what is measured, and reports. It is the client of the
ping-pong and receives the stream, since the receiver measures. The latencies of a stream of send or write
would compare two clocks, so there are none. Each process has its own --transport, --device and --gid. Anybody
who reaches the port can start the run: listen where you trust. What connects and is no cqperf is turned away,
in a line on stderr, and the listener waits on.

The loopback's device lies in a fabric of this run's own, unless RXE_LOOP_FABRIC names one.

Exit status:
  0    every message was right
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
