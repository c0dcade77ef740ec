//! Failures of processes, disks, locks, files and servers.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rusqlite::Connection;
use toolgate_store::{Kind, Location, Options, Owner, Store};

use super::support::{Folder, LONG, bytes, open, options, texts};

/// Names the folder that a child process works in.
const CHILD: &str = "TOOLGATE_TEST_STORE_CHILD";

fn owner() -> Owner {
    Owner::of("o")
}

/// Writes an answer and an item, and waits for the confirmation.
async fn write(store: &Store, text: &str) -> bool {
    store.put(owner(), Kind::Answer, text, bytes(text), LONG);
    store.append(owner(), Kind::Log, "l", vec![bytes(text)], LONG);
    store.flush().await
}

/// Flushes until all writes are confirmed.
async fn confirmed(store: &Store) {
    while !store.flush().await {
        tokio::task::yield_now().await;
    }
}

/// This test program as a child that runs one test which is ignored otherwise.
fn child(command: &mut Command, test: &str, folder: &Path) -> Child {
    command
        .args(["--ignored", "--exact", "--nocapture", &format!("store::faults::{test}")])
        .env(CHILD, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn confirmed_writes_survive_kill_9_under_load() {
    let folder = Folder::new();
    let mut written: Vec<String> = Vec::new();
    for wanted in [1, 40, 300, 17] {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let mut writer = child(&mut command, "child_that_is_killed", folder.path());
        let lines = BufReader::new(writer.stdout.take().unwrap()).lines().map(Result::unwrap);
        let confirmed = lines.filter_map(|line| line.strip_prefix("confirmed ").map(str::to_owned));
        written.extend(confirmed.take(wanted));
        writer.kill().unwrap();
        writer.wait().unwrap();
        let store = open(&folder.location(), 1 << 26).await;
        let found = store.get(owner(), Kind::Answer, &written).await;
        assert!(found.iter().zip(&written).all(|(it, text)| *it == Some(bytes(text))));
        let mut items = texts(&store.list(owner(), Kind::Log, "l").await);
        let count = items.len();
        items.sort_unstable();
        items.dedup();
        assert_eq!(items.len(), count, "no item is there twice");
        assert!(written.iter().all(|text| items.binary_search(text).is_ok()));
    }
}

#[tokio::test]
#[ignore = "run by another test"]
async fn child_that_is_killed() {
    let Ok(folder) = std::env::var(CHILD) else { return };
    let store = open(&Location::Sqlite(Path::new(&folder).join("state.db")), 1 << 26).await;
    let client = async |client: usize| {
        for n in 0.. {
            let text = format!("{}-{client}-{n}", std::process::id());
            assert!(write(&store, &text).await);
            println!("\nconfirmed {text}");
        }
    };
    futures_util::future::join_all((0..8).map(client)).await;
}

/// Needs the permission to mount a file system in a namespace of its own.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_loses_nothing_that_was_confirmed_and_recovers() {
    let folder = Folder::new();
    let mounts = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c"]);
        command.arg(format!("mount -t tmpfs -o size=2m tmpfs \"$0\" && {script}"));
        command.arg(folder.path());
        command
    };
    let may_mount = mounts("true").stderr(Stdio::null()).status();
    if !may_mount.is_ok_and(|status| status.success()) {
        println!("NOT RUN: mounting a small file system needs root");
        return;
    }
    let mut command = mounts("exec \"$@\"");
    command.arg(std::env::current_exe().unwrap());
    let ended = child(&mut command, "child_on_a_full_disk", folder.path());
    let output = ended.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("recovered"), "{text}");
}

#[tokio::test]
#[ignore = "run by another test"]
async fn child_on_a_full_disk() {
    let Ok(folder) = std::env::var(CHILD) else { return };
    let folder = Path::new(&folder);
    let options = options(1 << 26);
    let metrics = options.metrics.clone();
    let location = Location::Sqlite(folder.join("state.db"));
    let (store, _) = Store::open(&location, options).await.unwrap();
    assert!(write(&store, "before").await);
    // All space that is left.
    let ballast = folder.join("ballast");
    assert!(std::fs::write(&ballast, vec![0; 4 << 20]).is_err(), "the disk is small");
    let large = "x".repeat(100_000);
    store.put(owner(), Kind::Answer, "large", bytes(&large), LONG);
    assert!(!store.flush().await, "not confirmed");
    assert!(store.is_degraded());
    assert_eq!(store.get_one(owner(), Kind::Answer, "before").await, Some(bytes("before")));
    assert_eq!(texts(&store.list(owner(), Kind::Log, "l").await), ["before"]);
    store.append(owner(), Kind::Log, "l", vec![bytes("during")], LONG);
    assert!(!store.flush().await, "at once");
    assert_eq!((metrics.unconfirmed.get(), metrics.lost.get()), (2, 0));
    std::fs::remove_file(&ballast).unwrap();
    confirmed(&store).await;
    assert!(!store.is_degraded());
    assert_eq!(store.get_one(owner(), Kind::Answer, "large").await, Some(bytes(&large)));
    assert_eq!(texts(&store.list(owner(), Kind::Log, "l").await), ["before", "during"]);
    drop(store);
    let store = open(&location, 1 << 26).await;
    assert_eq!(texts(&store.list(owner(), Kind::Log, "l").await), ["before", "during"]);
    assert_eq!(metrics.lost.get(), 0);
    println!("\nrecovered");
}

/// Another program holds the write lock.
#[tokio::test]
async fn a_locked_file_delays_a_turn_once_and_loses_nothing() {
    let folder = Folder::new();
    let options = options(1 << 20);
    let metrics = options.metrics.clone();
    let (store, _) = Store::open(&folder.location(), options).await.unwrap();
    assert!(write(&store, "before").await);
    let tool = Connection::open(folder.file()).unwrap();
    tool.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(!write(&store, "during").await);
    assert!(store.is_degraded(), "what was written is not there to be read");
    assert_eq!(store.get_one(owner(), Kind::Answer, "before").await, Some(bytes("before")));
    assert!(!write(&store, "also").await, "at once");
    assert!(metrics.unconfirmed.get() >= 2);
    tool.execute_batch("ROLLBACK").unwrap();
    confirmed(&store).await;
    assert_eq!(texts(&store.list(owner(), Kind::Log, "l").await), ["before", "during", "also"]);
    assert!(!store.is_degraded());
    assert_eq!(metrics.lost.get(), 0);
}

#[tokio::test]
async fn two_stores_on_one_file_write_at_the_same_time() {
    let folder = Folder::new();
    let one = open(&folder.location(), 1 << 26).await;
    let two = open(&folder.location(), 1 << 26).await;
    let turns = async |store: &Store, name: &str| {
        for n in 0..100 {
            assert!(write(store, &format!("{name}{n}")).await);
        }
    };
    tokio::join!(turns(&one, "a"), turns(&two, "b"));
    for store in [&one, &two] {
        let items = texts(&store.list(owner(), Kind::Log, "l").await);
        assert_eq!(items.len(), 200);
        let of = |name: char| items.iter().filter(move |it| it.starts_with(name));
        assert!(of('a').eq((0..100).map(|n| format!("a{n}")).collect::<Vec<_>>().iter()));
        assert!(of('b').eq((0..100).map(|n| format!("b{n}")).collect::<Vec<_>>().iter()));
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_deleted_file_is_noticed_and_its_writes_are_counted_as_lost() {
    let folder = Folder::new();
    let options = options(1 << 20);
    let lost = options.metrics.lost.clone();
    let (store, _) = Store::open(&folder.location(), options).await.unwrap();
    assert!(write(&store, "a").await);
    assert_eq!(lost.get(), 0);
    std::fs::remove_file(folder.file()).unwrap();
    write(&store, "b").await;
    assert_eq!(lost.get(), 2);
}

/// Every file of a folder, by name.
fn files(folder: &Folder) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap);
    let file = |it: std::fs::DirEntry| {
        let name = it.file_name().into_string().unwrap();
        (name, std::fs::read(it.path()).unwrap())
    };
    entries.map(file).collect()
}

#[tokio::test]
async fn deleted_text_is_gone_from_the_file_and_its_log() {
    let folder = Folder::new();
    let store = open(&folder.location(), 1 << 26).await;
    let has_text = |text: &str| {
        let has = |bytes: &[u8]| bytes.windows(text.len()).any(|it| it == text.as_bytes());
        files(&folder).iter().any(|(_, bytes)| has(bytes))
    };
    // One that fits a page, and one that needs several.
    for (id, length) in [("short", 1), ("long", 2_000)] {
        store.put(owner(), Kind::Answer, id, bytes(&"my secret words ".repeat(length)), LONG);
        store.put(owner(), Kind::Answer, &format!("{id} other"), bytes("something else"), LONG);
    }
    let items = vec![bytes("what I regret"), bytes("what I stand by")];
    store.append(owner(), Kind::Log, "l", items, LONG);
    assert!(store.flush().await);
    assert!(has_text("my secret words") && has_text("what I regret"));
    store.delete(owner(), Kind::Answer, "short");
    store.delete(owner(), Kind::Answer, "long");
    let stamp = store.list(owner(), Kind::Log, "l").await[0].stamp;
    store.erase(owner(), Kind::Log, "l", stamp);
    assert!(store.flush().await);
    assert!(!has_text("my secret words") && !has_text("what I regret"));
    assert!(has_text("something else") && has_text("what I stand by"));
}

/// The only file whose name contains a word.
fn file_named(folder: &Folder, word: &str) -> Vec<u8> {
    let mut found = files(folder);
    found.retain(|(name, _)| name.contains(word) && !name.ends_with("-shm"));
    assert_eq!(found.len(), 1, "{word}: {:?}", found.iter().map(|it| &it.0).collect::<Vec<_>>());
    found.remove(0).1
}

#[tokio::test]
async fn a_damaged_file_is_set_aside_and_a_new_one_is_used() {
    for range in [0..16, 30_000..60_000] {
        let folder = Folder::new();
        let store = open(&folder.location(), 1 << 26).await;
        for n in 0..200 {
            store.put(owner(), Kind::Answer, &n.to_string(), bytes(&"x".repeat(500)), LONG);
        }
        drop(store);
        let mut damaged = std::fs::read(folder.file()).unwrap();
        damaged[range.clone()].fill(0xff);
        std::fs::write(folder.file(), &damaged).unwrap();
        let store = open(&folder.location(), 1 << 26).await;
        assert_eq!(store.get_one(owner(), Kind::Answer, "0").await, None);
        assert!(write(&store, "new").await, "{range:?}");
        assert_eq!(file_named(&folder, ".damaged-"), damaged);
    }
}

#[tokio::test]
async fn a_log_with_damage_before_its_end_is_set_aside() {
    let folder = Folder::new();
    let store = open(&folder.location(), 1 << 26).await;
    for n in 0..10 {
        assert!(write(&store, &n.to_string()).await);
    }
    // The files as a killed process leaves them.
    let killed = Folder::new();
    std::fs::copy(folder.file(), killed.file()).unwrap();
    let wal = killed.path().join("state.db-wal");
    let mut log = std::fs::read(folder.path().join("state.db-wal")).unwrap();
    std::fs::write(&wal, &log).unwrap();
    let sound = open(&killed.location(), 1 << 26).await;
    assert_eq!(sound.list(owner(), Kind::Log, "l").await.len(), 10);
    drop(sound);
    assert!(files(&killed).iter().all(|(name, _)| !name.contains("damaged")));
    std::fs::copy(folder.file(), killed.file()).unwrap();
    let middle = log.len() / 2;
    log[middle] ^= 1;
    std::fs::write(&wal, &log).unwrap();
    let store = open(&killed.location(), 1 << 26).await;
    assert!(store.list(owner(), Kind::Log, "l").await.len() < 10);
    assert_eq!(file_named(&killed, ".damaged-"), log);
}

#[tokio::test]
async fn files_of_other_programs_are_refused_and_left_alone() {
    let foreign: [fn(&Path); 4] = [
        |path| Connection::open(path).unwrap().execute_batch("CREATE TABLE t (a)").unwrap(),
        |path| {
            let connection = Connection::open(path).unwrap();
            connection.execute_batch("PRAGMA application_id = 7; CREATE TABLE t (a)").unwrap();
        },
        |path| std::fs::write(path, "Dear diary, ".repeat(100)).unwrap(),
        // One of ours, of a later version.
        |path| {
            let connection = Connection::open(path).unwrap();
            let id = i32::from_be_bytes(*b"tgst");
            connection.pragma_update(None, "application_id", id).unwrap();
            connection.pragma_update(None, "user_version", 99).unwrap();
        },
    ];
    for (number, make) in foreign.into_iter().enumerate() {
        let folder = Folder::new();
        make(&folder.file());
        let before = std::fs::read(folder.file()).unwrap();
        let error = Store::open(&folder.location(), options(1 << 20)).await.unwrap_err();
        let wanted = ["another program", "another program", "not a database", "newer version"];
        assert!(error.to_string().contains(wanted[number]), "{error}");
        assert_eq!(std::fs::read(folder.file()).unwrap(), before, "{number}");
    }
}

#[tokio::test]
async fn a_file_of_an_older_version_is_set_aside() {
    let folder = Folder::new();
    let older = Connection::open(folder.file()).unwrap();
    older
        .execute_batch(
            "CREATE TABLE entry (place INTEGER); CREATE INDEX entry_place ON entry (place);
             PRAGMA user_version = 6",
        )
        .unwrap();
    drop(older);
    let before = std::fs::read(folder.file()).unwrap();
    let store = open(&folder.location(), 1 << 20).await;
    assert!(write(&store, "new").await);
    assert_eq!(file_named(&folder, ".older-"), before);
}

#[cfg(unix)]
#[tokio::test]
async fn files_are_for_the_user_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let inner = folder.path().join("a").join("b");
    let path = inner.join("state.db");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let store = open(&Location::Sqlite(path.clone()), 1 << 20).await;
    assert!(write(&store, "a").await);
    for entry in std::fs::read_dir(&inner).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    assert_eq!((mode(&inner), mode(inner.parent().unwrap())), (0o700, 0o700));
    drop(store);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    drop(open(&Location::Sqlite(path.clone()), 1 << 20).await);
    assert_eq!(mode(&path), 0o600);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error_without_the_password() {
    let location = Location::Valkey("redis://ann:secret@127.0.0.1:1".to_owned());
    let error = Store::open(&location, options(1 << 20)).await.unwrap_err().to_string();
    assert!(error.contains("127.0.0.1:1") && !error.contains("secret"), "{error}");
    assert!(!format!("{location:?}").contains("secret"));
}

#[tokio::test]
async fn a_server_that_may_start_away_is_waited_for() {
    let location = Location::Valkey("redis://127.0.0.1:1".to_owned());
    let options = Options { may_start_away: true, ..options(1 << 20) };
    let (away, lost) = (options.metrics.away.clone(), options.metrics.lost.clone());
    let (store, _) = Store::open(&location, options).await.unwrap();
    assert!(store.is_degraded() && away.get() == 1);
    store.put(owner(), Kind::Signature, "a", bytes("1"), LONG);
    assert_eq!(store.get_one(owner(), Kind::Signature, "a").await, Some(bytes("1")));
    assert_eq!(lost.get(), 0);
    drop(store);
    assert_eq!(lost.get(), 1);
}

/// Commands that make a server refuse writes, as when it fails over, and those that end that.
const REFUSALS: [(&[&str], &[&str]); 3] = [
    (&["REPLICAOF", "127.0.0.1", "1"], &["REPLICAOF", "NO", "ONE"]),
    (
        &["CONFIG", "SET", "min-replicas-to-write", "1"],
        &["CONFIG", "SET", "min-replicas-to-write", "0"],
    ),
    (&["CONFIG", "SET", "maxmemory", "1"], &["CONFIG", "SET", "maxmemory", "0"]),
];

/// A server that refuses writes for a while gets them later, once. Runs after the other tests that use
/// the server.
pub(crate) async fn refused_for_a_while(location: &Location) {
    let Location::Valkey(url) = location else { panic!("not a server") };
    let client = redis::Client::open(url.as_str()).unwrap();
    let mut server = client.get_multiplexed_async_connection().await.unwrap();
    for (refuse, relent) in REFUSALS {
        let mut send = async |words: &[&str]| {
            let mut command = redis::cmd(words[0]);
            command.arg(&words[1..]);
            command.query_async::<()>(&mut server).await.unwrap();
        };
        let options = options(1 << 20);
        let metrics = options.metrics.clone();
        let (store, _) = Store::open(location, options).await.unwrap();
        let list = refuse.join(" ");
        store.append(owner(), Kind::Log, &list, vec![bytes("1")], LONG);
        assert!(store.flush().await);
        send(refuse).await;
        for value in ["2", "3"] {
            store.append(owner(), Kind::Log, &list, vec![bytes(value)], LONG);
            store.put(owner(), Kind::Answer, &list, bytes(value), LONG);
            assert!(!store.flush().await);
            assert_eq!(metrics.away.get(), 1, "{list}");
            assert_eq!(store.get_one(owner(), Kind::Answer, &list).await, Some(bytes(value)));
        }
        send(relent).await;
        confirmed(&store).await;
        let other = open(location, 1 << 20).await;
        assert_eq!(other.get_one(owner(), Kind::Answer, &list).await, Some(bytes("3")), "{list}");
        let items = other.list(owner(), Kind::Log, &list).await;
        assert_eq!(texts(&items), ["1", "2", "3"], "{list}");
        assert_eq!((metrics.lost.get(), metrics.away.get()), (0, 0), "{list}");
    }
}
