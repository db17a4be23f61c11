//! Another process writes and reads in the descriptor what is no token.

use super::*;

#[test]
fn x04_what_is_torn_costs_no_event() {
    for detaches in [false, true] {
        let scene = Scene::new();
        let Scene { channel, source, completions, .. } = &scene;
        let other = Source::Srq(SrqIndex::new(6));
        channel.attach(other);
        let fd = channel.fd.unchecked();
        for tears in [write_three, read_three] {
            scene.raise();
            raise(completions, other, || true);
            tears(fd);
            (0..99).for_each(|_| scene.raise());
            if detaches {
                channel.detach(other);
                channel.attach(other);
            }
            let all = std::iter::from_fn(|| {
                let is_readable = scene.is_readable();
                let taken = channel.take(|source| source).unwrap();
                assert!(is_readable || taken.is_none(), "it is readable if there is one");
                taken
            });
            let all: Vec<_> = all.collect();
            let count = |of| all.iter().filter(|&&taken| taken == of).count();
            assert_eq!((count(*source), count(other)), (100, usize::from(!detaches)));
        }
    }
}

fn write_three(fd: BorrowedFd<'_>) {
    assert_eq!(rustix::io::write(fd, &[1; 3]), Ok(3));
}

fn read_three(fd: BorrowedFd<'_>) {
    assert_eq!(rustix::io::read(fd, &mut [0; 3]), Ok(3));
}
