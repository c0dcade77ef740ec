//! What the tables hold and let go.

use super::super::change::Change;
use super::super::sqlite_schema::MIGRATIONS;
use super::super::{Part, Wanted};
use super::*;

/// Where something of one owner is.
fn at(kind: Kind, id: &str) -> At<'_> {
    At { owner: Owner::of("o"), kind, id }
}

/// What is in a map.
fn all(file: &File, owner: Owner, map: &str) -> Vec<String> {
    let (map, part) = map_and_part(map);
    let (maps, parts) = ([map.to_owned()], [Part { name: part.to_owned(), most: 9 }]);
    let wanted = Wanted { owner, maps: &maps, parts: &|| &parts };
    let all = file.in_parts(wanted).unwrap().into_iter();
    all.map(|it| format!("{}={}", it.id, it.note)).collect()
}

/// An empty file as a version made it.
fn of_version(version: usize) -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    for migration in &MIGRATIONS[..version] {
        connection.execute_batch(migration).unwrap();
    }
    connection.pragma_update(None, "user_version", version as i64).unwrap();
    connection
}

/// What the first version kept is there after the last has taken the file over.
#[test]
fn an_old_file_is_taken_over() {
    let (owner, of_the_gateway) = (Owner::of("o"), owner_of_the_gateway());
    let until = now() + 60_000;
    let connection = of_version(1);
    let rows = [
        (1, of_the_gateway, "own", KEY, vec![vec![3; 32]]),
        (2, owner, "answer", "a", vec![b"{}".to_vec()]),
        (3, owner, "log", "l", vec![b"1".to_vec(), b"2".to_vec()]),
        (4, owner, "turn", "a", vec![b"{\"path\":[\"b\"]}\n{\"input\":\"\xc3\xa4\"}".to_vec()]),
        (5, owner, "item", "i", vec![b"a".to_vec()]),
        (6, owner, "events", "a", vec![b"data: 1\n\n".to_vec()]),
        (7, owner, "turn", "d", vec![b"{\"deleted\":true}\n".to_vec()]),
        (8, owner, "content", "m/c/1", vec![b"1 tg2".to_vec()]),
        (9, owner, "content", "n/c/1", vec![b"1 tg2".to_vec()]),
        (10, owner, "content", "m/c/2", vec![b"2 ".to_vec()]),
        (11, owner, "content", "c", vec![b"1".to_vec()]),
    ];
    for (number, owner, kind, id, values) in rows {
        let insert = "INSERT INTO entry VALUES (?, ?, ?, ?, ?, 1)";
        connection.execute(insert, params![number, owner.bytes(), kind, id, until]).unwrap();
        for value in values {
            let insert = "INSERT INTO value (entry, value) VALUES (?, ?)";
            connection.execute(insert, params![number, value]).unwrap();
        }
    }
    let mut file = File::new(connection, 1 << 20).unwrap();
    let at = |kind, id| At { owner, kind, id };
    let answer = file.get(at(Kind::Answer, "a")).unwrap().unwrap().value;
    let want = "{\"behind\":{\"path\":[\"b\"]},\"question\":14}\n{\"input\":\"ä\"}{}";
    assert_eq!(answer, want);
    let deleted = file.get(at(Kind::Answer, "d")).unwrap().unwrap().value;
    assert_eq!(deleted, "{\"behind\":{\"deleted\":true},\"question\":0}\n");
    assert_eq!(file.get(at(Kind::Events, "a")).unwrap().unwrap().value, "{}\ndata: 1\n\n");
    assert_eq!(all(&file, owner, "m:c"), ["tg2=-"]);
    assert_eq!(all(&file, owner, "n:c"), ["tg2=-"]);
    assert_eq!(file.list(at(Kind::Log, "l")).unwrap(), ["1", "2"]);
    assert_eq!(file.key([9; 32]).unwrap(), [3; 32]);
}

/// What was in maps in the version before is there too.
#[test]
fn maps_of_their_own_are_taken_over() {
    let owner = Owner::of("o");
    let connection = of_version(4);
    let insert = "INSERT INTO map_value VALUES (?, ?, ?, 'content', ?, ?, ?, ?)";
    for (number, map, value) in [(1, "m", "1 tg1"), (2, "n", "1 tg1"), (3, "m", "2 ")] {
        let (name, until) = (format!("c/{number}"), now() + 60_000);
        let row = params![number, number, owner.bytes(), map, name, until, value.as_bytes()];
        connection.execute(insert, row).unwrap();
    }
    let mut file = File::new(connection, 1 << 20).unwrap();
    assert_eq!(all(&file, owner, "m:c"), ["tg1=-"]);
    assert_eq!(all(&file, owner, "n:c"), ["tg1=-"]);
    // The same from a tail.
    let mut log = Vec::new();
    let at = At { owner, kind: Kind::Map, id: "n/c/9" };
    Change { at, what: What::Put(b"3 tg9", Vec::new()), until: i64::MAX }.write(&mut log);
    file.write(&log, &mut Refused::default()).unwrap();
    assert_eq!(all(&file, owner, "n:c"), ["tg1=-", "tg9=-"]);
}

/// And what a map had together before everything said was one by itself.
#[test]
fn maps_are_split() {
    let owner = Owner::of("o");
    let connection = of_version(5);
    let insert = "INSERT INTO entry VALUES (?, ?, ?, ?, ?, x'', ?, ?, ?)";
    let rows = [
        (1, "signature", "tg1", "m", "c/"),
        (2, "map", "1/tg1", "n", "c/"),
        (3, "signature", "tg2", "m", "d/tg1"),
        (4, "signature", "tg3", "m", "c/tg2"),
        (5, "signature", "tg4", "m", "c"),
    ];
    for (number, kind, id, map, note) in rows {
        let (until, place) = (now() + 60_000, 7_i64 << 32 | number);
        let row = params![number, owner.bytes(), kind, id, until, place, map, note];
        connection.execute(insert, row).unwrap();
    }
    let file = File::new(connection, 1 << 20).unwrap();
    assert_eq!(all(&file, owner, "m:c"), ["tg1=", "tg3=tg2", "tg4=-"]);
    assert_eq!(all(&file, owner, "m:d"), ["tg2=tg1"]);
    assert_eq!(all(&file, owner, "n:c"), ["tg1="]);
}

/// Nobody finds or loses something where two maps have the same place.
#[test]
fn a_place_can_belong_to_several() {
    let mut file = File::new(Connection::open_in_memory().unwrap(), 1 << 20).unwrap();
    file.begin().unwrap();
    let (one, two) = (Owner::of("one"), Owner::of("two"));
    let at = |owner, id| At { owner, kind: Kind::Signature, id };
    let mut put = Put::new(&file.connection).unwrap();
    put.put(at(one, "1"), b"", &[("m:p", "a")], i64::MAX).unwrap();
    let place = Place::of(two, "m:p").number();
    file.connection.execute("UPDATE entry SET place = ?", [place]).unwrap();
    assert_eq!(all(&file, two, "m:p"), [""; 0]);
    put.put(at(two, "2"), b"", &[("m:p", "a")], i64::MAX).unwrap();
    assert_eq!(all(&file, two, "m:p"), ["2=a"]);
    assert!(file.get(at(one, "1")).unwrap().is_some());
}

/// Where nothing is, nobody has to know what it would be called.
#[test]
fn what_is_not_there_is_not_looked_for() {
    let mut file = File::new(Connection::open_in_memory().unwrap(), 1 << 20).unwrap();
    file.begin().unwrap();
    let (owner, maps) = (Owner::of("o"), ["m".to_owned()]);
    let at = At { owner, kind: Kind::Signature, id: "1" };
    Put::new(&file.connection).unwrap().put(at, b"", &[("n:p", "a")], i64::MAX).unwrap();
    let parts = || -> &[Part] { panic!("nothing is there") };
    let wanted = Wanted { owner, maps: &maps, parts: &parts };
    assert!(file.in_parts(wanted).unwrap().is_empty());
}

/// r128: age alone lets go, and what is kept for ever stays.
#[test]
fn r128_what_is_too_old_goes() {
    let mut file = File::new(Connection::open_in_memory().unwrap(), 1 << 20).unwrap();
    file.key([9; 32]).unwrap();
    let at = |id| At { owner: Owner::of("o"), kind: Kind::Answer, id };
    let log = At { kind: Kind::Log, ..at("l") };
    let named = |id| At { kind: Kind::Signature, ..at(id) };
    let count = |file: &File, table: &str| -> i64 {
        let count = format!("SELECT count(*) FROM {table}");
        file.connection.query_row(&count, [], |row| row.get(0)).unwrap()
    };
    file.begin().unwrap();
    let mut put = Put::new(&file.connection).unwrap();
    for id in ["a", "b"] {
        put.put(at(id), b"", &[], now()).unwrap();
    }
    // What is put again is new: it does not hold up what came between.
    put.put(named("a"), b"", &[("m", "a"), ("n", "a")], now() + 60_000).unwrap();
    put.put(named("b"), b"", &[("m", "b"), ("n", "b")], now()).unwrap();
    put.put(named("a"), b"", &[("m", "a"), ("n", "a")], now() + 60_000).unwrap();
    put.put(at("c"), b"", &[], now() + 60_000).unwrap();
    drop(put);
    file.append(log, &[b"1"], now()).unwrap();
    file.sweep().unwrap();
    file.commit().unwrap();
    // Two rows, the key and the entry that is in two maps.
    let tables = ["entry", "list", "list_value"];
    assert_eq!(tables.map(|table| count(&file, table)), [4, 0, 0]);
    assert!(file.get(at("c")).unwrap().is_some());
    assert!(file.get(named("a")).unwrap().is_some());
    assert_eq!(file.key([1; 32]).unwrap(), [9; 32]);
}

/// r128: there is room for what is new, and no more goes for it than must.
#[test]
fn r128_only_what_is_too_much_goes() {
    let limit = 8 << 20;
    let mut file = File::new(Connection::open_in_memory().unwrap(), limit).unwrap();
    let value = vec![b'x'; 900_000];
    let ids: Vec<String> = (0..30).map(|n| format!("a{n}")).collect();
    for (n, id) in ids.iter().enumerate() {
        let mut log = Vec::new();
        let until = now() + 60_000 + n as i64;
        let put = What::Put(&value, Vec::new());
        Change { at: at(Kind::Answer, id), what: put, until }.write(&mut log);
        // A short one comes last now and then.
        if n % 3 == 0 {
            let what = What::Put(b"1", Vec::new());
            Change { at: at(Kind::Tools, id), what, until }.write(&mut log);
        }
        file.write(&log, &mut Refused::default()).unwrap();
        file.commit().unwrap();
        let there = |id: &String| file.get(at(Kind::Answer, id)).unwrap().is_some();
        let count = ids.iter().filter(|id| there(id)).count();
        assert!(there(id) && (7.min(n + 1)..=9).contains(&count), "{count} after {n}");
        assert!(file.used().unwrap() <= limit);
    }
    // What is longer than all there may be is there until the next comes.
    for id in &ids[..2] {
        let long = vec![b'x'; 9 << 20];
        file.begin().unwrap();
        let mut put = Put::new(&file.connection).unwrap();
        put.put(at(Kind::Answer, id), &long, &[], now() + 60_000).unwrap();
        drop(put);
        file.unseen = limit;
        file.commit().unwrap();
        assert!(file.get(at(Kind::Answer, id)).unwrap().is_some());
        assert!(file.used().unwrap() < 2 * limit);
    }
}

/// r128: the list that was added to last stays as long as it does not take all the room.
#[test]
fn r128_lists_go_one_by_one() {
    let limit = 4 << 20;
    let mut file = File::new(Connection::open_in_memory().unwrap(), limit).unwrap();
    let value = vec![b'x'; 900_000];
    let ids: Vec<String> = (0..12).map(|n| format!("l{n}")).collect();
    let add = |file: &mut File, id: &str, until| {
        file.append(at(Kind::Log, id), &[&value], until).unwrap();
        file.unseen = limit;
        file.commit().unwrap();
        file.list(at(Kind::Log, id)).unwrap().len()
    };
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(add(&mut file, id, now() + 60_000 + n as i64), 1);
        let there = |id: &&String| !file.list(at(Kind::Log, id)).unwrap().is_empty();
        let count = ids.iter().filter(there).count();
        assert!((3.min(n + 1)..=4).contains(&count), "{count} after {n}");
    }
    let lengths: Vec<usize> = (0..9).map(|_| add(&mut file, "l11", now() + 90_000)).collect();
    assert!(lengths.contains(&4) && lengths.contains(&0), "{lengths:?}");
    assert!(file.used().unwrap() <= limit);
}

/// The error is the first one, and no transaction is left open.
#[test]
fn what_cannot_be_let_go_undoes_all() {
    let mut file = File::new(Connection::open_in_memory().unwrap(), 100_000).unwrap();
    let at = |id| At { owner: Owner::of("o"), kind: Kind::Answer, id };
    let log = |id, value: &[u8]| {
        let mut log = Vec::new();
        let what = What::Put(value, Vec::new());
        Change { at: at(id), what, until: i64::MAX }.write(&mut log);
        log
    };
    let write = |file: &mut File, id, value: &[u8]| {
        file.write(&log(id, value), &mut Refused::default()).unwrap();
        let committed = file.commit();
        assert!(file.connection.is_autocommit());
        committed
    };
    write(&mut file, "a", b"1").unwrap();
    let long = vec![b'x'; 200_000];
    for how in ["ABORT", "ROLLBACK"] {
        let trigger = format!(
            "CREATE TEMP TRIGGER t BEFORE DELETE ON entry BEGIN SELECT raise({how}, 'no'); END"
        );
        file.connection.execute_batch(&trigger).unwrap();
        let error = write(&mut file, "b", &long).unwrap_err();
        assert_eq!(error.to_string(), "no", "{how}");
        file.connection.execute_batch("DROP TRIGGER t").unwrap();
        assert!(file.get(at("a")).unwrap().is_some());
        assert!(file.get(at("b")).unwrap().is_none());
    }
}
