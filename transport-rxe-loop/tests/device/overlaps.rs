//! Source and target in the same memory: what arrives is what was there before (Q6).

use crate::common::{ALL, CAPS, S, open, settle};
use cq_core::transport::Post;
use cq_core::wr::{RecvWr, SendWr, Sge};
use transport_rxe_loop::{Cq, OwnedRegion, QpCaps, QpInit, QueuePair};

const LEN: usize = 16 << 10;

/// Two queue pairs of one protection domain, and memory that both reach.
struct Twins {
    a: QueuePair,
    b: QueuePair,
    cq: Cq,
    region: OwnedRegion,
}

impl Twins {
    fn new() -> Self {
        let (context, pd) = (open(), open().alloc_pd().unwrap());
        let cq = context.create_cq(16, None).unwrap();
        let caps = QpCaps { max_send_sge: 16, max_recv_sge: 16, ..CAPS };
        let init = QpInit { caps, ..QpInit::new(&cq) };
        let (mut a, mut b) = (pd.create_qp(&init).unwrap(), pd.create_qp(&init).unwrap());
        a.connect_to(b.number()).unwrap();
        b.connect_to(a.number()).unwrap();
        Self { a, b, cq, region: pd.allocate(LEN, ALL).unwrap() }
    }

    fn sges(&self, pieces: &[Piece]) -> Vec<Sge> {
        pieces.iter().map(|&(at, len)| self.region.sge(at, len).unwrap()).collect()
    }

    /// Has it moved by each operation that can, and looks what memory holds then.
    #[track_caller]
    fn check(&mut self, from: &[Piece], to: &[Piece]) {
        let before: Vec<u8> = (0..LEN).map(|i| (i % 251) as u8 ^ (i / 251) as u8).collect();
        let mut after = before.clone();
        let mut bytes = from.iter().flat_map(|&(at, len)| &before[at..at + len]);
        for &(at, len) in to {
            after[at..at + len].iter_mut().zip(&mut bytes).for_each(|(to, from)| *to = *from);
        }
        let (source, target) = (self.sges(from), self.sges(to));
        for op in ["SEND", "WRITE", "READ"] {
            let wr = match (op, from, to) {
                ("WRITE", _, &[(at, _)]) => {
                    SendWr::write(1, &source, self.region.remote(at).unwrap())
                }
                ("READ", &[(at, _)], _) => {
                    SendWr::read(1, &target, self.region.remote(at).unwrap())
                }
                ("SEND", ..) => {
                    self.b.post_recv(&[RecvWr::new(2, &target)]).unwrap();
                    SendWr::send(1, &source).unsignaled()
                }
                _ => continue,
            };
            self.region.write(0, &before).unwrap();
            self.a
                .post_send(&[wr, SendWr::write_inline(3, &[], self.region.remote(0).unwrap())])
                .unwrap();
            let done = settle(&mut self.cq, 2);
            assert!(done.iter().all(|wc| wc.status() == S::SUCCESS), "{done:?}");
            let mut held = vec![0; LEN];
            self.region.read(0, &mut held).unwrap();
            assert!(held == after, "{op} {from:?} to {to:?}");
        }
    }
}

/// Where it starts, and how many bytes it has.
type Piece = (usize, usize);

#[test]
fn q06_one_piece_into_another_that_overlaps_it() {
    let mut twins = Twins::new();
    for len in [2, 8, 9, 64, 255, 256, 257, 4095, 4096, 4097, 7000] {
        for shift in [0, 1, 7, 8, 16, 248, 256, 3000] {
            twins.check(&[(64, len)], &[(64 + shift, len)]);
            twins.check(&[(64 + shift, len)], &[(64, len)]);
        }
    }
}

#[test]
fn q06_pieces_that_change_places() {
    let mut twins = Twins::new();
    for len in [1, 8, 100, 256, 2048] {
        let halves = [(0, len), (len, len)];
        let whole = [(0, 2 * len)];
        twins.check(&[halves[1], halves[0]], &halves);
        twins.check(&[halves[1], halves[0]], &whole);
        twins.check(&whole, &[halves[1], halves[0]]);
    }
    let forwards: Vec<_> = (0..16).map(|i| (i * 256, 256)).collect();
    let backwards: Vec<_> = forwards.iter().rev().copied().collect();
    twins.check(&forwards, &backwards);
    twins.check(&[(0, 16 * 256)], &backwards);
    // Beyond 4 KiB too, if each has room of its own, long or short.
    let len = |i| if i % 2 == 0 { 1016 } else { 200 };
    let shifted: Vec<_> = (0..8).map(|i| (i * 1024 + 8, len(i))).collect();
    let pieces: Vec<_> = (0..8).map(|i| (i * 1024, len(i))).collect();
    twins.check(&pieces, &shifted);
    twins.check(&shifted, &pieces);
}
