//! Programs that connect by librdmacm: what is run, as data.

/// A server and its client, or a program alone. In the words of both, `PORT` is a TCP port that nobody has, and `FOLDER` where
/// they run.
#[derive(Debug)]
pub struct Pair {
    /// What the server is told, with the program first.
    pub server: &'static str,
    /// The same of the client; nothing where there is none.
    pub client: &'static str,
    /// How they end.
    pub end: End,
    /// What the server must say, and how often.
    pub served: &'static [Saying],
    /// The same of the client.
    pub asked: &'static [Saying],
    /// In which rounds they run.
    pub rounds: Rounds,
}

/// Words, and how often they are in what a program says.
pub type Saying = (&'static str, usize);

/// How a pair ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Both by themselves.
    Both,
    /// By itself: there is no client.
    Alone,
    /// All by themselves, but without `exit(3)`, so that what they had stays in shared memory.
    Abruptly,
    /// The client by itself, and then the server by a signal: it would wait for another client.
    Signal,
    /// The program fails, since the library does not support what it needs.
    Refused,
}

/// In which rounds a pair runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounds {
    /// In all.
    All,
    /// In the first.
    First,
    /// In the first, with `--long`.
    Long,
}

use self::End::{Abruptly, Both, Refused, Signal};
use self::Rounds::{All, First};

/// A transfer of `ucmatose` or `udaddy` is complete.
const COMPLETE: &[Saying] =
    &[("data transfers complete", 1), ("test complete", 1), ("return status 0", 1)];
/// Every connection of `cmtime` was made and ended.
const TIMED: &[Saying] =
    &[("us / conn", 1), ("destroy      :", 1), ("failure", 0), ("event: ", 0), ("failing", 0)];
const LATENCY: &[Saying] = &[("latency  =", 1)];
const RATE: &[Saying] = &[("bw  =", 1)];
const PASSED: &[Saying] = &[("DAPL Test Complete. PASSED", 1), ("CONNECTED!", 1)];
/// A job of fio without an error.
const JOB: &[Saying] = &[("err= 0: pid=", 1)];
/// The same of the one that transfers the data, in 256 blocks. To fio that is the writer, whatever the verb.
const TRANSFERRED: &[Saying] = &[("err= 0: pid=", 1), ("total=0,256,0,0", 1)];

/// Everything, what takes longest first. What only the first round has are other options of programs that all have.
pub const PAIRS: &[Pair] = &[
    Pair {
        server: "rping -s -C 10000",
        client: "rping -c -a 127.0.0.1 -C 10000",
        end: Both,
        served: &[("server DISCONNECT EVENT", 1)],
        asked: &[("error", 0)],
        rounds: First,
    },
    Pair {
        server: "rping -s -v -C 100",
        client: "rping -c -a 127.0.0.1 -v -C 100",
        end: Both,
        served: &[("server ping data: rdma-ping-", 100)],
        asked: &[("ping data: rdma-ping-", 100)],
        rounds: All,
    },
    Pair {
        server: "env RXE_LOOP_LINK_LAYER=ethernet rping -s -v -C 100",
        client: "env RXE_LOOP_LINK_LAYER=ethernet rping -c -a 127.0.0.1 -v -C 100",
        end: Both,
        served: &[("server ping data: rdma-ping-", 100)],
        asked: &[("ping data: rdma-ping-", 100)],
        rounds: First,
    },
    Pair {
        server: "ucmatose",
        client: "ucmatose -s 127.0.0.1",
        end: Both,
        served: COMPLETE,
        asked: COMPLETE,
        rounds: All,
    },
    Pair {
        server: "ucmatose -c 200",
        client: "ucmatose -s 127.0.0.1 -c 200",
        end: Both,
        served: COMPLETE,
        asked: COMPLETE,
        rounds: First,
    },
    Pair {
        server: "udaddy",
        client: "udaddy -s 127.0.0.1",
        end: Both,
        served: COMPLETE,
        asked: COMPLETE,
        rounds: All,
    },
    Pair {
        server: "cmtime",
        client: "cmtime -s 127.0.0.1 -c 100",
        end: Signal,
        served: &[("fail", 0)],
        asked: TIMED,
        rounds: All,
    },
    Pair {
        server: "cmtime",
        client: "cmtime -s 127.0.0.1 -c 1000",
        end: Signal,
        served: &[("fail", 0)],
        asked: TIMED,
        rounds: First,
    },
    Pair {
        server: "rdma_server",
        client: "rdma_client -s 127.0.0.1",
        end: Both,
        served: &[("rdma_server: end 0", 1)],
        asked: &[("rdma_client: end 0", 1)],
        rounds: All,
    },
    Pair {
        server: "riostream",
        client: "",
        end: Refused,
        served: &[("rsocket failed: Operation not supported", 1)],
        asked: &[],
        rounds: All,
    },
    Pair {
        server: "qperf -lp PORT",
        client: "qperf -lp PORT -cm1 -t 1 127.0.0.1 rc_lat",
        end: Signal,
        served: &[],
        asked: LATENCY,
        rounds: All,
    },
    Pair {
        server: "qperf -lp PORT",
        client: "qperf -lp PORT -cm1 -t 1 127.0.0.1 rc_bw",
        end: Signal,
        served: &[],
        asked: RATE,
        rounds: First,
    },
    Pair {
        server: "qperf -lp PORT",
        client: "qperf -lp PORT -cm1 -t 1 127.0.0.1 rc_rdma_read_lat",
        end: Signal,
        served: &[],
        asked: LATENCY,
        rounds: First,
    },
    Pair {
        server: "qperf -lp PORT",
        client: "qperf -lp PORT -cm1 -t 1 127.0.0.1 rc_rdma_write_bw",
        end: Signal,
        served: &[],
        asked: RATE,
        rounds: First,
    },
    Pair {
        server: "fio --name=server --ioengine=rdma --port=4711 --rw=read --bs=64k --size=16m --verb=write",
        client: "fio --name=client --ioengine=rdma --port=4711 --rw=write --bs=64k --size=16m --verb=write \
                 --iodepth=8 --hostname=127.0.0.1",
        end: Abruptly,
        served: JOB,
        asked: TRANSFERRED,
        rounds: All,
    },
    Pair {
        server: "fio --name=server --ioengine=rdma --port=4711 --rw=read --bs=64k --size=16m --verb=read",
        client: "fio --name=client --ioengine=rdma --port=4711 --rw=write --bs=64k --size=16m --verb=read \
                 --iodepth=8 --hostname=127.0.0.1",
        end: Abruptly,
        served: JOB,
        asked: TRANSFERRED,
        rounds: First,
    },
    Pair {
        server: "fi_pingpong -p verbs -e msg -I 100 -S 4096 -B PORT",
        client: "fi_pingpong -p verbs -e msg -I 100 -S 4096 -P PORT 127.0.0.1",
        end: Both,
        served: &[("=100", 1), ("terminated", 0)],
        asked: &[("=100", 1), ("terminated", 0)],
        rounds: All,
    },
    Pair {
        server: "env DAT_OVERRIDE=FOLDER/dat.conf dtest -P loop0 -b 65536",
        client: "env DAT_OVERRIDE=FOLDER/dat.conf dtest -P loop0 -b 65536 -h 127.0.0.1",
        end: Both,
        served: PASSED,
        asked: PASSED,
        rounds: All,
    },
    // Its own TCP socket tells where the peer is.
    Pair {
        server: "sh FOLDER/with-device ucx_perftest -p PORT",
        client: "sh FOLDER/with-device ucx_perftest -p PORT -t tag_lat -n 1000 127.0.0.1",
        end: Both,
        served: &[("ERROR", 0)],
        asked: &[("Final: ", 1), ("ERROR", 0)],
        rounds: First,
    },
    // Sleeping, once it has armed its queues.
    Pair {
        server: "sh FOLDER/with-device ucx_perftest -p PORT -E sleep",
        client: "sh FOLDER/with-device ucx_perftest -p PORT -E sleep -t tag_lat -n 1000 127.0.0.1",
        end: Both,
        served: &[("ERROR", 0)],
        asked: &[("Final: ", 1), ("ERROR", 0)],
        rounds: First,
    },
    // By UCX's listener, which is one of librdmacm's.
    Pair {
        server: "sh FOLDER/with-device io_demo -p 4711 -q -d 4096:65536",
        client: "sh FOLDER/with-device io_demo -i 100 -q -o read,write -d 4096:65536 127.0.0.1:4711",
        end: Signal,
        served: &[("Assertion", 0)],
        // It ends so once it has carried out all; each second it reports how many more.
        asked: &[("\"End of the Client run\"", 1), ("Client exit with status 'OK'", 1)],
        rounds: First,
    },
];

/// `dat.conf(5)`, with the device of uDAPL's provider for librdmacm, by the interface that has its address.
pub const DAT_CONF: &str =
    "loop0 u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 \"lo 0\" \"\"\n";

/// Gives a program, and it alone, a `/dev` with a character device of the name of the verbs device, which UCX asks for,
/// and has UCX use verbs and librdmacm only.
pub const WITH_DEVICE: &str = r#"set -e
export UCX_NET_DEVICES=loop0:1 UCX_TLS=${UCX_TLS:-rc_v,self} UCX_SOCKADDR_TLS_PRIORITY=rdmacm
exec unshare --mount sh -e -c '
    dev=$(dirname "$0")/dev
    mount -t tmpfs none "$dev"
    mkdir "$dev/infiniband" "$dev/shm"
    for name in null zero random urandom; do
        : > "$dev/$name"
        mount --bind "/dev/$name" "$dev/$name"
    done
    ln -s /dev/null "$dev/infiniband/loop0"
    mount --bind /dev/shm "$dev/shm"
    mount --rbind "$dev" /dev
    exec "$@"' "$0" "$@"
"#;

impl Pair {
    /// What it is called: the program, and what the client is told, if there is one.
    pub fn name(&self) -> String {
        const OURS: [&str; 5] =
            ["sh", "env", "FOLDER/with-device", "DAT_OVERRIDE=FOLDER/dat.conf", "/usr/bin/python3"];
        let words = if self.client.is_empty() { self.server } else { self.client };
        let theirs = words.split_whitespace().filter(|word| !OURS.contains(word));
        theirs.collect::<Vec<_>>().join(" ").replace("FOLDER/", "")
    }

    /// Whether it needs a file in `/dev`, which only root can make.
    pub fn needs_device(&self) -> bool {
        self.server.contains("FOLDER/with-device")
    }

    /// The program.
    pub fn program(&self) -> String {
        let name = self.name();
        let mut words = name.split_whitespace();
        words.find(|word| !word.contains('=')).unwrap_or_default().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::programs::PROGRAMS;
    use super::*;

    #[test]
    fn a_pair_is_named_by_its_program_and_what_the_client_is_told() {
        let name = |server, client| {
            let pair = Pair { server, client, ..PAIRS[0] };
            (pair.program(), pair.name())
        };
        let named = |program: &str, name: &str| (program.to_owned(), name.to_owned());
        assert_eq!(name("a -s", "a -c 1"), named("a", "a -c 1"));
        assert_eq!(name("env A=b a -s", "env A=b a -c"), named("a", "A=b a -c"));
        let with_device = "sh FOLDER/with-device a -c FOLDER/b";
        assert_eq!(name("sh FOLDER/with-device a", with_device), named("a", "a -c b"));
        assert_eq!(name("a -s", ""), named("a", "a -s"));
    }

    #[test]
    fn every_pair_has_something_to_say() {
        for pair in PAIRS.iter().chain(PROGRAMS) {
            let must = |sayings: &[Saying]| sayings.iter().any(|&(_, count)| count > 0);
            // rping without -v says nothing on the client's side.
            assert!(must(pair.served) || must(pair.asked), "{}", pair.name());
            assert!(!(pair.client.is_empty() && matches!(pair.end, Both | Signal)));
        }
    }
}
