//! What becomes of what was confirmed when the file cannot be written. The thread is driven by hand.

use std::time::Duration;

use bytes::Bytes;
use rusqlite::Connection;

use super::super::change::At;
use super::super::sqlite::Sqlite;
use super::super::tests::{Scratch, opening};
use super::super::{Kind, Store};
use super::*;
use crate::auth::Owner;

const KEEP: Duration = Duration::from_secs(600);

/// A store whose thread does what it is told, when it is told.
struct Bench {
    scratch: Scratch,
    sqlite: Sqlite,
    home: Home,
    runtime: tokio::runtime::Runtime,
    owner: Owner,
}

impl Bench {
    fn new(name: &str) -> Self {
        let scratch = Scratch::new(name);
        let (sqlite, home, _) = Sqlite::prepare(&scratch.0, opening(1 << 26, 7)).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        Self { scratch, sqlite, home, runtime, owner: Owner::of("o") }
    }

    /// Writes a value, and the same to a list.
    fn write(&self, id: &str, value: &str) {
        self.sqlite.put(self.owner, Kind::Conversation, id, value.as_bytes(), &[], KEEP);
        let values = [Bytes::copy_from_slice(value.as_bytes())];
        self.sqlite.append(self.owner, Kind::Log, "l", &values, KEEP);
    }

    /// Writes, and waits until that is safe.
    fn turn(&self, id: &str, value: &str) {
        self.write(id, value);
        self.runtime.block_on(self.sqlite.settle());
    }

    fn get(&self, id: &str) -> Option<Bytes> {
        let ids = [id.to_owned()];
        let get = self.sqlite.get(self.owner, Kind::Conversation, &ids);
        self.runtime.block_on(get).pop().flatten()
    }

    /// The list, as whoever asks gets it.
    fn list(&self) -> Vec<Bytes> {
        let at = At { owner: self.owner, kind: Kind::Log, id: "l" };
        let mut list = self.home.file.list(at).unwrap();
        self.home.shared.lock().complete(at, &mut list);
        list
    }

    fn lost(&self) -> u64 {
        self.home.metrics.lost.get()
    }

    /// Executes something where the thread writes.
    fn sql(&self, sql: &str) {
        self.home.file.connection.execute_batch(sql).unwrap();
    }

    /// Tries, and says whether everything is in the file now.
    fn brings_home(&mut self) -> bool {
        self.home.bring_all_home();
        assert!(self.home.file.connection.is_autocommit(), "nothing is left open");
        self.home.failing.is_none()
    }

    /// The list that the next process finds if this one is killed now, however often it is started.
    fn list_after_kill(&self, name: &str) -> Vec<Bytes> {
        let killed = Scratch::new(name);
        killed.make_folder();
        for end in ["", "-wal", "-tail0"] {
            let file = |scratch: &Scratch| format!("{}{end}", scratch.0.display());
            std::fs::copy(file(&self.scratch), file(&killed)).unwrap();
        }
        let lists: [Vec<Bytes>; 2] = std::array::from_fn(|_| self.list_in(&killed));
        assert_eq!(lists[0], lists[1]);
        lists[0].clone()
    }

    fn list_in(&self, scratch: &Scratch) -> Vec<Bytes> {
        let list = async {
            let store = Store::open(&scratch.kind(), opening(1 << 26, 7)).await.unwrap().0;
            store.list(self.owner, Kind::Log, "l").await
        };
        self.runtime.block_on(list)
    }

    /// Somebody with a tool of his own has the file.
    fn lock(&self) -> Connection {
        let tool = Connection::open(&self.scratch.0).unwrap();
        tool.execute_batch("BEGIN IMMEDIATE").unwrap();
        tool
    }
}

/// Somebody has the file for longer than anybody waits.
#[test]
fn a_lock_loses_nothing() {
    let mut bench = Bench::new("lock");
    bench.turn("a", "0");
    assert!(bench.brings_home());
    let tool = bench.lock();
    bench.turn("a", "1");
    assert!(!bench.brings_home());
    bench.turn("b", "2");
    assert!(!bench.brings_home());
    assert_eq!((bench.get("a"), bench.get("b")), (Some("1".into()), Some("2".into())));
    assert_eq!(bench.list(), ["0", "1", "2"]);
    assert_eq!(bench.list_after_kill("lock-killed"), ["0", "1", "2"]);
    tool.execute_batch("ROLLBACK").unwrap();
    assert!(bench.brings_home());
    assert_eq!(bench.home.shared.lock().count(), 0);
    assert_eq!((bench.get("a"), bench.get("b")), (Some("1".into()), Some("2".into())));
    bench.turn("b", "3");
    assert_eq!(bench.list(), ["0", "1", "2", "3"]);
    assert_eq!(bench.list_after_kill("lock-killed-later"), ["0", "1", "2", "3"]);
    assert_eq!(bench.lost(), 0);
}

/// The disk is full, in the middle of a transaction: both parts of the tail keep what they have.
#[test]
fn a_full_disk_loses_nothing() {
    let mut bench = Bench::new("full");
    bench.turn("a", "0");
    assert!(bench.brings_home());
    // No more pages than there are.
    bench.sql("PRAGMA max_page_count = 1");
    let long = "x".repeat(100_000);
    let mut want = vec![Bytes::from_static(b"0")];
    for n in 1..6 {
        let value = format!("{n}{long}");
        bench.turn("a", &value);
        want.push(Bytes::from(value));
        assert!(!bench.brings_home());
        assert_eq!(bench.get("a").as_ref(), want.last());
        assert_eq!(bench.list(), want);
        assert_eq!(bench.list_after_kill("full-killed"), want);
    }
    bench.sql("PRAGMA max_page_count = 100000");
    assert!(bench.brings_home());
    assert_eq!(bench.list(), want);
    // The tail's parts take turns again.
    for n in 6..9 {
        bench.turn("a", &n.to_string());
        want.push(Bytes::from(n.to_string()));
        assert_eq!(bench.list_after_kill("full-killed"), want);
        assert!(bench.brings_home());
        assert_eq!(bench.list_after_kill("full-killed"), want);
    }
    assert_eq!(bench.lost(), 0);
}

/// What SQLite itself has undone is written again, from the beginning.
#[test]
fn what_was_undone_is_written_again() {
    let mut bench = Bench::new("undone");
    bench.turn("a", "1");
    bench.turn("bad", "2");
    bench.sql(
        "CREATE TEMP TRIGGER t BEFORE INSERT ON entry WHEN new.id = 'bad'
         BEGIN SELECT raise(ROLLBACK, 'no'); END",
    );
    assert!(!bench.brings_home());
    assert!(!bench.brings_home());
    assert_eq!((bench.get("a"), bench.list().len()), (Some("1".into()), 2));
    bench.sql("DROP TRIGGER t");
    assert!(bench.brings_home());
    assert_eq!((bench.get("a"), bench.list().len()), (Some("1".into()), 2));
    assert_eq!(bench.lost(), 0);
}

/// What the file will never take holds up nothing else, and is counted once.
#[test]
fn a_refused_change_takes_no_other_along() {
    let mut bench = Bench::new("refused");
    bench.sql(
        "CREATE TEMP TRIGGER t BEFORE INSERT ON entry WHEN new.id LIKE 'bad%'
         BEGIN SELECT raise(ABORT, 'no'); END",
    );
    for id in ["a", "bad1", "bad2", "b"] {
        bench.turn(id, id);
    }
    let tool = bench.lock();
    assert!(!bench.brings_home());
    tool.execute_batch("ROLLBACK").unwrap();
    bench.sql("PRAGMA max_page_count = 1");
    bench.turn("c", &"x".repeat(1_000_000));
    assert!(!bench.brings_home());
    assert_eq!(bench.lost(), 0);
    bench.sql("PRAGMA max_page_count = 100000");
    assert!(bench.brings_home());
    let found = ["a", "bad1", "bad2", "b", "c"].map(|id| bench.get(id).is_some());
    assert_eq!(found, [true, false, false, true, true]);
    assert_eq!((bench.list().len(), bench.lost()), (5, 2));
}

/// Turns that the tail cannot help do not wait for ever, and not each anew.
#[test]
fn nobody_waits_for_ever() {
    let mut bench = Bench::new("patience");
    bench.home.shared.tail.blocking_lock().take();
    let tool = bench.lock();
    bench.write("a", "1");
    let ask = |bench: &Bench| {
        let (reply, answer) = tokio::sync::oneshot::channel();
        bench.home.shared.lock().ask(Ask::Later(Later::Flush(reply)));
        answer
    };
    let mut first = ask(&bench);
    assert!(bench.home.step());
    assert!(first.try_recv().is_err(), "not yet");
    let failing = bench.home.failing.as_mut().unwrap();
    failing.since -= PATIENCE;
    bench.home.give_up(Instant::now() + PATIENCE);
    assert_eq!(first.try_recv(), Ok(()));
    let mut second = ask(&bench);
    assert!(bench.home.step());
    assert_eq!(second.try_recv(), Ok(()));
    // What is deleted is tried, and told.
    let (reply, mut deleted) = tokio::sync::oneshot::channel();
    let delete = Later::Delete(bench.owner, Kind::Conversation, "a".to_owned(), reply);
    bench.home.shared.lock().ask(Ask::Later(delete));
    assert!(bench.home.step());
    assert!(deleted.try_recv().is_err(), "not yet");
    tool.execute_batch("ROLLBACK").unwrap();
    assert!(bench.brings_home());
    assert_eq!(deleted.try_recv(), Ok(true));
    assert_eq!((bench.get("a"), bench.list().len()), (None, 1));
}

/// What cannot be deleted, however often that is tried, is not waited for.
#[test]
fn a_refused_delete_holds_up_nobody() {
    let mut bench = Bench::new("undeleted");
    bench.sql("CREATE TEMP TRIGGER t BEFORE DELETE ON entry BEGIN SELECT raise(ABORT, 'no'); END");
    bench.turn("a", "1");
    let (reply, mut deleted) = tokio::sync::oneshot::channel();
    let delete = Later::Delete(bench.owner, Kind::Conversation, "a".to_owned(), reply);
    bench.home.shared.lock().ask(Ask::Later(delete));
    assert!(bench.home.step());
    assert_eq!(deleted.try_recv(), Ok(false));
    assert!(bench.home.failing.is_none());
    assert!(bench.brings_home() && bench.get("a").is_some());
}

/// Tries have waits between them that grow, whatever else there is to do.
#[test]
fn a_broken_disk_is_not_tried_all_the_time() {
    let mut bench = Bench::new("waits");
    bench.sql("PRAGMA max_page_count = 1");
    bench.turn("a", &"x".repeat(MANY));
    let mut last = Duration::ZERO;
    for _ in 0..8 {
        assert!(!bench.brings_home());
        let failing = bench.home.failing.as_ref().unwrap();
        assert!(failing.wait > last || failing.wait == LONGEST_WAIT);
        last = failing.wait;
    }
    assert_eq!(last, LONGEST_WAIT);
    // Much that waits, and somebody who asks, change nothing.
    bench.turn("b", &"x".repeat(2 * MANY));
    let next = bench.home.failing.as_ref().unwrap().next;
    let (reply, mut list) = tokio::sync::oneshot::channel();
    let read = Read::List(bench.owner, Kind::Log, "l".to_owned(), reply);
    bench.home.shared.lock().ask(Ask::Read(read));
    assert!(bench.home.step());
    assert_eq!(list.try_recv().unwrap().len(), 2);
    assert_eq!(bench.home.failing.as_ref().unwrap().next, next);
}

/// Whoever ends while the file cannot be written leaves the tail to the next.
#[test]
fn a_tail_is_left_where_the_file_cannot_be_written() {
    let bench = Bench::new("leave");
    bench.turn("a", "1");
    // One that is not in the tail yet.
    bench.write("b", "2");
    let tool = bench.lock();
    let Bench { scratch, sqlite, home, .. } = bench;
    let lost = home.metrics.lost.clone();
    drop(sqlite);
    home.run();
    assert_eq!(lost.get(), 0);
    tool.execute_batch("ROLLBACK").unwrap();
    let next = Bench::new("leave-next");
    for _ in 0..2 {
        assert_eq!(next.list_in(&scratch), ["1", "2"]);
    }
}

/// Where others use the file, the tail is of use as long as it cannot be written.
#[test]
fn a_shared_file_that_cannot_be_written_has_a_tail_too() {
    let mut bench = Bench::new("both");
    let other = Sqlite::prepare(&bench.scratch.0, opening(1 << 26, 7)).unwrap();
    bench.home.shared.tail.blocking_lock().as_mut().unwrap().look();
    let tool = bench.lock();
    bench.write("a", "1");
    assert!(!bench.brings_home());
    assert!(bench.home.shared.lock().unsaved().is_empty());
    tool.execute_batch("ROLLBACK").unwrap();
    drop((other, tool));
    assert_eq!(bench.list_after_kill("both-killed"), ["1"]);
}

/// Who has no tail is seen by who has one, also when all between them have left.
#[test]
fn one_without_a_tail_is_not_overlooked() {
    let bench = Bench::new("guest");
    let prepare = || Sqlite::prepare(&bench.scratch.0, opening(1 << 26, 7)).unwrap();
    let between: Vec<_> = (1..tail::TAILS).map(|_| prepare()).collect();
    let (guest, home, _) = prepare();
    assert!(home.shared.tail.blocking_lock().is_none());
    drop(between);
    let is_alone = || {
        let mut tail = bench.home.shared.tail.blocking_lock();
        let tail = tail.as_mut().unwrap();
        tail.look();
        tail.is_alone()
    };
    assert!(!is_alone());
    drop((guest, home));
    assert!(is_alone());
}

/// What is written to a file that was deleted is there for this process only.
#[cfg(unix)]
#[test]
fn a_deleted_file_is_noticed() {
    let mut bench = Bench::new("deleted");
    bench.turn("a", "1");
    assert!(bench.brings_home());
    assert_eq!(bench.lost(), 0);
    std::fs::remove_file(&bench.scratch.0).unwrap();
    bench.turn("b", "2");
    assert!(bench.brings_home());
    assert_eq!((bench.lost(), bench.get("b")), (2, Some("2".into())));
    // Another one under its name is not it.
    std::fs::write(&bench.scratch.0, "").unwrap();
    bench.turn("c", "3");
    assert!(bench.brings_home());
    assert_eq!((bench.lost(), bench.list().len()), (4, 3));
}
