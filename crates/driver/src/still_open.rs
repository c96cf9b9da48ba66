//! Files that have been handed over, and are open as long as anybody has them.
//!
//! A receiver may keep a descriptor, map the file, send it on and end. No count of the file system tells a
//! giver so: such a file has no name. But an epoll set holds no file that it watches, and the kernel takes a
//! file out of all sets when the last descriptor and the last mapping of it are gone. So the giver enters the
//! file, closes its own descriptor, and reads from time to time what the set still has.

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, AsRawFd};

/// Files of which is known whether anybody has them open.
#[derive(Debug)]
pub struct StillOpen {
    epoll: Epoll,
    /// The kernel's list of what the set has.
    list: File,
    next: u64,
}

impl StillOpen {
    /// None yet.
    ///
    /// # Errors
    /// The kernel has no descriptor left, or this process sees no `/proc` of its own.
    pub fn new() -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let list = File::open(format!("/proc/self/fdinfo/{}", epoll.0.as_raw_fd()))?;
        Ok(Self { epoll, list, next: 0 })
    }

    /// Watches a file from now on; its number. Descriptors of this process keep it open as well as others.
    ///
    /// # Errors
    /// The kernel can watch no such file, or has no room.
    pub fn watch(&mut self, file: &impl AsFd) -> Result<u64, Errno> {
        let number = self.next;
        self.epoll.add(file, EpollEvent::new(EpollFlags::empty(), number))?;
        self.next += 1;
        Ok(number)
    }

    /// The numbers of all files that somebody has open.
    ///
    /// # Errors
    /// The list cannot be read. Then nothing is known.
    pub fn numbers(&mut self) -> io::Result<BTreeSet<u64>> {
        let mut text = String::new();
        self.list.rewind()?;
        self.list.read_to_string(&mut text)?;
        Ok(parse(&text))
    }
}

/// One line of the list is `tfd: 7 events: 18 data: 2a pos:0 ino:1 sdev:c`; the data is the number.
fn parse(text: &str) -> BTreeSet<u64> {
    let of_file = text.lines().filter(|line| line.starts_with("tfd:"));
    let data = of_file.filter_map(|line| {
        let mut words = line.split_whitespace().skip_while(|word| *word != "data:");
        u64::from_str_radix(words.nth(1)?, 16).ok()
    });
    data.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_file_is_open_until_the_last_descriptor_of_it_is_closed() {
        let mut files = StillOpen::new().expect("a set");
        let ((first, _other), (second, _)) =
            (UnixStream::pair().expect("a pair"), UnixStream::pair().expect("a pair"));
        let numbers = [files.watch(&first).expect("a file"), files.watch(&second).expect("a file")];
        assert_eq!(files.numbers().expect("a list"), BTreeSet::from(numbers));
        let kept = first.as_fd().try_clone_to_owned().expect("a descriptor");
        drop((first, second));
        assert_eq!(files.numbers().expect("a list"), BTreeSet::from([numbers[0]]));
        // The number of the descriptor is used again, and the file is another one.
        let (third, _third) = UnixStream::pair().expect("a pair");
        files.watch(&third).expect("a file");
        drop(third);
        assert_eq!(files.numbers().expect("a list"), BTreeSet::from([numbers[0]]));
        drop(kept);
        assert!(files.numbers().expect("a list").is_empty());
    }

    #[test]
    fn the_list_is_read_by_its_words() {
        let text = "pos:\t0\nflags:\t02000002\ntfd:        8 events:       18 data:         ffffffffffffffff \
                    pos:0 ino:1 sdev:c\ntfd: 9 events: 0 data: 2a\ntfd: 9\n";
        assert_eq!(parse(text), BTreeSet::from([0x2a, u64::MAX]));
        assert!(parse("").is_empty());
    }
}
