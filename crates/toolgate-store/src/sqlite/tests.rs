//! Writes that fail within a commit.

use std::path::PathBuf;

use bytes::Bytes;

use super::database::Database;
use crate::key::{Key, Kind, Owner};
use crate::queue::{Change, Write};

/// A folder that is removed when dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn database(name: &str) -> (Database, Folder) {
    let folder = std::env::temp_dir().join(format!("toolgate-{}-{name}", std::process::id()));
    let (database, _) = Database::open(&folder.join("state.db"), 1 << 20, [7; 32]).unwrap();
    (database, Folder(folder))
}

fn put(id: &str) -> Write {
    let key = Key::new(Owner::of("o"), Kind::Answer, id);
    Write { key, change: Change::Put(Bytes::from_static(b"x")), expires: i64::MAX }
}

fn count(database: &Database, table: &str) -> i64 {
    let count = format!("SELECT count(*) FROM {table}");
    database.connection.query_row(&count, [], |row| row.get(0)).unwrap()
}

/// Makes writes of `bad` fail.
fn fail(database: &Database, how: &str) {
    let trigger = format!(
        "CREATE TEMP TRIGGER t BEFORE INSERT ON entry WHEN new.id = 'bad'
         BEGIN SELECT raise({how}, 'no'); END"
    );
    database.connection.execute_batch(&trigger).unwrap();
}

#[test]
fn a_write_that_can_never_be_committed_is_rejected_alone() {
    let (mut database, _folder) = database("rejected");
    fail(&database, "ABORT");
    let writes = ["a", "bad", "b"].map(put);
    assert_eq!(database.commit(&writes).unwrap(), 1);
    assert_eq!(count(&database, "entry"), 2);
    assert_eq!(database.commit(&[]).unwrap(), 0);
}

#[test]
fn a_batch_is_committed_as_a_whole_or_not_at_all() {
    let (mut database, _folder) = database("atomic");
    fail(&database, "ROLLBACK");
    let writes = ["a", "bad", "b"].map(put);
    assert!(database.commit(&writes).is_err());
    assert_eq!(count(&database, "entry"), 0);
    database.connection.execute_batch("DROP TRIGGER t").unwrap();
    assert_eq!(database.commit(&writes).unwrap(), 0);
    assert_eq!(count(&database, "entry"), 3);
}

#[test]
fn an_append_that_is_committed_twice_adds_its_items_once() {
    use crate::key::Stamp;
    use crate::store::Item;
    let (mut database, _folder) = database("twice");
    let item = |n| Item { stamp: Stamp::new(1, 2, n), value: Bytes::from_static(b"x") };
    let key = Key::new(Owner::of("o"), Kind::Log, "l");
    let write = Write { key, change: Change::Append(vec![item(1), item(2)]), expires: i64::MAX };
    for _ in 0..2 {
        assert_eq!(database.commit(std::slice::from_ref(&write)).unwrap(), 0);
    }
    assert_eq!(count(&database, "item"), 2);
}
