//! What every store must do, as the documentation of the crate promises it.

use std::time::Duration;

use toolgate_store::{Call, Kind, Location, Options, Owner, Stamp, Store};

use super::faults::refused_for_a_while;
use super::support::{Folder, LONG, bytes, contents, names, open, options, texts};

fn owners(name: &str) -> [Owner; 2] {
    [Owner::of(&format!("{name} one")), Owner::of(&format!("{name} two"))]
}

async fn values(store: &Store) {
    let [one, two] = owners("values");
    store.put(one, Kind::Answer, "a", bytes("1"), LONG);
    store.put(one, Kind::Answer, "b", bytes("2"), LONG);
    store.put(two, Kind::Answer, "a", bytes("3"), LONG);
    let got = store.get(one, Kind::Answer, &names(&["b", "c", "a"])).await;
    assert_eq!(got, [Some(bytes("2")), None, Some(bytes("1"))]);
    assert_eq!(store.get_one(two, Kind::Answer, "a").await, Some(bytes("3")), "its own");
    assert_eq!(store.get_one(two, Kind::Answer, "b").await, None, "another owner's");
    assert_eq!(store.get_one(one, Kind::Events, "a").await, None, "another kind");
    store.put(one, Kind::Answer, "a", bytes("new"), LONG);
    assert_eq!(store.get_one(one, Kind::Answer, "a").await, Some(bytes("new")));
    assert!(store.flush().await);
    assert_eq!(store.get_one(one, Kind::Answer, "a").await, Some(bytes("new")));
    store.delete(two, Kind::Answer, "b");
    assert_eq!(store.get_one(one, Kind::Answer, "b").await, Some(bytes("2")), "not its own");
    store.delete(one, Kind::Answer, "a");
    assert_eq!(store.get_one(one, Kind::Answer, "a").await, None);
    assert_eq!(store.get_one(two, Kind::Answer, "a").await, Some(bytes("3")));
    store.put(one, Kind::Events, "old", bytes("x"), Duration::ZERO);
    assert_eq!(store.get_one(one, Kind::Events, "old").await, None, "expired");
}

async fn lists(store: &Store) {
    let [one, two] = owners("lists");
    let list = async |owner| texts(&store.list(owner, Kind::Log, "l").await);
    assert_eq!(list(one).await, [""; 0]);
    store.append(one, Kind::Log, "l", vec![bytes("1"), bytes("2")], LONG);
    store.append(two, Kind::Log, "l", vec![bytes("x")], LONG);
    store.append(one, Kind::Log, "l", vec![bytes("3")], LONG);
    assert_eq!(list(one).await, ["1", "2", "3"]);
    assert_eq!(list(two).await, ["x"]);
    // An erased item keeps its place and its stamp.
    let before: Vec<Stamp> =
        store.list(one, Kind::Log, "l").await.iter().map(|item| item.stamp).collect();
    store.erase(one, Kind::Log, "l", before[1]);
    assert_eq!(list(one).await, ["1", "", "3"]);
    let after = store.list(one, Kind::Log, "l").await;
    assert!(after.iter().map(|item| item.stamp).eq(before.iter().copied()));
    assert_eq!(Stamp::from_bytes(before[0].as_bytes()), Some(before[0]));
    store.delete(one, Kind::Log, "l");
    assert_eq!(list(one).await, [""; 0]);
    store.append(one, Kind::Log, "l", vec![bytes("4")], LONG);
    assert_eq!(list(one).await, ["4"]);
    store.append(one, Kind::Log, "l", vec![bytes("old")], Duration::ZERO);
    assert_eq!(list(one).await, [""; 0], "expired");
}

async fn calls(store: &Store) {
    let [one, two] = owners("calls");
    let put = |owner, token: &str, sessions: &[&str], content: &str, previous: &str, ttl| {
        let (sessions, content) = (names(sessions), content.to_owned());
        let signature = bytes(&format!("of {token}"));
        let call = Call { token, signature, sessions: &sessions, content, previous };
        store.put_call(owner, call, ttl);
    };
    let find = async |owner, sessions: &[&str], limit| {
        let sessions = names(sessions);
        let found = store.find_calls(owner, &sessions, &contents(&["q", "p"], limit)).await;
        found.iter().map(|it| format!("{}<{}", it.token, it.previous)).collect::<Vec<_>>()
    };
    assert_eq!(find(one, &["s"], 9).await, [""; 0]);
    put(one, "2", &["s"], "p", "", LONG);
    put(one, "1", &["s", "t"], "p", "2", LONG);
    put(one, "3", &["s0"], "p", "-", LONG);
    put(one, "5", &[], "p", "", LONG);
    put(two, "1", &["s"], "p", "", LONG);
    assert_eq!(find(one, &["s"], 9).await, ["2<", "1<2"], "in the order of writing");
    assert!(store.flush().await);
    assert!(store.has_calls(one, &names(&["none", "s"])).await);
    assert_eq!(find(one, &["t"], 9).await, ["1<2"]);
    put(one, "0", &["s"], "p", "1", LONG);
    put(one, "7", &["t", "s"], "q", "0", LONG);
    put(one, "old", &["s"], "p", "7", Duration::ZERO);
    assert_eq!(
        find(one, &["s"], 9).await,
        ["2<", "1<2", "0<1", "7<0"],
        "expired ones are left out"
    );
    assert_eq!(find(one, &["s"], 2).await, ["1<2", "0<1", "7<0"], "the newest of each content");
    assert_eq!(find(one, &["none"], 9).await, [""; 0]);
    assert_eq!(find(two, &["s"], 9).await, ["1<"], "its own");
    let both = store.find_calls(one, &names(&["t", "s"]), &contents(&["q", "p"], 1)).await;
    let mut places: Vec<_> =
        both.iter().map(|it| (it.session, it.content, it.token.as_str())).collect();
    places.sort_unstable();
    assert_eq!(places, [(0, 0, "7"), (0, 1, "1"), (1, 0, "7"), (1, 1, "0")]);
    let got = store.get(one, Kind::Signature, &names(&["7", "2", "5", "old", "6"])).await;
    let want = [Some("of 7"), Some("of 2"), Some("of 5"), None, None];
    assert_eq!(got, want.map(|value| value.map(bytes)));
    // A call that is stored again is found once.
    put(one, "2", &["s"], "p", "", LONG);
    let mut found = find(one, &["s"], 9).await;
    found.sort_unstable();
    assert_eq!(found, ["0<1", "1<2", "2<", "7<0"]);
}

/// Items that are appended at the same time are all present; items appended together stay together.
async fn concurrent_appends(store: &Store) {
    let [owner, _] = owners("crowd");
    let add = async |n: usize| {
        let pair = vec![bytes(&format!("{n}a")), bytes(&format!("{n}b"))];
        store.append(owner, Kind::Log, "l", pair, LONG);
        assert!(store.flush().await);
    };
    futures_util::future::join_all((0..50).map(add)).await;
    let all = texts(&store.list(owner, Kind::Log, "l").await);
    assert_eq!(all.len(), 100);
    for pair in all.chunks(2) {
        assert_eq!(pair[0].strip_suffix('a'), pair[1].strip_suffix('b'));
    }
}

async fn contract(location: &Location) {
    let store = open(location, 1 << 20).await;
    values(&store).await;
    lists(&store).await;
    calls(&store).await;
    concurrent_appends(&store).await;
}

/// Which of `count` answers an owner still has.
async fn kept(store: &Store, owner: Owner, count: usize) -> Vec<bool> {
    let ids: Vec<String> = (0..count).map(|n| format!("a{n:04}")).collect();
    store.get(owner, Kind::Answer, &ids).await.iter().map(Option::is_some).collect()
}

fn put_many(store: &Store, owner: Owner, numbers: std::ops::Range<usize>) {
    for n in numbers {
        store.put(owner, Kind::Answer, &format!("a{n:04}"), bytes(&"x".repeat(1000)), LONG);
    }
}

/// The oldest goes first, the newest never, and the store stays within its limit.
async fn bounds(location: &Location) {
    let [owner, _] = owners("bounds");
    let store = open(location, 400_000).await;
    for n in 0..500 {
        put_many(&store, owner, n..n + 1);
        store.flush().await;
    }
    let kept = kept(&store, owner, 500).await;
    let count = kept.iter().filter(|it| **it).count();
    assert!((10..=400).contains(&count), "{count}");
    let first = kept.iter().position(|it| *it).unwrap();
    assert!(kept[first..].iter().all(|it| *it), "the oldest go first");
}

/// One owner's writes do not evict what an owner has that uses less.
async fn fairness(location: &Location) {
    let [small, large] = owners("fairness");
    let store = open(location, 400_000).await;
    put_many(&store, small, 0..20);
    let sessions = names(&["s"]);
    let call = Call {
        token: "t",
        signature: bytes("s"),
        sessions: &sessions,
        content: "c".to_owned(),
        previous: "",
    };
    store.put_call(small, call, LONG);
    store.flush().await;
    for n in 0..1000 {
        put_many(&store, large, n..n + 1);
        if n % 50 == 0 {
            store.flush().await;
        }
    }
    store.flush().await;
    assert!(kept(&store, small, 20).await.iter().all(|it| *it));
    assert_eq!(store.find_calls(small, &sessions, &contents(&["c"], 1)).await.len(), 1);
    let large = kept(&store, large, 1000).await;
    assert!(!large[0] && large[999]);
    // Very many owners with one entry each do not grow it either.
    for n in 0..1500 {
        let owner = Owner::of(&format!("one of many {n}"));
        store.put(owner, Kind::Answer, "a0000", bytes(&"x".repeat(1000)), LONG);
        if n % 50 == 0 {
            store.flush().await;
        }
    }
    store.flush().await;
    let mut left = 0;
    for n in 0..1500 {
        let owner = Owner::of(&format!("one of many {n}"));
        left += usize::from(kept(&store, owner, 1).await[0]);
    }
    assert!((10..=400).contains(&left), "{left}");
}

/// A list that alone outgrows the store does not grow for ever.
async fn outgrown_list(location: &Location) {
    let [owner, _] = owners("outgrown");
    let store = open(location, 400_000).await;
    for _ in 0..1000 {
        store.append(owner, Kind::Log, "l", vec![bytes(&"x".repeat(2000))], LONG);
        store.flush().await;
    }
    let length = store.list(owner, Kind::Log, "l").await.len();
    assert!(length <= 250, "{length}");
}

#[tokio::test]
async fn memory_holds_the_contract() {
    contract(&Location::Memory).await;
    bounds(&Location::Memory).await;
    fairness(&Location::Memory).await;
    outgrown_list(&Location::Memory).await;
}

#[tokio::test]
async fn sqlite_holds_the_contract() {
    contract(&Folder::new().location()).await;
    bounds(&Folder::new().location()).await;
    fairness(&Folder::new().location()).await;
    outgrown_list(&Folder::new().location()).await;
}

#[tokio::test]
async fn a_store_that_is_off_keeps_nothing() {
    let store = open(&Location::Off, 1 << 20).await;
    let [owner, _] = owners("off");
    store.put(owner, Kind::Answer, "a", bytes("1"), LONG);
    store.append(owner, Kind::Log, "l", vec![bytes("1")], LONG);
    assert!(store.flush().await && store.is_off() && !store.is_shared() && !store.is_degraded());
    assert_eq!(store.get_one(owner, Kind::Answer, "a").await, None);
    assert!(store.list(owner, Kind::Log, "l").await.is_empty());
    assert!(!store.has_calls(owner, &names(&["s"])).await);
}

/// `TOOLGATE_TEST_VALKEY` is the address of a server for this test.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test --only valkey"]
async fn valkey_holds_the_contract() {
    let location = Location::Valkey(std::env::var("TOOLGATE_TEST_VALKEY").unwrap());
    contract(&location).await;
    let [owner, _] = owners("shared");
    let (one, secret) =
        Store::open(&location, Options { new_secret: [1; 32], ..options(1 << 20) }).await.unwrap();
    let (two, other) =
        Store::open(&location, Options { new_secret: [2; 32], ..options(1 << 20) }).await.unwrap();
    assert_eq!(secret, other, "the secret is that of the first process");
    assert!(one.is_shared() && !one.is_degraded());
    one.put(owner, Kind::Answer, "a", bytes("1"), LONG);
    one.append(owner, Kind::Log, "l", vec![bytes("1")], LONG);
    assert!(one.flush().await);
    assert_eq!(two.get_one(owner, Kind::Answer, "a").await, Some(bytes("1")));
    two.append(owner, Kind::Log, "l", vec![bytes("2")], LONG);
    assert!(two.flush().await);
    assert_eq!(texts(&one.list(owner, Kind::Log, "l").await), ["1", "2"]);
    two.delete(owner, Kind::Answer, "a");
    assert!(two.flush().await);
    assert_eq!(one.get_one(owner, Kind::Answer, "a").await, None);
    refused_for_a_while(&location).await;
}

/// Processes on one file see each other's confirmed writes.
#[tokio::test]
async fn two_stores_on_one_file_see_confirmed_writes() {
    let folder = Folder::new();
    let [owner, _] = owners("shared");
    let (one, secret) = Store::open(&folder.location(), options(1 << 20)).await.unwrap();
    let later = Options { new_secret: [9; 32], ..options(1 << 20) };
    let (two, other) = Store::open(&folder.location(), later).await.unwrap();
    assert_eq!(secret, other, "the secret is that of the first process");
    for n in 0..20 {
        let (writer, reader) = if n % 2 == 0 { (&one, &two) } else { (&two, &one) };
        writer.put(owner, Kind::Answer, "a", bytes(&n.to_string()), LONG);
        writer.append(owner, Kind::Log, "l", vec![bytes(&n.to_string())], LONG);
        assert!(writer.flush().await);
        assert_eq!(reader.get_one(owner, Kind::Answer, "a").await, Some(bytes(&n.to_string())));
        assert_eq!(reader.list(owner, Kind::Log, "l").await.len(), n + 1);
    }
    drop(one);
    two.put(owner, Kind::Answer, "a", bytes("last"), LONG);
    assert!(two.flush().await);
    let three = open(&folder.location(), 1 << 20).await;
    assert_eq!(three.get_one(owner, Kind::Answer, "a").await, Some(bytes("last")));
}

/// Markers of answers in progress end with the processes that could make them.
#[tokio::test]
async fn markers_of_answers_in_progress_are_removed_when_nobody_else_has_the_file() {
    let folder = Folder::new();
    let [owner, _] = owners("live");
    let one = open(&folder.location(), 1 << 20).await;
    one.put(owner, Kind::Live, "a", bytes("queued"), LONG);
    one.put(owner, Kind::Answer, "a", bytes("1"), LONG);
    assert!(one.flush().await);
    let two = open(&folder.location(), 1 << 20).await;
    assert!(two.get_one(owner, Kind::Live, "a").await.is_some(), "its maker lives");
    drop((one, two));
    let three = open(&folder.location(), 1 << 20).await;
    assert_eq!(three.get_one(owner, Kind::Live, "a").await, None);
    assert!(three.get_one(owner, Kind::Answer, "a").await.is_some());
}
