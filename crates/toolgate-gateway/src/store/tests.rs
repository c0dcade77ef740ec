//! What every store must do.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;

use super::{Kind, Opening, Part, Store, Wanted};
use crate::auth::Owner;
use crate::config::{Secret, StoreKind};
use crate::metrics::StoreMetrics;

const LONG: Duration = Duration::from_secs(600);

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn ids(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

fn parts(names: &[&str], most: usize) -> Vec<Part> {
    ids(names).into_iter().map(|name| Part { name, most }).collect()
}

/// A file of its own, gone when dropped.
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn new(name: &str) -> Self {
        let name = format!("toolgate-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name).join("state.db"))
    }

    /// Makes the folder, which the store else does.
    pub(super) fn make_folder(&self) {
        std::fs::create_dir_all(self.0.parent().unwrap()).unwrap();
    }

    pub(super) fn kind(&self) -> StoreKind {
        StoreKind::Sqlite { path: self.0.clone(), wanted: true }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(folder) = self.0.parent() {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

pub(super) fn opening(bytes: u64, key: u8) -> Opening {
    Opening {
        bytes,
        keep: LONG,
        new_key: [key; 32],
        has_own_key: false,
        metrics: StoreMetrics::default(),
    }
}

async fn open(kind: &StoreKind, limit: u64) -> Store {
    Store::open(kind, opening(limit, 7)).await.unwrap().0
}

async fn values(store: &Store) {
    let (one, two) = (Owner::of("one"), Owner::of("two"));
    store.put(one, Kind::Answer, "a", bytes("1"), LONG);
    store.put(one, Kind::Answer, "b", bytes(""), LONG);
    store.put(one, Kind::Tools, "a", bytes("2"), LONG);
    store.put(two, Kind::Answer, "a", bytes("3"), LONG);
    let got = store.get(one, Kind::Answer, &ids(&["a", "none", "b"])).await;
    assert_eq!(got, [Some(bytes("1")), None, Some(bytes(""))]);
    assert_eq!(store.get_one(one, Kind::Tools, "a").await, Some(bytes("2")));
    assert_eq!(store.get_one(two, Kind::Answer, "a").await, Some(bytes("3")));
    store.put(one, Kind::Answer, "a", bytes("new"), LONG);
    assert_eq!(store.get_one(one, Kind::Answer, "a").await, Some(bytes("new")));
    assert!(store.delete(one, Kind::Answer, "a").await);
    assert!(!store.delete(one, Kind::Answer, "a").await);
    assert!(!store.delete(two, Kind::Answer, "b").await, "another's");
    assert_eq!(store.get_one(one, Kind::Answer, "a").await, None);
    assert_eq!(store.get_one(two, Kind::Answer, "a").await, Some(bytes("3")));
    store.put(one, Kind::Events, "old", bytes("x"), Duration::ZERO);
    assert_eq!(store.get_one(one, Kind::Events, "old").await, None, "r128");
}

async fn lists(store: &Store) {
    let (one, two) = (Owner::of("one"), Owner::of("two"));
    assert!(store.list(one, Kind::Log, "l").await.is_empty());
    store.append(one, Kind::Log, "l", vec![bytes("1"), bytes("2")], LONG);
    store.append(two, Kind::Log, "l", vec![bytes("x")], LONG);
    store.append(one, Kind::Log, "l", vec![bytes("3")], LONG);
    assert_eq!(store.list(one, Kind::Log, "l").await, ["1", "2", "3"].map(bytes));
    assert_eq!(store.list(two, Kind::Log, "l").await, [bytes("x")]);
    assert!(store.delete(one, Kind::Log, "l").await);
    assert!(store.list(one, Kind::Log, "l").await.is_empty());
    store.append(one, Kind::Log, "l", vec![bytes("4")], LONG);
    assert_eq!(store.list(one, Kind::Log, "l").await, [bytes("4")]);
}

async fn maps(store: &Store) {
    let (one, two) = (Owner::of("one"), Owner::of("two"));
    let last = async |owner: Owner, map: &str, most| {
        let (maps, parts) = (ids(&map.split(' ').collect::<Vec<_>>()), parts(&["q", "p"], most));
        let wanted = Wanted { owner, maps: &maps, parts: &|| &parts };
        let listed = store.in_parts(wanted).await.into_iter();
        listed.map(|it| format!("{}={}", it.id, it.note)).collect::<Vec<_>>()
    };
    let all = async |owner: Owner, map: &str| last(owner, map, 9).await;
    let put = |owner, id: &str, notes: &[(&str, &str)], keep| {
        store.put_in(owner, Kind::Signature, id, bytes(&format!("of {id}")), notes, keep);
    };
    assert_eq!(all(one, "m").await, [""; 0]);
    put(one, "2", &[("m:p", "b")], LONG);
    put(one, "1", &[("m:p", "a/1"), ("n:p", "a/1")], LONG);
    put(one, "3", &[("m0:p", "a")], LONG);
    put(one, "4/5", &[("k:p", ""), ("l:p", "a")], LONG);
    put(one, "5", &[], LONG);
    put(two, "1", &[("m:p", "c")], LONG);
    put(two, "6", &[("m:p", "c")], LONG);
    assert_eq!(all(one, "m").await, ["2=b", "1=a/1"], "in their order");
    // The same from where things are kept in the end, and with something new beside.
    store.flush().await;
    assert_eq!(all(one, "m").await, ["2=b", "1=a/1"]);
    assert_eq!(all(one, "n").await, ["1=a/1"]);
    put(one, "0", &[("m:p", "b")], LONG);
    put(one, "7", &[("n:p", "c"), ("m:p", "d")], LONG);
    put(one, "old", &[("m:p", "old")], Duration::ZERO);
    assert_eq!(all(one, "m").await, ["2=b", "1=a/1", "0=b", "7=d"], "r128");
    assert_eq!(last(one, "m", 3).await, ["1=a/1", "0=b", "7=d"], "the latest");
    assert_eq!(last(one, "n none m0 m", 2).await, ["1=a/1", "3=a", "0=b", "7=c", "7=d"], "of each");
    assert_eq!(all(one, "none").await, [""; 0]);
    assert_eq!(all(one, "m0").await, ["3=a"]);
    assert_eq!(all(two, "m").await, ["1=c", "6=c"]);
    let got = store.get(one, Kind::Signature, &ids(&["7", "2", "5", "old", "6"])).await;
    let want = [Some("of 7"), Some("of 2"), Some("of 5"), None, None];
    assert_eq!(got, want.map(|value| value.map(bytes)));
    store.flush().await;
    assert_eq!(all(one, "m").await, ["2=b", "1=a/1", "0=b", "7=d"]);
    assert_eq!(last(one, "m", 3).await, ["1=a/1", "0=b", "7=d"]);
    assert_eq!(last(one, "n none m0 m", 2).await, ["1=a/1", "3=a", "0=b", "7=c", "7=d"]);
    // What is put again comes again, and is there once.
    put(one, "2", &[("m:p", "b")], LONG);
    assert_eq!(all(one, "m").await, ["1=a/1", "0=b", "7=d", "2=b"]);
    put(one, "0", &[("m:p", "b")], Duration::ZERO);
    assert_eq!(all(one, "m").await, ["1=a/1", "7=d", "2=b"]);
    store.flush().await;
    assert_eq!(all(one, "m").await, ["1=a/1", "7=d", "2=b"]);
    assert_eq!((all(one, "l").await, all(one, "k").await), (ids(&["4/5=a"]), ids(&["4/5="])));
    // Of a map that has much, some parts.
    for number in 0..40 {
        let map = format!("big:{}", number % 20);
        put(one, &format!("b{number:02}"), &[(&map, "x")], LONG);
    }
    for _ in ["from where it waits", "from where it is kept"] {
        let (maps, parts) = (ids(&["none", "big"]), parts(&["7", "none", "3"], 9));
        let wanted = Wanted { owner: one, maps: &maps, parts: &|| &parts };
        let listed = store.in_parts(wanted).await;
        let listed: Vec<_> = listed.iter().map(|it| (it.map, it.part, it.id.as_str())).collect();
        assert_eq!(listed, [(1, 2, "b03"), (1, 0, "b07"), (1, 2, "b23"), (1, 0, "b27")]);
        store.flush().await;
    }
}

/// r97, r111: what is added at once is all there, and what was added together stays together.
async fn crowd(store: &Store) {
    let owner = Owner::of("crowd");
    let add = async |n: usize| {
        let pair = vec![bytes(&format!("{n}a")), bytes(&format!("{n}b"))];
        store.append(owner, Kind::Log, "l", pair, LONG);
        store.settle().await;
    };
    futures_util::future::join_all((0..50).map(add)).await;
    let all = store.list(owner, Kind::Log, "l").await;
    assert_eq!(all.len(), 100);
    for pair in all.chunks(2) {
        assert_eq!(pair[0].strip_suffix(b"a"), pair[1].strip_suffix(b"b"));
    }
}

async fn contract(kind: &StoreKind) {
    let store = open(kind, 1 << 20).await;
    values(&store).await;
    lists(&store).await;
    maps(&store).await;
    crowd(&store).await;
}

/// r128, r145: the oldest goes first, and there is never too much.
async fn bounds(kind: &StoreKind) {
    let owner = Owner::of("o");
    let store = open(kind, 300_000).await;
    for n in 0..500 {
        store.put(owner, Kind::Answer, &format!("a{n}"), bytes(&"x".repeat(1000)), LONG);
        store.settle().await;
    }
    store.flush().await;
    let all: Vec<_> = (0..500).map(|n| format!("a{n}")).collect();
    let kept = store.get(owner, Kind::Answer, &all).await;
    let count = kept.iter().flatten().count();
    assert!((10..=300).contains(&count), "{count}");
    assert!(kept[0].is_none() && kept[499].is_some());
}

#[tokio::test]
async fn memory_holds_the_contract() {
    contract(&StoreKind::Memory).await;
    bounds(&StoreKind::Memory).await;
}

#[tokio::test]
async fn sqlite_holds_the_contract() {
    contract(&Scratch::new("contract").kind()).await;
    bounds(&Scratch::new("bounds").kind()).await;
}

/// A server of its own: `TOOLGATE_TEST_VALKEY` is its address.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test --only valkey"]
async fn valkey_holds_the_contract() {
    let url = std::env::var("TOOLGATE_TEST_VALKEY").unwrap();
    let kind = StoreKind::Valkey(Secret::new(url));
    contract(&kind).await;
    let owner = Owner::of("shared");
    let (one, key) = Store::open(&kind, opening(1 << 20, 1)).await.unwrap();
    let (two, other) = Store::open(&kind, opening(1 << 20, 2)).await.unwrap();
    assert_eq!(key, other, "the key is the first that came");
    assert!(one.is_shared() && !one.is_away());
    one.put(owner, Kind::Answer, "a", bytes("1"), LONG);
    one.append(owner, Kind::Log, "l", vec![bytes("1")], LONG);
    one.put_in(owner, Kind::Signature, "1", bytes("x"), &[("m:p", "b")], LONG);
    one.settle().await;
    two.put_in(owner, Kind::Signature, "2", bytes("x"), &[("m:p", "a")], LONG);
    // Which of two processes was first within a millisecond, nobody knows.
    let both = async |store: &Store| {
        let (maps, parts) = (ids(&["m"]), parts(&["p"], 2));
        let wanted = Wanted { owner, maps: &maps, parts: &|| &parts };
        let all = store.in_parts(wanted).await.into_iter();
        let mut all: Vec<_> = all.map(|it| format!("{}={}", it.note, it.id)).collect();
        all.sort();
        all
    };
    assert_eq!(both(&two).await, ["a=2", "b=1"]);
    two.settle().await;
    assert_eq!(both(&one).await, ["a=2", "b=1"]);
    two.append(owner, Kind::Log, "l", vec![bytes("2")], LONG);
    assert_eq!(two.get_one(owner, Kind::Answer, "a").await, Some(bytes("1")));
    two.settle().await;
    assert_eq!(one.list(owner, Kind::Log, "l").await, ["1", "2"].map(bytes));
    assert!(two.delete(owner, Kind::Answer, "a").await);
    assert_eq!(one.get_one(owner, Kind::Answer, "a").await, None);
    for (refuse, relent) in REFUSALS {
        refused_for_a_while(&kind, refuse, relent).await;
    }
}

/// What makes a server refuse for a while, as when it fails over, and what ends that.
const REFUSALS: [(&[&str], &[&str]); 3] = [
    (&["REPLICAOF", "127.0.0.1", "1"], &["REPLICAOF", "NO", "ONE"]),
    (
        &["CONFIG", "SET", "min-replicas-to-write", "1"],
        &["CONFIG", "SET", "min-replicas-to-write", "0"],
    ),
    (&["CONFIG", "SET", "maxmemory", "1"], &["CONFIG", "SET", "maxmemory", "0"]),
];

/// What was written to a server that refuses is there when it does so no more, once.
async fn refused_for_a_while(kind: &StoreKind, refuse: &[&str], relent: &[&str]) {
    let StoreKind::Valkey(url) = kind else { unreachable!() };
    let client = redis::Client::open(url.expose()).unwrap();
    let mut server = client.get_multiplexed_async_connection().await.unwrap();
    let mut tell = async |words: &[&str]| {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query_async::<()>(&mut server).await.unwrap();
    };
    let opening = opening(1 << 20, 1);
    let (lost, away) = (opening.metrics.lost.clone(), opening.metrics.away.clone());
    let (store, _) = Store::open(kind, opening).await.unwrap();
    let (owner, list) = (Owner::of("refused"), refuse.join(" "));
    store.append(owner, Kind::Log, &list, vec![bytes("1")], LONG);
    store.settle().await;
    tell(refuse).await;
    for value in ["2", "3"] {
        store.append(owner, Kind::Log, &list, vec![bytes(value)], LONG);
        store.put(owner, Kind::Answer, &list, bytes(value), LONG);
        store.settle().await;
        assert_eq!(away.get(), 1, "{list}");
        assert_eq!(store.get_one(owner, Kind::Answer, &list).await, Some(bytes(value)));
    }
    tell(relent).await;
    while store.is_away() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    store.settle().await;
    let other = open(kind, 1 << 20).await;
    assert_eq!(other.get_one(owner, Kind::Answer, &list).await, Some(bytes("3")), "{list}");
    assert_eq!(other.list(owner, Kind::Log, &list).await, ["1", "2", "3"].map(bytes), "{list}");
    assert_eq!((lost.get(), away.get()), (0, 0), "{list}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error() {
    let kind = StoreKind::Valkey(Secret::new("redis://ann:secret@127.0.0.1:1"));
    let error = Store::open(&kind, opening(1 << 20, 1)).await.unwrap_err().to_string();
    assert!(error.contains("127.0.0.1:1") && !error.contains("secret"), "{error}");
}

/// Where the server is not needed for its key, it is waited for.
#[tokio::test]
async fn a_server_that_comes_later_is_waited_for() {
    let kind = StoreKind::Valkey(Secret::new("redis://127.0.0.1:1"));
    let opening = Opening { has_own_key: true, ..opening(1 << 20, 1) };
    let (away, lost) = (opening.metrics.away.clone(), opening.metrics.lost.clone());
    let (store, _) = Store::open(&kind, opening).await.unwrap();
    assert!(store.is_away() && away.get() == 1);
    let owner = Owner::of("o");
    store.put(owner, Kind::Signature, "a", bytes("1"), LONG);
    assert_eq!(store.get_one(owner, Kind::Signature, "a").await, Some(bytes("1")));
    assert_eq!(lost.get(), 0);
    drop(store);
    assert_eq!(lost.get(), 1, "nobody waits for it any more");
}

#[tokio::test]
async fn sqlite_survives() {
    let scratch = Scratch::new("survives");
    let owner = Owner::of("o");
    let (store, key) = Store::open(&scratch.kind(), opening(1 << 20, 1)).await.unwrap();
    assert_eq!(key, [1; 32]);
    store.put(owner, Kind::Answer, "a", bytes("1"), LONG);
    store.append(owner, Kind::Log, "l", vec![bytes("1")], LONG);
    store.settle().await;
    // The first is not closed: a process that was killed closes nothing.
    let (other, key) = Store::open(&scratch.kind(), opening(1 << 20, 2)).await.unwrap();
    assert_eq!(key, [1; 32], "the key is the first that came");
    assert_eq!(other.get_one(owner, Kind::Answer, "a").await, Some(bytes("1")));
    other.append(owner, Kind::Log, "l", vec![bytes("2")], LONG);
    other.settle().await;
    assert_eq!(store.list(owner, Kind::Log, "l").await, ["1", "2"].map(bytes));
}

/// A process that was killed has left things that are in no transaction yet. They are brought
/// home, once: lists do not get longer each time.
#[tokio::test]
async fn what_a_killed_process_left_is_brought_home() {
    let (scratch, killed) = (Scratch::new("left"), Scratch::new("killed"));
    killed.make_folder();
    let owner = Owner::of("o");
    let store = open(&scratch.kind(), 1 << 20).await;
    store.append(owner, Kind::Log, "l", vec![bytes("1")], LONG);
    store.flush().await;
    store.append(owner, Kind::Log, "l", vec![bytes("2"), bytes("3")], LONG);
    store.put(owner, Kind::Answer, "a", bytes("old"), LONG);
    store.settle().await;
    store.put(owner, Kind::Answer, "a", bytes("new"), LONG);
    store.put(owner, Kind::Answer, "short", bytes("x"), Duration::ZERO);
    store.settle().await;
    // The files as they would be found. The tail last: what is missing in one is in the next.
    for end in ["", "-wal", "-tail0"] {
        let file = |scratch: &Scratch| format!("{}{end}", scratch.0.display());
        std::fs::copy(file(&scratch), file(&killed)).unwrap();
    }
    for _ in 0..3 {
        let store = open(&killed.kind(), 1 << 20).await;
        assert_eq!(store.get_one(owner, Kind::Answer, "a").await, Some(bytes("new")));
        assert_eq!(store.get_one(owner, Kind::Answer, "short").await, None);
        assert_eq!(store.list(owner, Kind::Log, "l").await, ["1", "2", "3"].map(bytes));
    }
    drop(store);
    let tail = format!("{}-tail0", scratch.0.display());
    assert_eq!(std::fs::metadata(tail).unwrap().len(), 0, "what was closed leaves nothing");
}

/// Those who share a file see at once what the others have settled.
#[tokio::test]
async fn a_file_is_shared() {
    let scratch = Scratch::new("shared");
    let owner = Owner::of("o");
    let one = open(&scratch.kind(), 1 << 20).await;
    let two = open(&scratch.kind(), 1 << 20).await;
    for n in 0..20 {
        let (writer, reader) = if n % 2 == 0 { (&one, &two) } else { (&two, &one) };
        writer.put(owner, Kind::Answer, "a", bytes(&n.to_string()), LONG);
        writer.append(owner, Kind::Log, "l", vec![bytes(&n.to_string())], LONG);
        writer.settle().await;
        assert_eq!(reader.get_one(owner, Kind::Answer, "a").await, Some(bytes(&n.to_string())));
        assert_eq!(reader.list(owner, Kind::Log, "l").await.len(), n + 1);
    }
    drop(one);
    two.put(owner, Kind::Answer, "a", bytes("last"), LONG);
    two.settle().await;
    let three = open(&scratch.kind(), 1 << 20).await;
    assert_eq!(three.get_one(owner, Kind::Answer, "a").await, Some(bytes("last")));
}

/// Somebody who has the file for himself, with a tool of his own, holds up no turn.
#[tokio::test]
async fn a_locked_file_is_not_waited_for() {
    let scratch = Scratch::new("locked");
    let owner = Owner::of("o");
    let store = open(&scratch.kind(), 1 << 20).await;
    let tool = rusqlite::Connection::open(&scratch.0).unwrap();
    tool.execute_batch("BEGIN IMMEDIATE").unwrap();
    store.put(owner, Kind::Answer, "a", bytes("1"), LONG);
    store.settle().await;
    let read = |tool: &rusqlite::Connection| -> i64 {
        let count = "SELECT count(*) FROM entry WHERE kind = 'answer'";
        tool.query_row(count, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(read(&tool), 0);
    tool.execute_batch("COMMIT").unwrap();
    store.flush().await;
    assert_eq!(read(&tool), 1);
}

/// What is too long for the tail is waited for.
#[tokio::test]
async fn long_values_are_kept_too() {
    let scratch = Scratch::new("long");
    let owner = Owner::of("o");
    let store = open(&scratch.kind(), 1 << 30).await;
    let long = Bytes::from(vec![b'x'; 17 << 20]);
    store.put(owner, Kind::Answer, "a", long.clone(), LONG);
    store.put(owner, Kind::Answer, "b", bytes("1"), LONG);
    store.settle().await;
    let other = open(&scratch.kind(), 1 << 30).await;
    assert_eq!(other.get_one(owner, Kind::Answer, "a").await, Some(long));
    assert_eq!(other.get_one(owner, Kind::Answer, "b").await, Some(bytes("1")));
}

#[tokio::test]
async fn a_file_that_cannot_be_used_is_an_error_if_it_was_asked_for() {
    let scratch = Scratch::new("broken");
    std::fs::create_dir_all(&scratch.0).unwrap();
    assert!(Store::open(&scratch.kind(), opening(1 << 20, 1)).await.is_err());
    let fallback = StoreKind::Sqlite { path: scratch.0.clone(), wanted: false };
    let (store, _) = Store::open(&fallback, opening(1 << 20, 1)).await.unwrap();
    assert!(store.is_memory());
}

#[test]
fn a_newer_file_is_not_touched() {
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    let error = super::sqlite_file::File::new(connection, 1).err().unwrap();
    assert!(error.to_string().contains("newer"), "{error}");
}
