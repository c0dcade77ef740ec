//! What a SQLite file is about to get, in a file beside it.
//!
//! A transaction costs far more than the rows in it, so that many turns share one, and none of them
//! waits for it: what a turn has written is in the tail before the turn ends, and in its place a
//! little later. A process that is killed leaves its tail; the next one brings it home.
//!
//! ```text
//!   state.db-tail0    header │ part ─ batch batch batch … │ part ─ batch batch …
//! ```
//!
//! New batches go to the end of one part while those of the other are brought home. Batches are
//! numbered, and the file says up to which number it has them: none is brought home twice. Every
//! process has a tail of its own and holds a lock on it. Those that find none left share a lock on a
//! file in which there is nothing, so that they are seen.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A tail that this process writes to.
#[derive(Debug)]
pub(super) struct Tail {
    file: File,
    place: Place,
    number: usize,
    /// The part that is written to, and how far it has come.
    part: u64,
    end: u64,
    /// The number of the last batch.
    last: u64,
    buffer: Vec<u8>,
    /// Whether the last batch could not be written.
    is_broken: bool,
    /// Whether other processes use the file, and when that was looked at.
    is_alone: bool,
    looked: Instant,
}

/// Where the tails of a file are.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The file.
    pub(super) path: PathBuf,
    /// Tells it from others that had its name.
    pub(super) mark: [u8; 16],
}

/// What was written at once.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) number: u64,
    /// [Changes](super::change::changes).
    pub(super) log: Vec<u8>,
}

/// So many processes can have one. The next is that of all who have none.
pub(super) const TAILS: usize = 8;
const OPENING: &[u8; 16] = b"toolgate tail 1\n";
/// Where the first part begins.
const BEGINNING: u64 = 4096;
/// The longest that a part can get.
const PART: u64 = 16 << 20;
/// Length, checksum and number of a batch.
const HEAD: usize = 16;
/// How often others are looked for. Who comes waits longer than that, so that all have seen it.
pub(super) const LOOK: Duration = Duration::from_millis(50);

impl Place {
    fn path_of(&self, number: usize) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(format!("-tail{number}"));
        PathBuf::from(path)
    }

    /// The tails that nobody has any more; without an own one, there is one to write to among them,
    /// unless too many are in use.
    pub(super) fn tails(&self, own: Option<usize>) -> io::Result<Vec<Tail>> {
        let mut tails = Vec::new();
        for number in (0..TAILS).filter(|number| Some(*number) != own) {
            let path = self.path_of(number);
            let is_needed = own.is_none() && tails.is_empty();
            if !is_needed && !path.metadata().is_ok_and(|it| it.len() > 0) {
                continue;
            }
            let file = private(&path)?;
            match file.try_lock() {
                Ok(()) => tails.push(Tail::new(file, self.clone(), number)),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(tails)
    }

    /// For who has no tail: the others see that somebody is there, as long as this is open.
    pub(super) fn guest(&self) -> io::Result<File> {
        let mut file = private(&self.path_of(TAILS))?;
        write_at(&mut file, OPENING, 0)?;
        // Whoever looks for others has it for a moment.
        file.lock_shared()?;
        Ok(file)
    }

    /// The tails that others write to.
    fn others(&self, own: Option<usize>) -> impl Iterator<Item = (usize, File)> {
        (0..=TAILS).filter(move |number| Some(*number) != own).filter_map(|number| {
            let path = self.path_of(number);
            // One that was closed is empty.
            path.metadata().ok().filter(|it| it.len() > 0)?;
            let file = File::open(&path).ok()?;
            let is_held = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
            is_held.then_some((number, file))
        })
    }

    /// The tails that others write to, with the numbers of their last batches.
    pub(super) fn of_others(&self, own: Option<usize>) -> Vec<(usize, u64)> {
        let last = |(number, mut file): (usize, File)| {
            let batches = self.batches(&mut file).unwrap_or_default();
            (number, batches.last().map_or(0, |batch| batch.number))
        };
        self.others(own).map(last).collect()
    }

    /// All batches of a tail, in order.
    fn batches(&self, file: &mut File) -> io::Result<Vec<Batch>> {
        file.seek(SeekFrom::Start(0))?;
        let mut all = Vec::new();
        file.read_to_end(&mut all)?;
        if !all.strip_prefix(OPENING).is_some_and(|rest| rest.starts_with(&self.mark)) {
            return Ok(Vec::new());
        }
        let part = |number: u64| {
            let start = usize::try_from(BEGINNING + number * PART).unwrap_or(usize::MAX);
            let rest = all.get(start..).unwrap_or_default();
            rest.get(..PART as usize).unwrap_or(rest)
        };
        let mut batches = batches_of(part(0));
        batches.extend(batches_of(part(1)));
        batches.sort_by_key(|batch| batch.number);
        Ok(batches)
    }
}

/// The batches at the front of a part. What is behind them is older, or was never finished.
fn batches_of(mut part: &[u8]) -> Vec<Batch> {
    let mut batches: Vec<Batch> = Vec::new();
    while let Some((head, rest)) = part.split_first_chunk::<HEAD>() {
        let (length, checksum) = (word(head, 0) as usize, word(head, 4));
        let mut number = [0; 8];
        number.copy_from_slice(&head[8..]);
        let number = u64::from_le_bytes(number);
        let follows = batches.last().is_none_or(|before| before.number + 1 == number);
        let Some((body, behind)) = rest.split_at_checked(length) else { break };
        if length == 0 || !follows || sum(&head[8..], body) != checksum {
            break;
        }
        batches.push(Batch { number, log: body.to_vec() });
        part = behind;
    }
    batches
}

fn word(head: &[u8; HEAD], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&head[at..at + 4]);
    u32::from_le_bytes(word)
}

fn sum(number: &[u8], body: &[u8]) -> u32 {
    let mut sum = flate2::Crc::new();
    sum.update(number);
    sum.update(body);
    sum.sum()
}

impl Tail {
    fn new(file: File, place: Place, number: usize) -> Self {
        let (buffer, looked) = (Vec::new(), Instant::now());
        let (is_broken, is_alone) = (false, true);
        Self { file, place, number, part: 0, end: 0, last: 0, buffer, is_broken, is_alone, looked }
    }

    /// Which of the tails it is.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// What another process has left in it.
    pub(super) fn left(&mut self) -> io::Result<Vec<Batch>> {
        self.place.batches(&mut self.file)
    }

    /// Nothing in it is needed any more.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.file.set_len(0)
    }

    /// Begins to write; `last`: the number of the last batch that was brought home.
    pub(super) fn begin(&mut self, last: u64) -> io::Result<()> {
        self.clear()?;
        let header = [&OPENING[..], &self.place.mark].concat();
        write_at(&mut self.file, &header, 0)?;
        (self.part, self.end, self.last) = (0, 0, last);
        self.look();
        Ok(())
    }

    /// Looks for others.
    pub(super) fn look(&mut self) {
        self.is_alone = self.place.others(Some(self.number)).next().is_none();
        self.looked = Instant::now();
    }

    /// Whether no other process uses the file, as far as is known. Who comes waits until all know.
    pub(super) fn is_alone(&mut self) -> bool {
        if self.looked.elapsed() >= LOOK {
            self.look();
        }
        self.is_alone
    }

    /// Takes the next batch; says whether it fits.
    pub(super) fn take(&mut self, log: &[u8]) -> bool {
        let fits = self.end + (HEAD + log.len()) as u64 <= PART;
        if fits {
            self.buffer.clear();
            self.buffer.resize(HEAD, 0);
            self.buffer.extend_from_slice(log);
        }
        fits
    }

    /// Writes what was taken. It is safe then from the end of this process.
    pub(super) fn write(&mut self) -> io::Result<()> {
        let number = self.last + 1;
        let length = (self.buffer.len() - HEAD) as u32;
        let (head, body) = self.buffer.split_at_mut(HEAD);
        head[8..].copy_from_slice(&number.to_le_bytes());
        let checksum = sum(&head[8..], body);
        head[..4].copy_from_slice(&length.to_le_bytes());
        head[4..8].copy_from_slice(&checksum.to_le_bytes());
        let start = BEGINNING + self.part * PART + self.end;
        let was_broken = std::mem::replace(&mut self.is_broken, true);
        if let Err(error) = write_at(&mut self.file, &self.buffer, start) {
            if !was_broken {
                tracing::warn!(%error, "the store's tail cannot be written; turns wait");
            }
            return Err(error);
        }
        self.is_broken = false;
        self.end += self.buffer.len() as u64;
        self.last = number;
        // One long batch does not hold on to its memory.
        self.buffer.shrink_to(LARGE);
        Ok(())
    }

    /// Turns to the other part, whose batches are all at home.
    pub(super) fn turn(&mut self) {
        self.part = 1 - self.part;
        self.end = 0;
    }

    /// The number of the last batch.
    pub(super) fn last(&self) -> u64 {
        self.last
    }
}

/// A buffer that is longer does not stay.
const LARGE: usize = 1 << 20;

/// A file for the user alone.
pub(super) fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// What tells a file from another that has its name later.
#[cfg(unix)]
pub(super) fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    path.metadata().ok().map(|it| (it.dev(), it.ino()))
}

#[cfg(not(unix))]
pub(super) fn identity(path: &Path) -> Option<(u64, u64)> {
    path.exists().then_some((0, 0))
}

#[cfg(unix)]
fn write_at(file: &mut File, bytes: &[u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

#[cfg(not(unix))]
fn write_at(file: &mut File, bytes: &[u8], at: u64) -> io::Result<()> {
    use std::io::Write as _;
    file.seek(SeekFrom::Start(at))?;
    file.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::change::{At, Change, What, changes};
    use super::super::tests::Scratch;
    use super::super::{Kind, owner_of_the_gateway};
    use super::*;

    fn place_in(scratch: &Scratch, mark: u8) -> Place {
        scratch.make_folder();
        Place { path: scratch.0.clone(), mark: [mark; 16] }
    }

    fn change<'c>(kind: Kind, id: &'c str, what: What<'c>) -> Change<'c> {
        Change {
            at: At { owner: owner_of_the_gateway(), kind, id },
            what,
            until: 1_900_000_000_000,
        }
    }

    fn put(id: &str) -> Change<'_> {
        change(Kind::Answer, id, What::Put(id.as_bytes(), Vec::new()))
    }

    fn log(changes: &[Change<'_>]) -> Vec<u8> {
        let mut log = Vec::new();
        for change in changes {
            change.write(&mut log);
        }
        log
    }

    fn tail(place: &Place, last: u64) -> Tail {
        let mut tail = place.tails(None).unwrap().remove(0);
        tail.begin(last).unwrap();
        tail
    }

    fn write(tail: &mut Tail, changes: &[Change<'_>]) {
        assert!(tail.take(&log(changes)));
        tail.write().unwrap();
    }

    fn left(place: &Place) -> Vec<Batch> {
        place.tails(None).unwrap().remove(0).left().unwrap()
    }

    #[test]
    fn what_was_written_is_read() {
        let scratch = Scratch::new("tail-read");
        let place = place_in(&scratch, 1);
        let list = ["", "ä", "3"].map(str::as_bytes).to_vec();
        let places = vec![("m", "a"), ("", "ö")];
        let named = change(Kind::Signature, "1", What::Put(b"", places));
        let first = [put("a"), change(Kind::Log, "ö/\n", What::Append(list)), put(""), named];
        let mut tail = tail(&place, 41);
        write(&mut tail, &first);
        write(&mut tail, &[put("b")]);
        drop(tail);
        let batches = left(&place);
        let numbers: Vec<u64> = batches.iter().map(|batch| batch.number).collect();
        assert_eq!(numbers, [42, 43]);
        assert!(changes(&batches[0].log).eq(first));
        assert!(changes(&batches[1].log).eq([put("b")]));
        assert_eq!(left(&place_in(&scratch, 2)), [], "another file had this name");
    }

    /// New batches overwrite old ones, whose remains are not taken for batches.
    #[test]
    fn parts_take_turns() {
        let scratch = Scratch::new("tail-turns");
        let place = place_in(&scratch, 1);
        let mut tail = tail(&place, 0);
        for id in ["a", "b", "c"] {
            write(&mut tail, &[put(id)]);
        }
        assert_eq!(tail.last(), 3);
        tail.turn();
        write(&mut tail, &[put("d")]);
        assert_eq!(tail.last(), 4);
        tail.turn();
        // As long as the first, so that the second stands whole behind it.
        write(&mut tail, &[put("e")]);
        drop(tail);
        let numbers: Vec<u64> = left(&place).iter().map(|batch| batch.number).collect();
        assert_eq!(numbers, [4, 5]);
    }

    /// A batch counts whole or not at all, wherever its writing was broken off.
    #[test]
    fn a_torn_batch_does_not_count() {
        let mut part = Vec::new();
        let scratch = Scratch::new("tail-torn");
        let place = place_in(&scratch, 1);
        let mut tail = tail(&place, 0);
        for id in ["first", "second"] {
            write(&mut tail, &[put(id), put(id)]);
            part.extend_from_slice(&tail.buffer);
        }
        let first = part.len() - tail.buffer.len();
        assert_eq!(batches_of(&part).len(), 2);
        for at in 0..part.len() {
            let whole = usize::from(at >= first);
            assert_eq!(batches_of(&part[..at]).len(), whole, "cut at {at}");
            let mut zeroed = part.clone();
            zeroed[at..].fill(0);
            // A byte that was zero before is not missed.
            if zeroed != part {
                assert_eq!(batches_of(&zeroed).len(), whole, "nothing from {at} on");
            }
            let mut wrong = part.clone();
            wrong[at] ^= 0x10;
            assert_eq!(batches_of(&wrong).len(), whole, "wrong at {at}");
        }
    }

    #[test]
    fn every_process_has_its_own() {
        let scratch = Scratch::new("tail-own");
        let place = place_in(&scratch, 1);
        let mut one = tail(&place, 0);
        assert!(one.is_alone());
        let mut two = tail(&place, 0);
        assert_eq!((one.number(), two.number()), (0, 1));
        assert!(!two.is_alone());
        write(&mut one, &[put("a")]);
        assert_eq!(place.of_others(Some(1)), [(0, 1)]);
        drop(one);
        assert_eq!(place.of_others(Some(1)), [], "what is left is nobody's");
        assert_eq!(left(&place).len(), 1);
        two.looked -= LOOK;
        assert!(two.is_alone());
    }

    /// Who came too late for one is not overlooked.
    #[test]
    fn guests_are_seen() {
        let scratch = Scratch::new("tail-guests");
        let place = place_in(&scratch, 1);
        let mut tails: Vec<Tail> = (0..TAILS).map(|_| tail(&place, 0)).collect();
        assert!(place.tails(None).unwrap().is_empty());
        let guests = [place.guest().unwrap(), place.guest().unwrap()];
        tails.truncate(1);
        let mut is_alone = || {
            tails[0].look();
            tails[0].is_alone()
        };
        assert!(!is_alone());
        let [first, second] = guests;
        drop(first);
        assert!(!is_alone());
        drop(second);
        assert!(is_alone());
    }

    #[test]
    fn there_is_an_end_to_a_part() {
        let scratch = Scratch::new("tail-end");
        let mut tail = tail(&place_in(&scratch, 1), 0);
        let large = vec![7; 9 << 20];
        assert!(tail.take(&large));
        tail.write().unwrap();
        assert!(!tail.take(&large));
        tail.turn();
        assert!(tail.take(&large));
    }
}
